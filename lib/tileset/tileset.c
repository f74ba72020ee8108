/* The life of a tile (spec 6.3): rules, zooms, dimensions, cache, and what to do when it is missing or too old. */
#include "mapcache/tileset.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/metrics.h"
#include "mapcache/trace.h"
#include "tileset/tileset_private.h"
#include "vector/mvt/mvt.h"

mc_grid_link *
mc_tileset_link(const mc_tileset *tileset, const char *grid_name)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (grid_name == NULL || strcmp(tileset->links[i]->grid->name, grid_name) == 0)
            return tileset->links[i];
    return NULL;
}

int
mc_tileset_dimension(const mc_tileset *tileset, const char *name, bool any_case)
{
    for (int i = 0; i < tileset->dimension_count; i++) {
        const char *own = tileset->dimensions[i]->name;
        if (any_case ? strcasecmp(own, name) == 0 : strcmp(own, name) == 0)
            return i;
    }
    return -1;
}

bool
mc_tileset_same_dimensions(const mc_tileset *tileset, const mc_tileset *other)
{
    bool same = tileset->dimension_count == other->dimension_count;
    for (int i = 0; i < tileset->dimension_count && same; i++)
        same = strcasecmp(tileset->dimensions[i]->name, other->dimensions[i]->name) == 0;
    return same;
}

const char **
mc_tileset_defaults(const mc_tileset *tileset, apr_pool_t *pool)
{
    const char **values = apr_pcalloc(pool, sizeof(char *) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++)
        values[i] = tileset->dimensions[i]->default_value;
    return values;
}

const char *
mc_tileset_extension(const mc_tileset *tileset)
{
    return tileset->format == NULL ? "png" : tileset->format->extension == NULL ? "raw" : tileset->format->extension;
}

const char *
mc_tileset_title(const mc_tileset *tileset)
{
    const char *title = mc_metadata_get(tileset->metadata, "title");
    return title == NULL ? tileset->name : title;
}

mc_metatile
mc_tileset_metatile(const mc_tileset *tileset, const mc_grid *grid, int z, int x, int y)
{
    const mc_level *level = &grid->levels[z];
    mc_metatile metatile = { x - x % tileset->metatile_columns, y - y % tileset->metatile_rows,
                             tileset->metatile_columns, tileset->metatile_rows };
    if (metatile.columns > level->columns - metatile.x)
        metatile.columns = level->columns - metatile.x;
    if (metatile.rows > level->rows - metatile.y)
        metatile.rows = level->rows - metatile.y;
    return metatile;
}

int
mc_tileset_lifetime(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    if (tileset->auto_expire == 0 || tile->mtime == 0)
        return tileset->expires;
    apr_int64_t left = apr_time_sec(tile->mtime) + tileset->auto_expire - apr_time_sec(now);
    return left > 0 ? (int)left : 0;
}

mc_error *
mc_tileset_key(mc_tile_key *key, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tileset *tileset = wanted->tileset;
    *key = (mc_tile_key){ .tileset = tileset->name,
                          .grid = wanted->link->grid,
                          .z = wanted->z,
                          .x = wanted->x,
                          .y = wanted->y,
                          .dimension_count = tileset->dimension_count,
                          .extension = mc_tileset_extension(tileset),
                          .mime = tileset->format == NULL ? NULL : tileset->format->mime,
                          .renderable = mc_tileset_renders(tileset) };
    if (tileset->dimension_count == 0)
        return MC_OK;
    if (tileset->assembly != MC_ASSEMBLE_NONE) {
        mc_tileset_requested_key(key, wanted, pool);
        return MC_OK;
    }
    mc_dimension_value *dimensions = apr_pcalloc(pool, sizeof(*dimensions) * (size_t)tileset->dimension_count);
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        const char *value =
            wanted->values != NULL && wanted->values[i] != NULL ? wanted->values[i] : dimension->default_value;
        mc_dimension_query query = { tileset->name, wanted->link->grid, NULL, value };
        apr_array_header_t *values;
        MC_TRY(mc_dimension_resolve(&values, dimension, &query, ctx, pool));
        if (values->nelts == 0)
            return mc_error_located(pool, MC_ERR_NOT_FOUND, dimension->name, "dimension %s has nothing for \"%s\"",
                                    dimension->name, value);
        if (values->nelts > 1)
            return mc_error_create(pool, MC_ERR_LIMIT,
                                   "dimension %s stands for %d values at once, and no assembly is configured",
                                   dimension->name, values->nelts);
        dimensions[i] = (mc_dimension_value){ dimension->name, APR_ARRAY_IDX(values, 0, const char *),
                                              dimension->ops->from_backend };
    }
    key->dimensions = dimensions;
    return MC_OK;
}

