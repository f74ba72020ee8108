/* The cache "pmtiles": archives of the format PMTiles, version 3, and drafts beside them (pmtiles_base.h). */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>

#include "cache/pmtiles/far.h"
#include "cache/pmtiles/pmtiles_base.h"
#include "grid/tile_id.h"
#include "mapcache/trace.h"

enum {
    LOOKS_MAX = 3,    /* at an archive that is replaced while it is read */
    ARCHIVED_TILE = 3 /* what is remembered of it */
};

static const mc_cache_ops pmtiles_far_ops;

static const mc_key pmtiles_keys[] = {
    MC_CACHE_KEYS(pmtiles_cache),
    MC_ARCHIVE_PLACE_KEYS(offsetof(pmtiles_cache, place)),
    MC_KEY_END,
};

static mc_cache *
pmtiles_from_config(const mc_node *node, mc_build *build)
{
    pmtiles_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->base, &mc_cache_pmtiles, true, node, build))
        return NULL;
    if (!mc_archive_place_prepare(&cache->place, cache->base.cache.name, node, build))
        return NULL;
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    cache->template =
        mc_template_compile(cache->place.url != NULL ? cache->place.url : cache->place.file, &rules, build->pool);
    if (mc_template_by_tile(cache->template) ||
        (cache->place.url != NULL && mc_template_by_dimension(cache->template))) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "a PMTiles archive has all levels of a tileset: there is no {z} in its path, and no {dim} in its"
                    " <url>");
        return NULL;
    }
    if (cache->place.url != NULL) {
        cache->base.cache.ops = &pmtiles_far_ops;
        return &cache->base.cache;
    }
    cache->draft = mc_pmtiles_make_draft(cache, node, build);
    return cache->draft == NULL ? NULL : &cache->base.cache;
}

static uint64_t
tile_id_of_key(const mc_tile_key *key)
{
    return mc_tile_id(key->z, (uint32_t)mc_grid_from_west(key->grid, key->z, key->x),
                      (uint32_t)mc_grid_flip_y(key->grid, key->z, key->y));
}

/* An archive that is not there: an error where there must be one. */
static mc_error *
judge_missing_archive(const mc_pmtiles_archive *archive, const pmtiles_cache *cache, const mc_tile_key *key,
                      bool drafted, apr_pool_t *pool)
{
    char text[128];
    int code = archive->file.missing;
    bool optional = drafted || key->renderable || !mc_template_constant(cache->template);
    if ((code == ENOENT || code == ENOTDIR) && optional)
        return MC_OK;
    return mc_error_wrap(
        pool, mc_error_create(pool, MC_ERR_IO, "%s: %s", archive->file.path, strerror_r(code, text, sizeof(text))),
        MC_ERR_IO, "the archive of cache \"%s\" cannot be opened", cache->base.cache.name);
}

/* What one look at an archive is to bring. */
typedef struct archive_question {
    const pmtiles_cache *cache;
    const mc_tile_key *key;
    bool drafted; /* the store has a draft */
    bool read;    /* the tile, not only whether it is there */
    mc_tile *tile;
    bool exists;
} archive_question;

static mc_error *
read_archived_tile(archive_question *question, mc_pmtiles_archive *archive, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pmtiles_entry entry;
    mc_buf *data;
    MC_TRY(mc_pmtiles_open(archive, ctx, pool));
    MC_TRY(mc_pmtiles_seek(&entry, archive, tile_id_of_key(question->key), pool));
    question->exists = entry.length > 0;
    if (!question->exists || !question->read)
        return MC_OK;
    MC_TRY(mc_pmtiles_read(&data, archive, &entry, pool));
    if (!mc_ranges_unchanged(&archive->file))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s is being written to", archive->file.path);
    question->tile = mc_tile_create(data, 0, pool);
    return MC_OK;
}

