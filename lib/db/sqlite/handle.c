/* One open SQLite file: how it is opened and closed, and its prepared statements. The table is in handles.c. */
#include <apr_strings.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "db/sqlite/handle_private.h"
#include "mapcache/buf.h"
#include "text/text.h"

enum {
    PAGES_AT_MOST = 16 << 20, /* of all files' pages in memory, together; above that each keeps but a few */
    SYNCHRONOUS_FULL = 2,
    JOURNAL_PAUSE_MS = 20,
    JOURNAL_PATIENCE_MS = 10000, /* for others who make the same file */
};

/* Of a reader's pages in memory, in KB, as SQLite takes it. The pages that lead to all tiles of a level are there with
 * each get; those of the tiles themselves are seldom asked for again, and a memory of tiles stands before. 50 readers
 * keep less than PAGES_AT_MOST. */
#define READER_PAGES "-256"

uint64_t
mc_open_options_profile(const mc_open_options *how)
{
    uint64_t hash = (uint64_t)how->write | (uint64_t)how->immutable << 1 | (uint64_t)how->journal << 2 |
                    (uint64_t)how->settled << 8;
    if (how->create != NULL)
        hash = mc_hash64(how->create, strlen(how->create), hash);
    for (int i = 0; i < how->pragma_count; i++) {
        hash = mc_hash64(how->pragmas[i].name, strlen(how->pragmas[i].name), hash);
        hash = mc_hash64(how->pragmas[i].value, strlen(how->pragmas[i].value), hash);
    }
    if (how->vfs != NULL)
        hash = mc_hash64(how->vfs, strlen(how->vfs), hash);
    return hash;
}

/* What SQLite does not tell: the file or the folder that this user may not use. "" where that is not it. */
static const char *
describe_access_failure(const mc_handle *handle, int code, apr_pool_t *pool)
{
    const char *slash = strrchr(handle->path, '/');
    const char *folder = slash == NULL ? "." : apr_pstrmemdup(pool, handle->path, (size_t)(slash - handle->path) + 1);
    const struct {
        const char *path;
        int mode;
    } places[] = { { handle->path, handle->write ? R_OK | W_OK : R_OK },
                   { folder, handle->write ? W_OK | X_OK : X_OK } };
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY)
        return "";
    for (int i = access(handle->path, F_OK) == 0 ? 0 : 1; i < 2; i++)
        if (access(places[i].path, places[i].mode) != 0)
            return apr_psprintf(pool, "; %s: %s", places[i].path, strerror(errno));
    return "";
}

mc_error *
mc_handle_error(mc_handle *handle, const char *what, apr_pool_t *pool)
{
    int code = sqlite3_errcode(handle->db) & 0xff;
    mc_error_kind kind = MC_ERR_IO;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_INTERRUPT)
        kind = MC_ERR_UNAVAILABLE;
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_TOOBIG)
        kind = MC_ERR_CORRUPT;
    mc_error *cause =
        mc_error_create(pool, kind, "%s: %s (SQLite %d)%s", handle->path, sqlite3_errmsg(handle->db),
                        sqlite3_extended_errcode(handle->db), describe_access_failure(handle, code, pool));
    return mc_error_wrap(pool, cause, kind, "%s", what);
}

bool
mc_handle_lacks_table(mc_handle *handle)
{
    int code = sqlite3_errcode(handle->db); /* SQLITE_SCHEMA: others are making tables at this moment */
    return (code == SQLITE_ERROR || code == SQLITE_SCHEMA) &&
           strncmp(sqlite3_errmsg(handle->db), "no such table", 13) == 0;
}

static mc_error *
run_handle_sql(mc_handle *handle, const char *sql, const char *what, apr_pool_t *pool)
{
    if (sqlite3_exec(handle->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return MC_OK;
    return mc_handle_error(handle, what, pool);
}

static mc_error *
begin_read_transaction(mc_handle *handle, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, "BEGIN", pool));
    bool begun = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return begun ? MC_OK : mc_handle_error(handle, "a tile store cannot be read", pool);
}

mc_error *
mc_handle_begin(mc_handle *handle, apr_pool_t *pool)
{
    return sqlite3_get_autocommit(handle->db) ? begin_read_transaction(handle, pool) : MC_OK;
}

bool
mc_handle_end(mc_handle *handle)
{
    for (int i = 0; i < handle->statement_count; i++)
        sqlite3_reset(handle->statements[i].statement); /* ends its read transaction */
    if (!handle->write)
        mc_vfs_ahead_drop(handle->db);
    if (sqlite3_get_autocommit(handle->db))
        return true;
    if (handle->rollback == NULL &&
        sqlite3_prepare_v3(handle->db, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT, &handle->rollback, NULL) != SQLITE_OK)
        return false;
    bool ended = sqlite3_step(handle->rollback) == SQLITE_DONE;
    sqlite3_reset(handle->rollback);
    return ended;
}

