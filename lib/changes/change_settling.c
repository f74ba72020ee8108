/* What was read of a change log becomes durable: stored tiles that are still old are removed. */
#include "changes/changes_private.h"
#include "changes/mark_boxes.h"

/* The settling of one batch. */
typedef struct batch_settling {
    const mc_log_batch *batch;
    const apr_array_header_t *found; /* mc_log_name */
    const mc_box_set *everything;
    apr_time_t time, seen, lost;
    int index; /* of the next name */
    const mc_watch *watch;
    mc_ctx *ctx;
    mc_error *error;
    apr_pool_t *pool;
} batch_settling;

static mc_error *
settle_ranges(void *baton, const mc_watch_link *link, int z, const mc_tile_range *ranges, int count)
{
    const batch_settling *settling = baton;
    const mc_watch *watch = settling->watch;
    for (int i = 0; i < count; i++) {
        MC_TRY(mc_ctx_check(settling->ctx, settling->pool));
        MC_TRY(watch->settle(watch, link, z, &ranges[i], settling->time, settling->ctx, settling->pool));
    }
    return MC_OK;
}

static void
settle_table(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    batch_settling *settling = baton;
    const mc_log_batch *batch = settling->batch;
    int index = settling->index++;
    settling->watch = watch;
    settling->time = settling->lost;
    if (settling->error == MC_OK && batch->lost)
        settling->error =
            mc_visit_ranges(watch, table, 0, settling->everything, settle_ranges, settling, settling->pool);
    settling->time = settling->seen;
    for (int i = 0; i < settling->found->nelts; i++) {
        const mc_log_name *name = &APR_ARRAY_IDX(settling->found, i, const mc_log_name);
        for (int j = 0; j < batch->tables->nelts && name->index == index && settling->error == MC_OK; j++) {
            const mc_log_table *changed = &APR_ARRAY_IDX(batch->tables, j, const mc_log_table);
            if (changed->relation == name->relation)
                settling->error = mc_visit_ranges(watch, table, changed->srid, changed->boxes, settle_ranges, settling,
                                                  settling->pool);
        }
    }
}

/* What is followed now, taken: the lock is not held while tiles are removed. NULL: it has another number. */
static mc_changes *
copy_followed(mc_changes *changes, unsigned number, apr_pool_t *pool)
{
    mc_changes *copy = apr_pcalloc(pool, sizeof(*copy));
    pthread_mutex_lock(&changes->lock);
    bool same = atomic_load(&changes->number) == number;
    copy->process = changes->process;
    copy->following_count = same ? changes->following_count : 0;
    for (int i = 0; i < copy->following_count; i++) {
        copy->followings[i] = changes->followings[i];
        copy->followings[i].owner->take(copy->followings[i].owner->thing);
    }
    pthread_mutex_unlock(&changes->lock);
    return same ? copy : NULL;
}

mc_error *
mc_changes_settle(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
                  const apr_array_header_t *found, unsigned number, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_changes *changes = baton, *copy = copy_followed(changes, number, pool);
    *done = copy != NULL;
    if (copy == NULL)
        return MC_OK;
    batch_settling settling = { .batch = batch,
                                .found = found,
                                .everything = mc_box_set_create_whole(pool),
                                .seen = mc_changes_time_seen(changes, batch),
                                .lost = mc_changes_time_lost(changes, batch),
                                .ctx = ctx,
                                .pool = pool };
    mc_changes_visit_tables(copy, connection, settle_table, &settling);
    /* Once more: a server that was cut off for a while may have handed old tiles to a cache that had been purged. */
    if (settling.error == MC_OK) {
        mc_changes_purge(copy, connection, batch, found, false, pool);
        *done = mc_changes_await_purges(copy, ctx);
    }
    for (int i = 0; i < copy->following_count; i++)
        copy->followings[i].owner->drop(copy->followings[i].owner->thing);
    return settling.error;
}