/* Answers from memory where it can, and remembers what it has read. */
static mc_error *
ask_looked_at(archive_question *question, mc_pmtiles_archive *archive, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_memory_key memory_key;
    const mc_ranged_file *file = &archive->file;
    bool remember = question->cache->base.cache.remember && ctx->process != NULL && ctx->process->memory != NULL;
    if (remember) {
        mc_memory_key_build(&memory_key, ARCHIVED_TILE, file->path, question->key);
        if (mc_memory_get(&question->tile, &memory_key, &file->stamp, ctx, pool)) {
            question->exists = question->tile != NULL;
            mc_ranges_close(&archive->file);
            return MC_OK;
        }
    }
    mc_error *error = read_archived_tile(question, archive, ctx, pool);
    mc_pmtiles_close(archive);
    if (error == MC_OK && remember && (question->read || !question->exists))
        mc_memory_put(&memory_key, &file->stamp, file->taken, question->tile, ctx);
    return error;
}

static mc_error *
ask_archive(archive_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    char path[MC_PATH_MAX];
    mc_error *error = MC_OK;
    MC_TRY(mc_pmtiles_archive_path(path, question->cache, question->key, pool));
    for (int look = 0; look < LOOKS_MAX; look++) {
        mc_pmtiles_archive archive;
        error = mc_archive_place_look(&archive.file, &question->cache->place, path, ctx, pool);
        if (error == MC_OK && archive.file.missing != 0)
            error = judge_missing_archive(&archive, question->cache, question->key, question->drafted, pool);
        if (error != MC_OK || archive.file.missing != 0) {
            mc_ranges_close(&archive.file);
            return error;
        }
        error = ask_looked_at(question, &archive, ctx, pool);
        if (error == MC_OK || error->kind != MC_ERR_UNAVAILABLE)
            return error;
    }
    return error;
}

/* *told: the draft says whether the tile is there; *tile is NULL where it was removed. */
static mc_error *
ask_draft(mc_tile **tile, bool *told, bool *drafted, const pmtiles_cache *cache, const mc_tile_key *key, mc_ctx *ctx,
          apr_pool_t *pool)
{
    char path[MC_PATH_MAX];
    *tile = NULL;
    MC_TRY(mc_pmtiles_draft_path(path, drafted, cache, key, ctx, pool));
    if (*drafted) {
        mc_tile_key own = *key;
        own.renderable = true; /* a draft whose tables are not there yet has no tile */
        MC_TRY(mc_sqlite_get(tile, &cache->draft->base.cache, &own, ctx, pool));
    }
    *told = *tile != NULL;
    if (*told && mc_pmtiles_is_removed((*tile)->data->data, (*tile)->data->size))
        *tile = NULL;
    return MC_OK;
}

static mc_error *
get_pmtiles_tile(mc_tile **tile, const pmtiles_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    bool told, drafted;
    MC_TRY(ask_draft(tile, &told, &drafted, cache, key, ctx, pool));
    if (told)
        return MC_OK;
    archive_question question = { .cache = cache, .key = key, .drafted = drafted, .read = true };
    MC_TRY(ask_archive(&question, ctx, pool));
    *tile = question.tile;
    return MC_OK;
}

