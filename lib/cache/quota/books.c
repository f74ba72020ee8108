/* See books.h: the file and its statements. */
#include "cache/quota/books.h"

#include <apr_strings.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static const char create_sql[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS series(id integer PRIMARY KEY, tileset text, grid text, dim text, extension text,"
    " named integer, UNIQUE(tileset, grid, dim, extension, named));"
    "CREATE TABLE IF NOT EXISTS blocks(series integer, z integer, x integer, y integer, used integer,"
    " stored integer NOT NULL DEFAULT 0, bytes integer NOT NULL DEFAULT 0, changed integer NOT NULL, PRIMARY "
    "KEY(series, z, x, y)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS blocks_by_use ON blocks(used, z DESC);"
    "CREATE INDEX IF NOT EXISTS blocks_changed ON blocks(changed, stored) WHERE changed > 0;"
    "CREATE TABLE IF NOT EXISTS state(name text PRIMARY KEY, value);"
    "INSERT OR IGNORE INTO state VALUES('bytes', 0);"
    "CREATE TRIGGER IF NOT EXISTS blocks_grow AFTER UPDATE OF bytes ON blocks WHEN NEW.bytes <> OLD.bytes BEGIN"
    " UPDATE state SET value = value + NEW.bytes - OLD.bytes WHERE name = 'bytes'; END;"
    "CREATE TRIGGER IF NOT EXISTS blocks_go AFTER DELETE ON blocks WHEN OLD.bytes <> 0 BEGIN"
    " UPDATE state SET value = value - OLD.bytes WHERE name = 'bytes'; END;"
    "COMMIT";

/* Nothing of it has to outlive the machine: a file that its fall has damaged is made anew. */
static const mc_pragma pragmas[] = { { "synchronous", "OFF" } };

static const char what[] = "the books of a cache with <max_size> cannot be kept";

enum { LEASE = 30 /* seconds */ };

mc_books
mc_books_at(const char *path, const char *cache, apr_pool_t *pool)
{
    mc_books books = { .path = apr_pstrdup(pool, path), .cache = cache };
    books.how = (mc_open_options){ .write = true,
                                   .journal = MC_JOURNAL_ROLLBACK,
                                   .create = create_sql,
                                   .pragmas = pragmas,
                                   .pragma_count = 1,
                                   .outer = true };
    books.how.profile = mc_open_options_profile(&books.how);
    books.reading.profile = mc_open_options_profile(&books.reading);
    return books;
}

static mc_error *
open_books_file(mc_handle **books, const mc_books *which, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present = mc_stamp_take(&stamp, which->path);
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    return mc_handle_acquire(books, handles, which->path, present ? &stamp : NULL, &which->how, ctx, ctx->pool);
}

/* A statement of ours that the file does not take is not ours any more: another program's, or another version's. */
static bool
are_books_damaged(mc_handle *books, apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT (SELECT max(used + stored + bytes) FROM blocks WHERE changed > 0 AND used < 0),"
        " (SELECT named FROM series WHERE id < 0), (SELECT value FROM state WHERE name = 'bytes')";
    sqlite3_stmt *statement;
    mc_error *error = mc_handle_statement(&statement, books, sql, pool);
    int64_t number;
    if (error == MC_OK)
        error = mc_handle_number(&number, books, statement, what, pool);
    return error != MC_OK && error->kind != MC_ERR_UNAVAILABLE;
}

mc_error *
mc_books_open(mc_handle **books, const mc_books *which, mc_ctx *ctx)
{
    mc_error *error = open_books_file(books, which, ctx);
    bool damaged = error != MC_OK && error->kind == MC_ERR_CORRUPT;
    if (error == MC_OK && are_books_damaged(*books, ctx->pool)) {
        damaged = true;
        mc_handle_release(*books, false);
    }
    if (!damaged)
        return error;
    mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": %s is damaged and made anew; what the cache has is looked through",
                 which->cache, which->path);
    if (unlink(which->path) != 0 && errno != ENOENT)
        return mc_error_create(ctx->pool, MC_ERR_IO, "%s is damaged and cannot be removed", which->path);
    (void)unlink(apr_pstrcat(ctx->pool, which->path, "-journal", NULL));
    return open_books_file(books, which, ctx);
}

