/*
 * Looking after SQLite files. A file is compacted in place, by SQLite: a copy renamed over it would be safe for
 * readers, but a writer that has the old file open would write into nothing. Files with incremental auto-vacuum give
 * their free pages back some at a time; others are rewritten once, in one transaction, and have it from then on.
 */
#include <apr_strings.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cache/sqlite/sqlite_base.h"
#include "mapcache/upkeep.h"

enum {
    PAGES_AT_ONCE = 2000, /* of a step of incremental compacting: what a reader may have to wait for */
    ROOM_FOR_A_STEP = 64 << 20,
    AUTO_VACUUM_INCREMENTAL = 2,
    STEPS_BETWEEN_LOOKS = 1000, /* of SQLite's virtual machine: whether the work is to end */
};

/* One file under work. */
typedef struct cache_sqlite_upkeep {
    sqlite_cache *cache;
    const mc_upkeep *task;
    mc_ctx *ctx;
    const char *path;
    mc_store store;
    apr_array_header_t *orphans; /* of mc_store_group */
    int64_t unused;              /* bytes of contents that no tile has */
} cache_sqlite_upkeep;

static int64_t
sqlite_file_size(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

static bool
sqlite_upkeep_stopped(const cache_sqlite_upkeep *work)
{
    return work->task->stop != NULL && *work->task->stop != 0;
}

static void
show_sqlite_progress(const cache_sqlite_upkeep *work, const char *what, double done)
{
    if (work->task->progress != NULL)
        work->task->progress(work->task->baton, &work->store, what, done);
}

static int
is_enough(void *baton)
{
    return sqlite_upkeep_stopped(baton);
}

/* Whatever runs on the handle until its release ends with an error once the task is stopped, and is taken back. */
static mc_error *
open_sqlite_upkeep(mc_handle **handle, cache_sqlite_upkeep *work, const mc_open_options *how)
{
    mc_stamp stamp;
    mc_handles *handles = work->ctx->process == NULL ? NULL : work->ctx->process->handles;
    bool present;
    MC_TRY(mc_handle_look(&present, &stamp, work->path, work->ctx->pool));
    if (!present)
        return mc_error_create(work->ctx->pool, MC_ERR_IO, "%s has gone", work->path);
    MC_TRY(mc_handle_acquire(handle, handles, work->path, &stamp, how, work->ctx, work->ctx->pool));
    sqlite3_progress_handler(mc_handle_db(*handle), STEPS_BETWEEN_LOOKS, is_enough, work);
    return MC_OK;
}

static void
close_sqlite_upkeep(mc_handle *handle, bool usable)
{
    sqlite3_progress_handler(mc_handle_db(handle), 0, NULL, NULL);
    mc_handle_release(handle, usable);
}

/* The number that a pragma or a count gives. */
static mc_error *
query_sqlite_number(int64_t *number, mc_handle *handle, const char *sql, const cache_sqlite_upkeep *work)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, sql, work->ctx->pool));
    return mc_handle_number(number, handle, statement, "a tile store cannot be looked at", work->ctx->pool);
}

static const char *
text_at(sqlite3_stmt *statement, int column, apr_pool_t *pool)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text == NULL ? NULL : apr_pstrdup(pool, text);
}

static void
add_sqlite_group(cache_sqlite_upkeep *work, sqlite3_stmt *row)
{
    apr_pool_t *pool = work->ctx->pool;
    mc_store_group group = { text_at(row, 0, pool),       text_at(row, 1, pool),        text_at(row, 2, pool),
                             sqlite3_column_int(row, 3),  sqlite3_column_int64(row, 4), sqlite3_column_int64(row, 5),
                             sqlite3_column_int64(row, 6) };
    mc_store_add(&work->store, &group, work->task, work->orphans);
}

/* That of a file that is open. */
static mc_error *
choose_counts_sql(const char **sql, const char *ours, const char *of_table, mc_handle *handle,
                  const cache_sqlite_upkeep *work)
{
    bool view = true;
    if (of_table != NULL)
        MC_TRY(mc_sqlite_has_view(&view, handle, work->ctx->pool));
    *sql = view ? ours : of_table;
    return MC_OK;
}

static mc_error *
count_groups(cache_sqlite_upkeep *work, mc_handle *handle)
{
    sqlite3_stmt *statement;
    const char *sql;
    const mc_sqlite_counts *counts = &work->cache->counts;
    mc_store *store = &work->store;
    store->tiles = store->blanks = store->tile_bytes = store->orphans = store->orphan_bytes = 0;
    MC_TRY(choose_counts_sql(&sql, counts->groups, counts->table_groups, handle, work));
    MC_TRY(mc_handle_statement(&statement, handle, sql, work->ctx->pool));
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        add_sqlite_group(work, statement);
    mc_error *error = code == SQLITE_DONE ? MC_OK : mc_handle_error(handle, "tiles cannot be counted", work->ctx->pool);
    sqlite3_reset(statement);
    return error;
}

