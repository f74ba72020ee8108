/* How fresh a stored tile is: the one place where that is decided for all ways on which stored tiles go out. */
#include "tileset/freshness.h"

#include <math.h>

mc_freshness
mc_tileset_freshness(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx)
{
    (void)key;
    if (!mc_tileset_too_old(tileset, mtime))
        return MC_FRESH;
    return ctx->wants_fresh ? MC_STALE_MUST_WAIT : MC_STALE_MAY_SERVE;
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
