/*
 * Making an archive of an archive and a draft. The draft is locked for writing meanwhile, readers go on: they find each
 * tile in the draft until it is in the new archive, as the draft is emptied after the archive is in its place. That
 * goes some thousand rows at a time, so that nobody waits for long: the rows have the generation of the draft in which
 * they were written, which a merge ends, and those of later ones stay. What is interrupted is done again, with the same
 * result.
 */
#include <apr_strings.h>
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/pmtiles/pmtiles_base.h"
#include "cache/pmtiles/writer.h"
#include "compress/packing.h"
#include "grid/tile_id.h"
#include "mapcache/upkeep.h"
#include "text/json_writer.h"
#include "text/text.h"

enum {
    LOOK_EVERY = 256,    /* tiles, at the deadline */
    ROWS_AT_ONCE = 2000, /* that are removed from a draft in one transaction */
};

typedef struct pmtiles_merge {
    mc_ctx *ctx;
    apr_pool_t *scratch; /* of one tile */
    mc_pmtiles_archive archive;
    bool archived; /* there is an archive */
    mc_draft_cursor cursor;
    mc_pmtiles_description description;
    mc_pmtiles_writer *writer;
    int64_t seen;
} pmtiles_merge;

/* ---- what the archive says of itself */

typedef struct draft_metadata {
    apr_pool_t *pool;
    const char *format, *json;
    mc_json_writer *out;
} draft_metadata;

/* What archives say with the same words as MBTiles (1.3, metadata). */
static void
take_metadata_row(draft_metadata *found, const char *name, const char *value)
{
    static const char *const shared[] = { "name", "description", "attribution", "type", "version" };
    if (strcmp(name, "format") == 0)
        found->format = apr_pstrdup(found->pool, value);
    if (strcmp(name, "json") == 0)
        found->json = apr_pstrdup(found->pool, value);
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
        if (strcmp(shared[i], name) == 0)
            mc_json_string(found->out, shared[i], value);
}

static mc_error *
read_draft_metadata(draft_metadata *found, mc_handle *handle, apr_pool_t *pool)
{
    static const char layers[] = "{\"vector_layers\":";
    sqlite3_stmt *statement;
    *found = (draft_metadata){ .pool = pool, .out = mc_json_create(MC_JSON_DENSE, pool) };
    mc_json_open_object(found->out, NULL);
    MC_TRY(mc_handle_statement(&statement, handle, "SELECT name, value FROM metadata GROUP BY name LIMIT 100", pool));
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *value = (const char *)sqlite3_column_text(statement, 1);
        if (name != NULL && value != NULL)
            take_metadata_row(found, name, value);
    }
    mc_error *error = code == SQLITE_DONE ? MC_OK : mc_handle_error(handle, "a draft cannot be read", pool);
    sqlite3_reset(statement);
    /* As mc_mbtiles_put_metadata has written it. */
    if (found->json != NULL && strncmp(found->json, layers, sizeof(layers) - 1) == 0 &&
        found->json[strlen(found->json) - 1] == '}') {
        const char *list = found->json + sizeof(layers) - 1;
        mc_json_raw(found->out, "vector_layers", apr_pstrmemdup(pool, list, strlen(list) - 1));
    }
    mc_json_close(found->out);
    return error;
}

/* The PMTiles specification 3, 3.2 (tile compression). */
static int
coding_of_packing(mc_packing packing)
{
    return packing == MC_PACKED_GZIP     ? MC_PMTILES_GZIP
           : packing == MC_PACKED_BROTLI ? MC_PMTILES_BROTLI
           : packing == MC_PACKED_ZSTD   ? MC_PMTILES_ZSTD
                                         : MC_PMTILES_NONE;
}

static mc_packing
packing_of_coding(int coding)
{
    return coding == MC_PMTILES_GZIP     ? MC_PACKED_GZIP
           : coding == MC_PMTILES_BROTLI ? MC_PACKED_BROTLI
           : coding == MC_PMTILES_ZSTD   ? MC_PACKED_ZSTD
                                         : MC_NOT_PACKED;
}

