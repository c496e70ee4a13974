/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/region.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "engine/mem/mem.h"
#include "engine/session.h"

#include <string.h>
#include <sys/random.h>

static int region_check(const void *ptr, size_t len, const struct pdx_region_opts *opts,
                        struct pdx_error *why)
{
    if (!ptr || len == 0)
        return pdxi_refuse(why, PDX_EINVAL, "a region needs memory: got pointer %p, length %zu",
                           ptr, len);
    if (len > UINTPTR_MAX - (uintptr_t)ptr)
        return pdxi_refuse(why, PDX_EINVAL, "region %p + %zu wraps around the address space", ptr,
                           len);
    if (opts->rights > PDX_RIGHT_NONE ||
        ((opts->rights & PDX_RIGHT_NONE) && opts->rights != PDX_RIGHT_NONE))
        return pdxi_refuse(why, PDX_EINVAL,
                           "region rights 0x%x are not READ (1), WRITE (2), both (3) or NONE (4)",
                           opts->rights);
    return 0;
}

int pdx_region_register(struct pdx_engine *engine, void *ptr, size_t len,
                        const struct pdx_region_opts *opts, struct pdx_region **ret_region,
                        struct pdx_error *why)
{
    struct pdx_region_opts o = PDX_REGION_OPTS_INIT;
    struct pdx_region *region;
    uint32_t generation;
    int r;

    if (opts)
        memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    if (o.rights == 0)
        o.rights = PDX_RIGHT_ALL;
    r = region_check(ptr, len, &o, why);
    if (r == 0)
        r = pdxi_mem_classify(ptr, len, &o.kind, why);
    if (r < 0)
        return r;
    if (atomic_load(&engine->stopping))
        return pdxi_refuse(why, PDX_ESHUTDOWN, "engine %s is being destroyed", engine->name);
    region = pdxi_slab_get(&engine->regions);
    if (!region)
        return pdxi_refuse(why, PDX_EAGAIN,
                           "engine %s has all of its %u regions in use (option max_regions); one "
                           "region may hold many tensors",
                           engine->name, engine->regions.capacity);
    region->engine = engine;
    region->ptr = ptr;
    region->len = len;
    region->kind = o.kind;
    region->rights = o.rights;
    region->id = pdxi_slab_index(&engine->regions, region);
    if (getrandom(region->key, sizeof region->key, 0) != (ssize_t)sizeof region->key) {
        pdxi_slab_put(&engine->regions, region);
        return pdxi_refuse(why, PDX_ESYS, "the system gives no random bytes for a region key");
    }
    atomic_store(&region->users, 0);
    atomic_store(&region->revoked, 0);
    atomic_store(&region->bytes_in, 0);
    atomic_store(&region->bytes_out, 0);
    generation = atomic_load_explicit(&region->generation, memory_order_relaxed);
    pdxi_engine_get(engine);
    /* Odd: offered. Whoever sees the new generation sees all of the above. */
    atomic_store_explicit(&region->generation, generation + 1, memory_order_release);
    *ret_region = region;
    return 0;
}

bool pdxi_region_hold(struct pdx_region *region)
{
    atomic_fetch_add(&region->users, 1);
    if (!atomic_load(&region->revoked))
        return true;
    pdxi_region_drop(region);
    return false;
}

void pdxi_region_drop(struct pdx_region *region)
{
    /* `revoked` is read after the count, else who begins to wait in between is not woken. The place
     * may be another region's by then; it stays mapped, and a wake-up for nothing does no harm. */
    if (atomic_fetch_sub(&region->users, 1) == 1 && atomic_load(&region->revoked))
        pdxi_futex_wake_all(&region->users);
}

bool pdxi_region_offered(const struct pdx_region *region, uint32_t generation)
{
    return (generation & 1) &&
           atomic_load_explicit(&region->generation, memory_order_acquire) == generation;
}

struct pdx_region *pdxi_region_find(struct pdx_engine *engine, uint32_t id, uint32_t generation,
                                    const uint8_t key[PDX_KEY_LEN], uint32_t right,
                                    struct pdx_error *why)
{
    struct pdx_region *region;

    if (id >= engine->regions.capacity) {
        pdxi_refuse(why, PDX_ESTALE, "there is no region %u", id);
        return NULL;
    }
    region = pdxi_slab_at(&engine->regions, id);
    if (!pdxi_region_offered(region, generation)) {
        pdxi_refuse(
            why, PDX_ESTALE,
            "region %u of generation %u is not registered (any more); get its new descriptor", id,
            generation);
        return NULL;
    }
    if (!pdxi_secret_equal(region->key, key, PDX_KEY_LEN)) {
        pdxi_refuse(why, PDX_EACCESS, "wrong key for region %u", id);
        return NULL;
    }
    if (!(region->rights & right)) {
        pdxi_refuse(why, PDX_EACCESS, "region %u does not let peers %s it", id,
                    right == PDX_RIGHT_WRITE ? "write" : "read");
        return NULL;
    }
    return region;
}

