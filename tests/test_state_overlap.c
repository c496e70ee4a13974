/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether tensors of one list share bytes, against a mark on every byte: small
 * tensors of any stride anywhere in a small region. Whole layouts:
 * test_state_tensor.c.
 */
#include "fake_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SHARE_LEN 96

/* Small tensors anywhere in a small region, marked byte by byte: those that share one are refused,
 * those that share none are taken when they lie apart or have the same stride. */
static void test_tensors_that_share_bytes_are_found(void **state)
{
    uint64_t seed = 20240801;
    size_t refused = 0, taken = 0, turned = 0;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 40000; round++) {
        struct pdx_tensor t[2];
        struct pdx_component c = {.type = "mamba", .tensors = t, .ntensors = 2};
        struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;
        struct pdx_layout *l = NULL;
        struct pdx_region *region = fake_region(FAKE_LOCAL, SHARE_LEN);
        uint8_t marks[SHARE_LEN] = {0};
        bool share = false, apart;
        int rc;

        for (int i = 0; i < 2; i++) {
            uint64_t x = (seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407) >> 20;
            uint64_t item_len = 1 + x % 5, stride = item_len + x / 5 % 7, n = 1 + x / 35 % 6;

            t[i] = (struct pdx_tensor){.region = region, .item_len = item_len, .stride = stride};
            if (i && x % 3)
                t[i].stride = stride = t[0].stride > item_len ? t[0].stride : item_len;
            t[i].len = (n - 1) * stride + item_len;
            t[i].off = x / 210 % (SHARE_LEN - t[i].len + 1);
            for (uint64_t k = 0; k < n; k++)
                for (uint64_t b = 0; b < item_len; b++)
                    share = marks[t[i].off + k * stride + b]++ || share;
        }
        apart = t[0].off + t[0].len <= t[1].off || t[1].off + t[1].len <= t[0].off;
        desc.components = &c;
        desc.ncomponents = 1;
        rc = pdx_layout_create(&desc, &l, NULL);
        if ((share && rc == 0) || (!share && rc < 0 && (apart || t[0].stride == t[1].stride)))
            fail_msg("off %d, item_len %d, stride %d, len %d; off %d, item_len %d, stride %d, len "
                     "%d: %s",
                     (int)t[0].off, (int)t[0].item_len, (int)t[0].stride, (int)t[0].len,
                     (int)t[1].off, (int)t[1].item_len, (int)t[1].stride, (int)t[1].len,
                     pdx_err_name(rc));
        refused += rc < 0;
        taken += rc == 0;
        turned += rc == 0 && !apart;
        pdx_layout_destroy(l);
        fake_reset();
    }
    assert_true(refused > 1000 && taken > 1000 && turned > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_that_share_bytes_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
