/*
 * Reading tiles from SQLite files. A get looks at the file (stat), then into the memory, and only then into the file.
 * In a series of gets (mc_cache_reads_begin), those of one file share the look, the handle and one read transaction.
 */
#include <apr_strings.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cache/sqlite/sqlite_reads.h"
#include "mapcache/trace.h"

/* A get statement that reads whole tables is told once; with <index_check>error it is refused. */
static mc_error *
check_plan(sqlite_cache *cache, mc_handle *handle, mc_ctx *ctx, apr_pool_t *pool)
{
    int plan = atomic_load_explicit(&cache->plan, memory_order_relaxed);
    if (plan == 0) {
        sqlite3_stmt *statement = NULL;
        const char *sql = apr_pstrcat(pool, "EXPLAIN QUERY PLAN ", cache->get, NULL);
        plan = 1;
        if (sqlite3_prepare_v2(mc_handle_db(handle), sql, -1, &statement, NULL) == SQLITE_OK)
            while (sqlite3_step(statement) == SQLITE_ROW) {
                const char *detail = (const char *)sqlite3_column_text(statement, 3);
                if (detail != NULL && strncmp(detail, "SCAN ", 5) == 0 && strstr(detail, "CONSTANT ROW") == NULL)
                    plan = 2;
            }
        sqlite3_finalize(statement);
        atomic_store_explicit(&cache->plan, plan, memory_order_relaxed);
        if (plan == 2)
            mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": its get statement reads whole tables; an index is missing",
                         cache->base.cache.name);
    }
    if (plan == 2 && cache->index_check == 1)
        return mc_error_create(pool, MC_ERR_CONFIG, "the store of cache \"%s\" lacks an index", cache->base.cache.name);
    return MC_OK;
}

static void
stamp_sqlite_place(sqlite_file *at)
{
    at->taken = apr_time_now();
    at->missing = mc_stamp_take(&at->stamp, at->path) ? 0 : errno;
}

/* One of many files may be missing: that product has nothing here. */
static bool
may_be_missing(const sqlite_cache *cache, const mc_tile_key *key)
{
    return key->renderable || !cache->single_file;
}

/* Whether it is an error that the file is not there. */
static mc_error *
judge_missing(const sqlite_file *at, const sqlite_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    if (at->missing == 0)
        return MC_OK;
    if ((at->missing == ENOENT || at->missing == ENOTDIR) && may_be_missing(cache, key))
        return MC_OK;
    char text[128];
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "%s: %s", at->path, strerror_r(at->missing, text, sizeof(text)));
    return mc_error_wrap(pool, cause, MC_ERR_IO, "the tile store of cache \"%s\" cannot be opened",
                         cache->base.cache.name);
}

/* *found is `own`, or what the series of gets knows. */
static mc_error *
locate_sqlite_file(const sqlite_file **found, sqlite_file *own, const sqlite_cache *cache, const mc_tile_key *key,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    *found = own;
    MC_TRY(mc_template_expand(own->path, cache->template, key, pool));
    if (reads == NULL) {
        stamp_sqlite_place(own);
    } else {
        *found = &reads->place;
        if (reads->cache != cache || strcmp(reads->place.path, own->path) != 0) {
            mc_cache_reads_drop(ctx);
            reads->cache = cache;
            memcpy(reads->place.path, own->path, strlen(own->path) + 1);
            stamp_sqlite_place(&reads->place);
        }
    }
    return judge_missing(*found, cache, key, pool);
}

mc_error *
mc_sqlite_locate(char *path, bool *present, const sqlite_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    sqlite_file at;
    MC_TRY(mc_template_expand(at.path, cache->template, key, ctx->pool));
    stamp_sqlite_place(&at);
    *present = at.missing == 0;
    memcpy(path, at.path, strlen(at.path) + 1);
    return judge_missing(&at, cache, key, ctx->pool);
}

mc_error *
mc_sqlite_location(mc_store_location *found, mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    found->cache = base;
    found->identity = cache->identity;
    found->paths = cache->paths;
    found->coverage = cache->coverage;
    found->by_tile = mc_template_by_tile(cache->template);
    found->needed = cache->single_file;
    return mc_template_expand(found->path, cache->template, key, pool);
}

/*
 * The place that the caller looked at. In a series of gets a transaction that is open goes on only if it cannot be
 * older than that look: what it reads is going to be remembered for the stamp.
 */
