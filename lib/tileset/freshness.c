/* How fresh a stored tile is: the one place where that is decided for all ways on which stored tiles go out. */
#include "tileset/freshness.h"

#include <limits.h>
#include <math.h>

#include "cache/marked.h"
#include "changes/changes.h"
#include "text/expiry.h"

/* Microseconds by which a store that writes the time of the put itself may be off: a render that has begun before a
 * change may end so long after the change was seen. */
#define LATE_PUT (2 * APR_USEC_PER_SEC)

static mc_mark_set *
marks_of(const mc_tileset *tileset, const mc_tile_key *key)
{
    const mc_watch_link *link = tileset->watch == NULL ? NULL : mc_watch_find_link(tileset->watch, key->grid);
    return link == NULL ? NULL : atomic_load_explicit(&link->marks, memory_order_acquire);
}

/* Whether a tile of that time may be older than a change that was seen at `mark`. Whole seconds are rounded down, so
 * that only who has drawn the tile itself knows more. */
static bool
is_older_than_mark(const mc_watch *watch, const mc_mark_set *marks, const mc_tile_key *key, apr_time_t mtime,
                   apr_time_t mark)
{
    if (mtime > mark + (watch->timeless ? LATE_PUT : 0))
        return false;
    bool unsure = watch->timeless || (mtime % APR_USEC_PER_SEC == 0 && mtime + APR_USEC_PER_SEC > mark);
    return !unsure || mc_marks_drawn(marks, key->z, key->x, key->y) <= mark;
}

/* When what the tile shows was seen to have changed since the tile was made; 0: it has not. */
static apr_time_t
time_of_change(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime)
{
    const mc_mark_set *marks = marks_of(tileset, key);
    apr_time_t mark = marks == NULL ? 0 : mc_marks_find(marks, key->z, key->x, key->y);
    bool older = mark != 0 && is_older_than_mark(tileset->watch, marks, key, mtime, mark);
    return older && !mc_marks_hold(marks, key->z, key->x, key->y, mark) ? mark : 0;
}

/* <stale_while_revalidate>, in microseconds; 0: without it. */
static apr_interval_time_t
revalidation_of(const mc_tileset *tileset)
{
    const mc_watch *shown = tileset->shown;
    return shown == NULL ? 0 : (apr_interval_time_t)(shown->revalidation * APR_USEC_PER_SEC);
}

static mc_freshness
freshness_of_changed(const mc_tileset *tileset, apr_time_t changed, const mc_ctx *ctx)
{
    apr_interval_time_t bound = revalidation_of(tileset);
    if (bound == 0 && tileset->stale_if_error > 0) /* nothing of it goes out then even if rendering fails */
        bound = (apr_interval_time_t)(tileset->stale_if_error * APR_USEC_PER_SEC);
    apr_time_t now = ctx->process == NULL ? apr_time_now() : mc_changes_now(ctx->process->changes);
    return tileset->watch->waits || (bound > 0 && now > changed + bound) ? MC_STALE_MUST_WAIT : MC_STALE_BEHIND;
}

/* `mtime`: when the tile was made. */
static mc_freshness
freshness_of_time(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    apr_time_t changed = tileset->watch == NULL ? 0 : time_of_change(tileset, key, mtime);
    bool expired = mc_tileset_too_old(tileset, mtime);
    if (changed == 0 && !expired)
        return MC_FRESH;
    if (ctx->wants_fresh)
        return MC_STALE_MUST_WAIT;
    if (changed != 0)
        return freshness_of_changed(tileset, changed, ctx);
    apr_time_t end = mc_expiry_end(tileset->auto_expire, mtime), now = apr_time_now();
    if (now <= end + revalidation_of(tileset))
        return MC_STALE_BEHIND;
    bool beyond = tileset->stale_if_error > 0 && (double)(now - end) > tileset->stale_if_error * APR_USEC_PER_SEC;
    return beyond ? MC_STALE_MUST_WAIT : MC_STALE_MAY_SERVE;
}

/* What is known of the tile besides counts, too. Nobody knows when it was marked: <stale_while_revalidate> and
 * <stale_if_error> do not bound the mark alone. */
static mc_freshness
freshness_of_marked(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    if (ctx->wants_fresh || (tileset->shown != NULL && tileset->shown->waits))
        return MC_STALE_MUST_WAIT;
    mc_freshness besides = freshness_of_time(tileset, key, mc_time_made(mtime), ctx);
    return besides == MC_FRESH ? MC_STALE_BEHIND : besides;
}

mc_freshness
mc_tileset_freshness(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    return mc_is_marked_time(mtime) ? freshness_of_marked(tileset, key, mtime, ctx)
                                    : freshness_of_time(tileset, key, mtime, ctx);
}

/* Since when the stored tile is stale: the end of its time, or the newest change that it does not show; 0: it is not,
 * or nobody knows, as where it is marked. */
