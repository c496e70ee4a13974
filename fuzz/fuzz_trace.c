/* SPDX-License-Identifier: Apache-2.0
 *
 * Request traces: a text is refused with a sentence, or all of its requests are
 * within limits and reading fewer of them gives the same ones.
 */
#include "fuzz.h"

#include "tool/trace.h"

#define TOKENS_MAX (1u << 27)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    const char *text = (const char *)copy;
    struct pdx_error why = {0};
    struct tool_trace all, one;
    int r = tool_trace_parse(text, size, "fuzz.jsonl", 0, &all, &why);

    if (r < 0) {
        FUZZ_CHECK(r == PDX_EINVAL && why.code == r && why.text[0]);
        free(copy);
        return 0;
    }
    FUZZ_CHECK(all.n >= 1 && all.n <= size);
    for (size_t i = 0; i < all.n; i++) {
        FUZZ_CHECK(all.requests[i].input_length >= 1);
        FUZZ_CHECK(all.requests[i].input_length <= TOKENS_MAX);
        FUZZ_CHECK(all.requests[i].output_length <= TOKENS_MAX);
    }
    FUZZ_CHECK(tool_trace_parse(text, size, "fuzz.jsonl", 1, &one, NULL) == 0 && one.n == 1);
    FUZZ_CHECK(memcmp(&one.requests[0], &all.requests[0], sizeof one.requests[0]) == 0);
    tool_trace_fini(&one);
    tool_trace_fini(&all);
    free(copy);
    return 0;
}
