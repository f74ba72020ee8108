/* See blocks.h. A get looks at the file, then into the memory, and only then into the file. */
#include "cache/blocks/blocks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mapcache/trace.h"
#include "text/secret.h"

enum { LOOKS_MAX = 3 }; /* at a file that is replaced while it is read */

int
mc_block_column(const mc_tile_key *key)
{
    return mc_grid_from_west(key->grid, key->z, key->x);
}

int
mc_block_row(const mc_tile_key *key)
{
    return mc_grid_flip_y(key->grid, key->z, key->y);
}

mc_error *
mc_block_check_picture(const mc_buf *data, const mc_block_cache *cache, apr_pool_t *pool)
{
    mc_coding coding = mc_image_sniff(data->data, data->size);
    if (mc_coding_format(coding) != NULL)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "the tiles of cache \"%s\" are neither PNG nor JPEG nor WebP, and cannot be served",
                           cache->base.cache.name);
}

static mc_error *
read_block_tile(mc_tile **tile, mc_ranged_file *file, const mc_block_cache *cache, const mc_tile_key *key, mc_ctx *ctx,
                apr_pool_t *pool)
{
    mc_memory_key memory_key;
    mc_buf *data = NULL;
    bool remember = cache->base.cache.remember && ctx->process != NULL && ctx->process->memory != NULL;
    if (remember) {
        mc_memory_key_build(&memory_key, cache->identity ^ cache->base.cache.definition, file->path, key);
        if (mc_memory_get(tile, &memory_key, &file->stamp, ctx, pool))
            return MC_OK;
    }
    mc_error *error = cache->kind->read(&data, file, cache, key, ctx, pool);
    if (error == MC_OK && !mc_ranges_unchanged(file))
        error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s is being written to", file->path);
    MC_TRY(error);
    *tile = NULL;
    if (data != NULL) {
        apr_time_t changed = (apr_time_t)(file->stamp.mtime_ns / 1000);
        *tile = mc_tile_create(data, changed, pool);
    }
    if (remember)
        mc_memory_put(&memory_key, &file->stamp, file->taken, *tile, ctx);
    return MC_OK;
}

mc_error *
mc_block_look(mc_ranged_file *file, const mc_block_cache *cache, const char *path, mc_ctx *ctx, apr_pool_t *pool)
{
    if (cache->remote != NULL)
        return mc_ranges_ask(file, path, cache->remote, ctx, pool);
    mc_ranges_look(file, path);
    return MC_OK;
}

mc_error *
mc_block_judge_missing(const mc_ranged_file *file, const mc_block_cache *cache, const mc_tile_key *key,
                       apr_pool_t *pool)
{
    char text[128];
    int code = file->missing;
    if ((code == ENOENT || code == ENOTDIR) && (!cache->whole || key->renderable))
        return MC_OK; /* nothing is stored of that part */
    return mc_error_wrap(pool,
                         mc_error_create(pool, MC_ERR_IO, "%s: %s", mc_hide_address_password(file->path, pool),
                                         strerror_r(code, text, sizeof(text))),
                         MC_ERR_IO, "a file of cache \"%s\" cannot be opened", cache->base.cache.name);
}

static mc_error *
look_for_block_tile(mc_tile **tile, const mc_block_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    char path[MC_PATH_MAX];
    mc_error *error = MC_OK;
    *tile = NULL;
    MC_TRY(cache->kind->path(path, cache, key, pool));
    for (int look = 0; look < LOOKS_MAX; look++) {
        mc_ranged_file file;
        error = mc_block_look(&file, cache, path, ctx, pool);
        if (error == MC_OK && file.missing != 0) {
            mc_ranges_close(&file);
            return mc_block_judge_missing(&file, cache, key, pool);
        }
        if (error == MC_OK)
            error = read_block_tile(tile, &file, cache, key, ctx, pool);
        mc_ranges_close(&file);
        if (error == MC_OK || error->kind != MC_ERR_UNAVAILABLE)
            return error;
    }
    return error;
}

mc_error *
mc_block_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_blocks_get");
    mc_error *error = look_for_block_tile(tile, (mc_block_cache *)cache, key, ctx, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

mc_error *
mc_block_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_tile *tile;
    MC_TRY(look_for_block_tile(&tile, (mc_block_cache *)cache, key, ctx, ctx->pool));
    *exists = tile != NULL;
    return MC_OK;
}

static mc_error *
refuse_block_change(const mc_cache *cache, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CONFIG, "cache \"%s\" of type %s is only read", cache->name, cache->ops->type);
}

mc_error *
mc_block_refuse_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    (void)tiles, (void)count;
    return refuse_block_change(cache, ctx->pool);
}

mc_error *
mc_block_refuse_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    (void)key;
    return refuse_block_change(cache, ctx->pool);
}

void
mc_block_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    const mc_block_cache *cache = (const mc_block_cache *)base;
    mc_cache_note_dimensions(base, strstr(cache->place, "{dim") != NULL, "put {dim} into their path", use, node, build);
}

mc_error *
mc_block_reach(mc_cache *base, mc_ctx *ctx)
{
    const mc_block_cache *cache = (const mc_block_cache *)base;
    const bool template = strchr(cache->place, '{') != NULL;
    const char *place = template ? mc_template_folder(cache->place, ctx->pool) : cache->place;
    if (place == NULL || access(place, template ? R_OK | X_OK : R_OK) == 0)
        return MC_OK;
    char text[128];
    mc_error *why = mc_error_create(ctx->pool, MC_ERR_IO, "%s: %s", place, strerror_r(errno, text, sizeof(text)));
    return mc_error_wrap(ctx->pool, why, MC_ERR_IO, "the tiles of cache \"%s\" cannot be read", base->name);
}