static const sqlite_file *
locate_stamped(sqlite_file *own, const sqlite_cache *cache, const mc_sqlite_look *look, mc_ctx *ctx)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    sqlite_file *at = reads == NULL ? own : &reads->place;
    if (reads != NULL) {
        bool same = reads->cache == cache && at->missing == 0 && strcmp(at->path, look->path) == 0 &&
                    mc_stamp_equal(&at->stamp, &look->stamp) &&
                    (at->taken == look->taken || mc_stamp_settled(&at->stamp, at->taken));
        if (same)
            return at;
        mc_cache_reads_drop(ctx);
        reads->cache = cache;
    }
    memcpy(at->path, look->path, strlen(look->path) + 1);
    at->missing = 0;
    at->taken = look->taken;
    at->stamp = look->stamp;
    return at;
}

/* Steps a prepared read to its first row. */
static mc_error *
step_first_row(sqlite3_stmt **statement, bool *row, mc_handle *handle, const char *sql, const mc_tile_key *key,
               apr_pool_t *pool)
{
    *row = false;
    mc_error *error = mc_handle_statement(statement, handle, sql, pool);
    if (error != MC_OK && key->renderable && mc_handle_lacks_table(handle))
        return MC_OK; /* the first write creates it */
    MC_TRY(error);
    MC_TRY(mc_sqlite_bind(*statement, handle, key, NULL, pool));
    int code = sqlite3_step(*statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return mc_handle_error(handle, "a tile store cannot be read", pool);
    *row = code == SQLITE_ROW;
    return MC_OK;
}

/* With the first tile of a file and level, until it is the turn of others. */
static mc_error *
check_sqlite_level(sqlite_cache *cache, mc_handle *handle, const sqlite_file *at, const mc_tile_key *key,
                   apr_pool_t *pool)
{
    if (cache->check_level == NULL)
        return MC_OK;
    uint64_t seed = at->stamp.inode ^ (uint64_t)key->z << 56 ^ (uint64_t)(uintptr_t)key->grid;
    uint64_t level = mc_hash64(at->path, strlen(at->path), seed);
    _Atomic uint64_t *known = &cache->checked[level % (sizeof(cache->checked) / sizeof(cache->checked[0]))];
    if (atomic_load_explicit(known, memory_order_relaxed) == level)
        return MC_OK;
    MC_TRY(cache->check_level(handle, cache, key, pool));
    atomic_store_explicit(known, level, memory_order_relaxed);
    return MC_OK;
}

static mc_error *
read_sqlite_tile(mc_tile **tile, sqlite_cache *cache, mc_handle *handle, const sqlite_file *at, const mc_tile_key *key,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    bool row;
    MC_TRY(check_sqlite_level(cache, handle, at, key, pool));
    MC_TRY(step_first_row(&statement, &row, handle, cache->get, key, pool));
    if (!row)
        return MC_OK;
    const void *blob = sqlite3_column_blob(statement, 0);
    int size = sqlite3_column_bytes(statement, 0);
    if (blob == NULL || size <= 0) {
        mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": an empty tile counts as missing", cache->base.cache.name);
        return MC_OK;
    }
    apr_time_t mtime = sqlite3_column_count(statement) > 1 ? apr_time_from_sec(sqlite3_column_int64(statement, 1)) : 0;
    mc_buf *data;
    MC_TRY(mc_buf_duplicate(&data, blob, (size_t)size, pool));
    *tile = mc_tile_create(data, mtime, pool);
    return MC_OK;
}

static mc_error *
acquire_reader(mc_handle **handle, const sqlite_cache *cache, const sqlite_file *at, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    if (reads != NULL && reads->handle != NULL) {
        *handle = reads->handle;
        return MC_OK;
    }
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    MC_TRY(mc_handle_acquire(handle, handles, at->path, &at->stamp, &cache->reading, ctx, pool));
    if (reads == NULL)
        return MC_OK;
    mc_error *error = mc_handle_begin(*handle, pool);
    if (error == MC_OK)
        reads->handle = *handle;
    else
        mc_handle_release(*handle, false);
    return error;
}

/* Whether the file that the caller looked at is no longer at its path: nothing, or another one that came later. */
static bool
has_gone(const sqlite_file *at)
{
    mc_stamp now;
    return mc_stamp_take(&now, at->path) ? now.inode != at->stamp.inode : errno == ENOENT;
}

