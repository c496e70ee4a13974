/* SPDX-License-Identifier: Apache-2.0
 *
 * See sends.h. A send is read first (lists, options), then made once, or once
 * whole and once more in ranges of layers that follow each other.
 */
#include "sends.h"

#include "fuzz.h"
#include "sides.h"

#define SENDS_MAX  12
#define RANGES_MAX 5
#define LISTS_MAX  (SIDES_COMPONENTS_MAX + 1) /* one more than there can be components */

/* Pairs with the code that the engine is told to refuse with. */
#define REFUSAL PDX_EAGAIN

enum send_kind { SEND_KV, SEND_STATE, SEND_AUX };

/* One call, as the input tells it. */
struct send {
    enum send_kind kind;
    bool engine_refuses;
    bool no_why;
    bool no_statuses;
    struct pdx_submit_opts opts;
    bool has_opts;
    struct pdx_layers layers;
    bool has_layers;
    size_t n; /* lists that are passed */
    size_t cap;
    bool no_lists; /* NULL for all of them */
    struct index_list src[LISTS_MAX];
    struct index_list dst[LISTS_MAX];
};

/* What a send must come to. */
struct want {
    enum verdict verdict; /* of the call: refused, nothing or sent */
    size_t nsent;
    enum verdict each[LISTS_MAX];
    struct pdx_route_counters counters; /* added */
};

static struct {
    struct judge *j;
    struct pdx_route *route;
    struct pdx_route_counters counters; /* as they must be */
    struct judge_items items[LISTS_MAX];
} sends;

void sends_spoil_error(struct pdx_error *why)
{
    memset(why, 0xff, sizeof *why);
}

void sends_check_error(int rc, const struct pdx_error *why)
{
    FUZZ_CHECK(rc < 0 && why->code == rc && why->cost == PDX_COST_NONE);
    FUZZ_CHECK(why->error_class == pdx_err_class(rc) && pdx_err_class(rc) != PDX_CLASS_NONE);
    FUZZ_CHECK(why->text[0] && memchr(why->text, 0, sizeof why->text));
}

/* --- reading --- */

static void read_options(struct send *s, struct fuzz_input *in)
{
    static const char note[4] = "note";
    uint8_t how = fuzz_input_byte(in);

    s->engine_refuses = how & 1;
    s->no_why = how & 2;
    s->no_statuses = how & 4;
    s->has_opts = how & 8;
    s->opts = (struct pdx_submit_opts)PDX_SUBMIT_OPTS_INIT;
    s->opts.id = how;
    if (how & 16)
        s->opts.flags = PDX_SUBMIT_TRACK;
    if (how & 32) {
        s->opts.notify = note;
        s->opts.notify_len = sizeof note;
    }
    if (how & 64)
        s->opts.deadline_ns = PDX_FOREVER;
    if (how & 128)
        s->opts.level = PDX_LEVEL_LOCAL;
}

/* A bound of a range of layers: small, or none that can be. */
static int32_t input_layer(struct fuzz_input *in)
{
    static const int32_t rare[] = {PDX_LAYERS_END, -1, INT32_MIN, PDX_LAYERS_END - 1};
    uint8_t b = fuzz_input_byte(in);

    return b < 0xfc ? b % 32 : rare[b - 0xfc];
}

static void read_state_lists(struct send *s, struct fuzz_input *in)
{
    size_t n = sends.j->local->ncomponents;
    uint8_t more = fuzz_input_byte(in); /* 1: one list too many, 2: one too few; 4: little room;
                                            8: no lists at all */

    s->n = n + ((more & 3) == 1) - (n && (more & 3) == 2);
    s->cap = more & 4 ? s->n / 2 : s->n;
    s->no_lists = more & 8;
    for (size_t c = 0; c < s->n; c++) {
        int payload = (int)(c < n ? c : 0);
        uint64_t local = n ? judge_ring(sends.j, payload, false) : 0;
        uint64_t remote = n ? judge_ring(sends.j, payload, true) : 0;

        index_list_read(&s->src[c], in, local, NULL);
        index_list_read(&s->dst[c], in, remote, &s->src[c]);
    }
}

