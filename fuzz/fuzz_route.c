/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes and sends between two layouts. The input begins with two bytes: how
 * the run goes (the MODE_ bits), and the route's flags; then come types of the
 * caller (own_types.h), both descriptions (sides.h), with MODE_RAW the length
 * (two bytes) of a remote layout as a peer might send it and the layout itself,
 * and sends (sends.h) to the end.
 *
 * What is accepted is encoded, decoded and comes back the same; pdx_route_check
 * and pdx_route_create say the same; a route keeps nothing of what it was made
 * from; and every send comes to what the documents say (judge.h), with pieces
 * that stay inside the items they name (walk.h). The engine is a recorder.
 */
#include "fuzz.h"
#include "own_types.h"
#include "sends.h"
#include "sides.h"

#define MODE_RAW        1  /* the remote layout is bytes of the input */
#define MODE_ANY_PEER   2  /* the peer is whoever owns the remote layout's regions */
#define MODE_NO_OPTS    4  /* options NULL */
#define MODE_SHORT_OPTS 8  /* options of an older size, which has no types */
#define MODE_SWAPPED    16 /* the decoded layout is given as the local one */
#define MODE_LOG        32
#define MODE_NO_SIZE    64  /* options of no size */
#define MODE_MANY_TYPES 128 /* more of the caller's types than there may be */

struct run {
    uint8_t mode;
    struct own_types types;
    struct own_types given; /* the copy that the route gets to see */
    struct pdx_route_opts opts;
    struct sides sides;
    struct pdx_layout *local;
    struct pdx_layout *remote;
};

static void run_log(void *ctx, enum pdx_log_level level, const char *text)
{
    FUZZ_CHECK(ctx && level <= PDX_LOG_DEBUG && text && text[0]);
}

/* Another layout from the same bytes. */
static struct pdx_layout *layout_again(const struct pdx_layout *l)
{
    struct pdx_layout *again = NULL;
    size_t len = pdx_layout_encode(l, NULL, 0);
    uint8_t *once = malloc(len), *twice = malloc(len);

    FUZZ_CHECK(once && twice);
    FUZZ_CHECK(pdx_layout_encode(l, once, len) == len);
    FUZZ_CHECK(pdx_layout_decode(once, len, &again, NULL) == 0);
    FUZZ_CHECK(pdx_layout_encode(again, twice, len) == len && memcmp(once, twice, len) == 0);
    free(once);
    free(twice);
    return again;
}

static struct pdx_layout *layout_made(const struct pdx_layout_desc *desc)
{
    struct pdx_layout *l = NULL;
    struct pdx_error why;
    int rc;

    sends_spoil_error(&why);
    rc = pdx_layout_create(desc, &l, &why);
    if (rc == 0)
        return l;
    sends_check_error(rc, &why);
    FUZZ_CHECK(!l && (rc == PDX_EINVAL || rc == PDX_ERANGE));
    return NULL;
}

static struct pdx_layout *layout_raw(struct fuzz_input *in)
{
    struct pdx_layout *l = NULL;
    struct pdx_error why;
    size_t len = fuzz_input_byte(in);
    uint8_t *copy;
    int rc;

    len |= (size_t)fuzz_input_byte(in) << 8;
    len = len < in->left ? len : in->left;
    copy = malloc(len ? len : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, in->data, len);
    in->data += len;
    in->left -= len;
    sends_spoil_error(&why);
    rc = pdx_layout_decode(copy, len, &l, &why);
    free(copy);
    if (rc == 0)
        return l;
    sends_check_error(rc, &why);
    FUZZ_CHECK(!l && (rc == PDX_EPROTO || rc == PDX_EVERSION));
    return NULL;
}

static bool run_layouts(struct run *r, struct fuzz_input *in)
{
    struct pdx_layout *made;

    r->local = layout_made(&r->sides.local.desc);
    if (r->mode & MODE_RAW) {
        r->remote = layout_raw(in);
    } else {
        made = layout_made(&r->sides.remote.desc);
        if (made)
            r->remote = layout_again(made);
        pdx_layout_destroy(made);
    }
    if (r->local && r->remote && (r->mode & MODE_ANY_PEER) && r->remote->nregions)
        recorder_peer_is(r->remote->regions[0].remote.incarnation);
    return r->local && r->remote;
}

