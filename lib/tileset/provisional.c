/* Tiles that were drawn in place of better ones (<fallback_expires>): kept in the memory of the process, not stored. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "memory/clock_cache.h"
#include "tileset/tileset_private.h"

typedef struct provisional_tile {
    mc_buf *data; /* one reference */
    apr_time_t made;
    apr_time_t until; /* by mc_clock_now() */
    bool uniform;
    uint8_t bgra[4];
} provisional_tile;

static const char *
provisional_name(const mc_tileset *tileset, const mc_tile_key *key, apr_pool_t *pool)
{
    const char *flight = mc_tileset_flight_name(tileset, mc_tileset_lock_name(tileset, key, pool), pool);
    return apr_psprintf(pool, "%d %d %s", key->x, key->y, flight);
}

mc_error *
mc_provisional_error(const mc_tileset *tileset, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UNAVAILABLE,
                           "tiles of layer %s were drawn in place of better ones, and are not stored", tileset->name);
}

static void
free_provisional_tile(void *value)
{
    provisional_tile *kept = value;
    mc_buf_unref(kept->data);
    free(kept);
}

void
mc_tileset_keep_provisional(const mc_tile_write *writes, int count, double seconds, const mc_tileset *tileset,
                            mc_ctx *ctx)
{
    if (ctx->process->provisional == NULL || tileset->cache->ops->keeps_nothing)
        return;
    apr_time_t until = mc_clock_now() + (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
    for (int i = 0; i < count; i++) {
        provisional_tile *kept = calloc(1, sizeof(*kept));
        if (kept == NULL)
            return;
        *kept = (provisional_tile){ mc_buf_ref(writes[i].data), apr_time_now(), until, writes[i].uniform, { 0 } };
        memcpy(kept->bgra, writes[i].bgra, sizeof(kept->bgra));
        const char *name = provisional_name(tileset, &writes[i].key, ctx->pool);
        mc_clock_cache_put(ctx->process->provisional, name, strlen(name), kept, sizeof(*kept) + writes[i].data->size,
                           free_provisional_tile);
    }
}

static mc_tile *
copy_provisional_tile(const provisional_tile *kept, apr_pool_t *pool)
{
    mc_tile *tile = apr_pcalloc(pool, sizeof(*tile));
    tile->data = mc_buf_attach(mc_buf_ref(kept->data), pool);
    tile->coding = mc_image_sniff(kept->data->data, kept->data->size);
    tile->mtime = apr_time_from_sec(apr_time_sec(kept->made));
    tile->provisional = (double)(kept->until - mc_clock_now()) / APR_USEC_PER_SEC;
    tile->blank = kept->uniform;
    tile->no_data = kept->uniform && kept->bgra[3] == 0;
    memcpy(tile->bgra, kept->bgra, sizeof(tile->bgra));
    return tile;
}

bool
mc_tileset_get_provisional(mc_tile **tile, const mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                           apr_pool_t *pool)
{
    mc_clock_cache *all = ctx->process->provisional;
    if (all == NULL || mc_clock_cache_bytes(all) == 0)
        return false;
    mc_clock_cache_entry *entry;
    const char *name = provisional_name(tileset, key, pool);
    const provisional_tile *kept = mc_clock_cache_get(all, &entry, name, strlen(name));
    if (kept == NULL)
        return false;
    bool valid = mc_clock_now() < kept->until;
    if (valid)
        *tile = copy_provisional_tile(kept, pool);
    mc_clock_cache_release(entry);
    if (!valid)
        mc_clock_cache_remove(all, name, strlen(name));
    return valid;
}