/* The byte `what`: 0, 1: kv; 2, 3: state; 4: aux; bit 3: by layers, which follow. */
static void read_send(struct send *s, uint8_t what, struct fuzz_input *in)
{
    static const enum send_kind kinds[] = {SEND_KV,    SEND_KV,  SEND_STATE, SEND_STATE,
                                           SEND_STATE, SEND_AUX, SEND_KV,    SEND_STATE};

    s->kind = kinds[what & 7];
    s->has_layers = (what & 8) && s->kind != SEND_AUX;
    read_options(s, in);
    if (s->has_layers) {
        s->layers.first = input_layer(in);
        s->layers.end = input_layer(in);
    }
    if (s->kind == SEND_STATE) {
        read_state_lists(s, in);
        return;
    }
    s->n = s->cap = 1;
    index_list_read(&s->src[0], in, 0, NULL);
    index_list_read(&s->dst[0], in, 0, &s->src[0]);
    if (s->kind == SEND_AUX && (s->src[0].n == 0 || s->dst[0].n == 0))
        s->n = 0; /* there is no slot to send */
}

static void send_fini(struct send *s)
{
    for (size_t i = 0; i < LISTS_MAX; i++) {
        index_list_fini(&s->src[i]);
        index_list_fini(&s->dst[i]);
    }
}

/* --- what must come of it --- */

static void want_one(struct want *w, size_t i, enum verdict v, uint64_t *sent)
{
    w->each[i] = v;
    if (v == VERDICT_REFUSED)
        w->verdict = VERDICT_REFUSED;
    w->nsent += v == VERDICT_SENT;
    *sent += v == VERDICT_SENT;
    w->counters.elsewhere += v == VERDICT_ELSEWHERE;
}

static void want_state(struct want *w, const struct send *s, const struct pdx_layers *layers)
{
    const struct pdx_layout *l = sends.j->local;

    if (s->n != l->ncomponents || (s->n && s->no_lists) || (!s->no_statuses && s->cap < s->n))
        w->verdict = VERDICT_REFUSED;
    for (size_t c = 0; c < s->n && c < l->ncomponents; c++)
        if (!judge_type(sends.j, l->components[c].type))
            w->verdict = VERDICT_REFUSED;
    for (size_t c = 0; c < s->n && w->verdict != VERDICT_REFUSED; c++) {
        struct judge_items *items = &sends.items[c];

        want_one(w, c,
                 judge_lists(sends.j, (int)c, layers, index_list_of(&s->src[c]),
                             index_list_of(&s->dst[c]), items),
                 &w->counters.state_sends);
        w->counters.truncated += items->cut && w->each[c] == VERDICT_SENT;
    }
    if (w->nsent + w->counters.elsewhere > 1 && s->has_opts &&
        (s->opts.notify || (s->opts.flags & PDX_SUBMIT_TRACK)))
        w->verdict = VERDICT_REFUSED;
}

static void want_of(struct want *w, const struct send *s, const struct pdx_layers *layers)
{
    struct judge *j = sends.j;

    *w = (struct want){.verdict = VERDICT_NOTHING};
    j->ring_entries = 0;
    if (layers && !judge_layers(layers))
        w->verdict = VERDICT_REFUSED;
    else if (s->kind == SEND_STATE)
        want_state(w, s, layers);
    else if (s->kind == SEND_KV && j->local->rank.kv_kind == PDX_KV_NONE)
        w->verdict = VERDICT_REFUSED;
    else if (s->kind == SEND_KV)
        want_one(w, 0,
                 judge_lists(j, JUDGE_KV, layers, index_list_of(&s->src[0]),
                             index_list_of(&s->dst[0]), &sends.items[0]),
                 &w->counters.kv_sends);
    else if (j->local->naux == 0)
        w->verdict = VERDICT_REFUSED;
    else
        want_one(w, 0,
                 judge_lists(j, JUDGE_AUX, NULL, (struct pdx_index_list){s->src[0].idx, 1},
                             (struct pdx_index_list){s->dst[0].idx, 1}, &sends.items[0]),
                 &w->counters.aux_sends);
    if (w->nsent && (s->engine_refuses || (s->has_opts && s->opts.deadline_ns == PDX_FOREVER)))
        w->verdict = VERDICT_REFUSED;
    if (w->verdict == VERDICT_REFUSED)
        w->counters = (struct pdx_route_counters){.refused = 1};
    else if (w->nsent)
        w->verdict = VERDICT_SENT;
}

