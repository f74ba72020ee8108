/*
 * The cache "rok4": pyramids of IGN's ROK4 in files. A slab is a TIFF of 16 x 16 tiles, each a whole picture (JPEG or
 * PNG), counted from the upper left corner. The path of a slab has the digits of its column and row, to the base of 36,
 * in pairs.
 */
#include <apr_strings.h>
#include <string.h>

#include "cache/archive/tiff_index.h"
#include "cache/blocks/blocks.h"

enum { SLAB_SIDE_MAX = 256, DEPTH_MAX = 8, SLAB_PATH_BYTES = 64 };

typedef struct slab_cache {
    mc_block_cache block;
    const char *folder;
    int columns, rows, depth;
    mc_template *template;
} slab_cache;

static const mc_key slab_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_KEY_TEXT("base", offsetof(slab_cache, folder),
                "Folder of the slabs of a level, with {z}; {tileset}, {grid} and {dim} or {dim:NAME} may stand in it.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR | MC_KEY_OURS),
    MC_KEY_INT("xcount", offsetof(slab_cache, columns), "Tiles in a slab from west to east.", .min = 1,
               .max = SLAB_SIDE_MAX, .fallback = "16"),
    MC_KEY_INT("ycount", offsetof(slab_cache, rows), "Tiles in a slab from north to south.", .min = 1,
               .max = SLAB_SIDE_MAX, .fallback = "16"),
    MC_KEY_INT("path_depth", offsetof(slab_cache, depth), "Folders in the path of a slab below <base>.",
               .max = DEPTH_MAX, .flags = MC_KEY_OURS, .fallback = "2"),
    MC_KEY_END,
};

/* From its end: a pair of digits for the file's name, one for each folder, all that are left for the first one. Returns
 * where the path begins in `text`. */
static const char *
put_slab_path(char text[SLAB_PATH_BYTES], int column, int row, int depth)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *at = text + SLAB_PATH_BYTES - sizeof(".tif");
    memcpy(at, ".tif", sizeof(".tif"));
    for (int i = 0; i < depth || i == depth || column > 0 || row > 0; i++) {
        *--at = digits[row % 36];
        *--at = digits[column % 36];
        if (i < depth)
            *--at = '/';
        column /= 36;
        row /= 36;
    }
    *--at = '/';
    return at;
}

static mc_error *
slab_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const slab_cache *cache = (const slab_cache *)base;
    char name[SLAB_PATH_BYTES];
    MC_TRY(mc_template_expand(path, cache->template, key, pool));
    mc_text_out out = { .out = path };
    mc_text_put_string(&out, apr_pstrdup(pool, path));
    mc_text_put_string(&out, put_slab_path(name, mc_block_column(key) / cache->columns, mc_block_row(key) / cache->rows,
                                           cache->depth));
    return mc_text_check(&out, key, pool);
}

static mc_error *
locate_slab_tiles(mc_block_spots *spots, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys,
                  int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const slab_cache *cache = (const slab_cache *)base;
    const mc_grid *grid = keys[0].grid;
    const mc_tiff_index *index = &spots->index;
    MC_TRY(mc_tiff_find_index(&spots->index, file, ctx, pool));
    if ((int)index->tile_width != grid->tile_width || (int)index->tile_height != grid->tile_height ||
        (int)index->columns != cache->columns || (int)index->rows != cache->rows)
        return mc_error_create(pool, MC_ERR_CORRUPT,
                               "a slab of cache \"%s\" has not %d x %d tiles of %d x %d pixels, as grid \"%s\" and"
                               " <xcount>, <ycount> say",
                               base->base.cache.name, cache->columns, cache->rows, grid->tile_width, grid->tile_height,
                               grid->name);
    for (int i = 0; i < count; i++)
        spots->numbers[i] = (int64_t)(mc_block_row(&keys[i]) % cache->rows) * cache->columns +
                            mc_block_column(&keys[i]) % cache->columns;
    return MC_OK;
}

