/* Cubes in SQLite files. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "cube/chunk.h"
#include "cube/store.h"
#include "db/sqlite/handles.h"
#include "mapcache/trace.h"

typedef struct cube_sqlite_config {
    mc_cube_config common; /* first */
    const char *dbfile;
} cube_sqlite_config;

typedef struct sqlite_cube {
    mc_cube cube; /* first */
    const char *path;
    mc_open_options reading, writing;
} sqlite_cube;

static const mc_key sqlite_keys[] = {
    MC_CUBE_KEYS(cube_sqlite_config),
    MC_KEY_TEXT("dbfile", offsetof(cube_sqlite_config, dbfile),
                "The SQLite file, of this cube alone; the first ingestion makes it.",
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED | MC_KEY_FILE),
    MC_KEY_END,
};

static mc_cube *
cube_sqlite_from_config(const mc_node *node, mc_build *build)
{
    /* A chunk of the default size fills a page of 8 KiB, as it does in PostgreSQL. A transaction is as large as an
     * image: of its pages 32 MiB stay in memory. */
    static const mc_pragma pragmas[] = { { "page_size", "8192" }, { "cache_spill", "4000" } };
    cube_sqlite_config config = { 0 };
    if (!mc_config_read(&config, node, sqlite_keys, build->diagnostics))
        return NULL;
    sqlite_cube *cube = apr_pcalloc(build->pool, sizeof(*cube));
    if (!mc_cube_set_up(&cube->cube, &config.common, node, build))
        return NULL;
    mc_cube_sql *sql = mc_cube_statements(&cube->cube, "chunks", MC_CUBE_IN_SQLITE, build->pool);
    cube->cube.ops = &mc_cube_sqlite;
    cube->cube.sql = sql;
    cube->path = config.dbfile;
    cube->reading.profile = mc_open_options_profile(&cube->reading);
    cube->writing = (mc_open_options){ .write = true,
                                       .journal = MC_JOURNAL_LOGGED,
                                       .create = sql->create,
                                       .pragmas = pragmas,
                                       .pragma_count = sizeof(pragmas) / sizeof(pragmas[0]) };
    cube->writing.profile = mc_open_options_profile(&cube->writing);
    return &cube->cube;
}

/* ---- statements */

static mc_error *
cube_sqlite_error(const mc_cube *cube, mc_handle *handle, apr_pool_t *pool)
{
    if ((sqlite3_errcode(mc_handle_db(handle)) & 0xff) == SQLITE_INTERRUPT)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "cube \"%s\" has no answer in time", cube->name);
    mc_error *cause = mc_handle_error(handle, "a cube's statement failed", pool);
    return mc_error_wrap(pool, cause, cause->kind, "cube \"%s\": its file cannot do what is asked", cube->name);
}

static mc_error *
prepare_cube_statement(sqlite3_stmt **statement, const mc_cube *cube, mc_handle *handle, const char *sql,
                       apr_pool_t *pool)
{
    return mc_handle_statement(statement, handle, sql, pool) == MC_OK ? MC_OK : cube_sqlite_error(cube, handle, pool);
}

typedef mc_error *take_row(void *baton, sqlite3_stmt *row);

/* Runs a statement whose values are bound to its end. */
static mc_error *
step_cube_statement(sqlite3_stmt *statement, const mc_cube *cube, mc_handle *handle, take_row *take, void *baton,
                    apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    int code = SQLITE_DONE;
    while (error == MC_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        error = take == NULL ? MC_OK : take(baton, statement);
    if (error == MC_OK && code != SQLITE_DONE)
        error = cube_sqlite_error(cube, handle, pool);
    sqlite3_reset(statement);
    return error;
}

static mc_error *
run_cube_statement(const mc_cube *cube, mc_handle *handle, const char *sql, take_row *take, void *baton,
                   apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_statement(&statement, cube, handle, sql, pool));
    return step_cube_statement(statement, cube, handle, take, baton, pool);
}

/* To the parameters from `first` on. */
static void
bind_cube_ints(sqlite3_stmt *statement, int first, const int *values, int count)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int(statement, first + i, values[i]);
}

typedef struct sqlite_text {
    const char *text;
    apr_pool_t *pool;
} sqlite_text;

static mc_error *
visit_signature_row(void *baton, sqlite3_stmt *row)
{
    sqlite_text *t = baton;
    const char *found = (const char *)sqlite3_column_text(row, 0);
    t->text = found == NULL ? t->text : apr_pstrdup(t->pool, found);
    return MC_OK;
}