/*
 * As acquire_reader, but *handle is NULL where the file was removed after the caller's look at it. Absences may then be
 * remembered under that look's stamp, as any others: no file will have it again, as removing and renaming change it.
 */
static mc_error *
acquire_if_there(mc_handle **handle, const sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = acquire_reader(handle, cache, at, ctx, pool);
    if (error == MC_OK || error->kind != MC_ERR_IO || !may_be_missing(cache, key) || !has_gone(at))
        return error;
    *handle = NULL;
    return MC_OK;
}

static void
release_reader(mc_handle *handle, const mc_error *error, mc_ctx *ctx)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    bool shared = reads != NULL && reads->handle == handle;
    if (shared && error == MC_OK)
        return;
    if (shared)
        reads->handle = NULL;
    mc_handle_release(handle, error == MC_OK);
}

/*
 * *handle is held afterwards, also after an error; NULL: the file has gone, or cannot be opened. A handle that was open
 * when a writer was cut off cannot take that back; the next one does.
 */
static mc_error *
read_held(mc_tile **tile, mc_handle **handle, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key,
          mc_ctx *ctx, apr_pool_t *pool)
{
    for (int tries = 1;; tries++) {
        *tile = NULL;
        mc_error *error = acquire_if_there(handle, cache, at, key, ctx, pool);
        if (error != MC_OK)
            *handle = NULL;
        if (error != MC_OK || *handle == NULL)
            return error;
        error = check_plan(cache, *handle, ctx, pool);
        if (error == MC_OK)
            error = read_sqlite_tile(tile, cache, *handle, at, key, ctx, pool);
        if (error == MC_OK || tries == MC_HANDLE_TRIES || !mc_handle_cut_off(*handle))
            return error;
        release_reader(*handle, error, ctx);
    }
}

/* Of one file of many, each handle takes a place from another one. */
static bool
may_settle(const sqlite_cache *cache, const mc_ctx *ctx)
{
    return cache->single_file && !cache->immutable && mc_reads_of(ctx) == NULL && ctx->process != NULL;
}

/* Without locks, from a file that nobody writes to. False: it has to be read with locks. */
static bool
read_settled(mc_tile **tile, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key, mc_ctx *ctx,
             apr_pool_t *pool)
{
    mc_handle *handle =
        mc_handle_take_settled(ctx->process->handles, at->path, &at->stamp, at->taken, &cache->settled, ctx, pool);
    if (handle == NULL)
        return false;
    mc_error *error = read_sqlite_tile(tile, cache, handle, at, key, ctx, pool);
    bool counts = mc_handle_was_settled(handle) && error == MC_OK;
    mc_handle_release(handle, counts);
    return counts;
}

static mc_error *
get_from_file(mc_tile **tile, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key, mc_ctx *ctx,
              apr_pool_t *pool)
{
    bool settle = may_settle(cache, ctx);
    if (settle && read_settled(tile, cache, at, key, ctx, pool))
        return MC_OK;
    mc_handle *handle;
    mc_error *error = read_held(tile, &handle, cache, at, key, ctx, pool);
    if (settle && error == MC_OK && handle != NULL)
        mc_handle_settle(handle, &at->stamp, at->taken, &cache->settled, ctx, pool);
    if (handle != NULL)
        release_reader(handle, error, ctx);
    return error;
}

mc_error *
mc_sqlite_get_stamped(mc_tile **tile, bool *rollback, mc_cache *base, const mc_sqlite_look *look,
                      const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_sqlite_get");
    sqlite_cache *cache = (sqlite_cache *)base;
    sqlite_file own;
    const sqlite_file *at = locate_stamped(&own, cache, look, ctx);
    mc_handle *handle;
    mc_error *error = MC_OK;
    *rollback = mc_reads_get_bare(tile, cache, at, key, ctx, pool);
    if (!*rollback) {
        error = read_held(tile, &handle, cache, at, key, ctx, pool);
        *rollback = error == MC_OK && handle != NULL && at->stamp.wal_size < 0 && mc_handle_rollback(handle);
        if (handle != NULL)
            release_reader(handle, error, ctx);
    }
    mc_cache_note_get(&span, error, *tile);
    return error;
}

