/* One renderer for each metatile, in this process and others, and what is remembered of one that failed. */
#include <apr_strings.h>
#include <string.h>

#include "base/account.h"
#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/seldom.h"
#include "base/semaphore.h"
#include "base/slices.h"
#include "mapcache/trace.h"
#include "tileset/refresh.h"
#include "tileset/tileset_counters.h"
#include "tileset/tileset_private.h"

/* The stored form is what later requests get: its bytes and times are served from the start. A store that has told what
 * it would give is not asked. */
static void
prefer_stored(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *stored = NULL;
    if ((*tile)->as_stored)
        return;
    mc_error *error = mc_cache_get(&stored, tileset->cache, key, ctx, pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    else if (stored != NULL)
        *tile = stored;
}

/* Whether a tile is better than the stale one that was seen before (NULL: none was). */
static bool
is_newer(const mc_tile *found, const mc_tile *stale, const mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx)
{
    return stale == NULL || found->mtime > stale->mtime ||
           mc_tileset_freshness(tileset, key, found->mtime, ctx) == MC_FRESH;
}

/* What is stored counts as new: nothing of it may be made of tiles that are old. */
static mc_error *
render_of_fresh(mc_tile **tile, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                apr_pool_t *pool)
{
    bool outer = ctx->wants_fresh;
    ctx->wants_fresh = true;
    mc_error *error = mc_metatile_render(tile, store_error, tileset, key, ctx, pool);
    ctx->wants_fresh = outer;
    return error;
}

/*
 * Under the lock: looks again, renders. `stale` is what the caller has seen, or NULL. What could be rendered but not
 * stored is no error here: *store_error says so.
 */
static mc_error *
render_unless_there(mc_tile **tile, bool *rendered, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key,
                    const mc_tile *stale, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *found = NULL;
    mc_tile *fresh = NULL;
    ctx->past_memory = stale != NULL; /* memory may have no more than what was seen */
    mc_error *error = mc_cache_get(&found, tileset->cache, key, ctx, pool);
    ctx->past_memory = false;
    MC_TRY(error);
    if (found != NULL && is_newer(found, stale, tileset, key, ctx)) {
        *tile = found;
        return MC_OK;
    }
    if (mc_tileset_get_provisional(tile, tileset, key, ctx, pool))
        return MC_OK;
    MC_TRY(render_of_fresh(&fresh, store_error, tileset, key, ctx, pool));
    *rendered = true;
    if (*store_error == MC_OK && fresh->provisional <= 0)
        prefer_stored(&fresh, tileset, key, ctx, pool);
    else if (*store_error != MC_OK)
        mc_log_error(ctx, MC_LOG_ERROR, *store_error);
    *tile = fresh;
    return MC_OK;
}

/* Microseconds before a deadline at which a wait for it may already have ended: libcurl counts whole milliseconds. */
#define DEADLINE_ROUNDING (20 * 1000)

/* Whether a render failed for lack of time, and had less than half of what a request has, as its own request had used
 * up the rest: that says nothing about the tile, and the next request tries again. */
static bool
was_in_a_hurry(const mc_error *error, const mc_tileset *tileset, apr_time_t begun, const mc_ctx *ctx)
{
    apr_interval_time_t own = (apr_interval_time_t)(tileset->deadline * APR_USEC_PER_SEC);
    apr_interval_time_t usual = own > 0 && own < ctx->allowance ? own : ctx->allowance;
    if (error == MC_OK || mc_ctx_remaining(ctx, DEADLINE_ROUNDING) >= DEADLINE_ROUNDING ||
        mc_clock_now() - begun >= usual / 2)
        return false;
    while (error != MC_OK && error->kind != MC_ERR_TIMEOUT)
        error = error->cause;
    return error != MC_OK;
}

/* As the leader of its flight, which it lands. Others wait for the tile, and it is stored: a client that leaves does
 * not end it. */
static mc_error *
lead_render(mc_tile **tile, mc_flight *flight, mc_tileset *tileset, const mc_tile_key *key, const mc_tile *stale,
            mc_ctx *ctx, apr_pool_t *pool)
{
    bool rendered = false;
    mc_error *store_error = MC_OK;
    bool (*abandoned)(void *) = ctx->abandoned;
    mc_made_tiles *outer = ctx->made, *made = mc_made_tiles_create(tileset, key);
    ctx->abandoned = NULL;
    ctx->made = made;
    apr_time_t begun = mc_clock_now();
    mc_error *error = render_unless_there(tile, &rendered, &store_error, tileset, key, stale, ctx, pool);
    ctx->made = outer;
    ctx->abandoned = abandoned;
    mc_flight_give(error == MC_OK && rendered ? flight : NULL, made, mc_made_tiles_drop);
    /* who waits would look into the store and take what is not there for an empty tile */
    if (was_in_a_hurry(error, tileset, begun, ctx))
        mc_flight_land(flight, mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "the request had no time left"));
    else if (error != MC_OK)
        mc_flight_land_for(flight, error, tileset->failure_expires);
    else if (!rendered)
        mc_flight_land_found(flight);
    else if (store_error != MC_OK && mc_ctx_check(ctx, pool) == MC_OK)
        mc_flight_land_shared(flight, store_error);
    else
        mc_flight_land(flight, store_error);
    return error;
}

