/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads doc/wire-vectors.txt, the examples of the wire format that the
 * documentation shows, so that document and code can't part. PDX_SOURCE_DIR
 * comes from the build.
 */
#ifndef PDX_TESTS_WIRE_VECTORS_H
#define PDX_TESTS_WIRE_VECTORS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a line of hexadecimal bytes. Returns the new length, or 0 when the line is none. */
static inline size_t wire_vector_line(const char *line, uint8_t *buf, size_t cap, size_t len)
{
    unsigned byte;
    int n;

    while (len < cap && sscanf(line, " %2x%n", &byte, &n) == 1) {
        buf[len++] = (uint8_t)byte;
        line += n;
    }
    return line[strspn(line, " \n")] == '\0' ? len : 0;
}

/* The bytes of a section, which fails the test when it is missing. Returns their number. */
static inline size_t wire_vector(const char *name, uint8_t *buf, size_t cap)
{
    FILE *f = fopen(PDX_SOURCE_DIR "/doc/wire-vectors.txt", "r");
    char head[64];
    char line[256];
    bool inside = false;
    size_t len = 0;

    assert_non_null(f);
    (void)snprintf(head, sizeof head, "[%s]\n", name);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '[') {
            inside = strcmp(line, head) == 0;
        } else if (inside && line[0] != '#' && line[0] != '\n') {
            len = wire_vector_line(line, buf, cap, len);
            assert_true(len > 0);
        }
    }
    (void)fclose(f);
    if (len == 0)
        fail_msg("no vector \"%s\" in doc/wire-vectors.txt", name);
    return len;
}

#endif