/* ---- deregistration --------------------------------------------------- */

struct region_revoke {
    struct pdxi_cmd cmd;
    struct pdx_region *region;
    _Atomic uint32_t done; /* futex word */
};

static void region_revoke_now(struct pdx_region *region)
{
    uint32_t generation = atomic_load_explicit(&region->generation, memory_order_relaxed);

    if (!(generation & 1))
        return;
    atomic_store_explicit(&region->generation, generation + 1, memory_order_release);
    pdxi_sessions_revoke(region->engine, region);
}

static void region_on_revoke(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct region_revoke *revoke = pdxi_container_of(cmd, struct region_revoke, cmd);

    (void)r;
    region_revoke_now(revoke->region);
    atomic_store(&revoke->done, 1);
    pdxi_futex_wake_all(&revoke->done);
}

/* Peers' requests are carried out on the reactor, so they are revoked there. */
static void region_revoke(struct pdx_region *region)
{
    struct region_revoke revoke = {.cmd = {.run = region_on_revoke}, .region = region};
    struct pdxi_reactor *reactor = &region->engine->reactor;

    if (pdxi_reactor_is_self(reactor)) {
        region_revoke_now(region);
        return;
    }
    if (!pdxi_reactor_post(reactor, &revoke.cmd)) {
        /* The reactor has ended: nobody serves peers. */
        atomic_fetch_or(&region->generation, 1);
        atomic_fetch_add(&region->generation, 1);
        return;
    }
    while (!atomic_load(&revoke.done))
        pdxi_futex_wait(&revoke.done, 0, UINT64_MAX);
}

int pdx_region_deregister(struct pdx_region *region, uint64_t timeout_ns, struct pdx_error *why)
{
    struct pdx_engine *engine;
    uint64_t until_ns;
    uint32_t users;

    if (!region)
        return 0;
    engine = region->engine;
    if (timeout_ns > 0 && pdxi_reactor_is_any())
        return pdxi_refuse(why, PDX_EREACTOR,
                           "pdx_region_deregister with a timeout would block a callback; pass 0");
    if (pdxi_reactor_is_any() && !pdxi_reactor_is_self(&engine->reactor))
        return pdxi_refuse(
            why, PDX_EREACTOR,
            "region %u belongs to engine %s; a callback of another engine can't wait "
            "for it",
            region->id, engine->name);
    if (atomic_exchange(&region->revoked, 1) == 0)
        atomic_fetch_add(&engine->nrevoked, 1);
    region_revoke(region);
    until_ns = pdxi_after_ns(pdxi_now_ns(), timeout_ns);
    while ((users = atomic_load(&region->users)) > 0) {
        if (pdxi_now_ns() >= until_ns)
            return pdxi_refuse(
                why, PDX_EBUSY,
                "region %u (%p, %llu bytes) is used by %u transfers, prepared jobs or "
                "pairs of routes of this engine; wait for them, cancel them, put the prepared "
                "jobs, "
                "destroy the routes",
                region->id, (void *)region->ptr, (unsigned long long)region->len, users);
        pdxi_futex_wait(&region->users, users, until_ns);
    }
    atomic_fetch_sub(&engine->nrevoked, 1);
    pdxi_slab_put(&engine->regions, region);
    pdxi_engine_drop(engine);
    return 0;
}

/* ---- what it shows ---------------------------------------------------- */

size_t pdx_region_export(const struct pdx_region *region, void *buf, size_t cap)
{
    struct pdx_remote remote = {
        .len = region->len,
        .id = region->id,
        .generation = atomic_load_explicit(&region->generation, memory_order_relaxed),
        .rights = region->rights,
        .kind = (uint32_t)region->kind,
    };

    memcpy(remote.incarnation, region->engine->desc->incarnation, sizeof remote.incarnation);
    memcpy(remote.key, region->key, sizeof remote.key);
    return pdxi_remote_encode(&remote, buf, cap);
}

void pdx_region_info(const struct pdx_region *region, struct pdx_region_info *ret_info)
{
    ret_info->ptr = region->ptr;
    ret_info->len = region->len;
    ret_info->kind = region->kind;
    ret_info->rights = region->rights;
    ret_info->id = region->id;
    ret_info->generation = atomic_load_explicit(&region->generation, memory_order_relaxed);
    ret_info->users = atomic_load(&region->users);
    ret_info->bytes_out = pdxi_counted(&region->bytes_out);
    ret_info->bytes_in = pdxi_counted(&region->bytes_in);
}