/* Of files whose tables are ours: those of others may have a view `tiles`, too. */
static mc_error *
measure_unused(cache_sqlite_upkeep *work, mc_handle *handle)
{
    bool view;
    const char *sql = work->cache->counts.unused;
    work->unused = 0;
    if (sql == NULL)
        return MC_OK;
    MC_TRY(mc_sqlite_has_view(&view, handle, work->ctx->pool));
    mc_error *error = view ? query_sqlite_number(&work->unused, handle, sql, work) : MC_OK;
    return error != MC_OK && mc_handle_lacks_table(handle) ? MC_OK : error;
}

static mc_error *
count_store(cache_sqlite_upkeep *work, mc_handle *handle)
{
    int64_t pages, free;
    apr_array_clear(work->orphans);
    MC_TRY(query_sqlite_number(&pages, handle, "PRAGMA page_size", work));
    MC_TRY(query_sqlite_number(&free, handle, "PRAGMA freelist_count", work));
    MC_TRY(measure_unused(work, handle));
    work->store.free_bytes = pages * free + work->unused;
    return work->task->count && work->cache->counts.groups != NULL ? count_groups(work, handle) : MC_OK;
}

/* A mc_handle_work. */
static mc_error *
look_into(void *baton, mc_handle *handle)
{
    sqlite3_progress_handler(mc_handle_db(handle), STEPS_BETWEEN_LOOKS, is_enough, baton);
    mc_error *error = count_store(baton, handle);
    sqlite3_progress_handler(mc_handle_db(handle), 0, NULL, NULL);
    return error;
}

static mc_error *
measure_sqlite_store(cache_sqlite_upkeep *work)
{
    apr_pool_t *pool = work->ctx->pool;
    mc_stamp stamp;
    bool present;
    mc_handles *handles = work->ctx->process == NULL ? NULL : work->ctx->process->handles;
    work->store.bytes = sqlite_file_size(work->path) + sqlite_file_size(apr_pstrcat(pool, work->path, "-wal", NULL)) +
                        sqlite_file_size(apr_pstrcat(pool, work->path, "-journal", NULL));
    MC_TRY(mc_handle_look(&present, &stamp, work->path, pool));
    if (!present)
        return mc_error_create(pool, MC_ERR_IO, "%s has gone", work->path);
    return mc_handle_read(handles, work->path, &stamp, &work->cache->reading, look_into, work, work->ctx, pool);
}

/* Binds a group as mc_sqlite_bind binds a key, which has no nulls. */
static void
bind_group(sqlite3_stmt *statement, const mc_store_group *group)
{
    const char *const names[] = { ":tileset", ":grid", ":dim" };
    const char *const values[] = { group->tileset, group->grid, group->dim };
    for (int i = 0; i < 3; i++) {
        int at = sqlite3_bind_parameter_index(statement, names[i]);
        if (at > 0)
            sqlite3_bind_text(statement, at, values[i], -1, SQLITE_STATIC);
    }
    int at = sqlite3_bind_parameter_index(statement, ":z");
    if (at > 0)
        sqlite3_bind_int(statement, at, group->z);
}

/* Some thousand at a time: each is a transaction of its own, so that nobody waits for long. */
static mc_error *
remove_sqlite_group(const cache_sqlite_upkeep *work, mc_handle *handle, const mc_store_group *group)
{
    int64_t gone = 0;
    const char *sql;
    const mc_sqlite_counts *counts = &work->cache->counts;
    MC_TRY(choose_counts_sql(&sql, counts->remove, counts->table_remove, handle, work));
    for (int removed = 1; removed > 0 && !sqlite_upkeep_stopped(work);) {
        sqlite3_stmt *statement;
        MC_TRY(mc_handle_statement(&statement, handle, sql, work->ctx->pool));
        bind_group(statement, group);
        if (sqlite3_step(statement) != SQLITE_DONE)
            return mc_handle_error(handle, "tiles cannot be removed", work->ctx->pool);
        sqlite3_reset(statement);
        gone += removed = sqlite3_changes(mc_handle_db(handle));
        show_sqlite_progress(work, "removing", group->tiles > 0 ? (double)gone / (double)group->tiles : 1);
    }
    return MC_OK;
}

