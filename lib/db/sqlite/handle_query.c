/* Queries on an open file: their end by the deadline, and those that give one number. */
#include "base/clock.h"
#include "db/sqlite/handles.h"

/* Steps of SQLite's virtual machine between two looks at the deadline: some ten microseconds. */
enum { STEPS_BETWEEN_LOOKS = 2000 };

/* SQLite's progress handler. */
static int
is_query_over(void *baton)
{
    const mc_ctx *ctx = baton;
    return mc_ctx_abandoned(ctx) || (ctx->deadline != 0 && mc_clock_now() > ctx->deadline);
}

void
mc_handle_watch(mc_handle *handle, const mc_ctx *ctx)
{
    if (ctx != NULL)
        sqlite3_progress_handler(mc_handle_db(handle), STEPS_BETWEEN_LOOKS, is_query_over, (void *)ctx);
    else
        sqlite3_progress_handler(mc_handle_db(handle), 0, NULL, NULL);
}

mc_error *
mc_handle_number(int64_t *number, mc_handle *handle, sqlite3_stmt *statement, const char *what, apr_pool_t *pool)
{
    int code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE ? MC_OK : mc_handle_error(handle, what, pool);
    sqlite3_reset(statement);
    return error;
}
