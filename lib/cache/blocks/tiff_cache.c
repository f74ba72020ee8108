/* The cache "tiff": files of JPEG tiles, as MapCache has them (docs/reference/configuration.md 5.10). */
#include "cache/blocks/tiff_cache.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/archive/place.h"
#include "cache/sqlite/path_groups.h"

enum { TILES_OF_FILE_MAX = 1 << 16, LOCK_SECONDS = 120 };

typedef struct tiff_template {
    const char *path;
    const char *formats[MC_FORMAT_COUNT];
} tiff_template;

static const mc_key template_keys[] = { MC_KEY_TEXT("", offsetof(tiff_template, path), "Path of the files.",
                                                    .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
#define X(name)                                                                                                        \
    MC_KEY_TEXT("@" #name "_fmt", offsetof(tiff_template, formats[MC_FORMAT_##name]),                                  \
                "How the number of the token of that name is printed, like %03d."),
                                        X(x) X(y) X(z) X(inv_x) X(inv_y) X(div_x) X(div_y) X(inv_div_x) X(inv_div_y)
#undef X
                                            MC_KEY_END };

#define FIELD(field) offsetof(tiff_cache, field)
static const mc_key tiff_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_KEY_TREE("template", FIELD(named), template_keys, "Path of the files, with tokens.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("xcount", FIELD(columns), "Tiles in a file from west to east.", .min = 1, .max = TILES_OF_FILE_MAX,
               .fallback = "10"),
    MC_KEY_INT("ycount", FIELD(rows), "Tiles in a file from south to north.", .min = 1, .max = TILES_OF_FILE_MAX,
               .fallback = "10"),
    MC_KEY_TEXT("format", FIELD(format), "A format of type JPEG; tiles are stored as the tileset has made them.",
                .fallback = "JPEG"),
    MC_KEY_TREE("storage", FIELD(storage), mc_tiff_storage_keys,
                "Files are behind HTTP, and only read: <template> is their address."),
    MC_KEY_TREE("locker", FIELD(locking), mc_locker_keys, "Who may write to a file, one at a time."),
    MC_KEY_END,
};

/* The folder before the first token: all processes that write agree on it. */
static const char *
folder_of_template(const char *path, apr_pool_t *pool)
{
    const char *end = path + strcspn(path, "{");
    while (end > path && *end != '/')
        end--;
    return end > path ? apr_pstrmemdup(pool, path, (size_t)(end - path)) : "/tmp";
}

static bool
read_tiff_template(tiff_cache *cache, mc_build *build)
{
    tiff_template *named = apr_pcalloc(build->pool, sizeof(*named));
    if (!mc_config_read(named, cache->named, template_keys, build->diagnostics))
        return false;
    for (int i = 0; i < MC_FORMAT_COUNT; i++)
        if (named->formats[i] != NULL && !mc_number_format_valid(named->formats[i])) {
            mc_complain(build->diagnostics, MC_REFUSED, cache->named,
                        "%s is not text with one number in it, like %%03d",
                        mc_config_quote(named->formats[i], build->pool));
            return false;
        }
    const mc_template_rules rules = {
        .sqlite = true, .columns = cache->columns, .rows = cache->rows, .top = -1, .formats = named->formats
    };
    const char *path = named->path;
    if (cache->storage != NULL && !mc_tiff_storage_read(cache, &path, build))
        return false;
    cache->template = mc_template_compile(path, &rules, build->pool);
    if (cache->storage != NULL)
        return true;
    cache->locker = cache->locking != NULL
                        ? mc_locker_from_config(cache->locking, build)
                        : mc_locker_disk(folder_of_template(named->path, build->pool), LOCK_SECONDS, build->pool);
    return cache->locker != NULL;
}

static mc_error *
tiff_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    MC_TRY(mc_template_expand(path, ((const tiff_cache *)base)->template, key, pool));
    return base->remote == NULL ? MC_OK : mc_archive_encode_path(path, "/", pool);
}

