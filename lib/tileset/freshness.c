/* How fresh a stored tile is: the one place where that is decided for all ways on which stored tiles go out. */
#include "tileset/freshness.h"

#include <math.h>

#include "changes/changes.h"

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
    return mark != 0 && is_older_than_mark(tileset->watch, marks, key, mtime, mark) ? mark : 0;
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
    apr_time_t now = ctx->process == NULL ? apr_time_now() : mc_changes_now(ctx->process->changes);
    return tileset->watch->waits || (bound > 0 && now > changed + bound) ? MC_STALE_MUST_WAIT : MC_STALE_BEHIND;
}

mc_freshness
mc_tileset_freshness(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    apr_time_t changed = tileset->watch == NULL ? 0 : time_of_change(tileset, key, mtime);
    bool expired = mc_tileset_too_old(tileset, mtime);
    if (changed == 0 && !expired)
        return MC_FRESH;
    if (ctx->wants_fresh)
        return MC_STALE_MUST_WAIT;
    if (changed != 0)
        return freshness_of_changed(tileset, changed, ctx);
    apr_time_t end = mtime + apr_time_from_sec(tileset->auto_expire) + revalidation_of(tileset);
    return apr_time_now() <= end ? MC_STALE_BEHIND : MC_STALE_MAY_SERVE;
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
    return tileset->watch == NULL || ctx->process == NULL ? 0 : mc_changes_now(ctx->process->changes);
}

void
mc_tileset_note_render(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t begun)
{
    mc_mark_set *marks = begun == 0 ? NULL : marks_of(tileset, key);
    if (marks != NULL)
        mc_marks_note_drawn(marks, key->z, key->x, key->y, begun);
}

int
mc_tileset_lifetime(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    if (tile->stale)
        return 0;
    if (tile->provisional > 0)
        return (int)fmin(fmax(tile->provisional, 1), tileset->expires);
    if (tileset->auto_expire == 0 || tile->mtime == 0)
        return tileset->expires;
    apr_int64_t left = apr_time_sec(tile->mtime) + tileset->auto_expire - apr_time_sec(now);
    if (left > tileset->auto_expire) /* its store says that it was made in the future */
        return tileset->auto_expire;
    return left > 0 ? (int)left : 0;
}

int64_t
mc_tileset_expired_age(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    if (!tile->stale && (tileset->auto_expire <= 0 || tile->mtime == 0))
        return 0;
    int64_t age = tile->mtime == 0 ? 1 : apr_time_sec(now) - apr_time_sec(tile->mtime);
    if (tile->stale)
        return age < 1 ? 1 : age;
    return age >= tileset->auto_expire ? age : 0;
}

bool
mc_tileset_too_old(const mc_tileset *tileset, apr_time_t mtime)
{
    return tileset->auto_expire > 0 && mtime != 0 && mtime + apr_time_from_sec(tileset->auto_expire) < apr_time_now();
}