/* For changes of what a file has: nothing is made in it. */
static mc_error *
open_sqlite_changes(mc_handle **handle, cache_sqlite_upkeep *work)
{
    mc_open_options how = work->cache->writing;
    how.create = NULL;
    how.profile = mc_open_options_profile(&how);
    return open_sqlite_upkeep(handle, work, &how);
}

static mc_error *
remove_orphans(cache_sqlite_upkeep *work)
{
    mc_handle *handle;
    MC_TRY(open_sqlite_changes(&handle, work));
    mc_error *error = MC_OK;
    for (int i = 0; i < work->orphans->nelts && error == MC_OK; i++)
        error = remove_sqlite_group(work, handle, &APR_ARRAY_IDX(work->orphans, i, mc_store_group));
    close_sqlite_upkeep(handle, error == MC_OK);
    return error;
}

/* One transaction: a tile that is stored meanwhile finds its content, or stores it anew. */
static mc_error *
remove_unused(cache_sqlite_upkeep *work)
{
    mc_handle *handle;
    MC_TRY(open_sqlite_changes(&handle, work));
    show_sqlite_progress(work, "removing", 0);
    mc_error *error = mc_sqlite_run(handle, work->cache->counts.tidy_up, NULL, NULL, work->ctx->pool);
    close_sqlite_upkeep(handle, error == MC_OK);
    return error;
}

static const char *
folder_of(const cache_sqlite_upkeep *work)
{
    const char *slash = strrchr(work->path, '/');
    return slash == NULL ? "." : apr_pstrmemdup(work->ctx->pool, work->path, (size_t)(slash - work->path) + 1);
}

/* An error where the file's disk has less than that free. */
static mc_error *
check_room(const cache_sqlite_upkeep *work, int64_t needed)
{
    struct statvfs disk;
    const char *folder = folder_of(work);
    if (statvfs(folder, &disk) != 0)
        return MC_OK;
    int64_t room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    if (room >= needed)
        return MC_OK;
    return mc_error_create(work->ctx->pool, MC_ERR_LIMIT,
                           "compacting %s needs about %" APR_INT64_T_FMT
                           " MB of room in %s, and there are %" APR_INT64_T_FMT
                           " MB: make room, or compact it elsewhere while nobody uses it",
                           work->path, (needed >> 20) + 1, folder, room >> 20);
}

/* Pages from the end of the file go into its gaps, and it is cut off behind them. */
static mc_error *
compact_by_steps(const cache_sqlite_upkeep *work, mc_handle *handle)
{
    int64_t free, first = 0;
    const char *step = apr_psprintf(work->ctx->pool, "PRAGMA incremental_vacuum(%d)", PAGES_AT_ONCE);
    MC_TRY(check_room(work, ROOM_FOR_A_STEP));
    for (;;) {
        MC_TRY(query_sqlite_number(&free, handle, "PRAGMA freelist_count", work));
        first = free > first ? free : first;
        show_sqlite_progress(work, "compacting", first == 0 ? 1 : 1 - (double)free / (double)first);
        if (free == 0 || sqlite_upkeep_stopped(work))
            return MC_OK;
        int64_t before = free;
        MC_TRY(mc_sqlite_run(handle, step, NULL, NULL, work->ctx->pool));
        MC_TRY(query_sqlite_number(&free, handle, "PRAGMA freelist_count", work));
        if (free >= before)
            return MC_OK;
    }
}

/* SQLite writes the file anew into a temporary one beside it, and that over the file, with a journal or log. */
static mc_error *
compact_whole(const cache_sqlite_upkeep *work, mc_handle *handle)
{
    apr_pool_t *pool = work->ctx->pool;
    int64_t left = work->store.bytes - work->store.free_bytes;
    MC_TRY(check_room(work, 2 * left + ROOM_FOR_A_STEP));
    show_sqlite_progress(work, "compacting", 0);
    MC_TRY(mc_sqlite_run(handle, "PRAGMA cache_spill=on", NULL, NULL, pool)); /* the file need not fit into memory */
    MC_TRY(mc_sqlite_run(handle, "PRAGMA auto_vacuum=INCREMENTAL", NULL, NULL, pool));
    char *folder = sqlite3_mprintf("PRAGMA temp_store_directory=%Q", folder_of(work));
    MC_ASSERT(folder != NULL);
    mc_error *error = mc_sqlite_run(handle, folder, NULL, NULL, pool);
    sqlite3_free(folder);
    if (error == MC_OK)
        error = mc_sqlite_run(handle, "VACUUM", NULL, NULL, pool);
    if (error == MC_OK)
        error = mc_sqlite_run(handle, "PRAGMA temp_store_directory=''", NULL, NULL, pool);
    if (error == MC_OK)
        show_sqlite_progress(work, "compacting", 1);
    return error;
}

