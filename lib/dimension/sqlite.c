/*
 * Dimensions whose values stand in an SQLite file, the catalogue (docs/reference/configuration.md 7.4): "sqlite", and
 * "time", which is the same with times. Statements are prepared once for each open file and kept with it in the
 * process's table of handles.
 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "dimension/query.h"
#include "dimension/sqlite_clock.h"

typedef struct sqlite_config {
    mc_query_config query; /* first: the rows of MC_QUERY_KEYS count from here */
    const char *dbfile;
    const char *insert_query;
} sqlite_config;

static const mc_key sqlite_keys[] = {
    MC_QUERY_KEYS,
    MC_KEY_TEXT("dbfile", offsetof(sqlite_config, dbfile),
                "The SQLite file that is asked; the server opens it for reading only.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
    MC_QUERY_INSERT_KEY(offsetof(sqlite_config, insert_query)),
    MC_KEY_END,
};

/* --- one statement ---------------------------------------------------------------------------------------------- */

/* Whole seconds as an integer, as MapCache does it; others as a number with a fraction. */
static int
bind_dimension_time(sqlite3_stmt *statement, int at, bool timed, int64_t time_us)
{
    int64_t seconds;
    if (!timed)
        return SQLITE_OK;
    if (mc_query_whole_time(&seconds, time_us, APR_USEC_PER_SEC))
        return sqlite3_bind_int64(statement, at, seconds);
    return sqlite3_bind_double(statement, at, (double)time_us / APR_USEC_PER_SEC);
}

static int
bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    return text == NULL ? SQLITE_OK : sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static int
bind_query_parameter(sqlite3_stmt *statement, int at, mc_query_parameter parameter, const mc_query_binds *binds)
{
    switch (parameter) {
    case MC_QUERY_TILESET:
        return bind_text(statement, at, binds->tileset);
    case MC_QUERY_DIM:
        return bind_text(statement, at, binds->dim);
    case MC_QUERY_GRIDSRS:
        return bind_text(statement, at, binds->gridsrs);
    case MC_QUERY_MINX:
        return sqlite3_bind_double(statement, at, binds->extent.minx);
    case MC_QUERY_MAXX:
        return sqlite3_bind_double(statement, at, binds->extent.maxx);
    case MC_QUERY_MINY:
        return sqlite3_bind_double(statement, at, binds->extent.miny);
    case MC_QUERY_MAXY:
        return sqlite3_bind_double(statement, at, binds->extent.maxy);
    case MC_QUERY_START:
        return bind_dimension_time(statement, at, binds->timed, binds->start_us);
    case MC_QUERY_END:
        return bind_dimension_time(statement, at, binds->timed, binds->end_us);
    case MC_QUERY_PARAMETER_COUNT:
        break;
    }
    return SQLITE_OK;
}

/* The positions of the parameters in one statement; 0: it does not stand there. */
typedef struct positions {
    int at[MC_QUERY_PARAMETER_COUNT];
} positions;

static positions
find_parameters(sqlite3_stmt *statement)
{
    positions found;
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++)
        found.at[i] = sqlite3_bind_parameter_index(statement, mc_query_parameter_names[i]);
    return found;
}

/* The failure that the handle shows, in the words of the dimension. */
static mc_error *
sqlite_dimension_error(const mc_query_dimension *dimension, mc_handle *handle, apr_pool_t *pool)
{
    if ((sqlite3_errcode(mc_handle_db(handle)) & 0xff) == SQLITE_INTERRUPT)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the catalogue of dimension %s has no answer in time",
                               dimension->base.name);
    mc_error *cause = mc_handle_error(handle, "the catalogue's statement failed", pool);
    return mc_error_wrap(pool, cause, cause->kind, "the catalogue of dimension %s cannot be asked",
                         dimension->base.name);
}

static mc_error *
answer_one(sqlite3_stmt *statement, mc_query_dimension *dimension, const positions *positions,
           const mc_query_binds *binds, mc_query_rows *rows, mc_handle *handle, apr_pool_t *pool)
{
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++)
        if (positions->at[i] != 0 &&
            bind_query_parameter(statement, positions->at[i], (mc_query_parameter)i, binds) != SQLITE_OK)
            return sqlite_dimension_error(dimension, handle, pool);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        MC_TRY(mc_query_rows_add(rows, text, text == NULL ? 0 : strlen(text)));
    }
    if (code != SQLITE_DONE)
        return sqlite_dimension_error(dimension, handle, pool);
    sqlite3_reset(statement);
    return MC_OK;
}