bool
mc_tileset_too_old(const mc_tileset *tileset, apr_time_t mtime)
{
    return tileset->auto_expire > 0 && mtime != 0 && mtime + apr_time_from_sec(tileset->auto_expire) < apr_time_now();
}

mc_error *
mc_tileset_get_sub(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_tileset_tile_get_without_subdimensions");
    MC_TRY(mc_cache_get(tile, tileset->cache, key, ctx, pool));
    if (*tile != NULL && !(key->renderable && mc_tileset_too_old(tileset, (*tile)->mtime)))
        return MC_OK;
    if (key->renderable)
        return mc_metatile_render_once(tile, tileset, key, ctx, pool);
    if (*tile != NULL)
        return MC_OK;
    mc_span_note(&span, "CACHE_MISS");
    return mc_tile_nothing(tile, key->grid, pool);
}

static mc_error *
get_any(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE)
        return mc_tileset_get_stacked(tile, wanted, if_tag, ctx, pool);
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    return mc_tileset_get_sub(tile, wanted->tileset, &key, ctx, pool);
}

static mc_error *
check_built(const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tileset->not_built == NULL)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "layer %s is not available: %s", tileset->name,
                           tileset->not_built);
}

static bool
answer_hidden_tile(mc_error **error, mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    uint8_t bgra[4];
    if (wanted->link->ruleset == NULL || !mc_tile_hidden(wanted->link, wanted->z, wanted->x, wanted->y, bgra))
        return false;
    if (mc_format_is_vector(wanted->tileset->format))
        *error = mc_tile_nothing(tile, wanted->link->grid, pool);
    else
        *error = mc_tile_uniform(tile, wanted->tileset, wanted->link->grid, bgra, ctx, pool);
    return true;
}

static bool
above_cached_zoom(const mc_tile_request *wanted)
{
    return wanted->link->max_cached_zoom >= 0 && wanted->z > wanted->link->max_cached_zoom;
}

/* What is not made of pixels is never decoded. Where there is no vector tile, there is one without features, not an
 * image. */
static mc_error *
finish_raw(mc_tile *tile, const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tile == NULL || !mc_tileset_keeps_bytes(tileset))
        return MC_OK;
    tile->raw = true;
    if (!tile->no_data || !mc_format_is_vector(tileset->format))
        return MC_OK;
    tile->no_data = tile->blank = false;
    tile->coding = MC_CODING_GZIP;
    tile->tag = 0;
    return mc_mvt_empty(&tile->data, pool);
}

mc_error *
mc_tileset_get(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_tileset_get_unless(tile, wanted, 0, ctx, pool);
}

mc_error *
mc_tileset_get_unless(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    mc_error *error = MC_OK;
    *tile = NULL;
    MC_TRY(check_built(wanted->tileset, pool));
    if (answer_hidden_tile(&error, tile, wanted, ctx, pool))
        MC_TRY(error);
    else if (above_cached_zoom(wanted))
        MC_TRY(mc_tile_overzoom(tile, wanted, ctx, pool));
    else
        MC_TRY(get_any(tile, wanted, if_tag, ctx, pool));
    return finish_raw(*tile, wanted->tileset, pool);
}

/* As it is stored; of an assembly also that is only for as long as it is kept at all. */
static mc_error *
get_kept(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE)
        return mc_tileset_stored_assembly(tile, wanted, ctx, pool);
    return mc_tileset_stored(tile, wanted, ctx, pool);
}

mc_error *
mc_tileset_get_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    if (!mc_tileset_renders(wanted->tileset))
        return mc_tileset_get(tile, wanted, ctx, pool);
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    mc_error *error = MC_OK;
    *tile = NULL;
    MC_TRY(check_built(wanted->tileset, pool));
    if (answer_hidden_tile(&error, tile, wanted, ctx, pool))
        MC_TRY(error);
    else if (!above_cached_zoom(wanted))
        MC_TRY(get_kept(tile, wanted, ctx, pool));
    if (*tile != NULL && mc_tileset_too_old(wanted->tileset, (*tile)->mtime))
        *tile = NULL;
    return finish_raw(*tile, wanted->tileset, pool);
}

