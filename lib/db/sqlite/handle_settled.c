/*
 * Reading a file in rollback mode costs four calls for its lock, a look for its journal and one for a log, with each
 * transaction: as much as a tile's pages. None of it is needed while nobody writes. That nobody does is seen by the
 * file's stamp, which is taken with each read anyway: it is the same before and after, and its last change is older
 * than the kernel's clock is coarse. And the state is whole: a reader with locks, whom SQLite lets in only when no
 * writer is in the middle of a commit and none was cut off there, has seen that very stamp.
 */
#include "db/sqlite/handle_private.h"

/* Opening a handle costs about as much as so many reads gain. */
enum { READS_BEFORE = 32 };

static bool
is_settled(const mc_stamp *stamp, apr_time_t taken)
{
    return stamp->wal_size < 0 && mc_stamp_settled(stamp, taken);
}

void
mc_handle_settle(mc_handle *reader, const mc_stamp *stamp, apr_time_t taken, const mc_open_options *settled,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    mc_stamp now;
    if (reader->table == NULL || !is_settled(stamp, taken))
        return;
    if (!mc_stamp_equal(stamp, &reader->stamp)) {
        reader->stamp = *stamp;
        reader->stamp_reads = 0;
    }
    if (++reader->stamp_reads < READS_BEFORE)
        return;
    reader->stamp_reads = 0;
    if (!mc_handle_is_local(reader) || !mc_handle_rollback(reader) || !mc_stamp_take(&now, reader->path) ||
        !mc_stamp_equal(&now, stamp))
        return;
    mc_handle *opened;
    if (mc_handle_acquire(&opened, reader->table, reader->path, stamp, settled, ctx, pool) == MC_OK)
        mc_handle_release(opened, true);
}

mc_handle *
mc_handle_take_settled(mc_handles *handles, const char *path, const mc_stamp *stamp, apr_time_t taken,
                       const mc_open_options *settled, mc_ctx *ctx, apr_pool_t *pool)
{
    if (handles == NULL || !is_settled(stamp, taken))
        return NULL;
    mc_handle *found = mc_handles_take_idle(handles, path, stamp, settled, pool);
    if (found == NULL)
        return NULL;
    found->used = apr_time_now();
    mc_handle_bound_wait(found, ctx);
    return found;
}

/* A log would be somebody's who has changed the file's header before. */
bool
mc_handle_was_settled(const mc_handle *handle)
{
    mc_stamp now;
    if (!mc_stamp_take_plain(&now, handle->path))
        return false;
    return mc_stamp_equal(&now, &handle->stamp);
}
