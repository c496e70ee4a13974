/* SPDX-License-Identifier: Apache-2.0
 *
 * The shortest whole use of the library: two engines, here in one process on
 * loopback, and one transfer between them. In real life the two descriptors
 * cross by whatever channel the two programs already have. README.md shows the
 * marked part; a test keeps the two alike.
 */
/* shown */
#include <pdx/pdx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char source[1 << 20], destination[1 << 20];
static struct pdx_error why; /* optional in most calls: code, class, cost and a sentence */

static void must(int result)
{
    if (result < 0) {
        fprintf(stderr, "copy: %s\n", why.text);
        exit(1);
    }
}

static struct pdx_engine *engine_create(const char *name)
{
    struct pdx_engine_opts opts;
    struct pdx_engine *engine;

    pdx_engine_opts_init(&opts);
    opts.name = name;
    must(pdx_engine_create(&opts, &engine, &why)); /* listens on 127.0.0.1, any port */
    return engine;
}

int main(void)
{
    struct pdx_engine *decode = engine_create("decode-0"), *prefill = engine_create("prefill-0");
    struct pdx_region *offered, *local;
    struct pdx_remote remote;
    struct pdx_peer *peer;
    struct pdx_transfer_status *status;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_seg segs[] = {{0, 4096, 65536}, {131072, 524288, 262144}}; /* from, to, length */
    char engine_desc[8192], region_desc[1024];
    size_t engine_len, region_len;

    /* Decode offers memory: two short byte strings, for any channel to carry. */
    must(pdx_region_register(decode, destination, sizeof(destination), NULL, &offered, &why));
    engine_len = pdx_engine_desc(decode, engine_desc, sizeof(engine_desc));
    region_len = pdx_region_export(offered, region_desc, sizeof(region_desc));

    /* Prefill takes them and writes. No call below blocks but the wait. */
    memset(source, 'x', sizeof(source));
    must(pdx_region_register(prefill, source, sizeof(source), NULL, &local, &why));
    must(pdx_peer_add(prefill, engine_desc, engine_len, &peer, &why));
    must(pdx_remote_decode(region_desc, region_len, &remote, &why));
    opts.id = 42;
    opts.deadline_ns = 10 * PDX_SEC;
    must(pdx_write(peer, local, &remote, segs, 2, &opts, &status, &why));
    (void)pdx_transfer_wait(status, PDX_FOREVER); /* ends: the transfer has a deadline */
    printf("%s\n", pdx_transfer_text(status));
    if (pdx_transfer_code(status) != PDX_DONE)
        return 1;

    pdx_transfer_put(status);
    pdx_peer_put(peer);
    must(pdx_region_deregister(local, PDX_SEC, &why));
    must(pdx_region_deregister(offered, PDX_SEC, &why));
    pdx_engine_destroy(prefill);
    pdx_engine_destroy(decode);

    /* The two pieces have arrived, and nothing else was touched. */
    for (size_t i = 0; i < sizeof(destination); i++) {
        char expected = (i >= 4096 && i < 4096 + 65536) || (i >= 524288 && i < 786432) ? 'x' : 0;

        if (destination[i] != expected) {
            fprintf(stderr, "copy: byte %zu is wrong\n", i);
            return 1;
        }
    }
    return 0;
}
/* end */
