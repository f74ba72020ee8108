/* What was read of a change log is purged from caches in front, by the process that looks after stored tiles for all.
 */
#include "base/clock.h"
#include "cdn/purgers.h"
#include "changes/changes_private.h"
#include "changes/mark_boxes.h"

/* Microseconds that the place in the log waits for caches in front; later it stays where it is until the next turn. */
#define DELIVERY_TIME (30 * APR_USEC_PER_SEC)

/* The purging of one batch. */
typedef struct batch_purging {
    const mc_log_batch *batch;
    const apr_array_header_t *found; /* mc_log_name */
    mc_purgers *purgers;
    const mc_watch *watch;
    bool delayed;
    int index; /* of the next name */
    apr_pool_t *pool;
} batch_purging;

static mc_error *
purge_ranges(void *baton, const mc_watch_link *link, int z, const mc_tile_range *ranges, int count)
{
    const batch_purging *purging = baton;
    for (int i = 0; i < count; i++) {
        const mc_purged_tiles tiles = { purging->watch->tileset, link->link, z, ranges[i], link->columns, link->rows };
        mc_purgers_add(purging->purgers, purging->watch->cdns, &tiles, purging->delayed);
    }
    return MC_OK;
}

static void
purge_boxes(batch_purging *purging, const mc_watch_table *table, int srid, const mc_box_set *boxes)
{
    mc_error *none = mc_visit_ranges(purging->watch, table, srid, boxes, purge_ranges, purging, purging->pool);
    MC_ASSERT(none == MC_OK); /* adding does not fail */
}

static void
purge_table(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    batch_purging *purging = baton;
    const mc_log_batch *batch = purging->batch;
    const int index = purging->index++;
    purging->watch = watch;
    if (watch->cdns == NULL)
        return;
    if (batch->lost)
        purge_boxes(purging, table, 0, mc_box_set_create_whole(purging->pool));
    for (int i = 0; i < purging->found->nelts; i++) {
        const mc_log_name *name = &APR_ARRAY_IDX(purging->found, i, const mc_log_name);
        for (int j = 0; j < batch->tables->nelts && name->index == index; j++) {
            const mc_log_table *changed = &APR_ARRAY_IDX(batch->tables, j, const mc_log_table);
            if (changed->relation == name->relation)
                purge_boxes(purging, table, changed->srid, changed->boxes);
        }
    }
}

void
mc_changes_purge(mc_changes *changes, const char *connection, const mc_log_batch *batch,
                 const apr_array_header_t *found, bool delayed, apr_pool_t *pool)
{
    batch_purging purging = {
        .batch = batch, .found = found, .purgers = changes->process->purgers, .delayed = delayed, .pool = pool
    };
    if (purging.purgers != NULL && (batch->lost || batch->tables->nelts > 0))
        mc_changes_visit_tables(changes, connection, purge_table, &purging);
}

bool
mc_changes_await_purges(const mc_changes *changes, mc_ctx *ctx)
{
    const apr_time_t deadline = ctx->deadline;
    bool done = true;
    ctx->deadline = mc_clock_now() + DELIVERY_TIME;
    for (int i = 0; i < changes->following_count && changes->process->purgers != NULL; i++) {
        const apr_array_header_t *watches = changes->followings[i].watches;
        for (int j = 0; j < watches->nelts && j < 1; j++) /* those of a configuration have the same caches */
            done =
                mc_purgers_flush(changes->process->purgers, APR_ARRAY_IDX(watches, j, const mc_watch *)->cdns, ctx) &&
                done;
    }
    ctx->deadline = deadline;
    return done;
}

mc_error *
mc_changes_begin_leading(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
                         const apr_array_header_t *found, unsigned number, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_changes *changes = baton;
    (void)ctx;
    pthread_mutex_lock(&changes->lock);
    *done = atomic_load(&changes->number) == number;
    if (*done)
        mc_changes_purge(changes, connection, batch, found, true, pool);
    pthread_mutex_unlock(&changes->lock);
    return MC_OK;
}