mc_error *
mc_books_read(const mc_books *which, mc_handle_work *work, void *baton, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    MC_TRY(mc_handle_look(&present, &stamp, which->path, ctx->pool));
    return present ? mc_handle_read(handles, which->path, &stamp, &which->reading, work, baton, ctx, ctx->pool) : MC_OK;
}

/* --- statements: each letter of `form` is a parameter, 't' a const char *, 'i' an int64_t ------------------------- */

static mc_error *
prepare_books(sqlite3_stmt **statement, mc_handle *books, apr_pool_t *pool, const char *sql, const char *form,
              va_list values)
{
    MC_TRY(mc_handle_statement(statement, books, sql, pool));
    for (int i = 0; form[i] != '\0'; i++) {
        int code = form[i] == 't'
                       ? sqlite3_bind_text(*statement, i + 1, va_arg(values, const char *), -1, SQLITE_TRANSIENT)
                       : sqlite3_bind_int64(*statement, i + 1, va_arg(values, int64_t));
        if (code != SQLITE_OK)
            return mc_handle_error(books, what, pool);
    }
    return MC_OK;
}

/* *number: as mc_handle_number. */
static mc_error *
ask_books(int64_t *number, mc_handle *books, apr_pool_t *pool, const char *sql, const char *form, ...)
{
    sqlite3_stmt *statement;
    va_list values;
    va_start(values, form);
    mc_error *error = prepare_books(&statement, books, pool, sql, form, values);
    va_end(values);
    return error != MC_OK ? error : mc_handle_number(number, books, statement, what, pool);
}

static mc_error *
list_blocks(mc_book_block *blocks, int *count, mc_handle *books, apr_pool_t *pool, const char *sql, const char *form,
            ...)
{
    sqlite3_stmt *row;
    va_list values;
    int code;
    *count = 0;
    va_start(values, form);
    mc_error *error = prepare_books(&row, books, pool, sql, form, values);
    va_end(values);
    MC_TRY(error);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        mc_book_block *block = &blocks[(*count)++];
        const char **const texts[] = { &block->name.tileset, &block->name.grid, &block->name.dim,
                                       &block->name.extension };
        block->series = sqlite3_column_int64(row, 0);
        block->z = sqlite3_column_int(row, 1);
        block->x = sqlite3_column_int(row, 2);
        block->y = sqlite3_column_int(row, 3);
        block->used = sqlite3_column_int64(row, 4);
        block->stored = sqlite3_column_int64(row, 5);
        block->bytes = sqlite3_column_int64(row, 6);
        for (int i = 0; i < 4; i++) {
            const char *text = (const char *)sqlite3_column_text(row, 7 + i);
            *texts[i] = text == NULL ? "" : apr_pstrdup(pool, text);
        }
        block->name.client_named = sqlite3_column_int(row, 11) != 0;
    }
    error = code == SQLITE_DONE ? MC_OK : mc_handle_error(books, what, pool);
    sqlite3_reset(row);
    return error;
}

mc_error *
mc_books_do(const mc_books *which, mc_books_work *work, void *baton, mc_ctx *ctx)
{
    mc_handle *books;
    int64_t none;
    MC_TRY(mc_books_open(&books, which, ctx));
    mc_error *error = ask_books(&none, books, ctx->pool, "BEGIN IMMEDIATE", "");
    if (error == MC_OK)
        error = work(books, baton, ctx);
    if (error == MC_OK)
        error = ask_books(&none, books, ctx->pool, "COMMIT", "");
    mc_handle_release(books, error == MC_OK);
    return error;
}

/* The number of a name, given where it has none. */
static mc_error *
find_book_series(int64_t *id, mc_handle *books, const mc_quota_name *name, apr_pool_t *pool)
{
    const int64_t named = name->client_named;
    static const char find[] =
        "SELECT id FROM series WHERE tileset = ? AND grid = ? AND dim = ? AND extension = ? AND named = ?";
    static const char add[] = "INSERT INTO series(tileset, grid, dim, extension, named) VALUES(?, ?, ?, ?, ?)";
    MC_TRY(ask_books(id, books, pool, find, "tttti", name->tileset, name->grid, name->dim, name->extension, named));
    if (*id != 0)
        return MC_OK;
    MC_TRY(ask_books(id, books, pool, add, "tttti", name->tileset, name->grid, name->dim, name->extension, named));
    *id = sqlite3_last_insert_rowid(mc_handle_db(books));
    return MC_OK;
}

