/*
 * The cache "cog": the tiles of a GeoTIFF whose tiles are those of a grid, as GDAL's COG driver writes it by
 * TILING_SCHEME. JPEG and WebP tiles are handed on as they stand in the file, JPEGs with the tables that they share;
 * they are only read.
 */
#include <apr_strings.h>

#include "cache/archive/place.h"
#include "cache/blocks/blocks.h"
#include "cache/blocks/cog_fit.h"
#include "cache/blocks/tile_mask.h"
#include "memory/clock_cache.h"

typedef struct cog_cache {
    mc_block_cache block;
    mc_archive_place place;
    mc_template *template;    /* made of it */
    apr_array_header_t *uses; /* of mc_tile_key: the first tile of each tileset on each grid */
} cog_cache;

static const mc_key cog_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_ARCHIVE_PLACE_KEYS(offsetof(cog_cache, place)),
    MC_KEY_END,
};

static mc_error *
cog_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const cog_cache *cache = (const cog_cache *)base;
    return mc_archive_place_path(path, &cache->place, cache->template, key, pool);
}

/* mc_block_kind.locate in levels that are held. */
static mc_error *
locate_in_levels(mc_block_spots *spots, const mc_tiff_levels *levels, const char *name, const mc_tile_key *keys,
                 int count, apr_pool_t *pool)
{
    int image;
    MC_TRY(mc_cog_find_image(&image, levels, keys[0].grid, keys[0].z, name, pool));
    spots->index = levels->indexes[image < 0 ? 0 : image];
    const mc_tiff_index *mask = image < 0 ? NULL : mc_tile_mask_of(levels, image);
    spots->cut = true;
    spots->masked = mask != NULL;
    if (mask != NULL)
        spots->mask = *mask;
    for (int i = 0; i < count; i++) {
        spots->numbers[i] = -1;
        if (image >= 0)
            MC_TRY(mc_cog_number_tile(&spots->numbers[i], levels, image, &keys[i], name, pool));
    }
    return MC_OK;
}

static mc_error *
locate_cog_tiles(mc_block_spots *spots, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys,
                 int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tiff_levels *levels;
    mc_clock_cache_entry *held;
    MC_TRY(mc_tiff_find_levels(&levels, &held, file, ctx, pool));
    mc_error *error = locate_in_levels(spots, levels, base->base.cache.name, keys, count, pool);
    mc_clock_cache_release(held);
    return error;
}

static mc_block_shape
cog_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    (void)base, (void)key;
    return (mc_block_shape){ .north_west = true };
}

static mc_error *
cog_range(mc_tile_range *range, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
          apr_pool_t *pool)
{
    const mc_tiff_levels *levels;
    mc_clock_cache_entry *held;
    MC_TRY(mc_tiff_find_levels(&levels, &held, file, ctx, pool));
    mc_error *error = mc_cog_cover(range, levels, key, base->base.cache.name, pool);
    mc_clock_cache_release(held);
    return error;
}

static const mc_block_kind cog_kind = { .path = cog_path,
                                        .read = mc_block_read_located,
                                        .locate = locate_cog_tiles,
                                        .shape = cog_shape,
                                        .range = cog_range,
                                        .present = mc_block_located_present };

static mc_cache *
cog_from_config(const mc_node *node, mc_build *build)
{
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    cog_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &cog_kind;
    cache->block.identity = 8;
    cache->uses = apr_array_make(build->pool, 2, sizeof(mc_tile_key));
    if (!mc_cache_read(&cache->block.base, &mc_cache_cog, true, node, build) ||
        !mc_archive_place_prepare(&cache->place, cache->block.base.cache.name, node, build))
        return NULL;
    bool far = cache->place.url != NULL;
    cache->template = mc_template_compile(far ? cache->place.url : cache->place.file, &rules, build->pool);
    if (mc_template_by_tile(cache->template) || (far && mc_template_by_dimension(cache->template))) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "a GeoTIFF has all levels of a tileset: there is no {z} in its path, and no {dim} in its <url>");
        return NULL;
    }
    cache->block.remote = far ? &cache->place.remote : NULL;
    cache->block.whole = mc_template_constant(cache->template);
    return &cache->block.base.cache;
}

static bool
cog_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const cog_cache *)base)->template);
}

static void
cog_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    const cog_cache *cache = (const cog_cache *)base;
    mc_cache_note_dimensions(base, mc_template_by_dimension(cache->template),
                             cache->place.url != NULL ? "a <file> may have {dim}" : "put {dim} into the <file>", use,
                             node, build);
    const mc_tile_key key = { .tileset = use->tileset, .grid = use->grid, .extension = use->extension };
    APR_ARRAY_PUSH(((cog_cache *)base)->uses, mc_tile_key) = key;
}

/* Whether the file of a tileset has the tiles of the tileset's grid. */
static mc_error *
check_cog_use(const cog_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    char path[MC_PATH_MAX];
    mc_ranged_file file;
    const mc_tiff_levels *levels;
    mc_clock_cache_entry *held = NULL;
    MC_TRY(cog_path(path, &cache->block, key, ctx->pool));
    mc_error *error = mc_block_look(&file, &cache->block, path, ctx, ctx->pool);
    if (error == MC_OK && file.missing != 0)
        error = mc_block_judge_missing(&file, &cache->block, key, ctx->pool);
    else if (error == MC_OK)
        error = mc_tiff_find_levels(&levels, &held, &file, ctx, ctx->pool);
    if (error == MC_OK && file.missing == 0)
        error = mc_cog_check(levels, key->grid, cache->block.base.cache.name, ctx->pool);
    mc_clock_cache_release(held);
    mc_ranges_close(&file);
    return error;
}

static mc_error *
cog_reach(mc_cache *base, mc_ctx *ctx)
{
    const cog_cache *cache = (const cog_cache *)base;
    for (int i = 0; i < cache->uses->nelts; i++)
        MC_TRY(check_cog_use(cache, &APR_ARRAY_IDX(cache->uses, i, mc_tile_key), ctx));
    return MC_OK;
}

const mc_cache_ops mc_cache_cog = {
    MC_KIND(
        "cog", cog_keys, cog_from_config,
        "The JPEG or WebP tiles of a Cloud Optimized GeoTIFF whose tiles are those of the grid; they are only read."),
    .get = mc_block_get,
    .get_all = mc_block_get_all,
    .gets_all = mc_block_gets_all,
    .exists = mc_block_exists,
    .put = mc_block_refuse_put,
    .remove = mc_block_refuse_remove,
    .used_by = cog_used_by,
    .tells_grids = cog_tells_grids,
    .reach = cog_reach,
    MC_BLOCK_LISTING_OPS,
};
