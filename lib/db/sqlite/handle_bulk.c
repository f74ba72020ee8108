/* A writer that is going to put many tiles: its file leaves WAL mode for as long. */
#include "db/sqlite/handle_private.h"

void
mc_handle_bulk(mc_handle *handle, mc_ctx *ctx)
{
    if (!handle->may_switch || mc_handle_rollback(handle))
        return;
    mc_handles_close_readers(handle);
    int made = mc_bulk_mark_set(handle->path);
    if (made < 0)
        return;
    /* Without waiting: who has the file open in WAL mode, as a reader of our own that came just now, keeps it so. */
    sqlite3_busy_timeout(handle->db, 0);
    if (sqlite3_exec(handle->db, "PRAGMA journal_mode=PERSIST", NULL, NULL, NULL) == SQLITE_OK)
        handle->bulk = true; /* a journal that persists ends with a write, wherever its folder has been moved */
    else if (made == 1)
        mc_bulk_mark_remove(handle->path);
    mc_handle_bound_wait(handle, ctx);
}