/* With the lock across processes, for which it waits. */
static mc_error *
lead_locked(mc_tile **tile, mc_flight *flight, mc_tileset *tileset, const mc_tile_key *key, const mc_tile *stale,
            const char *name, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_lock *lock = NULL;
    bool waited;
    mc_error *error =
        tileset->locker == NULL ? MC_OK : mc_locker_acquire(&lock, &waited, tileset->locker, name, ctx, pool);
    if (error != MC_OK && error->kind != MC_ERR_UNAVAILABLE) {
        error = mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "a tile cannot be rendered now");
        if (mc_ctx_check(ctx, pool) == MC_OK)
            mc_flight_land_shared(flight, error);
        else
            mc_flight_land(flight, error); /* the request was in a hurry: the next one tries */
        return error;
    }
    if (error != MC_OK) {
        mc_flight_land(flight, error);
        return error;
    }
    error = lead_render(tile, flight, tileset, key, stale, ctx, pool);
    mc_lock_release(lock);
    return error;
}

/* After another one's render: what it stored, else what it has made, as stores leave out empty tiles, evict others, or
 * take none. *tile is NULL where there is neither. */
static mc_error *
follow_render(mc_tile **tile, mc_flight *flight, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
              apr_pool_t *pool)
{
    mc_count(ctx->process->metrics, MC_COUNT_render_waits_total, 1);
    mc_account_mark(ctx, MC_EVENT_WAITED);
    mc_error *error = mc_cache_get(tile, tileset->cache, key, ctx, pool);
    if (error == MC_OK && *tile == NULL && !mc_tileset_get_provisional(tile, tileset, key, ctx, pool))
        *tile = mc_made_tiles_find(mc_flight_gift(flight), key, pool);
    mc_flight_leave(flight);
    return error;
}

/* Of a render whose tiles were not stored: the tile that the leader's own client gets, too. NULL: there is none. */
static mc_tile *
take_unstored(mc_flight *flight, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_tile *tile = mc_made_tiles_find(mc_flight_gift(flight), key, pool);
    mc_flight_leave(flight);
    return tile;
}

/*
 * An old tile at once is better than a new one after a while: whoever gets lock and flight without waiting renders, all
 * others keep *tile. The lock comes first, as it also tells of other processes, and a flight that ends without a render
 * would mislead those on it who have no tile at all. *busy: another one renders. An error: rendering fails, now or a
 * moment ago.
 */
static mc_error *
refresh_stale_tile(mc_tile **tile, bool *busy, mc_tileset *tileset, const mc_tile_key *key, const char *name,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    mc_lock *lock = NULL;
    mc_flight_role role;
    mc_flight *flight = NULL;
    const char *flight_name = mc_tileset_flight_name(tileset, name, pool);
    *busy = false;
    if (tileset->locker != NULL) {
        MC_TRY(mc_locker_try(&lock, tileset->locker, name, ctx, pool));
        *busy = lock == NULL;
        if (lock == NULL)
            return MC_OK;
    }
    mc_error *error = mc_flight_try(&role, &flight, ctx->process->flights, flight_name, ctx, pool);
    if (error == MC_OK && role == MC_LEAD)
        error = lead_render(tile, flight, tileset, key, *tile, ctx, pool);
    else if (error == MC_OK && role == MC_FAILED)
        error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "rendering the tile has failed before");
    *busy = error == MC_OK && role == MC_FOLLOW;
    mc_lock_release(lock);
    return error;
}