static int
type_of_draft(const char *format, const void *data, size_t size)
{
    mc_coding coding = data == NULL ? MC_CODING_UNKNOWN : mc_image_sniff(data, size);
    if (mc_coding_format(coding) != NULL)
        return coding == MC_CODING_PNG ? MC_PMTILES_PNG : coding == MC_CODING_JPEG ? MC_PMTILES_JPEG : MC_PMTILES_WEBP;
    if (format != NULL && strcmp(format, "pbf") == 0)
        return MC_PMTILES_MVT;
    return format != NULL && strcmp(format, "webp") == 0 ? MC_PMTILES_WEBP : MC_PMTILES_OTHER;
}

/* The archive goes on saying what it says, as another program may have written that. */
static mc_error *
describe_merged(pmtiles_merge *merge, mc_handle *handle, apr_pool_t *pool)
{
    draft_metadata found;
    mc_pmtiles_description *description = &merge->description;
    const mc_draft_cursor *cursor = &merge->cursor;
    bool drafted = cursor->present && cursor->data != NULL;
    MC_TRY(read_draft_metadata(&found, handle, pool));
    *description = (mc_pmtiles_description){ .metadata = mc_json_finish_text(found.out), .coding = MC_PMTILES_NONE };
    description->type = type_of_draft(found.format, drafted ? cursor->data : NULL, cursor->size);
    if (drafted && description->type == MC_PMTILES_MVT)
        description->coding = coding_of_packing(mc_packing_of(cursor->data, cursor->size));
    else if (drafted && mc_is_gzip(cursor->data, cursor->size))
        description->coding = MC_PMTILES_GZIP;
    description->metadata_size = strlen(description->metadata);
    if (!merge->archived)
        return MC_OK;
    mc_buf *json;
    description->type = merge->archive.header.type;
    description->coding = merge->archive.header.coding;
    MC_TRY(mc_pmtiles_read_metadata(&json, &merge->archive, pool));
    if (json->size < 3 || json->data[0] != '{')
        return MC_OK;
    description->metadata = apr_pstrmemdup(pool, (const char *)json->data, json->size);
    description->metadata_size = json->size;
    return MC_OK;
}

/* ---- tiles */

/* In the archive's coding, which is the same for all of its tiles. */
static mc_error *
add_drafted_tile(pmtiles_merge *merge, uint64_t id, const void *data, size_t size)
{
    mc_buf *packed = NULL;
    mc_packing wanted = packing_of_coding(merge->description.coding);
    bool vector = merge->description.type == MC_PMTILES_MVT;
    mc_packing given = vector ? mc_packing_of(data, size) : mc_is_gzip(data, size) ? MC_PACKED_GZIP : MC_NOT_PACKED;
    if (given == wanted)
        return mc_pmtiles_writer_add(merge->writer, id, 1, data, size, merge->scratch);
    MC_TRY(mc_unpack(&packed, data, size, given, MC_TILE_BYTES_MAX, merge->scratch));
    if (packed->size == 0 && wanted == MC_NOT_PACKED) /* of nothing, which only a packed tile can be */
        return MC_OK;
    MC_TRY(mc_pack(&packed, packed->data, packed->size, wanted, MC_GZIP_GOOD, merge->scratch));
    return mc_pmtiles_writer_add(merge->writer, id, 1, packed->data, packed->size, merge->scratch);
}

static mc_error *
take_breath(pmtiles_merge *merge)
{
    apr_pool_clear(merge->scratch);
    return ++merge->seen % LOOK_EVERY == 0 ? mc_ctx_check(merge->ctx, merge->ctx->pool) : MC_OK;
}

/* The draft's tiles before `id`. */
static mc_error *
merge_drafted_before(pmtiles_merge *merge, uint64_t id)
{
    mc_draft_cursor *cursor = &merge->cursor;
    while (cursor->present && cursor->id < id) {
        MC_TRY(take_breath(merge));
        if (cursor->data != NULL)
            MC_TRY(add_drafted_tile(merge, cursor->id, cursor->data, cursor->size));
        MC_TRY(mc_draft_step(cursor, merge->ctx->pool));
    }
    return MC_OK;
}