static mc_error *
check_sqlite_signature(const mc_cube *cube, mc_handle *handle, apr_pool_t *pool)
{
    sqlite_text found = { "nothing", pool };
    MC_TRY(run_cube_statement(cube, handle, cube->sql->signature, visit_signature_row, &found, pool));
    return mc_cube_check_signature(cube, found.text, pool);
}

/* ---- reading */

typedef struct sqlite_reading {
    mc_cube_take_piece *piece; /* one of them */
    mc_cube_take_date *date;
    void *baton;
    bool other_shape;
    apr_pool_t *pool;
} sqlite_reading;

static mc_error *
visit_cube_row(void *baton, sqlite3_stmt *row)
{
    sqlite_reading *r = baton;
    r->other_shape = sqlite3_column_int(row, 0) != 1;
    if (r->other_shape)
        return mc_error_create(r->pool, MC_ERR_CONFIG, "the store has another shape");
    if (r->piece == NULL) {
        mc_cube_date date = { sqlite3_column_int64(row, 1), sqlite3_column_int(row, 2), sqlite3_column_int(row, 3),
                              sqlite3_column_int(row, 4) };
        return r->date(r->baton, &date);
    }
    mc_cube_piece piece = { .time_us = sqlite3_column_int64(row, 1),
                            .slot = sqlite3_column_int(row, 2),
                            .stored = sqlite3_column_type(row, 3) == SQLITE_INTEGER };
    if (piece.stored) {
        piece.y = sqlite3_column_int(row, 3);
        piece.x = sqlite3_column_int(row, 4);
        piece.cover = sqlite3_column_blob(row, 5);
        piece.cover_size = (size_t)sqlite3_column_bytes(row, 5);
        piece.data = sqlite3_column_blob(row, 6);
        piece.data_size = (size_t)sqlite3_column_bytes(row, 6);
    }
    return r->piece(r->baton, &piece);
}

/* Dates alone, or the pieces of a window: what more parameters there are says which. */
static mc_error *
ask_handle(sqlite_reading *r, const mc_cube *cube, const mc_cube_query *query, mc_handle *handle)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_statement(&statement, cube, handle,
                                  r->piece != NULL ? cube->sql->read[query->level] : cube->sql->dates, r->pool));
    sqlite3_bind_text(statement, 1, mc_cube_signature(cube, r->pool), -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, query->span.start_us);
    sqlite3_bind_int64(statement, 3, query->span.end_us);
    sqlite3_bind_int(statement, 4, query->most);
    if (r->piece != NULL) {
        mc_cube_window chunks = mc_cube_window_chunks(mc_cube_level(cube, query->level), &query->window);
        const int rest[] = { chunks.y0, chunks.y1, chunks.x0, chunks.x1, query->window.y0, query->window.y1 };
        bind_cube_ints(statement, 5, rest, 6);
    }
    mc_error *error = step_cube_statement(statement, cube, handle, visit_cube_row, r, r->pool);
    if (!r->other_shape)
        return error;
    MC_TRY(check_sqlite_signature(cube, handle, r->pool));
    return mc_cube_reshaped_error(cube, r->pool);
}

static mc_error *
query_cube_once(bool *cut_off, sqlite_reading *r, const mc_cube *base, const mc_cube_query *query, mc_ctx *ctx)
{
    const sqlite_cube *cube = (const sqlite_cube *)base;
    mc_handle *handle;
    mc_stamp stamp;
    *cut_off = r->other_shape = false;
    bool present;
    MC_TRY(mc_handle_look(&present, &stamp, cube->path, r->pool));
    if (!present)
        return MC_OK; /* nobody has written to it */
    mc_error *error = mc_handle_acquire(&handle, ctx->process == NULL ? NULL : ctx->process->handles, cube->path,
                                        &stamp, &cube->reading, ctx, r->pool);
    if (error != MC_OK)
        return mc_error_wrap(r->pool, error, error->kind, "cube \"%s\" cannot be opened", base->name);
    error = ask_handle(r, base, query, handle);
    bool unmade = error != MC_OK && mc_handle_lacks_table(handle); /* the first ingestion is about to, or was cut off */
    *cut_off = error != MC_OK && mc_handle_cut_off(handle);
    mc_handle_release(handle, error == MC_OK);
    if (unmade) {
        mc_error_ignore(error);
        return MC_OK;
    }
    return error;
}

/* A handle that was open when a writer was cut off gives no row: others are tried. */
static mc_error *
query_cube_file(sqlite_reading *r, const mc_cube *cube, const mc_cube_query *query, mc_ctx *ctx)
{
    for (int tries = 1;; tries++) {
        bool cut_off;
        mc_error *error = query_cube_once(&cut_off, r, cube, query, ctx);
        if (error == MC_OK || !cut_off || tries == MC_HANDLE_TRIES)
            return error;
        mc_error_ignore(error);
    }
}

