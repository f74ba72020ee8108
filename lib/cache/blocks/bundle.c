/*
 * The cache "bundle": Esri's compact cache, version 2. A folder has a folder for each level, and in it files of 128 x
 * 128 tiles, counted from the upper left corner: a head of 64 bytes, an index of 8 bytes a tile (40 bits of offset, 24
 * of size, little-endian), then the tiles.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/blocks/blocks.h"

enum { BUNDLE_SIDE = 128, BUNDLE_HEAD = 64, BUNDLE_VERSION = 3, ENTRY_BYTES = 8 };

typedef struct bundle_cache {
    mc_block_cache block;
    const char *folder;
    mc_template *template;
} bundle_cache;

static const mc_key bundle_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_KEY_TEXT("base", offsetof(bundle_cache, folder),
                "Folder that has the folders of the levels (L00, L01, ...; of Esri _alllayers), with {tileset}, {grid}"
                " and {dim} or {dim:NAME}.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR | MC_KEY_OURS),
    MC_KEY_END,
};

static mc_error *
bundle_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    char name[64];
    MC_TRY(mc_template_expand(path, ((const bundle_cache *)base)->template, key, pool));
    mc_text_out out = { .out = path };
    mc_text_put_string(&out, apr_pstrdup(pool, path));
    snprintf(name, sizeof(name), "/L%02d/R%04xC%04x.bundle", key->z,
             (unsigned)(mc_block_row(key) / BUNDLE_SIDE * BUNDLE_SIDE),
             (unsigned)(mc_block_column(key) / BUNDLE_SIDE * BUNDLE_SIDE));
    mc_text_put_string(&out, name);
    return mc_text_check(&out, key, pool);
}

static mc_error *
check_bundle(mc_ranged_file *file, const mc_block_cache *base, apr_pool_t *pool)
{
    uint8_t head[BUNDLE_HEAD];
    MC_TRY(mc_ranges_read(head, file, 0, sizeof(head), pool));
    if (mc_little32(head) != BUNDLE_VERSION || mc_little32(head + 4) != BUNDLE_SIDE * BUNDLE_SIDE)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a file of cache \"%s\" is no bundle of version 2",
                               base->base.cache.name);
    return MC_OK;
}

static mc_error *
read_bundle_tile(mc_buf **data, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    uint8_t entry[ENTRY_BYTES];
    uint64_t number =
        (uint64_t)(mc_block_row(key) % BUNDLE_SIDE) * BUNDLE_SIDE + (uint64_t)(mc_block_column(key) % BUNDLE_SIDE);
    (void)ctx;
    MC_TRY(check_bundle(file, base, pool));
    MC_TRY(mc_ranges_read(entry, file, BUNDLE_HEAD + number * ENTRY_BYTES, sizeof(entry), pool));
    uint64_t word = mc_little64(entry), offset = word & (((uint64_t)1 << 40) - 1), size = word >> 40;
    return size == 0 ? MC_OK : mc_ranges_read_buf(data, file, offset, (size_t)size, pool);
}

static mc_block_shape
bundle_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    (void)base, (void)key;
    return (mc_block_shape){ .columns = BUNDLE_SIDE, .rows = BUNDLE_SIDE, .north_west = true };
}

static mc_error *
bundle_pattern(char *pattern, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    char folder[MC_PATH_MAX];
    mc_text_out out = { .out = pattern };
    *pattern = '\0';
    MC_TRY(mc_template_expand(folder, ((const bundle_cache *)base)->template, key, pool));
    mc_block_put_plain(&out, folder);
    mc_text_put_string(&out, apr_psprintf(pool, "/L%02d/R*C*.bundle", key->z));
    return mc_text_check(&out, key, pool);
}

static bool
tell_bundle(mc_tile_key *key, const mc_block_cache *base, const char *path, apr_pool_t *pool)
{
    static const char hex[] = "0123456789abcdef";
    const char *name = strrchr(path, '/');
    (void)base;
    if (name == NULL || name[1] != 'R')
        return false;
    size_t digits = strspn(name + 2, hex); /* without C, which is in capitals */
    if (name[2 + digits] != 'C' || digits == 0 || digits > 8 || strspn(name + 3 + digits, hex) > 8)
        return false;
    unsigned long row = strtoul(apr_pstrmemdup(pool, name + 2, digits), NULL, 16);
    unsigned long column = strtoul(name + 3 + digits, NULL, 16);
    const mc_level *level = &key->grid->levels[key->z];
    if (row >= (unsigned long)level->rows || column >= (unsigned long)level->columns)
        return false;
    key->x = mc_grid_from_west(key->grid, key->z, (int)column);
    key->y = mc_grid_flip_y(key->grid, key->z, (int)row);
    return true;
}

static mc_error *
present_in_bundle(bool *present, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys, int count,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    uint8_t *index = apr_palloc(pool, BUNDLE_SIDE * BUNDLE_SIDE * ENTRY_BYTES);
    (void)ctx;
    MC_TRY(check_bundle(file, base, pool));
    MC_TRY(mc_ranges_read(index, file, BUNDLE_HEAD, BUNDLE_SIDE * BUNDLE_SIDE * ENTRY_BYTES, pool));
    for (int i = 0; i < count; i++) {
        int number = mc_block_row(&keys[i]) % BUNDLE_SIDE * BUNDLE_SIDE + mc_block_column(&keys[i]) % BUNDLE_SIDE;
        present[i] = mc_little64(index + number * ENTRY_BYTES) >> 40 != 0;
    }
    return MC_OK;
}

static const mc_block_kind bundle_kind = { .path = bundle_path,
                                           .read = read_bundle_tile,
                                           .shape = bundle_shape,
                                           .pattern = bundle_pattern,
                                           .tell = tell_bundle,
                                           .present = present_in_bundle };

static mc_cache *
bundle_from_config(const mc_node *node, mc_build *build)
{
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    bundle_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &bundle_kind;
    cache->block.identity = 5;
    if (!mc_cache_read(&cache->block.base, &mc_cache_bundle, true, node, build))
        return NULL;
    cache->block.place = cache->folder;
    cache->template = mc_template_compile(cache->folder, &rules, build->pool);
    return &cache->block.base.cache;
}

static bool
bundle_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const bundle_cache *)base)->template);
}

const mc_cache_ops mc_cache_bundle = {
    MC_KIND("bundle", bundle_keys, bundle_from_config,
            "Tiles in bundles of Esri's compact cache, version 2; they are only read."),
    .get = mc_block_get,
    .exists = mc_block_exists,
    .put = mc_block_refuse_put,
    .remove = mc_block_refuse_remove,
    .reach = mc_block_reach,
    .used_by = mc_block_used_by,
    .tells_grids = bundle_tells_grids,
    MC_BLOCK_LISTING_OPS,
};
