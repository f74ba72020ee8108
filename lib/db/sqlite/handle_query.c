/* Reading of an open file: a number, and all that a reader's handle is acquired for at once. */
#include <errno.h>
#include <string.h>

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

mc_error *
mc_handle_look(bool *present, mc_stamp *stamp, const char *path, apr_pool_t *pool)
{
    char text[128];
    *present = mc_stamp_take(stamp, path);
    if (*present || mc_stamp_absent(errno))
        return MC_OK;
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, text, sizeof(text)));
    return mc_error_wrap(pool, cause, MC_ERR_IO, "a store cannot be looked at");
}

mc_error *
mc_handle_read(mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
               mc_handle_work *work, void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int tries = 1;; tries++) {
        mc_handle *handle;
        MC_TRY(mc_handle_acquire(&handle, handles, path, stamp, how, ctx, pool));
        mc_error *error = work(baton, handle);
        bool cut_off = error != MC_OK && mc_handle_cut_off(handle);
        mc_handle_release(handle, error == MC_OK);
        if (!cut_off || tries == MC_HANDLE_TRIES)
            return error;
        mc_error_ignore(error);
    }
}