static apr_time_t
stale_since(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime)
{
    mtime = mc_time_made(mtime);
    apr_time_t changed = tileset->watch == NULL ? 0 : time_of_change(tileset, key, mtime);
    apr_time_t end = mc_tileset_too_old(tileset, mtime) ? mc_expiry_end(tileset->auto_expire, mtime) : 0;
    return changed != 0 && (end == 0 || changed < end) ? changed : end;
}

void
mc_tileset_call_stale(mc_tile *tile, const mc_tileset *tileset, const mc_tile_key *key)
{
    tile->stale = true;
    tile->stale_since = stale_since(tileset, key, tile->mtime);
}

int64_t
mc_tileset_error_grace(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    if (tileset->stale_if_error < 0)
        return INT64_MAX;
    apr_time_t since = stale_since(tileset, key, mtime);
    apr_time_t now = ctx->process == NULL ? apr_time_now() : mc_changes_now(ctx->process->changes);
    /* a mark has no time, but lies before now */
    double past = (double)(since != 0 ? now - since : mc_is_marked_time(mtime)) / APR_USEC_PER_SEC;
    return past > tileset->stale_if_error ? -1 : (int64_t)(tileset->stale_if_error - fmax(past, 0));
}

bool
mc_tileset_older_than(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, apr_time_t time)
{
    const mc_mark_set *marks = marks_of(tileset, key);
    apr_time_t mark = marks == NULL ? 0 : mc_marks_find(marks, key->z, key->x, key->y);
    return marks == NULL ||
           is_older_than_mark(tileset->watch, marks, key, mtime, mark != 0 && mark < time ? mark : time);
}

apr_time_t
mc_tileset_time_of_render(const mc_tileset *tileset, const mc_ctx *ctx)
{
    if (tileset->watch != NULL && ctx->process != NULL)
        return mc_changes_now(ctx->process->changes);
    /* what ends after the moment of a cron expression has begun before it */
    return tileset->auto_expire != NULL && mc_expiry_age(tileset->auto_expire) == 0 ? apr_time_now() : 0;
}

void
mc_tileset_note_render(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t begun)
{
    mc_mark_set *marks = begun == 0 ? NULL : marks_of(tileset, key);
    if (marks != NULL)
        mc_marks_note_drawn(marks, key->z, key->x, key->y, begun);
}

/* Seconds to the end of the time of a tile, at most those after which all tiles end: a store may say that it was made
 * in the future. At least 0. */
static int64_t
seconds_left(const mc_tileset *tileset, apr_time_t mtime, apr_time_t now)
{
    const int age = mc_expiry_age(tileset->auto_expire);
    if (age > 0 && apr_time_sec(mtime) > apr_time_sec(now))
        return age;
    apr_time_t end = mc_expiry_end(tileset->auto_expire, mtime < now ? mtime : now);
    int64_t left = apr_time_sec(end) - apr_time_sec(now);
    return left > 0 ? left : 0;
}

int
mc_tileset_lifetime(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    if (tile->stale)
        return 0;
    if (tile->provisional > 0)
        return (int)fmin(fmax(tile->provisional, 1), tileset->expires);
    if (tileset->auto_expire == NULL || tile->mtime == 0)
        return tileset->expires;
    int64_t left = seconds_left(tileset, mc_time_made(tile->mtime), now);
    return mc_expiry_age(tileset->auto_expire) > 0 || left < tileset->expires ? (int)left : tileset->expires;
}

int
mc_tileset_store_lifetime(const mc_tileset *tileset)
{
    if (tileset->auto_expire == NULL)
        return 0;
    const apr_time_t now = apr_time_now();
    double left = (double)seconds_left(tileset, now, now) + (double)revalidation_of(tileset) / APR_USEC_PER_SEC +
                  fmax(tileset->stale_if_error, 0);
    return left < INT_MAX ? (int)left : 0;
}

int64_t
mc_tileset_overdue(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    apr_time_t since = tile->stale_since != 0 ? tile->stale_since
                       : tile->mtime == 0     ? now
                                              : mc_expiry_end(tileset->auto_expire, mc_time_made(tile->mtime));
    int64_t overdue = apr_time_sec(now) - apr_time_sec(since);
    return overdue > 0 ? overdue : 0;
}

int64_t
mc_tileset_expired_age(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    if (!tile->stale && (tileset->auto_expire == NULL || tile->mtime == 0))
        return 0;
    int64_t age = tile->mtime == 0 ? 1 : apr_time_sec(now) - apr_time_sec(mc_time_made(tile->mtime));
    if (tile->stale)
        return age < 1 ? 1 : age;
    bool expired = apr_time_sec(mc_expiry_end(tileset->auto_expire, mc_time_made(tile->mtime))) <= apr_time_sec(now);
    return !expired ? 0 : age < 1 ? 1 : age;
}

bool
mc_tileset_too_old(const mc_tileset *tileset, apr_time_t mtime)
{
    return tileset->auto_expire != NULL && mtime != 0 && mc_expiry_end(tileset->auto_expire, mtime) < apr_time_now();
}
