/* SPDX-License-Identifier: Apache-2.0
 *
 * The main of a fuzz target in ordinary builds: runs every file of the given
 * folders through the target. Each input has a process of its own, so that one
 * crash neither hides the others nor ends the run, and so that a leak is blamed
 * on its input.
 */
#include "fuzz.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPLAY_INPUT_MAX (1 << 20)

static int replay_child(const char *path)
{
    static uint8_t buf[REPLAY_INPUT_MAX];
    FILE *f = fopen(path, "rb");
    uint8_t *input;
    size_t size;

    if (!f) {
        perror(path);
        return EXIT_FAILURE;
    }
    size = fread(buf, 1, sizeof buf, f);
    if (ferror(f) || !feof(f)) {
        (void)fprintf(stderr, "%s: not readable, or %d bytes or more\n", path, REPLAY_INPUT_MAX);
        (void)fclose(f);
        return EXIT_FAILURE;
    }
    (void)fclose(f);
    input = fuzz_copy(buf, size);
    (void)LLVMFuzzerTestOneInput(input, size);
    free(input);
    return EXIT_SUCCESS;
}

static int replay_file(const char *path)
{
    pid_t pid = fork();
    int status;

    if (pid < 0) {
        perror("fork");
        return -1;
    }
    if (pid == 0)
        exit(replay_child(path));
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    (void)fprintf(stderr, "FAILED: %s\n", path);
    return -1;
}

static int replay_folder(const char *folder, unsigned *passed, unsigned *failed)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);

    if (n < 0) {
        perror(folder);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        int len = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);

        if (entries[i]->d_name[0] != '.') {
            if (len > 0 && (size_t)len < sizeof path && replay_file(path) == 0)
                (*passed)++;
            else
                (*failed)++;
        }
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned passed = 0;
    unsigned failed = 0;

    for (int i = 1; i < argc; i++)
        if (replay_folder(argv[i], &passed, &failed) < 0)
            return EXIT_FAILURE;
    printf("%u passed, %u failed\n", passed, failed);
    if (passed + failed == 0)
        (void)fprintf(stderr, "no input; usage: %s <folder>...\n", argv[0]);
    return passed > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