/* The number in the first column of a pragma's first row; -1: none. */
static int
read_pragma_number(mc_handle *handle, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int number = -1;
    if (sqlite3_prepare_v2(handle->db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Taking a file into WAL mode needs it alone for a moment, and SQLite does not call its busy handler then: who else is
 * making the file, or reads it, is waited for here. */
static mc_error *
set_pragma(mc_handle *handle, const mc_pragma *pragma, bool journal, apr_pool_t *pool)
{
    const char *sql = apr_psprintf(pool, "PRAGMA %s=%s", pragma->name, pragma->value);
    for (int waited = 0;; waited += JOURNAL_PAUSE_MS) {
        mc_error *error = run_handle_sql(handle, sql, "a configured pragma cannot be applied to a tile store", pool);
        if (error == MC_OK || error->kind != MC_ERR_UNAVAILABLE || !journal || waited >= JOURNAL_PATIENCE_MS ||
            strcasecmp(pragma->value, "wal") != 0 || mc_handle_is_abandoned(handle))
            return error;
        sqlite3_sleep(JOURNAL_PAUSE_MS);
    }
}

/*
 * A file that was removed while others have it open leaves its -wal and -shm at the path, which are theirs. Beside a
 * new file they go, before it can be in WAL mode: under the lock that whoever takes it there needs, and while it is
 * empty.
 */
static mc_error *
drop_leftovers(mc_handle *handle, apr_pool_t *pool)
{
    static const char what[] = "a tile store cannot be set up";
    const char *const left[] = { apr_pstrcat(pool, handle->path, "-wal", NULL),
                                 apr_pstrcat(pool, handle->path, "-shm", NULL) };
    if (access(left[0], F_OK) != 0 && access(left[1], F_OK) != 0)
        return MC_OK;
    MC_TRY(run_handle_sql(handle, "BEGIN EXCLUSIVE", what, pool));
    struct stat file;
    bool empty = stat(handle->path, &file) == 0 && file.st_size == 0; /* SQLite's first page is in memory yet */
    for (int i = 0; i < 2 && empty; i++)
        (void)unlink(left[i]);
    return run_handle_sql(handle, "ROLLBACK", what, pool);
}

/* Pragmas come before the create statement: some of them work on an empty file only. */
static mc_error *
configure_handle(mc_handle *handle, const mc_open_options *how, bool created, mc_ctx *ctx, apr_pool_t *pool)
{
    if (how->write) /* what a transaction changes stays in memory until its end, so that each page is written once */
        MC_TRY(run_handle_sql(handle, "PRAGMA cache_spill=off", "a tile store cannot be opened", pool));
    if (!how->write) /* more would be given back at once where many threads read */
        MC_TRY(run_handle_sql(handle, "PRAGMA cache_size=" READER_PAGES, "a tile store cannot be opened", pool));
    if (!how->write) { /* the first look at the file: what is wrong with it shows here, not in a request's statement */
        /* The read transaction that begins so is the user's own: each would lock the file and look for its journal. */
        if (how->pragma_count == 0)
            MC_TRY(begin_read_transaction(handle, pool));
        MC_TRY(run_handle_sql(handle, "PRAGMA schema_version", "a tile store cannot be opened", pool));
    }
    if (how->write && created)
        MC_TRY(drop_leftovers(handle, pool));
    for (int i = 0; i < how->pragma_count; i++) {
        const mc_pragma *pragma = &how->pragmas[i];
        bool journal = strcasecmp(pragma->name, "journal_mode") == 0;
        if (journal && !how->write)
            continue; /* a reader cannot change it, and must not try */
        MC_TRY(set_pragma(handle, pragma, journal, pool));
    }
    if (!how->write)
        return MC_OK;
    mc_vfs_gather_logs(handle->db, read_pragma_number(handle, "PRAGMA synchronous") >= SYNCHRONOUS_FULL);
    mc_handle_choose_journal(handle, how, created, ctx, pool);
    if (how->create != NULL)
        MC_TRY(run_handle_sql(handle, how->create, "a tile store cannot be set up", pool));
    return MC_OK;
}

/* Bytes of a pattern of LIKE or GLOB: more than twice the longest value that is asked of a dimension. */
#define PATTERN_MAX 40000

/* Files come from anywhere: what stands in their schema cannot reach beyond them, and a value that is larger than any
 * tile is refused before it is read. */
static void
distrust_file(sqlite3 *db)
{
    sqlite3_extended_result_codes(db, 1);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MC_TILE_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX); /* its work is that by the length of the text */
}

/* *code: SQLite's, when it fails. */
static mc_error *
open_once(mc_handle *handle, const mc_open_options *how, bool exists, bool alone, int *code, mc_ctx *ctx,
          apr_pool_t *pool)
{
    /* A URI is needed for immutable alone; escaping keeps '?', '#' and '%' of a path from meaning anything. */
    const char *name = apr_pstrcat(pool, "file:", mc_url_encode(handle->path, "/", true, false, pool),
                                   how->immutable || alone ? "?immutable=1" : "", NULL);
    int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                (how->write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    const char *vfs = how->vfs != NULL ? how->vfs : how->write ? mc_vfs_writing() : mc_vfs_direct();
    mc_error *error = MC_OK;
    if (sqlite3_open_v2(name, &handle->db, flags, vfs) != SQLITE_OK) {
        error = mc_handle_error(handle, "a tile store cannot be opened", pool);
    } else {
        distrust_file(handle->db);
        mc_handle_watch(handle);
        mc_handle_bound_wait(handle, ctx);
        error = configure_handle(handle, how, !exists, ctx, pool);
    }
    if (error != MC_OK) {
        *code = sqlite3_extended_errcode(handle->db);
        mc_handle_close(handle, false);
    }
    return error;
}

/*
 * A writer was cut off in the middle of a commit: what its journal has kept of the file before must go back first,
 * which only a writer can. Nothing may be read meanwhile, least of all without locks.
 */
static mc_error *
roll_back(mc_handle *handle, mc_ctx *ctx, apr_pool_t *pool)
{
    int code;
    const mc_open_options how = { .write = true };
    mc_error *error = open_once(handle, &how, true, false, &code, ctx, pool);
    if (error == MC_OK) {
        error = run_handle_sql(handle, "PRAGMA schema_version", "a tile store cannot be recovered", pool);
        mc_handle_close(handle, false);
    }
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(
        pool, error, MC_ERR_UNAVAILABLE,
        "a writer of a tile store was cut off, and its -journal can be taken back only by a user who may"
        " write the file and its folder");
}

mc_error *
mc_handle_open(mc_handle *handle, const mc_open_options *how, const mc_stamp *stamp, bool *alone, mc_ctx *ctx,
               apr_pool_t *pool)
{
    int code = SQLITE_OK;
    if (stamp == NULL)
        (void)mc_files_make_folders(handle->path); /* what fails here shows when the file is opened */
    mc_error *error = open_once(handle, how, stamp != NULL, *alone, &code, ctx, pool);
    if (code == SQLITE_READONLY_ROLLBACK && !how->write) {
        MC_TRY(roll_back(handle, ctx, pool));
        return open_once(handle, how, true, *alone, &code, ctx, pool);
    }
    bool no_shared_memory = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
    if (error == MC_OK || !no_shared_memory || how->write || how->immutable || *alone)
        return error;
    if (stamp->wal_size > 0 && access(handle->path, R_OK) != 0)
        return error;
    if (stamp->wal_size > 0)
        return mc_error_wrap(
            pool, error, MC_ERR_UNAVAILABLE,
            "a tile store is in WAL mode, and its -wal can be read only by a user who may write the file's folder;"
            " such a user takes it in with: sqlite3 FILE 'PRAGMA journal_mode=delete'");
    *alone = true; /* everything is in the main file */
    return open_once(handle, how, true, true, &code, ctx, pool);
}

bool
mc_handle_count_pages(mc_handle *handle, size_t bytes)
{
    if (handle->all_page_bytes == NULL)
        return false;
    size_t change = bytes - handle->page_bytes; /* modulo its range: a decrease, too */
    handle->page_bytes = bytes;
    return atomic_fetch_add_explicit(handle->all_page_bytes, change, memory_order_relaxed) + change > PAGES_AT_MOST;
}

void
mc_handle_close(mc_handle *handle, bool replaced)
{
    for (int i = 0; i < handle->statement_count; i++) {
        sqlite3_finalize(handle->statements[i].statement);
        free(handle->statements[i].sql);
    }
    handle->statement_count = 0;
    sqlite3_finalize(handle->rollback);
    handle->rollback = NULL;
    if (!replaced)
        mc_handle_leave_journal(handle);
    handle->journal = MC_JOURNAL_KEPT;
    if (replaced) /* the -wal beside the path belongs to another file now */
        sqlite3_db_config(handle->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close_v2(handle->db);
    handle->db = NULL;
    (void)mc_handle_count_pages(handle, 0);
}

bool
mc_handle_cut_off(mc_handle *handle)
{
    return sqlite3_extended_errcode(handle->db) == SQLITE_READONLY_ROLLBACK;
}

sqlite3 *
mc_handle_db(mc_handle *handle)
{
    return handle->db;
}

bool *
mc_handle_user_flag(mc_handle *handle)
{
    return &handle->user_flag;
}

mc_error *
mc_handle_statement(sqlite3_stmt **statement, mc_handle *handle, const char *sql, apr_pool_t *pool)
{
    for (int i = 0; i < handle->statement_count; i++)
        if (strcmp(handle->statements[i].sql, sql) == 0) {
            *statement = handle->statements[i].statement;
            sqlite3_reset(*statement);
            sqlite3_clear_bindings(*statement);
            return MC_OK;
        }
    if (handle->statement_count == MOST_STATEMENTS) {
        struct prepared *last = &handle->statements[--handle->statement_count];
        sqlite3_finalize(last->statement);
        free(last->sql);
    }
    if (sqlite3_prepare_v3(handle->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK ||
        *statement == NULL)
        return mc_handle_error(handle, "a statement does not fit a tile store", pool);
    struct prepared *next = &handle->statements[handle->statement_count++];
    next->statement = *statement;
    next->sql = strdup(sql);
    MC_ASSERT(next->sql != NULL);
    return MC_OK;
}
