/* How long the user of a handle waits: for other processes, until the request's deadline or until its client has gone.
 */
#include "base/clock.h"
#include "db/sqlite/handle_private.h"

static const int64_t BUSY_AT_MOST_US = 60 * APR_USEC_PER_SEC;

bool
mc_handle_is_abandoned(const mc_handle *handle)
{
    return handle->abandoned != NULL && handle->abandoned(handle->abandoned_baton);
}

/* SQLite's busy handler: there is nothing to sleep on until another process lets go of a file. 0: it has been enough.
 */
static int
wait_for_others(void *baton, int count)
{
    static const int pauses_ms[] = { 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100 };
    enum { PAUSES = sizeof(pauses_ms) / sizeof(*pauses_ms) };
    const mc_handle *handle = baton;
    apr_interval_time_t left = handle->patience - mc_clock_now();
    if (left <= 0 || mc_handle_is_abandoned(handle))
        return 0;
    int pause = pauses_ms[count < PAUSES ? count : PAUSES - 1];
    sqlite3_sleep(left < pause * 1000 ? (int)(left / 1000) + 1 : pause);
    return 1;
}

void
mc_handle_bound_wait(mc_handle *handle, mc_ctx *ctx)
{
    handle->patience = mc_clock_now() + mc_ctx_remaining(ctx, BUSY_AT_MOST_US);
    handle->abandoned = ctx->abandoned;
    handle->abandoned_baton = ctx->abandoned_baton;
    sqlite3_busy_handler(handle->db, wait_for_others, handle);
}