/* Clients do not see that a source fails while they get old tiles: the log says so, once a minute. */
static void
tell_of_stale_tile(const mc_tileset *tileset, const mc_error *error, const mc_ctx *ctx)
{
    unsigned unsaid;
    mc_log_level level = mc_seldom_due(tileset->stale_told, &unsaid) ? MC_LOG_WARN : MC_LOG_DEBUG;
    mc_log_write(ctx, level, "tileset \"%s\" serves tiles that have expired%s: %s", tileset->name,
                 unsaid > 0 ? apr_psprintf(ctx->pool, " (%u times more since it was said)", unsaid) : "",
                 mc_error_chain(error, ctx->pool));
}

/* A tile could not be rendered again: the error, or MC_OK where the old tile is better, which at worst it still is
 * (docs/reference/configuration.md 6.3). */
static mc_error *
keep_stale_tile(mc_tile *tile, const mc_tileset *tileset, const mc_tile_key *key, mc_error *error, const mc_ctx *ctx)
{
    mc_account_mark(ctx, MC_EVENT_FAILED);
    if (mc_tileset_error_grace(tileset, key, tile->mtime, ctx) < 0)
        return error;
    mc_tileset_call_stale(tile, tileset, key);
    mc_count(ctx->process->metrics, MC_COUNT_stale_tiles_total, 1);
    tell_of_stale_tile(tileset, error, ctx);
    return MC_OK;
}

/* Whether the request may render, and its turn to draw will come in time. */
static mc_error *
expect_place(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    if (mc_source_draws(tileset->source))
        MC_TRY(mc_semaphore_expect(ctx->process->drawing, ctx, pool));
    return mc_admission_enter(ctx, pool);
}

/* For this request alone: nothing is kept that others could have. */
static mc_error *
render_unkept(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *store_error = MC_OK;
    MC_TRY(expect_place(tileset, ctx, pool));
    mc_account_mark(ctx, MC_EVENT_UNKEPT);
    MC_SLOW(ctx);
    return mc_metatile_render(tile, &store_error, tileset, key, ctx, pool);
}

/* *tile has expired: the new one, or the old one as far as it is better than an error. */
static mc_error *
replace_stale_tile(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, const char *name, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    bool busy;
    mc_tileset_call_stale(*tile, tileset, key);
    if (expect_place(tileset, ctx, pool) != MC_OK)
        return MC_OK;
    MC_SLOW(ctx);
    mc_error *error = refresh_stale_tile(tile, &busy, tileset, key, name, ctx, pool);
    return error == MC_OK ? MC_OK : keep_stale_tile(*tile, tileset, key, error, ctx);
}

/* A mc_refresh_work: draws the metatile, unless that has been done, or somebody is at it. */
static mc_error *
refresh_behind(bool *busy, const mc_tile_request *wanted, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tileset *tileset = wanted->tileset;
    mc_tile *tile = NULL;
    ctx->past_memory = true;
    mc_error *error = mc_cache_get(&tile, tileset->cache, key, ctx, pool);
    ctx->past_memory = false;
    MC_TRY(error);
    if (tile == NULL || mc_tileset_freshness(tileset, key, tile->mtime, ctx) == MC_FRESH)
        return MC_OK;
    return refresh_stale_tile(&tile, busy, tileset, key, mc_tileset_lock_name(tileset, key, pool), ctx, pool);
}

/* *tile goes out as it is, and is drawn anew behind the answer; where that has failed a moment ago, as far as it is
 * better than the error. False: there is nobody who would draw it. */
static bool
leave_refresh(mc_error **error, mc_tile *tile, mc_tileset *tileset, const mc_tile_key *key, const char *name,
              mc_ctx *ctx, apr_pool_t *pool)
{
    const char *flight_name = mc_tileset_flight_name(tileset, name, pool);
    const mc_tile_request wanted = { .tileset = tileset };
    *error = mc_flight_failure(ctx->process->flights, flight_name, pool);
    if (*error == MC_OK && !mc_refresh_later(flight_name, refresh_behind, &wanted, key, ctx))
        return false;
    mc_tileset_call_stale(tile, tileset, key);
    if (*error != MC_OK)
        *error = keep_stale_tile(tile, tileset, key, *error, ctx);
    return true;
}

enum { FOLLOWED_MOST = 2 };

/* Waits for the one who leads. Where that one has found its tile and rendered nothing, the tile of this key may be
 * missing all the same, as a renderer may die, or a store fail, between two tiles of a metatile: somebody renders. Who
 * has waited in vain for several renders makes the tile for itself. */
