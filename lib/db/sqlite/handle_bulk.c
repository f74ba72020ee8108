/* A writer that is going to put many tiles: its file leaves WAL mode before. */
#include "db/sqlite/handle_private.h"

void
mc_handle_bulk(mc_handle *handle, mc_ctx *ctx)
{
    bool lasting = ctx->process != NULL && ctx->process->lasting;
    if (handle->bulk || lasting || handle->journal == MC_JOURNAL_KEPT || handle->journal == MC_JOURNAL_LOGGED)
        return;
    mc_handles_close_readers(handle);
    /* Without waiting: who has the file open in WAL mode, as a reader of our own that came just now, keeps it so. */
    sqlite3_busy_timeout(handle->db, 0);
    /* A journal that persists ends with a write, wherever its folder has been moved. */
    handle->bulk = sqlite3_exec(handle->db, "PRAGMA journal_mode=PERSIST", NULL, NULL, NULL) == SQLITE_OK;
    if (!handle->bulk && !handle->loading)
        mc_log_write(ctx, MC_LOG_INFO, "%s stays in WAL mode while others have it open: each page is written twice",
                     handle->path);
    handle->loading = true;
    mc_handle_bound_wait(handle, ctx);
}