static mc_error *
pmtiles_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_pmtiles_get");
    mc_error *error = get_pmtiles_tile(tile, (pmtiles_cache *)base, key, ctx, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

/* What memory has; the entries of the others into `wanted`. *count: how many those are. */
static mc_error *
seek_all(mc_tile **tiles, mc_pmtiles_wanted *wanted, int *count, mc_pmtiles_archive *archive,
         const pmtiles_cache *cache, const mc_tile_key *keys, int all, apr_pool_t *pool)
{
    mc_ctx *ctx = archive->ctx;
    bool remember = cache->base.cache.remember && ctx->process != NULL && ctx->process->memory != NULL;
    *count = 0;
    uint64_t *ids = apr_palloc(pool, sizeof(*ids) * (size_t)(all + 1));
    for (int i = 0; i < all; i++)
        ids[i] = tile_id_of_key(&keys[i]);
    MC_TRY(mc_pmtiles_prepare(archive, ids, all, pool));
    for (int i = 0; i < all; i++) {
        mc_memory_key memory_key;
        mc_memory_key_build(&memory_key, ARCHIVED_TILE, archive->file.path, &keys[i]);
        if (remember && mc_memory_get(&tiles[i], &memory_key, &archive->file.stamp, ctx, pool))
            continue;
        mc_pmtiles_wanted *next = &wanted[*count];
        next->number = i;
        MC_TRY(mc_pmtiles_seek(&next->entry, archive, ids[i], pool));
        *count += next->entry.length > 0;
    }
    return MC_OK;
}

static mc_error *
get_all_looked_at(mc_tile **tiles, mc_pmtiles_archive *archive, const pmtiles_cache *cache, const mc_tile_key *keys,
                  int all, mc_ctx *ctx, apr_pool_t *pool)
{
    int count;
    mc_pmtiles_wanted *wanted = apr_pcalloc(pool, sizeof(*wanted) * (size_t)(all + 1));
    MC_TRY(mc_pmtiles_open(archive, ctx, pool));
    MC_TRY(seek_all(tiles, wanted, &count, archive, cache, keys, all, pool));
    MC_TRY(mc_pmtiles_fetch(wanted, count, archive, pool));
    for (int i = 0; i < count; i++) {
        mc_memory_key memory_key;
        int number = wanted[i].number;
        tiles[number] = mc_tile_create(wanted[i].data, 0, pool);
        mc_memory_key_build(&memory_key, ARCHIVED_TILE, archive->file.path, &keys[number]);
        if (cache->base.cache.remember && ctx->process != NULL && ctx->process->memory != NULL)
            mc_memory_put(&memory_key, &archive->file.stamp, archive->file.taken, tiles[number], ctx);
    }
    return MC_OK;
}

/* Of an archive behind HTTP. */
static mc_error *
pmtiles_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    MC_SPAN(ctx, "_mapcache_cache_pmtiles_get");
    char path[MC_PATH_MAX];
    mc_error *error = MC_OK;
    if (count == 0)
        return MC_OK;
    MC_TRY(mc_pmtiles_archive_path(path, cache, &keys[0], pool));
    for (int look = 0; look < LOOKS_MAX; look++) {
        mc_pmtiles_archive archive = { .root = NULL };
        error = mc_archive_place_look(&archive.file, &cache->place, path, ctx, pool);
        if (error == MC_OK && archive.file.missing != 0)
            error = judge_missing_archive(&archive, cache, &keys[0], false, pool);
        else if (error == MC_OK)
            error = get_all_looked_at(tiles, &archive, cache, keys, count, ctx, pool);
        mc_pmtiles_close(&archive);
        if (error == MC_OK || error->kind != MC_ERR_UNAVAILABLE)
            return error;
    }
    return error;
}

static mc_error *
pmtiles_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    mc_tile *tile;
    bool told, drafted;
    MC_TRY(ask_draft(&tile, &told, &drafted, cache, key, ctx, ctx->pool));
    *exists = tile != NULL;
    if (told)
        return MC_OK;
    archive_question question = { .cache = cache, .key = key, .drafted = drafted };
    MC_TRY(ask_archive(&question, ctx, ctx->pool));
    *exists = question.exists;
    return MC_OK;
}

static mc_error *
refuse_writing(const pmtiles_cache *cache, apr_pool_t *pool)
{
    return cache->place.url == NULL
               ? MC_OK
               : mc_error_create(pool, MC_ERR_CONFIG,
                                 "cache \"%s\" reads its archive over HTTP, and cannot store or remove"
                                 " tiles",
                                 cache->base.cache.name);
}

static mc_error *
pmtiles_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char path[MC_PATH_MAX];
    MC_TRY(refuse_writing(cache, ctx->pool));
    for (int i = 0; i < count; i++)
        if (i == 0 || tiles[i].key.grid != tiles[i - 1].key.grid || tiles[i].key.z != tiles[i - 1].key.z)
            MC_TRY(mc_pmtiles_archive_path(path, cache, &tiles[i].key, ctx->pool));
    return mc_sqlite_put(&cache->draft->base.cache, tiles, count, ctx);
}