/* mc_pmtiles_visit: the tiles of an entry, but for those that the draft has anew. */
static mc_error *
merge_archived_entry(void *baton, const mc_pmtiles_entry *entry)
{
    pmtiles_merge *merge = baton;
    const mc_draft_cursor *cursor = &merge->cursor;
    uint64_t id = entry->id, end = entry->id + entry->run;
    MC_TRY(merge_drafted_before(merge, id));
    while (id < end) {
        uint64_t until = cursor->present && cursor->id < end ? cursor->id : end;
        if (until > id) {
            mc_buf *data;
            MC_TRY(take_breath(merge));
            MC_TRY(mc_pmtiles_read_stored(&data, &merge->archive, entry, merge->scratch));
            MC_TRY(mc_pmtiles_writer_add(merge->writer, id, (uint32_t)(until - id), data->data, data->size,
                                         merge->scratch));
        }
        id = until;
        if (id < end)
            MC_TRY(merge_drafted_before(merge, ++id));
    }
    return MC_OK;
}

static mc_error *
merge_tiles(pmtiles_merge *merge)
{
    mc_ctx *ctx = merge->ctx;
    if (merge->archived)
        MC_TRY(mc_pmtiles_walk(&merge->archive, 0, UINT64_MAX, merge_archived_entry, merge, ctx->pool));
    MC_TRY(merge_drafted_before(merge, UINT64_MAX));
    if (merge->archived && !mc_ranges_unchanged(&merge->archive.file))
        return mc_error_create(ctx->pool, MC_ERR_UNAVAILABLE, "%s was written to by another program meanwhile",
                               merge->archive.file.path);
    return MC_OK;
}

/* ---- a store */

/* What merges that were killed have left: nobody else merges while the draft is locked. */
static void
remove_leftovers(const char *path, apr_pool_t *pool)
{
    const char *special = mc_replace_all(path, "\\", "\\\\", pool);
    glob_t found;
    for (const char *c = "*?["; *c != '\0'; c++)
        special = mc_replace_all(special, apr_pstrmemdup(pool, c, 1),
                                 apr_pstrcat(pool, "\\", apr_pstrmemdup(pool, c, 1), NULL), pool);
    if (glob(apr_pstrcat(pool, special, ".[0-9]*.[0-9]*.tmp", NULL), 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)unlink(found.gl_pathv[i]);
    globfree(&found);
}

static mc_error *
write_merged(pmtiles_merge *merge, mc_handle *handle, const char *path)
{
    mc_ctx *ctx = merge->ctx;
    MC_TRY(describe_merged(merge, handle, ctx->pool));
    remove_leftovers(path, ctx->pool);
    mc_error *error = mc_pmtiles_writer_create(&merge->writer, path, &merge->description, ctx->pool);
    if (error == MC_OK)
        error = merge_tiles(merge);
    if (error == MC_OK && mc_pmtiles_writer_count(merge->writer) > 0)
        error = mc_pmtiles_writer_finish(merge->writer, ctx->pool);
    else if (error == MC_OK && merge->archived && unlink(path) != 0) /* all of its tiles were removed */
        error = mc_error_create(ctx->pool, MC_ERR_IO, "%s has no tiles left, and cannot be removed", path);
    mc_pmtiles_writer_destroy(merge->writer);
    return error;
}

/* With the draft locked. *changed: there was something in it. */
static mc_error *
merge_locked(bool *changed, mc_handle *handle, const char *path, mc_ctx *ctx)
{
    pmtiles_merge merge = { .ctx = ctx };
    apr_pool_create(&merge.scratch, ctx->pool);
    mc_error *error = mc_draft_begin(&merge.cursor, handle, 0, INT64_MAX, ctx->pool);
    *changed = error == MC_OK && merge.cursor.present;
    if (*changed) {
        mc_ranges_look(&merge.archive.file, path);
        merge.archived = merge.archive.file.missing == 0;
        if (merge.archived)
            error = mc_pmtiles_open(&merge.archive, ctx, ctx->pool);
        else if (merge.archive.file.missing != ENOENT)
            error = mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be looked at", path);
        if (error == MC_OK)
            error = write_merged(&merge, handle, path);
        if (merge.archived)
            mc_pmtiles_close(&merge.archive);
    }
    mc_draft_end(&merge.cursor);
    apr_pool_destroy(merge.scratch);
    return error;
}

/* The number in the first column of the first row of a statement with two parameters. */
static mc_error *
query_draft_number(int64_t *number, mc_handle *handle, const char *sql, int64_t first, int64_t second, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    sqlite3_bind_int64(statement, 1, first);
    sqlite3_bind_int64(statement, 2, second);
    return mc_handle_number(number, handle, statement, "a draft of a PMTiles archive cannot be emptied", pool);
}

/* *last: the number of the last row that was looked at; beyond all of them where there is none left. */
static mc_error *
remove_some_rows(int64_t *last, mc_handle *handle, apr_pool_t *pool)
{
    static const char end_sql[] = "SELECT coalesce(max(tile_id), 0x7fffffffffffffff) FROM (SELECT tile_id FROM tiles"
                                  " WHERE tile_id > ?1 ORDER BY tile_id LIMIT ?2)";
    static const char remove_sql[] = "DELETE FROM tiles WHERE tile_id > ?1 AND tile_id <= ?2"
                                     " AND coalesce(generation, 0) < (SELECT CAST(value AS INTEGER) FROM metadata"
                                     " WHERE name = 'generation')";
    int64_t end = 0, none;
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, pool));
    MC_TRY(query_draft_number(&end, handle, end_sql, *last, ROWS_AT_ONCE, pool));
    MC_TRY(query_draft_number(&none, handle, remove_sql, *last, end, pool));
    *last = end;
    return mc_sqlite_run(handle, "COMMIT", NULL, NULL, pool);
}