static mc_error *
board_render(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, const mc_tile *stale, const char *name,
             const char *flight_name, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_flight_role role;
    mc_flight *flight = NULL;
    mc_error *shared = MC_OK;
    double timeout = tileset->locker == NULL ? 120 : mc_locker_timeout(tileset->locker);
    bool again;
    int followed = 0;
    MC_SLOW(ctx);
    do {
        if (followed == FOLLOWED_MOST)
            return lead_locked(tile, NULL, tileset, key, stale, name, ctx, pool);
        MC_TRY(mc_flight_board(&role, &flight, &shared, ctx->process->flights, flight_name,
                               (apr_interval_time_t)(timeout * APR_USEC_PER_SEC), ctx, pool));
        if (role == MC_LEAD)
            return lead_locked(tile, flight, tileset, key, stale, name, ctx, pool);
        if (role == MC_FOLLOW)
            MC_TRY(follow_render(tile, flight, tileset, key, ctx, pool));
        if (role == MC_LOOK)
            MC_TRY(mc_cache_get(tile, tileset->cache, key, ctx, pool));
        followed += role == MC_FOLLOW;
        again = role == MC_FOLLOW ? *tile == NULL
                                  : role == MC_LOOK && (*tile == NULL || !is_newer(*tile, stale, tileset, key, ctx));
    } while (again);
    if (role != MC_FAILED)
        return MC_OK;
    mc_tile *unstored = take_unstored(flight, key, pool);
    if (unstored != NULL) {
        *tile = unstored;
        return MC_OK;
    }
    mc_count(ctx->process->metrics, MC_COUNT_remembered_failures_total, 1);
    return shared;
}

/* Who has no tile that may go out waits for one. `stale`: what the store has, or NULL. */
static mc_error *
wait_for_render(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, const mc_tile *stale, const char *name,
                mc_ctx *ctx, apr_pool_t *pool)
{
    mc_flight_role role;
    mc_flight *flight = NULL;
    const char *flight_name = mc_tileset_flight_name(tileset, name, pool);
    MC_TRY(mc_flight_try(&role, &flight, ctx->process->flights, flight_name, ctx, pool));
    if (role == MC_LEAD) { /* refused before the thread gives way to others: that is what costs time */
        mc_error *busy = expect_place(tileset, ctx, pool);
        if (busy != MC_OK) {
            mc_flight_land(flight, busy);
            return busy;
        }
        MC_SLICES_SMALL(tileset->format != NULL && tileset->format->type == MC_FORMAT_MVT); /* as a rule: mvt.c */
        MC_SLOW(ctx);
        return lead_locked(tile, flight, tileset, key, stale, name, ctx, pool);
    }
    MC_TRY(mc_admission_enter(ctx, pool));
    return board_render(tile, tileset, key, stale, name, flight_name, ctx, pool);
}

/* Renders the metatile of a key by one renderer at a time, in this process and others; the tile is looked up again
 * first. Where *tile is an old one that may be served, it is kept if anybody else renders or if rendering fails: then
 * nobody waits. Where it may not, all wait. */
static mc_error *
render_metatile_once(mc_tile **tile, mc_freshness freshness, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    mc_tile *stale = *tile;
    mc_error *error;
    if (tileset->cache->ops->keeps_nothing)
        return render_unkept(tile, tileset, key, ctx, pool);
    if (stale != NULL)
        mc_account_mark(ctx, MC_EVENT_EXPIRED);
    const char *name = mc_tileset_lock_name(tileset, key, pool);
    if (stale != NULL && freshness == MC_STALE_BEHIND && leave_refresh(&error, stale, tileset, key, name, ctx, pool))
        return error;
    if (stale != NULL && freshness != MC_STALE_MUST_WAIT)
        return replace_stale_tile(tile, tileset, key, name, ctx, pool);
    error = wait_for_render(tile, tileset, key, stale, name, ctx, pool);
    if (error == MC_OK || stale == NULL)
        return error;
    *tile = stale;
    return keep_stale_tile(*tile, tileset, key, error, ctx);
}

mc_error *
mc_tileset_get_sub(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_tileset_tile_get_without_subdimensions");
    mc_freshness freshness = MC_FRESH;
    MC_TRY(mc_cache_get(tile, tileset->cache, key, ctx, pool));
    if (*tile != NULL && key->renderable)
        freshness = mc_tileset_freshness(tileset, key, (*tile)->mtime, ctx);
    if (*tile != NULL && freshness == MC_FRESH)
        return MC_OK;
    if (key->renderable && mc_tileset_get_provisional(tile, tileset, key, ctx, pool))
        return MC_OK;
    if (key->renderable)
        return render_metatile_once(tile, freshness, tileset, key, ctx, pool);
    mc_span_note(&span, "CACHE_MISS");
    return mc_tile_nothing(tile, key->grid, pool);
}