static mc_error *
locate_tiff_tiles(mc_block_spots *spots, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys,
                  int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const tiff_cache *cache = (const tiff_cache *)base;
    MC_TRY(mc_tiff_find_index(&spots->index, file, ctx, pool));
    for (int i = 0; i < count; i++) {
        const mc_tiff_block block = mc_tiff_block_of(cache, &keys[i]);
        const mc_grid *grid = keys[i].grid;
        if (!mc_tiff_block_fits(&spots->index, &block, grid))
            return mc_error_create(pool, MC_ERR_CORRUPT,
                                   "a file of cache \"%s\" has not %d x %d JPEG tiles of %d x %d pixels, as grid"
                                   " \"%s\" and <xcount>, <ycount> say",
                                   base->base.cache.name, block.columns, block.rows, grid->tile_width,
                                   grid->tile_height, grid->name);
        spots->numbers[i] = (int64_t)block.number;
    }
    return MC_OK;
}

/* Whether the path counts by one of two marks. */
static bool
has_tiff_mark(const char *marked, char one, char other)
{
    for (const char *at = marked; (at = strchr(at, MC_TEMPLATE_MARK)) != NULL; at++)
        if (at[1] == one || at[1] == other)
            return true;
    return false;
}

static mc_block_shape
tiff_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    const tiff_cache *cache = (const tiff_cache *)base;
    mc_block_shape shape = { .columns = cache->columns, .rows = cache->rows };
    char marked[MC_PATH_MAX] = "";
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    if (mc_template_expand_marked(marked, cache->template, key, false, pool) == MC_OK) {
        shape.inverted_x = has_tiff_mark(marked, 'X', 'U');
        shape.inverted_y = has_tiff_mark(marked, 'Y', 'V');
    }
    apr_pool_destroy(pool);
    return shape;
}

static mc_error *
tiff_pattern(char *pattern, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    char marked[MC_PATH_MAX];
    mc_text_out out = { .out = pattern };
    *pattern = '\0';
    MC_TRY(mc_template_expand_marked(marked, ((const tiff_cache *)base)->template, key, false, pool));
    for (const char *at = marked; *at != '\0'; at += *at == MC_TEMPLATE_MARK ? 2 : 1) {
        if (*at == MC_TEMPLATE_MARK)
            mc_text_put(&out, "*", 1);
        else
            mc_block_put_plain(&out, (const char[]){ *at, '\0' });
    }
    return mc_text_check(&out, key, pool);
}

/* Takes the number of a mark; the path of the key, made again, tells whether it was meant so. */
static void
take_tiff_number(mc_tile_key *key, char mark, int64_t number, const tiff_cache *cache)
{
    const mc_level *level = &key->grid->levels[key->z];
    bool column = strchr("xXuU", mark) != NULL;
    if (strchr("uUvV", mark) != NULL)
        number *= column ? cache->columns : cache->rows;
    if (strchr("XYUV", mark) != NULL)
        number = (column ? level->columns : level->rows) - 1 - number;
    *(column ? &key->x : &key->y) = number < 0 || number > INT32_MAX ? -1 : (int)number;
}

static bool
tell_tiff_file(mc_tile_key *key, const mc_block_cache *base, const char *path, apr_pool_t *pool)
{
    char marked[MC_PATH_MAX];
    const tiff_cache *cache = (const tiff_cache *)base;
    if (mc_template_expand_marked(marked, cache->template, key, false, pool) != MC_OK)
        return false;
    key->x = key->y = 0;
    for (const char *at = marked; *at != '\0'; at++) {
        if (*at != MC_TEMPLATE_MARK) {
            if (*path++ != *at)
                return false;
            continue;
        }
        size_t digits = strspn(path, "0123456789");
        if (digits == 0 || digits > 12)
            return false;
        take_tiff_number(key, *++at, strtoll(path, NULL, 10), cache);
        path += digits;
    }
    return *path == '\0';
}

static const mc_block_kind tiff_kind = { .path = tiff_path,
                                         .read = mc_block_read_located,
                                         .locate = locate_tiff_tiles,
                                         .shape = tiff_shape,
                                         .pattern = tiff_pattern,
                                         .tell = tell_tiff_file,
                                         .present = mc_block_located_present };

static mc_cache *
tiff_from_config(const mc_node *node, mc_build *build)
{
    tiff_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &tiff_kind;
    cache->block.identity = 4;
    cache->places = apr_hash_make(build->pool);
    if (!mc_cache_read(&cache->block.base, &mc_cache_tiff, true, node, build))
        return NULL;
    const mc_format *format =
        build->formats == NULL ? NULL : apr_hash_get(build->formats, cache->format, APR_HASH_KEY_STRING);
    if (build->formats != NULL && (format == NULL || format->type != MC_FORMAT_JPEG)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "the format of a tiff cache is one of type JPEG, and %s is not",
                    mc_config_quote(cache->format, build->pool));
        return NULL;
    }
    if ((int64_t)cache->columns * cache->rows > TILES_OF_FILE_MAX) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a file of a tiff cache has at most %d tiles",
                    TILES_OF_FILE_MAX);
        return NULL;
    }
    return read_tiff_template(cache, build) ? &cache->block.base.cache : NULL;
}

