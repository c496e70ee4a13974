/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/timer.h"

#define SLOT_MASK (PDXI_TIMER_SLOTS - 1)
#define NWORDS    (PDXI_TIMER_SLOTS / 64)
#define SLOT_DUE  PDXI_TIMER_SLOTS
#define SLOT_IDLE (PDXI_TIMER_SLOTS + 1)

void pdxi_timers_init(struct pdxi_timers *ts, uint64_t now_ns)
{
    ts->tick = now_ns / PDXI_TIMER_TICK_NS;
    pdxi_list_init(&ts->due);
    for (uint32_t i = 0; i < NWORDS; i++)
        ts->occupied[i] = 0;
    for (uint32_t i = 0; i < PDXI_TIMER_SLOTS; i++) {
        pdxi_list_init(&ts->slots[i]);
        ts->earliest[i] = UINT64_MAX;
    }
}

void pdxi_timer_init(struct pdxi_timer *t, pdxi_timer_fn fn)
{
    pdxi_list_init(&t->link);
    t->fn = fn;
    t->tick = 0;
    t->slot = SLOT_IDLE;
}

bool pdxi_timer_started(const struct pdxi_timer *t)
{
    return t->slot != SLOT_IDLE;
}

void pdxi_timer_cancel(struct pdxi_timers *ts, struct pdxi_timer *t)
{
    uint32_t slot = t->slot;

    pdxi_list_remove(&t->link);
    t->slot = SLOT_IDLE;
    if (slot < PDXI_TIMER_SLOTS && pdxi_list_empty(&ts->slots[slot])) {
        ts->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
        ts->earliest[slot] = UINT64_MAX;
    }
}

static void timers_insert(struct pdxi_timers *ts, struct pdxi_timer *t)
{
    uint32_t slot = t->tick & SLOT_MASK;

    t->slot = slot;
    pdxi_list_add_tail(&ts->slots[slot], &t->link);
    ts->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
    if (t->tick < ts->earliest[slot])
        ts->earliest[slot] = t->tick;
}

void pdxi_timer_start(struct pdxi_timers *ts, struct pdxi_timer *t, uint64_t expiry_ns)
{
    pdxi_timer_cancel(ts, t);
    if (expiry_ns == UINT64_MAX)
        return;
    t->tick = expiry_ns / PDXI_TIMER_TICK_NS + (expiry_ns % PDXI_TIMER_TICK_NS != 0);
    if (t->tick > ts->tick) {
        timers_insert(ts, t);
    } else {
        t->slot = SLOT_DUE;
        pdxi_list_add_tail(&ts->due, &t->link);
    }
}

/* The first occupied slot in [from, PDXI_TIMER_SLOTS), or PDXI_TIMER_SLOTS. */
static uint32_t timers_occupied(const struct pdxi_timers *ts, uint32_t from)
{
    uint32_t word = from / 64;
    uint64_t bits;

    if (from >= PDXI_TIMER_SLOTS)
        return PDXI_TIMER_SLOTS;
    bits = ts->occupied[word] & UINT64_MAX << from % 64;
    while (!bits) {
        if (++word == NWORDS)
            return PDXI_TIMER_SLOTS;
        bits = ts->occupied[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

uint64_t pdxi_timers_next(const struct pdxi_timers *ts, uint64_t now_ns)
{
    uint32_t start = (uint32_t)(ts->tick + 1) & SLOT_MASK;
    uint64_t best = UINT64_MAX;
    uint64_t expiry_ns;

    if (!pdxi_list_empty(&ts->due))
        return 0;
    /* The slots in the order of their time; the first with a timer of this round is the next. */
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t end = half ? start : PDXI_TIMER_SLOTS;
        uint32_t slot = timers_occupied(ts, half ? 0 : start);

        for (; slot < end; slot = timers_occupied(ts, slot + 1)) {
            if (ts->earliest[slot] < best)
                best = ts->earliest[slot];
            if (best <= ts->tick + PDXI_TIMER_SLOTS)
                goto found;
        }
    }
    if (best == UINT64_MAX)
        return UINT64_MAX;
found:
    if (__builtin_mul_overflow(best, PDXI_TIMER_TICK_NS, &expiry_ns))
        return UINT64_MAX;
    return expiry_ns > now_ns ? expiry_ns - now_ns : 0;
}

/* Moves the timers of a slot up to `tick` to `due`. */
static void timers_collect(struct pdxi_timers *ts, uint32_t slot, uint64_t tick,
                           struct pdxi_list *due)
{
    struct pdxi_list *pos, *tmp;
    uint64_t earliest = UINT64_MAX;

    pdxi_list_for_each_safe (pos, tmp, &ts->slots[slot]) {
        struct pdxi_timer *t = pdxi_container_of(pos, struct pdxi_timer, link);

        if (t->tick <= tick) {
            pdxi_list_remove(pos);
            pdxi_list_add_tail(due, pos);
            t->slot = SLOT_DUE;
        } else if (t->tick < earliest) {
            earliest = t->tick;
        }
    }
    ts->earliest[slot] = earliest;
    if (earliest == UINT64_MAX)
        ts->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static void timers_advance(struct pdxi_timers *ts, uint64_t tick, struct pdxi_list *due)
{
    uint32_t start = (uint32_t)(ts->tick + 1) & SLOT_MASK;
    uint64_t nslots = tick - ts->tick < PDXI_TIMER_SLOTS ? tick - ts->tick : PDXI_TIMER_SLOTS;

    for (uint32_t half = 0; half < 2; half++) {
        uint64_t end = start + nslots;
        uint32_t slot = timers_occupied(ts, half ? 0 : start);

        if (half)
            end = end > PDXI_TIMER_SLOTS ? end - PDXI_TIMER_SLOTS : 0;
        else if (end > PDXI_TIMER_SLOTS)
            end = PDXI_TIMER_SLOTS;
        for (; slot < end; slot = timers_occupied(ts, slot + 1))
            timers_collect(ts, slot, tick, due);
    }
    ts->tick = tick;
}

uint32_t pdxi_timers_run(struct pdxi_timers *ts, uint64_t now_ns)
{
    uint64_t tick = now_ns / PDXI_TIMER_TICK_NS;
    struct pdxi_list due;
    struct pdxi_list *first;
    uint32_t ncalled = 0;

    pdxi_list_init(&due);
    pdxi_list_splice_tail(&due, &ts->due);
    if (tick > ts->tick)
        timers_advance(ts, tick, &due);
    while ((first = pdxi_list_first(&due))) {
        struct pdxi_timer *t = pdxi_container_of(first, struct pdxi_timer, link);

        pdxi_list_remove(first);
        t->slot = SLOT_IDLE;
        t->fn(t, now_ns);
        ncalled++;
    }
    return ncalled;
}
