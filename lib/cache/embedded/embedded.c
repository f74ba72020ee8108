/* The caches "lmdb" and "bdb": MapCache's keys and values, in databases of libraries (docs/reference/configuration.md
 * 5.6, 5.7). */
#include "cache/embedded/embedded.h"

#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/module.h"
#include "mapcache/trace.h"

enum { BLANK_BYTES = 5, BLANK_SIDE = 256, LMDB_KEY_BYTES = 511 };

/* Which key a tileset and a grid have at a place that all have. */
typedef struct embedded_use {
    const char *tileset, *grid, *key;
} embedded_use;

typedef struct embedded_cache {
    mc_cache_base base;
    const char *folder, *key_template;
    int max_size, max_readers;
    mc_embedded_place place;
    const char *module, *symbol;
    size_t longest; /* bytes of a key; 0: any */
    apr_array_header_t *uses;
} embedded_cache;

#define FIELD(field) offsetof(embedded_cache, field)
#define EMBEDDED_KEYS                                                                                                  \
    MC_CACHE_KEYS(embedded_cache),                                                                                     \
        MC_KEY_TEXT("base", FIELD(folder), "Folder of the files.", .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),         \
        MC_KEY_TEXT("key_template", FIELD(key_template),                                                               \
                    "Key of a tile: {tileset} {grid} {dim} {dim:NAME} {z} {y} {x} {inv_z} {inv_y} {inv_x} {quadkey} "  \
                    "{ext}.",                                                                                          \
                    .fallback = "{tileset}-{grid}-{dim}-{z}-{y}-{x}.{ext}")

static const mc_key bdb_keys[] = { EMBEDDED_KEYS, MC_KEY_END };

static const mc_key lmdb_keys[] = {
    EMBEDDED_KEYS,
    MC_KEY_INT("max_size", FIELD(max_size),
               "How large the file may become, in units of 1,000 pages (4 KB): 64 are 262 MB.", .min = 1, .max = 1e9,
               .fallback = "64"),
    MC_KEY_INT("max_readers", FIELD(max_readers), "How many may read at a time, in all processes.", .min = 1,
               .max = 100000, .fallback = "126"),
    MC_KEY_END,
};

/* Whether no two tiles of a level share a key. */
static bool
key_tells_tiles(const char *template)
{
    return strstr(template, "{quadkey}") != NULL ||
           ((strstr(template, "{x}") != NULL || strstr(template, "{inv_x}") != NULL) &&
            (strstr(template, "{y}") != NULL || strstr(template, "{inv_y}") != NULL) &&
            (strstr(template, "{z}") != NULL || strstr(template, "{inv_z}") != NULL));
}

static mc_cache *
read_embedded_cache(embedded_cache *cache, const mc_cache_ops *ops, const mc_node *node, mc_build *build)
{
    cache->uses = apr_array_make(build->pool, 2, sizeof(embedded_use));
    if (!mc_cache_read(&cache->base, ops, false, node, build))
        return NULL;
    if (!key_tells_tiles(cache->key_template)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "key_template"),
                    "the keys of cache \"%s\" would be the same for many tiles: the template needs {z}, {y} and {x}",
                    cache->base.cache.name);
        return NULL;
    }
    cache->place = (mc_embedded_place){ .base = cache->folder,
                                        .name = cache->base.cache.name,
                                        .map_size = (size_t)cache->max_size * 1000 * (size_t)sysconf(_SC_PAGESIZE),
                                        .readers = cache->max_readers };
    return &cache->base.cache;
}

static mc_cache *
lmdb_from_config(const mc_node *node, mc_build *build)
{
    embedded_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->module = "lmdb";
    cache->symbol = MC_LMDB_SYMBOL;
    cache->longest = LMDB_KEY_BYTES;
    return read_embedded_cache(cache, &mc_cache_lmdb, node, build);
}

static mc_cache *
bdb_from_config(const mc_node *node, mc_build *build)
{
    embedded_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->module = "bdb";
    cache->symbol = MC_BDB_SYMBOL;
    return read_embedded_cache(cache, &mc_cache_bdb, node, build);
}