mc_error *
mc_books_note(mc_handle *books, const mc_quota_name *name, const mc_tile_key *block, apr_int64_t time,
              mc_book_event event, apr_pool_t *pool)
{
    static const char sql[] =
        "INSERT INTO blocks(series, z, x, y, used, stored, changed) VALUES(?1, ?2, ?3, ?4, ?5, ?6, 2)"
        " ON CONFLICT DO UPDATE SET used = max(used, excluded.used), stored = max(stored, excluded.stored),"
        " changed = max(changed, ?7) WHERE excluded.used > used OR excluded.stored > stored OR ?7 > changed";
    int64_t series, none;
    MC_TRY(find_book_series(&series, books, name, pool));
    return ask_books(&none, books, pool, sql, "iiiiiii", series, (int64_t)block->z, (int64_t)block->x,
                     (int64_t)block->y, event == MC_BOOK_CHANGED ? 0 : (int64_t)time,
                     event == MC_BOOK_STORED ? (int64_t)time : 0, event == MC_BOOK_USED ? (int64_t)0 : (int64_t)2);
}

#define BLOCK_COLUMNS                                                                                                  \
    "SELECT series, z, x, y, used, stored, bytes, tileset, grid, dim, extension, named FROM blocks JOIN series"        \
    " ON series.id = blocks.series "

mc_error *
mc_books_oldest(mc_book_block *blocks, int *count, int most, apr_int64_t before, mc_handle *books, apr_pool_t *pool)
{
    return list_blocks(blocks, count, books, pool, BLOCK_COLUMNS "WHERE used < ? ORDER BY used, z DESC LIMIT ?", "ii",
                       (int64_t)before, (int64_t)most);
}

mc_error *
mc_books_unmeasured(mc_book_block *blocks, int *count, int most, apr_int64_t before, mc_handle *books, apr_pool_t *pool)
{
    MC_TRY(list_blocks(blocks, count, books, pool, BLOCK_COLUMNS "WHERE changed = 2 LIMIT ?", "i", (int64_t)most));
    if (*count > 0)
        return MC_OK;
    return list_blocks(blocks, count, books, pool, BLOCK_COLUMNS "WHERE changed = 1 AND stored < ? LIMIT ?", "ii",
                       (int64_t)before, (int64_t)most);
}

mc_error *
mc_books_unsettled(bool *any, mc_handle *books, apr_pool_t *pool)
{
    int64_t number;
    MC_TRY(ask_books(&number, books, pool, "SELECT 1 FROM blocks WHERE changed > 0 LIMIT 1", ""));
    *any = number != 0;
    return MC_OK;
}

mc_error *
mc_books_settle(mc_handle *books, apr_pool_t *pool)
{
    int64_t none;
    return ask_books(&none, books, pool, "UPDATE blocks SET changed = 0 WHERE changed > 0", "");
}

#define OF_BLOCK " WHERE series = ? AND z = ? AND x = ? AND y = ?"

mc_error *
mc_books_measured(mc_handle *books, const mc_book_block *block, const mc_quota_amount *found, apr_int64_t before,
                  apr_pool_t *pool)
{
    int64_t none;
    const int64_t settling = block->stored >= before;
    if (found->tiles == 0 && !settling)
        return ask_books(&none, books, pool, "DELETE FROM blocks" OF_BLOCK " AND stored = ?", "iiiii", block->series,
                         (int64_t)block->z, (int64_t)block->x, (int64_t)block->y, block->stored);
    return ask_books(&none, books, pool,
                     "UPDATE blocks SET bytes = ?5, changed = ?6 WHERE series = ?1 AND z = ?2 AND x = ?3 AND y = ?4"
                     " AND stored = ?7",
                     "iiiiiii", block->series, (int64_t)block->z, (int64_t)block->x, (int64_t)block->y, found->bytes,
                     settling, block->stored);
}