/* --- sending --- */

#define UNTOUCHED ((struct pdx_transfer_status *)(uintptr_t)1)

static int send_call(const struct send *s, const struct pdx_layers *layers,
                     struct pdx_transfer_status **statuses, size_t *ret_n, struct pdx_error *why)
{
    const struct pdx_submit_opts *opts = s->has_opts ? &s->opts : NULL;
    struct pdx_transfer_status **ret = s->no_statuses ? NULL : statuses;
    struct pdx_index_list src[LISTS_MAX], dst[LISTS_MAX];

    for (size_t i = 0; i < s->n; i++) {
        src[i] = index_list_of(&s->src[i]);
        dst[i] = index_list_of(&s->dst[i]);
    }
    switch (s->kind) {
    case SEND_KV:
        return layers ? pdx_send_kvcache_layers(sends.route, layers, src[0], dst[0], opts, ret, why)
                      : pdx_send_kvcache(sends.route, src[0], dst[0], opts, ret, why);
    case SEND_STATE:
        return layers ? pdx_send_state_layers(sends.route, layers, s->no_lists ? NULL : src, dst,
                                              s->n, opts, ret, s->cap, ret_n, why)
                      : pdx_send_state(sends.route, src, s->no_lists ? NULL : dst, s->n, opts, ret,
                                       s->cap, ret_n, why);
    case SEND_AUX:
        return pdx_send_aux(sends.route, s->src[0].idx[0], s->dst[0].idx[0], opts, ret, why);
    }
    return 0;
}

static void check_counters(const struct pdx_route_counters *add)
{
    struct pdx_route_counters *want = &sends.counters, got;

    want->kv_sends += add->kv_sends;
    want->state_sends += add->state_sends;
    want->aux_sends += add->aux_sends;
    want->refused += add->refused;
    want->truncated += add->truncated;
    want->elsewhere += add->elsewhere;
    pdx_route_counters(sends.route, &got);
    FUZZ_CHECK(memcmp(&got, want, sizeof got) == 0);
}

static void check_refused(const struct send *s, int rc, const struct pdx_error *why,
                          struct pdx_transfer_status *const *statuses, size_t n)
{
    FUZZ_CHECK(recorder_n() == 0 && n == SIZE_MAX);
    if (!s->no_why)
        sends_check_error(rc, why);
    for (size_t i = 0; i < s->n; i++)
        FUZZ_CHECK(statuses[i] == UNTOUCHED);
}

static int send_payload(const struct send *s, size_t i)
{
    return s->kind == SEND_KV ? JUDGE_KV : s->kind == SEND_AUX ? JUDGE_AUX : (int)i;
}

/* What was recorded is what had to be, in order, and adds to `walk`. */
static void check_sent(const struct send *s, const struct want *w,
                       struct pdx_transfer_status *const *statuses, struct walk *walk)
{
    size_t next = 0;

    FUZZ_CHECK(recorder_n() == w->nsent);
    for (size_t i = 0; i < s->n; i++) {
        const struct judge_items *items = &sends.items[i];
        const struct walk_items named = {items->local, items->remote, items->n};
        const struct walk_part part = judge_part(sends.j, send_payload(s, i));
        const struct recorder_submission *sub;

        FUZZ_CHECK(s->no_statuses || (w->each[i] == VERDICT_SENT) == (statuses[i] != NULL));
        if (w->each[i] != VERDICT_SENT)
            continue;
        sub = recorder_at(next++);
        FUZZ_CHECK(s->no_statuses || recorder_of(statuses[i]) == sub);
        FUZZ_CHECK(!s->has_opts ||
                   (sub->opts.id == s->opts.id && sub->opts.level == s->opts.level &&
                    sub->opts.notify == s->opts.notify));
        walk_submission(&walk[i], &part, sub, &named);
    }
}