static mc_error *
answer_sqlite_batch(mc_query_dimension *dimension, mc_query_batch *batch, mc_handle *handle, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    mc_error *error = mc_handle_statement(&statement, handle, batch->statement->text, pool);
    if (error != MC_OK)
        return sqlite_dimension_error(dimension, handle, pool);
    if (sqlite3_column_count(statement) == 0 && batch->kind != MC_QUERY_INSERT)
        return mc_error_create(pool, MC_ERR_CONFIG, "a query of dimension %s gives no rows", dimension->base.name);
    positions positions = find_parameters(statement);
    for (int i = 0; i < batch->count && error == MC_OK; i++)
        error = answer_one(statement, dimension, &positions, &batch->binds[i], batch->rows[i], handle, pool);
    sqlite3_reset(statement);
    return error;
}

/* --- the dimension ---------------------------------------------------------------------------------------------- */

/* Random numbers are no function of the file either. */
static bool
is_random(const char *statement)
{
    for (; *statement != '\0'; statement++)
        if (strncasecmp(statement, "random", 6) == 0)
            return true;
    return false;
}

static mc_error *
ask_sqlite_once(bool *cut_off, mc_query_dimension *base, mc_query_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_handle *handle;
    *cut_off = false;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    mc_open_options how = { .vfs = mc_sqlite_clock(), .write = batch->kind == MC_QUERY_INSERT };
    how.profile = mc_open_options_profile(&how);
    mc_error *error = mc_handle_acquire(&handle, handles, base->path, batch->stamp, &how, ctx, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, error->kind, "the catalogue of dimension %s cannot be opened",
                             base->base.name);
    sqlite3 *db = mc_handle_db(handle);
    unsigned long clock_reads = mc_sqlite_clock_reads();
    bool together = batch->count > 1 && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
    error = answer_sqlite_batch(base, batch, handle, pool);
    *cut_off = error != MC_OK && mc_handle_cut_off(handle);
    if (together) /* nothing was written: however it ends */
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    batch->fleeting = mc_sqlite_clock_reads() != clock_reads || is_random(batch->statement->text);
    mc_handle_release(handle, error == MC_OK);
    return error;
}

/* A handle that was open when a writer was cut off gives no row: others are tried. */
static mc_error *
sqlite_ask(mc_query_dimension *dimension, mc_query_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int tries = 1;; tries++) {
        bool cut_off;
        mc_error *error = ask_sqlite_once(&cut_off, dimension, batch, ctx, pool);
        if (error == MC_OK || !cut_off || tries == MC_HANDLE_TRIES)
            return error;
        mc_error_ignore(error);
    }
}

static mc_dimension *
make_sqlite_dimension(const mc_node *node, bool time, mc_build *build)
{
    sqlite_config config = { 0 };
    mc_query_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, sqlite_keys, node, build);
    if (dimension == NULL)
        return NULL;
    if (!mc_query_set_up(dimension, &config.query, config.dbfile, true, &(mc_query_extras){ NULL, config.insert_query },
                         node, build))
        return NULL;
    dimension->ask = sqlite_ask;
    dimension->base.time = dimension->base.time || time;
    return &dimension->base;
}

static mc_dimension *
sqlite_dimension_from_config(const mc_node *node, mc_build *build)
{
    return make_sqlite_dimension(node, false, build);
}

static mc_dimension *
time_from_config(const mc_node *node, mc_build *build)
{
    return make_sqlite_dimension(node, true, build);
}

const mc_dimension_ops mc_dimension_sqlite = {
    MC_KIND("sqlite", sqlite_keys, sqlite_dimension_from_config, "Values that are asked of an SQLite file."),
    .insert = mc_query_insert,
    MC_QUERY_OPS,
};

const mc_dimension_ops mc_dimension_time = {
    MC_KIND("time", sqlite_keys, time_from_config, "The same as sqlite with time=\"true\"."),
    .insert = mc_query_insert,
    MC_QUERY_OPS,
};