mc_error *
mc_books_remove(mc_handle *books, const mc_book_block *block, apr_pool_t *pool)
{
    int64_t none;
    return ask_books(&none, books, pool, "DELETE FROM blocks" OF_BLOCK, "iiii", block->series, (int64_t)block->z,
                     (int64_t)block->x, (int64_t)block->y);
}

mc_error *
mc_books_set_bytes(mc_handle *books, const mc_book_block *block, int64_t bytes, apr_pool_t *pool)
{
    int64_t none;
    return ask_books(&none, books, pool,
                     "UPDATE blocks SET bytes = ?5 WHERE series = ?1 AND z = ?2 AND x = ?3 AND y = ?4", "iiiii",
                     block->series, (int64_t)block->z, (int64_t)block->x, (int64_t)block->y, bytes);
}

mc_error *
mc_books_correct_clock(mc_handle *books, apr_int64_t now, apr_pool_t *pool)
{
    enum { DIFFERENCE = 60 }; /* seconds between the clocks of hosts */
    int64_t none;
    return ask_books(&none, books, pool, "UPDATE blocks SET used = ?1, stored = min(stored, ?1) WHERE used > ?2", "ii",
                     (int64_t)now, (int64_t)now + DIFFERENCE);
}

mc_error *
mc_books_empty(mc_handle *books, apr_pool_t *pool)
{
    static const char *const sql[] = { "DELETE FROM blocks", "DELETE FROM series",
                                       "DELETE FROM state WHERE name NOT IN ('holder', 'until')",
                                       "INSERT INTO state VALUES('bytes', 0)" };
    int64_t none;
    for (size_t i = 0; i < sizeof(sql) / sizeof(*sql); i++)
        MC_TRY(ask_books(&none, books, pool, sql[i], ""));
    return MC_OK;
}

mc_error *
mc_books_number(int64_t *number, mc_handle *books, const char *name, apr_pool_t *pool)
{
    return ask_books(number, books, pool, "SELECT value FROM state WHERE name = ?", "t", name);
}

mc_error *
mc_books_text(const char **text, mc_handle *books, const char *name, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    *text = "";
    MC_TRY(mc_handle_statement(&statement, books, "SELECT value FROM state WHERE name = ?", pool));
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        *text = apr_pstrdup(pool, (const char *)sqlite3_column_text(statement, 0));
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE ? MC_OK : mc_handle_error(books, what, pool);
    sqlite3_reset(statement);
    return error;
}

#define SET_STATE "INSERT INTO state(name, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

mc_error *
mc_books_set_number(mc_handle *books, const char *name, int64_t number, apr_pool_t *pool)
{
    int64_t none;
    return ask_books(&none, books, pool, SET_STATE " WHERE value IS NOT excluded.value", "ti", name, number);
}

mc_error *
mc_books_set_text(mc_handle *books, const char *name, const char *text, apr_pool_t *pool)
{
    int64_t none;
    return ask_books(&none, books, pool, SET_STATE, "tt", name, text);
}

mc_error *
mc_books_lease(bool *mine, mc_handle *books, const char *holder, apr_int64_t now, apr_pool_t *pool)
{
    const char *other;
    int64_t until;
    *mine = false;
    MC_TRY(mc_books_text(&other, books, MC_BOOKS_HOLDER, pool));
    MC_TRY(mc_books_number(&until, books, MC_BOOKS_UNTIL, pool));
    /* One that ends too far away is of a clock that was set back. */
    if (strcmp(other, holder) == 0 || *other == '\0' || until <= now || until > now + 2 * LEASE) {
        MC_TRY(mc_books_set_text(books, MC_BOOKS_HOLDER, holder, pool));
        MC_TRY(mc_books_set_number(books, MC_BOOKS_UNTIL, now + LEASE, pool));
        *mine = true;
    }
    return MC_OK;
}

mc_error *
mc_books_end_lease(mc_handle *books, const char *holder, apr_pool_t *pool)
{
    const char *other;
    MC_TRY(mc_books_text(&other, books, MC_BOOKS_HOLDER, pool));
    return strcmp(other, holder) != 0 ? MC_OK : mc_books_set_number(books, MC_BOOKS_UNTIL, 0, pool);
}