bool
mc_tileset_gets_all(const mc_tileset *tileset, const mc_grid_link *link, int z)
{
    return tileset->cache != NULL && mc_cache_gets_all(tileset->cache) && tileset->not_built == NULL &&
           tileset->assembly == MC_ASSEMBLE_NONE && link->ruleset == NULL &&
           (link->max_cached_zoom < 0 || z <= link->max_cached_zoom);
}

mc_error *
mc_tileset_get_stored_all(mc_tile **tiles, const mc_tile_request *wanted, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    mc_tileset *tileset = wanted[0].tileset;
    mc_tile_key *keys = apr_palloc(pool, sizeof(*keys) * (size_t)count);
    MC_TRY(mc_tileset_key(&keys[0], &wanted[0], ctx, pool));
    for (int i = 1; i < count; i++) {
        keys[i] = keys[0];
        keys[i].x = wanted[i].x;
        keys[i].y = wanted[i].y;
    }
    MC_TRY(mc_cache_get_all(tiles, tileset->cache, keys, count, ctx, pool));
    for (int i = 0; i < count; i++) {
        if (tiles[i] != NULL && keys[i].renderable && mc_tileset_too_old(tileset, tiles[i]->mtime))
            tiles[i] = NULL;
        if (tiles[i] == NULL && !keys[i].renderable)
            MC_TRY(mc_tile_nothing(&tiles[i], keys[i].grid, pool));
        MC_TRY(finish_raw(tiles[i], tileset, pool));
    }
    return MC_OK;
}

mc_error *
mc_tileset_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    MC_TRY(check_built(wanted->tileset, pool));
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    return mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool);
}

mc_error *
mc_tileset_exists(bool *exists, const mc_tile_request *wanted, mc_ctx *ctx)
{
    mc_tile_key key;
    uint8_t bgra[4];
    MC_TRY(check_built(wanted->tileset, ctx->pool));
    *exists = wanted->link->ruleset != NULL && mc_tile_hidden(wanted->link, wanted->z, wanted->x, wanted->y, bgra);
    if (*exists)
        return MC_OK;
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    key.renderable = true; /* who asks is about to write: a store that is not there yet has no tiles */
    return mc_cache_exists(exists, wanted->tileset->cache, &key, ctx);
}

mc_error *
mc_tileset_render(const mc_tile_request *wanted, mc_ctx *ctx)
{
    mc_tile_key key;
    mc_error *store_error = MC_OK;
    MC_TRY(check_built(wanted->tileset, ctx->pool));
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE) {
        mc_tile *tile;
        return mc_tileset_assemble(&tile, wanted, 0, ctx, ctx->pool);
    }
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    MC_TRY(mc_metatile_render(NULL, &store_error, wanted->tileset, &key, ctx, ctx->pool));
    return store_error;
}

mc_error *
mc_tileset_remove(const mc_tile_request *wanted, bool whole_metatile, mc_ctx *ctx)
{
    mc_tile_key key;
    MC_TRY(check_built(wanted->tileset, ctx->pool));
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    if (!whole_metatile)
        return mc_cache_remove(wanted->tileset->cache, &key, ctx);
    mc_metatile metatile = mc_tileset_metatile(wanted->tileset, key.grid, key.z, key.x, key.y);
    int count = 0;
    mc_tile_key *keys = apr_palloc(ctx->pool, sizeof(*keys) * (size_t)metatile.rows * (size_t)metatile.columns);
    for (int row = 0; row < metatile.rows; row++)
        for (int column = 0; column < metatile.columns; column++) {
            keys[count] = key;
            keys[count].x = metatile.x + column;
            keys[count++].y = metatile.y + row;
        }
    return mc_cache_remove_all(wanted->tileset->cache, keys, count, ctx);
}

mc_error *
mc_tileset_put(const mc_tile_request *wanted, mc_buf *data, mc_ctx *ctx)
{
    mc_tile_write put = { .data = data, .layers = mc_tileset_vector_layers, .layers_baton = wanted->tileset };
    MC_TRY(check_built(wanted->tileset, ctx->pool));
    MC_TRY(mc_tileset_key(&put.key, wanted, ctx, ctx->pool));
    return mc_cache_put(wanted->tileset->cache, &put, 1, ctx);
}