static mc_error *
sqlite_read(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_piece *take, void *baton, mc_ctx *ctx,
            apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_sqlite_read");
    sqlite_reading r = { .piece = take, .baton = baton, .pool = pool };
    return query_cube_file(&r, cube, query, ctx);
}

static mc_error *
sqlite_dates(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_date *take, void *baton, mc_ctx *ctx,
             apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_sqlite_dates");
    sqlite_reading r = { .date = take, .baton = baton, .pool = pool };
    return query_cube_file(&r, cube, query, ctx);
}

/* ---- writing */

typedef struct sqlite_writer {
    mc_cube_writer writer; /* first */
    mc_handle *handle;     /* NULL once it is given back */
    int64_t version;       /* of the file, as PRAGMA data_version tells what others have committed */
    apr_time_t patience;   /* until when another writer is waited for */
} sqlite_writer;

/* Microseconds that another writer is waited for, and milliseconds between two looks. */
#define PATIENCE (60 * APR_USEC_PER_SEC)
enum { LOOK_AGAIN = 10 };

/* SQLite's busy handler: as its own timeout, but for who does not want to wait any more. */
static int
wait_for_writer(void *baton, int turns)
{
    sqlite_writer *w = baton;
    mc_ctx *ctx = w->writer.ctx;
    if (turns == 0)
        w->patience = mc_clock_now() + mc_ctx_remaining(ctx, PATIENCE);
    if (mc_clock_now() >= w->patience || mc_ctx_abandoned(ctx))
        return 0;
    sqlite3_sleep(LOOK_AGAIN);
    return 1;
}

static mc_error *
visit_cube_number_row(void *baton, sqlite3_stmt *row)
{
    *(int64_t *)baton = sqlite3_column_int64(row, 0);
    return MC_OK;
}

static mc_error *
run_cube_write(sqlite_writer *w, const char *sql, take_row *take, void *baton)
{
    return run_cube_statement(w->writer.cube, w->handle, sql, take, baton, w->writer.pool);
}

/* A second writer of another process may come between two transactions: its dates would take the same slots. */
static mc_error *
sqlite_begin(mc_cube_writer *base)
{
    sqlite_writer *w = (sqlite_writer *)base;
    int64_t version = 0;
    MC_TRY(run_cube_write(w, "BEGIN IMMEDIATE", NULL, NULL));
    MC_TRY(run_cube_write(w, "PRAGMA data_version", visit_cube_number_row, &version));
    if (version == w->version)
        return MC_OK;
    return mc_error_create(base->pool, MC_ERR_UNAVAILABLE,
                           "cube \"%s\" has been written to by somebody else meanwhile: begin again", base->cube->name);
}

static mc_error *
sqlite_writer_dates(mc_cube_writer *base, mc_cube_take_date *take, void *baton)
{
    const mc_cube_query all = { .span = { INT64_MIN, INT64_MAX }, .most = INT32_MAX };
    sqlite_reading r = { .date = take, .baton = baton, .pool = base->pool };
    return ask_handle(&r, base->cube, &all, ((sqlite_writer *)base)->handle);
}

typedef struct sqlite_removal {
    mc_cube_take_chunk *take;
    void *baton;
    int t, y;
} sqlite_removal;

static mc_error *
visit_chunk_row(void *baton, sqlite3_stmt *row)
{
    const sqlite_removal *out = baton;
    mc_cube_chunk chunk = { .t = out->t,
                            .y = out->y,
                            .x = sqlite3_column_int(row, 0),
                            .cover = sqlite3_column_blob(row, 1),
                            .cover_size = (size_t)sqlite3_column_bytes(row, 1),
                            .data = sqlite3_column_blob(row, 2),
                            .data_size = (size_t)sqlite3_column_bytes(row, 2) };
    return out->take(out->baton, &chunk);
}

static mc_error *
sqlite_take_out(mc_cube_writer *base, int t, int y, int x0, int x1, bool keep, mc_cube_take_chunk *take, void *baton)
{
    sqlite_writer *w = (sqlite_writer *)base;
    sqlite_removal out = { take, baton, t, y };
    const int values[] = { t, y, x0, x1 };
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_statement(&statement, base->cube, w->handle,
                                  keep ? base->cube->sql->look : base->cube->sql->take_out, base->pool));
    bind_cube_ints(statement, 1, values, 4);
    return step_cube_statement(statement, base->cube, w->handle, visit_chunk_row, &out, base->pool);
}