/* Removes what is in the archive, and gives the room back where nothing has been stored meanwhile. */
static mc_error *
empty_draft(mc_handle *handle, mc_ctx *ctx)
{
    int64_t left = 0;
    for (int64_t last = -1; last < INT64_MAX;) {
        MC_TRY(mc_ctx_check(ctx, ctx->pool));
        MC_TRY(remove_some_rows(&last, handle, ctx->pool));
    }
    MC_TRY(query_draft_number(&left, handle, "SELECT count(*) FROM (SELECT 1 FROM tiles LIMIT 1)", 0, 0, ctx->pool));
    return left > 0 ? MC_OK : mc_sqlite_run(handle, "VACUUM", NULL, NULL, ctx->pool);
}

/* What is stored from now on is of another generation. */
static mc_error *
end_generation(mc_handle *handle, apr_pool_t *pool)
{
    static const char insert[] = "INSERT INTO metadata(name, value) SELECT 'generation', '0'"
                                 " WHERE NOT EXISTS(SELECT 1 FROM metadata WHERE name = 'generation')";
    MC_TRY(mc_sqlite_run(handle, insert, NULL, NULL, pool));
    return mc_sqlite_run(handle, "UPDATE metadata SET value = CAST(value AS INTEGER) + 1 WHERE name = 'generation'",
                         NULL, NULL, pool);
}