/* Tiles by their files. Of a tile that comes twice the last one counts: the writer takes them in order. */
static mc_error *
write_tiff_files(tiff_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    apr_pool_t *pool = ctx->pool;
    if (cache->block.remote != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "cache \"%s\" reads its files over HTTP, and cannot store or remove tiles",
                               cache->block.base.cache.name);
    const char **paths = apr_palloc(pool, sizeof(*paths) * (size_t)(count + 1));
    const mc_tile_write **members = apr_palloc(pool, sizeof(mc_tile_write *) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        MC_TRY(mc_template_expand(path, cache->template, &tiles[i].key, pool));
        paths[i] = i > 0 && strcmp(path, paths[i - 1]) == 0 ? paths[i - 1] : apr_pstrdup(pool, path);
    }
    const mc_path_groups groups = mc_path_groups_of(paths, count, pool);
    for (int i = 0; i < groups.count; i++) {
        int size = 0;
        for (int member = groups.first[i]; member >= 0; member = groups.next[member])
            members[size++] = &tiles[member];
        MC_TRY(mc_tiff_write(cache, paths[groups.first[i]], members, size, ctx));
    }
    return MC_OK;
}

static mc_error *
tiff_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i++)
        if (mc_image_sniff(tiles[i].data->data, tiles[i].data->size) != MC_CODING_JPEG)
            return mc_error_create(ctx->pool, MC_ERR_CONFIG,
                                   "cache \"%s\" of type tiff takes JPEG tiles only: its tilesets need a <format> of"
                                   " type JPEG",
                                   base->name);
    return write_tiff_files((tiff_cache *)base, tiles, count, ctx);
}

static mc_error *
tiff_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_tile_write *writes = apr_pcalloc(ctx->pool, sizeof(*writes) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        writes[i].key = keys[i];
    return write_tiff_files((tiff_cache *)base, writes, count, ctx);
}

static mc_error *
tiff_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return tiff_remove_all(base, key, 1, ctx);
}

static bool
tiff_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const tiff_cache *)base)->template);
}

/* MapCache's number of a tile takes for granted that rows are counted from the bottom. */
static void
tiff_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    if (use->grid->origin != MC_BOTTOM_LEFT)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "grid \"%s\" in a tiff cache: other programs see the rows of tiles of a file in the wrong order, as"
                    " MapCache stores them for an <origin> of bottom-left",
                    use->grid->name);
    tiff_cache *cache = (tiff_cache *)base;
    const mc_tile_key key = { .tileset = use->tileset, .grid = use->grid, .extension = use->extension };
    char path[MC_PATH_MAX];
    if (cache->first == NULL)
        cache->first = apr_pmemdup(build->pool, &key, sizeof(key));
    if (mc_template_expand(path, cache->template, &key, build->pool) == MC_OK)
        mc_cache_note_place(base, cache->places, path, "put {tileset} and {grid} into <template>", use, node, build);
    mc_cache_note_dimensions(base, mc_template_by_dimension(cache->template), "put {dim} into the <template>", use,
                             node, build);
}

/* Asks for one tile, which need not be there. */
static mc_error *
tiff_reach(mc_cache *base, mc_ctx *ctx)
{
    const tiff_cache *cache = (const tiff_cache *)base;
    bool exists;
    return cache->block.remote == NULL || cache->first == NULL ? MC_OK
                                                               : mc_block_exists(&exists, base, cache->first, ctx);
}

const mc_cache_ops mc_cache_tiff = {
    MC_KIND("tiff", tiff_keys, tiff_from_config, "JPEG tiles in TIFF files, many in each."),
    .get = mc_block_get,
    .get_all = mc_block_get_all,
    .gets_all = mc_block_gets_all,
    .exists = mc_block_exists,
    .put = tiff_put,
    .remove = tiff_remove,
    .remove_all = tiff_remove_all,
    .used_by = tiff_used_by,
    .tells_grids = tiff_tells_grids,
    .reach = tiff_reach,
    MC_BLOCK_LISTING_OPS,
};