/* The two halves of a statement that writes; its values are bound between them. */
static mc_error *
prepare_cube_write(sqlite3_stmt **statement, mc_cube_writer *base, const char *sql)
{
    return prepare_cube_statement(statement, base->cube, ((sqlite_writer *)base)->handle, sql, base->pool);
}

static mc_error *
finish_cube_write(sqlite3_stmt *statement, mc_cube_writer *base)
{
    return step_cube_statement(statement, base->cube, ((sqlite_writer *)base)->handle, NULL, NULL, base->pool);
}

static mc_error *
sqlite_clear(mc_cube_writer *base, int y)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_write(&statement, base, base->cube->sql->clear));
    sqlite3_bind_int(statement, 1, y);
    return finish_cube_write(statement, base);
}

/* A statement whose one value is a signature. */
static mc_error *
run_sign(mc_cube_writer *base, const char *sql, const char *signature)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_write(&statement, base, sql));
    sqlite3_bind_text(statement, 1, signature, -1, SQLITE_STATIC);
    return finish_cube_write(statement, base);
}

static mc_error *
sqlite_sign(mc_cube_writer *base, const char *signature)
{
    return run_sign(base, base->cube->sql->resign, signature);
}

static mc_error *
sqlite_put(mc_cube_writer *base, const mc_cube_chunk *chunk)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_write(&statement, base, base->cube->sql->put));
    bind_cube_ints(statement, 1, (const int[]){ chunk->t, chunk->y, chunk->x }, 3);
    if (chunk->cover_size > 0)
        sqlite3_bind_blob(statement, 4, chunk->cover, (int)chunk->cover_size, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 5, chunk->data, (int)chunk->data_size, SQLITE_STATIC);
    return finish_cube_write(statement, base);
}

static mc_error *
sqlite_put_date(mc_cube_writer *base, const mc_cube_date *date)
{
    sqlite3_stmt *statement;
    MC_TRY(prepare_cube_write(&statement, base, base->cube->sql->put_date));
    sqlite3_bind_int64(statement, 1, date->time_us);
    bind_cube_ints(statement, 2, (const int[]){ date->t, date->slot }, 2);
    return finish_cube_write(statement, base);
}

static mc_error *
sqlite_commit(mc_cube_writer *base)
{
    return run_cube_write((sqlite_writer *)base, "COMMIT", NULL, NULL);
}

static mc_error *
sqlite_tidy(mc_cube_writer *base)
{
    return run_cube_write((sqlite_writer *)base, base->cube->sql->tidy, NULL, NULL);
}

static mc_error *
sqlite_size(int64_t *bytes, mc_cube_writer *base)
{
    return run_cube_write((sqlite_writer *)base, base->cube->sql->size, visit_cube_number_row, bytes);
}

static apr_status_t
release_writer_handle(void *data)
{
    sqlite_writer *w = data;
    mc_handle_release(w->handle, false); /* rolls back what was not committed */
    return APR_SUCCESS;
}

static mc_error *
sign_new(sqlite_writer *w)
{
    const mc_cube *cube = w->writer.cube;
    MC_TRY(run_sign(&w->writer, cube->sql->sign, mc_cube_signature(cube, w->writer.pool)));
    MC_TRY(check_sqlite_signature(cube, w->handle, w->writer.pool));
    return run_cube_write(w, "PRAGMA data_version", visit_cube_number_row, &w->version);
}

static mc_error *
sqlite_write(mc_cube_writer **writer, const mc_cube *base, mc_ctx *ctx, apr_pool_t *pool)
{
    const sqlite_cube *cube = (const sqlite_cube *)base;
    sqlite_writer *w = apr_pcalloc(pool, sizeof(*w));
    mc_stamp stamp;
    bool exists = mc_stamp_take(&stamp, cube->path);
    w->writer = (mc_cube_writer){ &mc_cube_sqlite, base, ctx, pool };
    mc_error *error = mc_handle_acquire(&w->handle, ctx->process == NULL ? NULL : ctx->process->handles, cube->path,
                                        exists ? &stamp : NULL, &cube->writing, ctx, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, error->kind, "cube \"%s\" cannot be opened for writing", base->name);
    apr_pool_cleanup_register(pool, w, release_writer_handle, apr_pool_cleanup_null);
    sqlite3_busy_handler(mc_handle_db(w->handle), wait_for_writer, w);
    *writer = &w->writer;
    return sign_new(w);
}

const mc_cube_ops mc_cube_sqlite = {
    .size = sizeof(sqlite_cube),
    MC_CUBE_OPS(sqlite),
};

const mc_cube_kind mc_cube_kind_sqlite = { MC_KIND("sqlite3", sqlite_keys, cube_sqlite_from_config,
                                                   "Images of one area at many dates, as chunks in an SQLite file.") };