static mc_error *
load_embedded_engine(const mc_embedded_engine **engine, const embedded_cache *cache, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, cache->module, cache->symbol, pool));
    *engine = symbol;
    return MC_OK;
}

static mc_error *
make_embedded_key(const char **text, const embedded_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    *text = mc_embedded_key(cache->key_template, key, pool);
    if (cache->longest == 0 || strlen(*text) < cache->longest)
        return MC_OK;
    return mc_error_create(pool, key->dimension_count > 0 ? MC_ERR_INVALID_DIMENSION : MC_ERR_LIMIT,
                           "the name of a tile is too long for cache \"%s\"", cache->base.cache.name);
}

static mc_error *
read_embedded_tile(mc_tile **tile, const embedded_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_embedded_engine *engine;
    const char *text;
    mc_buf *data;
    *tile = NULL;
    MC_TRY(load_embedded_engine(&engine, cache, pool));
    MC_TRY(make_embedded_key(&text, cache, key, pool));
    MC_TRY(engine->get(&data, &cache->place, text, ctx, pool));
    if (data == NULL)
        return MC_OK;
    if (data->size <= MC_EMBEDDED_TIME)
        return mc_error_create(pool, MC_ERR_CORRUPT, "cache \"%s\" has a value that is no tile",
                               cache->base.cache.name);
    data->size -= MC_EMBEDDED_TIME;
    *tile = mc_tile_create(data, (apr_time_t)mc_little64(data->data + data->size), pool);
    return MC_OK;
}

static mc_error *
embedded_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_embedded_get");
    mc_error *error = read_embedded_tile(tile, (embedded_cache *)cache, key, ctx, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

static mc_error *
embedded_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_tile *tile;
    MC_TRY(read_embedded_tile(&tile, (embedded_cache *)cache, key, ctx, ctx->pool));
    *exists = tile != NULL;
    return MC_OK;
}

/* MapCache stores tiles of one colour as the colour where they have its usual size (5.6). */
static void
fill_embedded_value(mc_embedded_value *value, const mc_tile_write *tile, const uint8_t *time, apr_pool_t *pool)
{
    const mc_grid *grid = tile->key.grid;
    value->time = time;
    value->data = tile->data->data;
    value->size = tile->data->size;
    if (!tile->uniform || grid->tile_width != BLANK_SIDE || grid->tile_height != BLANK_SIDE)
        return;
    uint8_t *blank = apr_palloc(pool, BLANK_BYTES);
    blank[0] = '#';
    memcpy(blank + 1, tile->bgra, 4);
    value->data = blank;
    value->size = BLANK_BYTES;
}

static mc_error *
embedded_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    const embedded_cache *cache = (const embedded_cache *)base;
    const mc_embedded_engine *engine;
    uint8_t time[MC_EMBEDDED_TIME];
    mc_embedded_value *values = apr_pcalloc(ctx->pool, sizeof(*values) * (size_t)(count + 1));
    MC_TRY(load_embedded_engine(&engine, cache, ctx->pool));
    mc_store_little64(time, (uint64_t)(count > 0 && tiles[0].made != 0 ? tiles[0].made : apr_time_now()));
    /* The last one first: the first tile of a metatile tells whether the metatile is there. Of a tile that comes twice
     * the last one counts. */
    apr_hash_t *filled = apr_hash_make(ctx->pool);
    int kept = 0;
    for (int i = count - 1; i >= 0; i--) {
        mc_embedded_value *value = &values[kept];
        MC_TRY(make_embedded_key(&value->key, cache, &tiles[i].key, ctx->pool));
        if (apr_hash_get(filled, value->key, APR_HASH_KEY_STRING) != NULL)
            continue;
        apr_hash_set(filled, value->key, APR_HASH_KEY_STRING, value);
        fill_embedded_value(value, &tiles[i], time, ctx->pool);
        kept++;
    }
    return engine->write(&cache->place, values, kept, ctx);
}