static mc_error *
compact_sqlite_store(cache_sqlite_upkeep *work)
{
    mc_open_options own = { .write = true, .journal = work->cache->writing.journal };
    mc_handle *handle;
    int64_t kind;
    own.profile = mc_open_options_profile(&own);
    MC_TRY(open_sqlite_upkeep(&handle, work, &own));
    mc_error *error = query_sqlite_number(&kind, handle, "PRAGMA auto_vacuum", work);
    if (error == MC_OK)
        error = kind == AUTO_VACUUM_INCREMENTAL ? compact_by_steps(work, handle) : compact_whole(work, handle);
    /* What was moved stands in the log of a WAL file; readers may keep some of it there for a while. */
    if (error == MC_OK)
        (void)sqlite3_wal_checkpoint_v2(mc_handle_db(handle), "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    close_sqlite_upkeep(handle, false);
    return error;
}

/* Readers of files that are said never to change take no locks, and would not see that they do. */
static mc_error *
immutable_store_error(const cache_sqlite_upkeep *work)
{
    return mc_error_create(work->ctx->pool, MC_ERR_CONFIG,
                           "%s is not changed, as cache \"%s\" says <immutable>: without that it would be", work->path,
                           work->store.cache);
}

static mc_error *
change_sqlite_store(cache_sqlite_upkeep *work, bool *changed)
{
    bool orphans = work->task->remove_orphans && work->orphans->nelts > 0;
    if (work->cache->immutable && (orphans || (work->task->compact && work->store.free_bytes > 0)))
        return immutable_store_error(work);
    if (orphans && work->cache->counts.remove != NULL) {
        *changed = true;
        MC_TRY(remove_orphans(work));
        MC_TRY(measure_sqlite_store(work));
    }
    if ((orphans || work->task->compact) && work->unused > 0 && !sqlite_upkeep_stopped(work)) {
        *changed = true;
        MC_TRY(remove_unused(work));
        MC_TRY(measure_sqlite_store(work));
    }
    if (!work->task->compact || work->store.free_bytes <= 0 || sqlite_upkeep_stopped(work))
        return MC_OK;
    *changed = true;
    return compact_sqlite_store(work);
}

static void
maintain_sqlite_store(cache_sqlite_upkeep *work)
{
    const mc_upkeep *task = work->task;
    bool changed = false;
    work->store = (mc_store){
        work->cache->base.cache.ops->type, work->cache->base.cache.name, work->path, -1, -1, -1, -1, -1, -1, -1, -1, -1
    };
    mc_error *error = measure_sqlite_store(work);
    mc_store before = work->store;
    mc_store_tell_orphans(&before, task, work->orphans);
    if (error == MC_OK)
        error = change_sqlite_store(work, &changed);
    if (changed && error == MC_OK)
        error = measure_sqlite_store(work);
    if (task->report != NULL)
        task->report(task->baton, &before, changed ? &work->store : NULL, error);
}

static bool
stored_path_ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), wanted = strlen(end);
    return size >= wanted && strcmp(text + size - wanted, end) == 0;
}

/* A file of SQLite's, and not one that stands beside it. */
static bool
is_store(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
           !stored_path_ends_with(path, "-wal") && !stored_path_ends_with(path, "-shm") &&
           !stored_path_ends_with(path, "-journal");
}

mc_error *
mc_sqlite_upkeep(mc_cache *base, const mc_upkeep *task, mc_ctx *ctx)
{
    sqlite_cache *cache = (sqlite_cache *)base;
    char pattern[MC_PATH_MAX];
    glob_t found;
    mc_ctx own = *ctx;
    if (!mc_template_pattern(pattern, cache->template))
        return mc_error_create(ctx->pool, MC_ERR_LIMIT, "the paths of cache \"%s\" are too long", base->name);
    if (glob(pattern, 0, NULL, &found) != 0)
        return MC_OK; /* nothing has been stored yet */
    apr_pool_create(&own.pool, ctx->pool);
    for (size_t i = 0; i < found.gl_pathc && (task->stop == NULL || *task->stop == 0); i++) {
        if (!is_store(found.gl_pathv[i]))
            continue;
        apr_pool_clear(own.pool);
        cache_sqlite_upkeep work = { .cache = cache,
                                     .task = task,
                                     .ctx = &own,
                                     .path = found.gl_pathv[i],
                                     .orphans = apr_array_make(own.pool, 4, sizeof(mc_store_group)) };
        maintain_sqlite_store(&work);
    }
    apr_pool_destroy(own.pool);
    globfree(&found);
    return MC_OK;
}