static const struct pdx_route_opts *run_opts(struct run *r, uint8_t flags)
{
    r->given = r->types;
    for (size_t i = 0; i < r->given.n; i++)
        if (r->given.rows[i].slicer)
            r->given.rows[i].slicer_ctx = &r->given.slicers[i];
    r->opts = (struct pdx_route_opts)PDX_ROUTE_OPTS_INIT;
    r->opts.flags = flags & 15;
    if (flags & 0x80)
        r->opts.flags |= 1u << 20;
    r->opts.types = r->given.rows;
    r->opts.ntypes = r->given.n;
    if (flags & 0x40)
        r->opts.types = NULL;
    if (r->mode & MODE_LOG) {
        r->opts.log = run_log;
        r->opts.log_ctx = r;
    }
    if (r->mode & MODE_SHORT_OPTS) {
        r->opts.size = offsetof(struct pdx_route_opts, types);
        r->types.n = 0;
    }
    if (r->mode & MODE_NO_SIZE)
        r->opts.size = 0;
    if (r->mode & MODE_MANY_TYPES)
        r->opts.ntypes = PDXI_STATE_TYPES_MAX + 1;
    if (!(r->mode & MODE_NO_OPTS))
        return &r->opts;
    r->types.n = 0;
    r->opts.flags = 0;
    return NULL;
}

/* Whether every remote region may be written. */
static bool remote_writable(const struct pdx_layout *l)
{
    for (uint32_t i = 0; i < l->nregions; i++)
        if (!(l->regions[i].remote.rights & PDX_RIGHT_WRITE))
            return false;
    return true;
}

static bool remote_stale(const struct pdx_layout *l)
{
    struct pdx_peer_info info;

    pdx_peer_info(recorder_peer(), &info);
    return l->nregions &&
           memcmp(l->regions[0].remote.incarnation, info.incarnation, sizeof info.incarnation) != 0;
}

/* Creating a route finds what checking finds, and what only an engine knows. */
static struct pdx_route *run_route(struct run *r, const struct pdx_route_opts *opts)
{
    static struct pdx_error checked, created;
    struct pdx_route *route = NULL;
    int check, create;

    sends_spoil_error(&checked);
    sends_spoil_error(&created);
    check = pdx_route_check(r->local, r->remote, opts, &checked);
    create = pdx_route_create(recorder_engine(), r->local, recorder_peer(), r->remote, opts, &route,
                              &created);
    FUZZ_CHECK((create == 0) == (route != NULL));
    if (create < 0)
        sends_check_error(create, &created);
    if (check < 0) {
        sends_check_error(check, &checked);
        FUZZ_CHECK(check == PDX_EMISMATCH || check == PDX_EINVAL);
        FUZZ_CHECK(create == check || (create == PDX_ESTALE && remote_stale(r->remote)));
        FUZZ_CHECK(create != check || strcmp(checked.text, created.text) == 0);
    } else if (create == PDX_ESTALE) {
        FUZZ_CHECK(remote_stale(r->remote));
    } else if (create == PDX_EACCESS) {
        FUZZ_CHECK(!remote_writable(r->remote));
    } else {
        FUZZ_CHECK(create == 0 || create == PDX_EOVERFLOW);
    }
    return route;
}

/* A decoded layout can be checked from either side, but not sent from. */
static void run_swapped(struct run *r, const struct pdx_route_opts *opts)
{
    struct pdx_route *route = NULL;
    struct pdx_error why;
    int rc;

    sends_spoil_error(&why);
    rc = pdx_route_check(r->remote, r->local, opts, &why);
    if (rc < 0)
        sends_check_error(rc, &why);
    rc = pdx_route_create(recorder_engine(), r->remote, recorder_peer(), r->local, opts, &route,
                          NULL);
    FUZZ_CHECK(rc == PDX_EINVAL && !route);
}

static void run_sends(struct run *r, struct pdx_route *route, struct fuzz_input *in)
{
    struct pdx_layout *local = layout_again(r->local), *remote = layout_again(r->remote);
    struct judge j = {.route = route,
                      .local = local,
                      .remote = remote,
                      .flags = r->opts.flags,
                      .types = r->types.rows,
                      .ntypes = r->types.n};

    /* The route has all that it needs. */
    memset(&r->given, 0xff, sizeof r->given);
    pdx_layout_destroy(r->local);
    pdx_layout_destroy(r->remote);
    r->local = r->remote = NULL;
    judge_route(&j);
    sends_run(&j, route, in);
    pdx_layout_destroy(local);
    pdx_layout_destroy(remote);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run r;
    struct fuzz_input in = {data, size};
    const struct pdx_route_opts *opts;
    struct pdx_route *route;
    uint8_t flags;

    r.local = r.remote = NULL;
    r.mode = fuzz_input_byte(&in);
    flags = fuzz_input_byte(&in);
    own_types_read(&r.types, &in);
    sides_read(&r.sides, &in);
    if (run_layouts(&r, &in)) {
        opts = run_opts(&r, flags);
        if (r.mode & MODE_SWAPPED)
            run_swapped(&r, opts);
        route = run_route(&r, opts);
        if (route)
            run_sends(&r, route, &in);
        pdx_route_destroy(route);
    }
    pdx_layout_destroy(r.local);
    pdx_layout_destroy(r.remote);
    recorder_end();
    return 0;
}