/* Makes the send; `walk` has an entry for each list, to which it adds what moves. */
static enum verdict send_once(const struct send *s, const struct pdx_layers *layers,
                              struct walk *walk)
{
    static struct pdx_error why;
    struct pdx_transfer_status *statuses[LISTS_MAX];
    size_t n = SIZE_MAX;
    struct want w;
    int rc;

    for (size_t i = 0; i < LISTS_MAX; i++)
        statuses[i] = UNTOUCHED;
    sends_spoil_error(&why);
    want_of(&w, s, layers);
    recorder_refuse(s->engine_refuses ? REFUSAL : 0);
    rc = send_call(s, layers, statuses, &n, s->no_why ? NULL : &why);
    FUZZ_CHECK((rc == 0) == (w.verdict != VERDICT_REFUSED));
    if (rc < 0) {
        check_refused(s, rc, &why, statuses, n);
    } else {
        FUZZ_CHECK(s->kind != SEND_STATE || n == s->n);
        check_sent(s, &w, statuses, walk);
    }
    check_counters(&w.counters);
    recorder_forget();
    return w.verdict;
}

/* Bounds from 0 to the end, each above the one before it. */
static size_t read_ranges(struct pdx_layers ranges[RANGES_MAX], struct fuzz_input *in)
{
    uint8_t how = fuzz_input_byte(in); /* bits 0, 1: how many cuts; 2: the draft model's alone */
    size_t n = 0;
    int32_t at = 0;

    for (size_t i = 0; i < (how & 3u); i++) {
        int32_t next = at + 1 + fuzz_input_byte(in) % 8;

        ranges[n++] = (struct pdx_layers){at, next};
        at = next;
    }
    if ((how & 4) && n + 1 < RANGES_MAX) {
        ranges[n++] = (struct pdx_layers){at, PDX_LAYERS_END - 1};
        ranges[n++] = (struct pdx_layers){PDX_LAYERS_END - 1, PDX_LAYERS_END};
    } else {
        ranges[n++] = (struct pdx_layers){at, PDX_LAYERS_END};
    }
    return n;
}

/* One or two of them at a time: a whole send, and the ranges together. */
static struct walk walks[2][LISTS_MAX];

static void walks_init(struct walk *w)
{
    for (size_t i = 0; i < LISTS_MAX; i++)
        walk_init(&w[i]);
}

static void send_in_ranges(struct send *s, struct fuzz_input *in)
{
    struct pdx_layers ranges[RANGES_MAX];
    size_t n = read_ranges(ranges, in);
    bool all;

    walks_init(walks[0]);
    walks_init(walks[1]);
    all = send_once(s, NULL, walks[0]) != VERDICT_REFUSED;
    for (size_t i = 0; i < n; i++)
        all = send_once(s, &ranges[i], walks[1]) != VERDICT_REFUSED && all;
    for (size_t i = 0; i < s->n; i++) {
        walk_check_once(&walks[0][i]);
        if (!all)
            continue;
        walk_check_once(&walks[1][i]);
        walk_check_same(&walks[0][i], &walks[1][i]);
    }
}

void sends_run(struct judge *j, struct pdx_route *route, struct fuzz_input *in)
{
    sends.j = j;
    sends.route = route;
    sends.counters = (struct pdx_route_counters){0};
    for (int i = 0; i < SENDS_MAX && in->left > 0; i++) {
        struct send s = {0};
        uint8_t what = fuzz_input_byte(in);

        read_send(&s, what, in);
        if ((what & 16) && s.n && s.kind != SEND_AUX) {
            s.has_layers = false;
            send_in_ranges(&s, in);
        } else if (s.n || s.kind == SEND_STATE) {
            walks_init(walks[0]);
            (void)send_once(&s, s.has_layers ? &s.layers : NULL, walks[0]);
            for (size_t c = 0; c < s.n; c++)
                walk_check_once(&walks[0][c]);
        }
        send_fini(&s);
    }
}
