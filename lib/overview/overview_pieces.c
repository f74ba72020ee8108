/* See overview_pieces.h. */
#include "overview/overview_pieces.h"

enum {
    PIECE_BYTES = 32 << 20, /* of the source that are read at once */
    PIECES_AT_ONCE = 4096,  /* at most */
};

mc_error *
mc_overview_read_pieces(const mc_overview_job *job, mc_overview_rows_visitor *visit, void *baton, apr_pool_t *pool)
{
    int64_t each = PIECE_BYTES / ((int64_t)job->bytes / (job->pieces + 1) + 1);
    apr_array_header_t *rows;
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    each = each < 1 ? 1 : each > PIECES_AT_ONCE ? PIECES_AT_ONCE : each;
    apr_pool_create(&scratch, pool);
    for (int64_t to = job->pieces; error == MC_OK && to > 0; to -= each) {
        mc_overview_tell(job, true, "%d %%", (int)(100 * (job->pieces - to) / job->pieces));
        error = job->source->read(&rows, job, to > each ? to - each : 0, to, scratch);
        if (error == MC_OK)
            error = visit(baton, rows);
        error = mc_error_copy(error, job->pool);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return error;
}