enum { FEW_TILES = 256 }; /* of a file, without memory from the heap */

/* NULL too where a number is no tile's. */
static mc_error *
read_coverage(mc_coverage **coverage, mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *key,
              apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    bool row;
    mc_coverage_tile few[FEW_TILES], *tiles = few, *many = NULL;
    int count = 0;
    bool fits = true;
    mc_error *error = step_first_row(&statement, &row, handle, cache->coverage, key, pool);
    while (error == MC_OK && row && fits) {
        sqlite3_int64 numbers[3];
        for (int i = 0; i < 3; i++) {
            numbers[i] = sqlite3_column_int64(statement, i);
            fits = fits && numbers[i] > INT_MIN && numbers[i] < INT_MAX;
        }
        fits = fits && count < MC_COVERAGE_TILES;
        if (fits && count == FEW_TILES) {
            tiles = many = malloc(sizeof(*many) * MC_COVERAGE_TILES);
            MC_ASSERT(many != NULL);
            memcpy(many, few, sizeof(few));
        }
        if (fits)
            tiles[count++] = (mc_coverage_tile){ (int)numbers[0], (int)numbers[1], (int)numbers[2] };
        int code = sqlite3_step(statement);
        row = code == SQLITE_ROW;
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            error = mc_handle_error(handle, "a tile store cannot be read", pool);
    }
    if (error == MC_OK && fits)
        *coverage = mc_coverage_create(tiles, count);
    free(many);
    return error;
}

mc_error *
mc_sqlite_coverage(mc_coverage **coverage, mc_cache *base, const mc_sqlite_look *look, const mc_tile_key *key,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_coverage_learn");
    sqlite_cache *cache = (sqlite_cache *)base;
    sqlite_file own;
    *coverage = NULL;
    const sqlite_file *at = locate_stamped(&own, cache, look, ctx);
    if (mc_reads_cover_bare(coverage, cache, at, key, ctx, pool))
        return MC_OK;
    mc_handle *handle;
    for (int tries = 1;; tries++) {
        MC_TRY(acquire_reader(&handle, cache, at, ctx, pool));
        mc_error *error = read_coverage(coverage, handle, cache, key, pool);
        bool cut_off = error != MC_OK && mc_handle_cut_off(handle);
        release_reader(handle, error, ctx);
        if (!cut_off || tries == MC_HANDLE_TRIES)
            return error;
        mc_error_ignore(error);
    }
}

static mc_error *
sqlite_cache_get(mc_tile **tile, sqlite_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    sqlite_file own;
    const sqlite_file *at;
    *tile = NULL;
    MC_TRY(locate_sqlite_file(&at, &own, cache, key, ctx, pool));
    if (at->missing != 0)
        return MC_OK;
    if (!cache->base.cache.remember)
        return get_from_file(tile, cache, at, key, ctx, pool);
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, cache->identity, at->path, key);
    if (mc_memory_get(tile, &memory_key, &at->stamp, ctx, pool))
        return MC_OK;
    MC_TRY(get_from_file(tile, cache, at, key, ctx, pool));
    if (*tile != NULL || !key->renderable)
        mc_memory_put(&memory_key, &at->stamp, at->taken, *tile, ctx);
    return MC_OK;
}

mc_error *
mc_sqlite_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_sqlite_get");
    mc_error *error = sqlite_cache_get(tile, (sqlite_cache *)cache, key, ctx, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

mc_error *
mc_sqlite_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    sqlite_cache *cache = (sqlite_cache *)base;
    sqlite_file own;
    const sqlite_file *at;
    *exists = false;
    MC_TRY(locate_sqlite_file(&at, &own, cache, key, ctx, ctx->pool));
    if (at->missing != 0)
        return MC_OK;
    for (int tries = 1;; tries++) {
        mc_handle *handle;
        sqlite3_stmt *statement;
        MC_TRY(acquire_if_there(&handle, cache, at, key, ctx, ctx->pool));
        if (handle == NULL)
            return MC_OK;
        mc_error *error = step_first_row(&statement, exists, handle, cache->exists, key, ctx->pool);
        bool cut_off = error != MC_OK && mc_handle_cut_off(handle);
        release_reader(handle, error, ctx);
        if (!cut_off || tries == MC_HANDLE_TRIES)
            return error;
        mc_error_ignore(error);
    }
}