static mc_error *
embedded_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const embedded_cache *cache = (const embedded_cache *)base;
    const mc_embedded_engine *engine;
    mc_embedded_value *values = apr_pcalloc(ctx->pool, sizeof(*values) * (size_t)(count + 1));
    MC_TRY(load_embedded_engine(&engine, cache, ctx->pool));
    for (int i = 0; i < count; i++)
        MC_TRY(make_embedded_key(&values[i].key, cache, &keys[i], ctx->pool));
    return engine->write(&cache->place, values, count, ctx);
}

static mc_error *
embedded_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    return embedded_remove_all(cache, key, 1, ctx);
}

static mc_error *
embedded_measure(int64_t *bytes, int64_t *tiles, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const embedded_cache *cache = (const embedded_cache *)base;
    const mc_embedded_engine *engine;
    (void)key;
    MC_TRY(load_embedded_engine(&engine, cache, ctx->pool));
    return engine->measure(tiles, bytes, &cache->place, ctx);
}

static bool
embedded_tells_grids(const mc_cache *cache)
{
    return strstr(((const embedded_cache *)cache)->key_template, "{grid}") != NULL;
}

/* Names that are joined by dashes may meet: "a-b" on grid "c", and "a" on grid "b-c". */
static void
embedded_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    const embedded_cache *cache = (const embedded_cache *)base;
    const mc_tile_key key = { .tileset = use->tileset, .grid = use->grid, .extension = "" };
    const char *text = mc_embedded_key(cache->key_template, &key, build->pool);
    if (use->dimensions && strstr(cache->key_template, "{dim") == NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has dimensions, and the keys of cache \"%s\" do not tell their values apart: put"
                    " {dim} into its <key_template>",
                    use->tileset, base->name);
    for (int i = 0; i < cache->uses->nelts; i++) {
        const embedded_use *other = &APR_ARRAY_IDX(cache->uses, i, embedded_use);
        if (strcmp(other->key, text) != 0 ||
            (strcmp(other->tileset, use->tileset) == 0 && strcmp(other->grid, use->grid->name) == 0))
            continue;
        mc_complain(
            build->diagnostics, mc_cache_use_severity(use), node,
            "tileset \"%s\" on grid \"%s\" and tileset \"%s\" on grid \"%s\" have the same keys in cache \"%s\":"
            " their tiles overwrite each other; another <key_template> keeps them apart",
            use->tileset, use->grid->name, other->tileset, other->grid, base->name);
        return;
    }
    APR_ARRAY_PUSH(cache->uses, embedded_use) = (embedded_use){ use->tileset, use->grid->name, text };
}

static bool
embedded_lists(const mc_cache *cache, const mc_tile_key *key)
{
    (void)key;
    return mc_embedded_tells_tiles(((const embedded_cache *)cache)->key_template);
}

static mc_error *
embedded_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
              mc_ctx *ctx)
{
    const embedded_cache *cache = (const embedded_cache *)base;
    const mc_embedded_engine *engine;
    MC_TRY(load_embedded_engine(&engine, cache, ctx->pool));
    return mc_embedded_list(engine, &cache->place, cache->key_template, key, area, visit, baton, ctx);
}

static bool
embedded_keeps_time(const mc_cache *cache)
{
    (void)cache;
    return true;
}

#define EMBEDDED_OPS                                                                                                   \
    .get = embedded_get, .exists = embedded_exists, .put = embedded_put, .remove = embedded_remove,                    \
    .remove_all = embedded_remove_all, .used_by = embedded_used_by, .tells_grids = embedded_tells_grids,               \
    .measure = embedded_measure, .lists = embedded_lists, .list = embedded_list, .keeps_time = embedded_keeps_time

const mc_cache_ops mc_cache_lmdb = {
    MC_KIND("lmdb", lmdb_keys, lmdb_from_config, "Tiles in an LMDB, with MapCache's keys and values."),
    .sample = "<base>{folder}/sample.lmdb</base>",
    EMBEDDED_OPS,
};

const mc_cache_ops mc_cache_bdb = {
    MC_KIND("bdb", bdb_keys, bdb_from_config, "Tiles in a Berkeley DB, with MapCache's keys and values."),
    .sample = "<base>{folder}/sample.bdb</base>",
    EMBEDDED_OPS,
};