/* What is not stored needs no word that it was removed. */
static mc_error *
pmtiles_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    mc_tile_write *writes = apr_pcalloc(ctx->pool, sizeof(*writes) * (size_t)(count + 1));
    mc_buf *removed = mc_buf_attach(mc_buf_copy(mc_pmtiles_removed, sizeof(mc_pmtiles_removed)), ctx->pool);
    int stored = 0;
    MC_TRY(refuse_writing(cache, ctx->pool));
    for (int i = 0; i < count; i++) {
        bool exists = false;
        mc_tile_key key = keys[i];
        key.renderable = true; /* no archive has nothing to remove */
        MC_TRY(pmtiles_exists(&exists, base, &key, ctx));
        if (exists)
            writes[stored++] = (mc_tile_write){ .key = keys[i], .data = removed };
    }
    return stored == 0 ? MC_OK : mc_sqlite_put(&cache->draft->base.cache, writes, stored, ctx);
}

static mc_error *
pmtiles_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return pmtiles_remove_all(base, key, 1, ctx);
}

static bool
pmtiles_lists(const mc_cache *base, const mc_tile_key *key)
{
    (void)base;
    return mc_grid_has_tile_ids(key->grid, key->z);
}

static bool
pmtiles_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const pmtiles_cache *)base)->template);
}

static void
pmtiles_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    pmtiles_cache *cache = (pmtiles_cache *)base;
    if (!mc_grid_is_web_mercator(use->grid)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "grid \"%s\" does not fit into a PMTiles archive, which has the tiles of the world in spherical"
                    " Mercator (GoogleMapsCompatible, g)",
                    use->grid->name);
        return;
    }
    const mc_tile_key first = { .tileset = use->tileset, .grid = use->grid, .extension = "png" };
    if (cache->first == NULL)
        cache->first = apr_pmemdup(build->pool, &first, sizeof(first));
    if (cache->draft != NULL)
        mc_sqlite_used_by(&cache->draft->base.cache, use, node, build);
    else
        mc_cache_note_dimensions(base, mc_template_by_dimension(cache->template), "a <file> may have {dim}", use, node,
                                 build);
}

static bool
pmtiles_tells_groups(const mc_cache *cache)
{
    (void)cache;
    return false;
}

/* The members that archives on disk and behind HTTP have in common. */
#define PMTILES_OPS                                                                                                    \
    .get = pmtiles_get, .exists = pmtiles_exists, .put = pmtiles_put, .remove = pmtiles_remove,                        \
    .remove_all = pmtiles_remove_all, .list = mc_pmtiles_list, .lists = pmtiles_lists, .used_by = pmtiles_used_by,     \
    .tells_grids = pmtiles_tells_grids, .upkeep = mc_pmtiles_upkeep, .tells_groups = pmtiles_tells_groups,             \
    .measure = mc_pmtiles_measure, .metadata = mc_pmtiles_metadata, .finish = mc_pmtiles_finish

const mc_cache_ops mc_cache_pmtiles = {
    MC_KIND("pmtiles", pmtiles_keys, pmtiles_from_config,
            "Tiles in PMTiles archives of version 3: one tileset and grid for each archive. What is stored and removed"
            " waits in a draft beside the archive until a seed, an ingest or `mapcache compact` ends."),
    .sample = "<file>{folder}/sample.pmtiles</file>",
    PMTILES_OPS,
};

/* Asks for one tile, which need not be there; the archive has to be. */
static mc_error *
pmtiles_reach(mc_cache *base, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    bool exists;
    return cache->first == NULL ? MC_OK : pmtiles_exists(&exists, base, cache->first, ctx);
}

static const mc_cache_ops pmtiles_far_ops = {
    .type = "pmtiles",
    .keys = pmtiles_keys,
    PMTILES_OPS,
    .get_all = pmtiles_get_all,
    .reach = pmtiles_reach,
};