static mc_error *
read_slab_tile(mc_buf **data, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
               apr_pool_t *pool)
{
    MC_TRY(mc_block_read_located(data, file, base, key, ctx, pool));
    return *data == NULL ? MC_OK : mc_block_check_picture(*data, base, pool);
}

static mc_block_shape
slab_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    const slab_cache *cache = (const slab_cache *)base;
    (void)key;
    return (mc_block_shape){ .columns = cache->columns, .rows = cache->rows, .north_west = true };
}

static mc_error *
slab_pattern(char *pattern, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const slab_cache *cache = (const slab_cache *)base;
    char folder[MC_PATH_MAX];
    mc_text_out out = { .out = pattern };
    *pattern = '\0';
    MC_TRY(mc_template_expand(folder, cache->template, key, pool));
    mc_block_put_plain(&out, folder);
    for (int i = 0; i < cache->depth; i++)
        mc_text_put_string(&out, "/*");
    mc_text_put_string(&out, "/*.tif");
    return mc_text_check(&out, key, pool);
}

/* The digits to the base of 36 of the last parts of the path, in pairs: of the column and of the row. */
static bool
tell_slab(mc_tile_key *key, const mc_block_cache *base, const char *path, apr_pool_t *pool)
{
    const slab_cache *cache = (const slab_cache *)base;
    const mc_level *level = &key->grid->levels[key->z];
    const char *begin = path + strlen(path);
    int64_t numbers[2] = { 0, 0 };
    int digits = 0;
    (void)pool;
    for (int parts = 0; begin > path && parts <= cache->depth; begin--)
        parts += begin[-1] == '/';
    for (const char *at = begin; *at != '\0' && strcmp(at, ".tif") != 0; at++) {
        if (*at == '/')
            continue;
        int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'A' && *at <= 'Z' ? *at - 'A' + 10 : -1;
        if (digit < 0 || digits > 16)
            return false;
        numbers[digits % 2] = numbers[digits % 2] * 36 + digit;
        digits++;
    }
    numbers[0] *= cache->columns;
    numbers[1] *= cache->rows;
    if (digits % 2 != 0 || numbers[0] >= level->columns || numbers[1] >= level->rows)
        return false;
    key->x = mc_grid_from_west(key->grid, key->z, (int)numbers[0]);
    key->y = mc_grid_flip_y(key->grid, key->z, (int)numbers[1]);
    return true;
}

static const mc_block_kind slab_kind = { .path = slab_path,
                                         .read = read_slab_tile,
                                         .locate = locate_slab_tiles,
                                         .shape = slab_shape,
                                         .pattern = slab_pattern,
                                         .tell = tell_slab,
                                         .present = mc_block_located_present };

static mc_cache *
slab_from_config(const mc_node *node, mc_build *build)
{
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    slab_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &slab_kind;
    cache->block.identity = 6;
    if (!mc_cache_read(&cache->block.base, &mc_cache_rok4, true, node, build))
        return NULL;
    cache->block.place = cache->folder;
    cache->template = mc_template_compile(cache->folder, &rules, build->pool);
    if (mc_template_by_tile(cache->template))
        return &cache->block.base.cache;
    mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "base"),
                "the slabs of all levels would be the same: the folder needs {z}");
    return NULL;
}

static bool
slab_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const slab_cache *)base)->template);
}

const mc_cache_ops mc_cache_rok4 = {
    MC_KIND("rok4", slab_keys, slab_from_config, "Tiles in slabs of a ROK4 pyramid; they are only read."),
    .get = mc_block_get,
    .exists = mc_block_exists,
    .put = mc_block_refuse_put,
    .remove = mc_block_refuse_remove,
    .reach = mc_block_reach,
    .used_by = mc_block_used_by,
    .tells_grids = slab_tells_grids,
    MC_BLOCK_LISTING_OPS,
};