/* Emptied, not removed: a writer that waits for its turn has the file open. */
static mc_error *
merge_draft(bool *changed, const pmtiles_cache *cache, const char *draft, mc_ctx *ctx)
{
    mc_stamp stamp;
    mc_handle *handle;
    const char *path = apr_pstrmemdup(ctx->pool, draft, strlen(draft) - (sizeof(MC_PMTILES_DRAFT) - 1));
    *changed = false;
    bool present;
    MC_TRY(mc_handle_look(&present, &stamp, draft, ctx->pool));
    if (!present || stamp.size == 0)
        return MC_OK;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    MC_TRY(mc_handle_acquire(&handle, handles, draft, &stamp, &cache->draft->writing, ctx, ctx->pool));
    mc_error *error = mc_sqlite_run(handle, "PRAGMA cache_spill=on", NULL, NULL, ctx->pool); /* of any size */
    if (error == MC_OK)
        error = mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool);
    if (error == MC_OK)
        error = merge_locked(changed, handle, path, ctx);
    if (error == MC_OK && *changed)
        error = end_generation(handle, ctx->pool);
    if (error == MC_OK)
        error = mc_sqlite_run(handle, "COMMIT", NULL, NULL, ctx->pool);
    if (error == MC_OK && *changed)
        error = empty_draft(handle, ctx);
    mc_handle_release(handle, false);
    return error;
}

typedef mc_error *draft_visitor(void *baton, const pmtiles_cache *cache, const char *draft, mc_ctx *ctx);

/* Each draft of a cache; an error of one does not end it. Returns the first one. */
static mc_error *
visit_drafts(mc_cache *base, draft_visitor *visit, void *baton, const volatile int *stop, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char pattern[MC_PATH_MAX];
    glob_t found;
    mc_ctx own = *ctx;
    mc_error *first = MC_OK;
    if (cache->draft == NULL)
        return MC_OK;
    if (!mc_template_pattern(pattern, cache->draft->template))
        return mc_error_create(ctx->pool, MC_ERR_LIMIT, "the paths of cache \"%s\" are too long", base->name);
    if (glob(pattern, 0, NULL, &found) != 0)
        return MC_OK; /* nothing has been stored */
    apr_pool_create(&own.pool, ctx->pool);
    for (size_t i = 0; i < found.gl_pathc && (stop == NULL || *stop == 0); i++) {
        apr_pool_clear(own.pool);
        mc_error *error = visit(baton, cache, found.gl_pathv[i], &own);
        if (first == MC_OK)
            first = mc_error_copy(error, ctx->pool);
    }
    apr_pool_destroy(own.pool);
    globfree(&found);
    return first;
}

static mc_error *
finish_one_draft(void *baton, const pmtiles_cache *cache, const char *draft, mc_ctx *ctx)
{
    bool changed;
    (void)baton;
    return merge_draft(&changed, cache, draft, ctx);
}

mc_error *
mc_pmtiles_finish(mc_cache *cache, mc_ctx *ctx)
{
    return visit_drafts(cache, finish_one_draft, NULL, NULL, ctx);
}

static int64_t
size_of_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

/* An archive with its draft; what compacting frees is the draft. */
static mc_store
measure_pmtiles_store(const pmtiles_cache *cache, const char *path, const char *draft)
{
    int64_t waiting = size_of_file(draft);
    return (mc_store){
        "pmtiles", cache->base.cache.name, path, size_of_file(path) + waiting, waiting, -1, -1, -1, -1, -1, 0, 0
    };
}

static mc_error *
maintain_one_draft(void *baton, const pmtiles_cache *cache, const char *draft, mc_ctx *ctx)
{
    const mc_upkeep *task = baton;
    bool changed = false;
    const char *path = apr_pstrmemdup(ctx->pool, draft, strlen(draft) - (sizeof(MC_PMTILES_DRAFT) - 1));
    const mc_store before = measure_pmtiles_store(cache, path, draft);
    if (task->compact && task->progress != NULL)
        task->progress(task->baton, &before, "compacting", 0);
    mc_error *error = task->compact ? merge_draft(&changed, cache, draft, ctx) : MC_OK;
    const mc_store after = measure_pmtiles_store(cache, path, draft);
    if (task->report != NULL)
        task->report(task->baton, &before, changed ? &after : NULL, error);
    return MC_OK;
}

mc_error *
mc_pmtiles_upkeep(mc_cache *cache, const mc_upkeep *task, mc_ctx *ctx)
{
    mc_upkeep own = *task;
    return visit_drafts(cache, maintain_one_draft, &own, task->stop, ctx);
}
