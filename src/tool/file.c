/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads by growing, not by asking for the size, so that pipes work and
 * endless files end at the limit.
 */
#include "tool/file.h"

#include "tool/refuse.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_CHUNK 65536

/* Appends to *text until the end or until more than max bytes are there. */
static int file_fill(FILE *f, size_t max, char **text, size_t *len)
{
    size_t cap = 0;

    for (;;) {
        size_t n;

        if (cap - *len < FILE_CHUNK) {
            size_t want = cap ? cap * 2 : 2 * FILE_CHUNK;
            char *grown = realloc(*text, want + 1);

            if (!grown)
                return PDX_ENOMEM;
            *text = grown;
            cap = want;
        }
        n = fread(*text + *len, 1, FILE_CHUNK, f);
        *len += n;
        (*text)[*len] = '\0';
        if (ferror(f))
            return PDX_ESYS;
        if (*len > max)
            return PDX_EINVAL;
        if (n < FILE_CHUNK)
            return 0;
    }
}

int tool_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                   struct pdx_error *why)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t len = 0;
    int r, err;

    if (!f)
        return tool_refuse_sys(why, errno, "cannot open %s", path);
    r = file_fill(f, max, &text, &len);
    err = errno;
    (void)fclose(f);
    if (r == 0) {
        *ret_text = text;
        *ret_len = len;
        return 0;
    }
    free(text);
    if (r == PDX_ESYS)
        return tool_refuse_sys(why, err, "cannot read %s", path);
    if (r == PDX_EINVAL)
        return tool_refuse(why, r, "%s is longer than %zu bytes, which is more than is read", path,
                           max);
    return tool_refuse(why, r, "no memory to read %s", path);
}
