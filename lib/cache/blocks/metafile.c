/*
 * The cache "mod_tile": what renderd has drawn for the Apache module mod_tile. A file has 8 x 8 tiles, counted from the
 * upper left corner: a head of 20 bytes ("META", how many tiles, column, row and level of the first one), for each tile
 * its offset and its size, column by column, then the tiles. All numbers are of 32 bits and little-endian. The path of
 * a file is its level and five numbers, each of four bits of the column and four of the row, the highest ones first.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/blocks/blocks.h"
#include "text/text.h"

enum {
    META_SIDE = 8,
    META_TILES = META_SIDE * META_SIDE,
    META_HEAD = 20,
    META_ENTRY = 8,
    META_DEEPEST = 20, /* the path has 20 bits of columns and rows */
    META_FOLDERS = 5,
};

typedef struct metafile_cache {
    mc_block_cache block;
    const char *folder;
    mc_template *template;
} metafile_cache;

static const mc_key metafile_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_KEY_TEXT("base", offsetof(metafile_cache, folder),
                "Folder of a style, which has a folder for each level (/var/cache/renderd/tiles/default), with "
                "{tileset}, {grid} and {dim} or {dim:NAME}.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR | MC_KEY_OURS),
    MC_KEY_END,
};

static mc_error *
metafile_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    char name[64];
    int numbers[META_FOLDERS];
    int column = mc_block_column(key) / META_SIDE * META_SIDE, row = mc_block_row(key) / META_SIDE * META_SIDE;
    for (int i = META_FOLDERS - 1; i >= 0; i--, column >>= 4, row >>= 4)
        numbers[i] = (column & 15) << 4 | (row & 15);
    MC_TRY(mc_template_expand(path, ((const metafile_cache *)base)->template, key, pool));
    mc_text_out out = { .out = path };
    mc_text_put_string(&out, apr_pstrdup(pool, path));
    snprintf(name, sizeof(name), "/%d/%d/%d/%d/%d/%d.meta", key->z, numbers[0], numbers[1], numbers[2], numbers[3],
             numbers[4]);
    mc_text_put_string(&out, name);
    return mc_text_check(&out, key, pool);
}

/* The number of a tile in the index of its file. */
static int
metafile_number(const mc_tile_key *key)
{
    return mc_block_column(key) % META_SIDE * META_SIDE + mc_block_row(key) % META_SIDE;
}

/* A file that lies at a wrong place has other tiles. */
static mc_error *
check_metafile(mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    uint8_t head[META_HEAD];
    MC_TRY(mc_ranges_read(head, file, 0, sizeof(head), pool));
    if (memcmp(head, "METZ", 4) == 0)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "a file of cache \"%s\" holds compressed tiles (METZ), which are not read",
                               base->base.cache.name);
    if (memcmp(head, "META", 4) != 0 || mc_little32(head + 4) != META_TILES ||
        mc_little32(head + 8) != (uint32_t)(mc_block_column(key) / META_SIDE * META_SIDE) ||
        mc_little32(head + 12) != (uint32_t)(mc_block_row(key) / META_SIDE * META_SIDE) ||
        mc_little32(head + 16) != (uint32_t)key->z)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a file of cache \"%s\" is no metatile of its place",
                               base->base.cache.name);
    return MC_OK;
}

static mc_error *
read_metafile_tile(mc_buf **data, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    uint8_t entry[META_ENTRY];
    (void)ctx;
    if (key->z > META_DEEPEST)
        return MC_OK;
    MC_TRY(check_metafile(file, base, key, pool));
    MC_TRY(mc_ranges_read(entry, file, META_HEAD + (uint64_t)metafile_number(key) * META_ENTRY, sizeof(entry), pool));
    uint32_t offset = mc_little32(entry), size = mc_little32(entry + 4);
    return size == 0 ? MC_OK : mc_ranges_read_buf(data, file, offset, size, pool);
}

static mc_block_shape
metafile_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    (void)base, (void)key;
    return (mc_block_shape){ .columns = META_SIDE, .rows = META_SIDE, .north_west = true };
}

static mc_error *
metafile_pattern(char *pattern, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    char folder[MC_PATH_MAX];
    mc_text_out out = { .out = pattern };
    *pattern = '\0';
    MC_TRY(mc_template_expand(folder, ((const metafile_cache *)base)->template, key, pool));
    mc_block_put_plain(&out, folder);
    mc_text_put_string(&out, apr_psprintf(pool, "/%d/*/*/*/*/*.meta", key->z));
    return mc_text_check(&out, key, pool);
}

static bool
tell_metafile(mc_tile_key *key, const mc_block_cache *base, const char *path, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, path), *end = copy + strlen(copy);
    int column = 0, row = 0;
    (void)base;
    if (end - copy < 5 || key->z > META_DEEPEST)
        return false;
    end[-5] = '\0'; /* ".meta" */
    for (int i = 0; i < META_FOLDERS; i++) {
        int number;
        char *slash = strrchr(copy, '/');
        if (slash == NULL || !mc_parse_int(&number, slash + 1, 0, 255))
            return false;
        column |= (number >> 4) << 4 * i;
        row |= (number & 15) << 4 * i;
        *slash = '\0';
    }
    const mc_level *level = &key->grid->levels[key->z];
    if (row >= level->rows || column >= level->columns)
        return false;
    key->x = mc_grid_from_west(key->grid, key->z, column);
    key->y = mc_grid_flip_y(key->grid, key->z, row);
    return true;
}

static mc_error *
present_in_metafile(bool *present, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys, int count,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    uint8_t index[META_TILES * META_ENTRY];
    (void)ctx;
    if (count == 0)
        return MC_OK;
    MC_TRY(check_metafile(file, base, &keys[0], pool));
    MC_TRY(mc_ranges_read(index, file, META_HEAD, sizeof(index), pool));
    for (int i = 0; i < count; i++)
        present[i] = mc_little32(index + metafile_number(&keys[i]) * META_ENTRY + 4) != 0;
    return MC_OK;
}

static const mc_block_kind metafile_kind = { .path = metafile_path,
                                             .read = read_metafile_tile,
                                             .shape = metafile_shape,
                                             .pattern = metafile_pattern,
                                             .tell = tell_metafile,
                                             .present = present_in_metafile };

static mc_cache *
metafile_from_config(const mc_node *node, mc_build *build)
{
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    metafile_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &metafile_kind;
    cache->block.identity = 9;
    if (!mc_cache_read(&cache->block.base, &mc_cache_metafile, true, node, build))
        return NULL;
    cache->block.place = cache->folder;
    cache->template = mc_template_compile(cache->folder, &rules, build->pool);
    return &cache->block.base.cache;
}

static bool
metafile_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const metafile_cache *)base)->template);
}

const mc_cache_ops mc_cache_metafile = {
    MC_KIND("mod_tile", metafile_keys, metafile_from_config,
            "Tiles that renderd has drawn for mod_tile, 64 in a file (.meta); they are only read."),
    .get = mc_block_get,
    .exists = mc_block_exists,
    .put = mc_block_refuse_put,
    .remove = mc_block_refuse_remove,
    .reach = mc_block_reach,
    .used_by = mc_block_used_by,
    .tells_grids = metafile_tells_grids,
    MC_BLOCK_LISTING_OPS,
};
