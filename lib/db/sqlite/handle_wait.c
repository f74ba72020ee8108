/* How long the user of a handle waits: for other processes, until the request's deadline or until its client has gone.
 */
#include "base/clock.h"
#include "db/sqlite/handle_private.h"

static const int64_t BUSY_AT_MOST_US = 60 * APR_USEC_PER_SEC;

/* What takes no longer than this since the handle was acquired is never interrupted: a tile that a late request has
 * rendered is stored. */
static const int64_t GRACE_US = 100 * 1000;

static const int64_t BETWEEN_LOOKS_US = 1000; /* at deadline and client */

/* Steps of SQLite's virtual machine between two looks at the clock: some microseconds. */
enum { STEPS_BETWEEN_LOOKS = 500 };

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

/* SQLite's progress handler: whatever a file has in it, as a view that has no end, ends here. */
static int
is_handle_overdue(void *baton)
{
    mc_handle *handle = baton;
    if (handle->deadline == 0 && handle->abandoned == NULL)
        return 0;
    apr_time_t now = mc_clock_now();
    if (now < handle->grace)
        return 0;
    handle->grace = now + BETWEEN_LOOKS_US;
    return (handle->deadline != 0 && now > handle->deadline) || mc_handle_is_abandoned(handle);
}

void
mc_handle_watch(mc_handle *handle)
{
    sqlite3_progress_handler(handle->db, STEPS_BETWEEN_LOOKS, is_handle_overdue, handle);
}

void
mc_handle_bound_wait(mc_handle *handle, mc_ctx *ctx)
{
    apr_time_t now = mc_clock_now();
    handle->patience = now + mc_ctx_remaining(ctx, BUSY_AT_MOST_US);
    handle->grace = now + GRACE_US;
    handle->deadline = ctx->deadline;
    handle->abandoned = ctx->abandoned;
    handle->abandoned_baton = ctx->abandoned_baton;
    sqlite3_busy_handler(handle->db, wait_for_others, handle);
}

void
mc_handle_unbound(mc_handle *handle)
{
    handle->abandoned = NULL;
    handle->deadline = 0;
}
