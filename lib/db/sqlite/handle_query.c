/* Queries on an open file that give one number. */
#include "db/sqlite/handles.h"

mc_error *
mc_handle_number(int64_t *number, mc_handle *handle, sqlite3_stmt *statement, const char *what, apr_pool_t *pool)
{
    int code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE ? MC_OK : mc_handle_error(handle, what, pool);
    sqlite3_reset(statement);
    return error;
}
