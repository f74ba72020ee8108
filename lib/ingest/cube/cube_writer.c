/* See cube_writer.h. */
#include "ingest/cube/cube_writer.h"

static bool
cube_writer_stopped(void *baton)
{
    const volatile int *stop = baton;
    return stop != NULL && *stop != 0;
}

mc_error *
mc_cube_writer_open(mc_cube_writer **writer, const mc_cube *cube, const volatile int *stop, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    bool (*abandoned)(void *) = ctx->abandoned;
    void *baton = ctx->abandoned_baton;
    ctx->abandoned = cube_writer_stopped;
    ctx->abandoned_baton = (void *)stop;
    mc_error *error = cube->ops->write(writer, cube, ctx, pool);
    ctx->abandoned = abandoned;
    ctx->abandoned_baton = baton;
    return error;
}

typedef struct known_dates {
    apr_array_header_t *list; /* mc_cube_date */
    const mc_cube *cube;
} known_dates;

/* A row of the store: that its place is one, is for us to see. */
static mc_error *
visit_known_date(void *baton, const mc_cube_date *date)
{
    const known_dates *known = baton;
    const mc_cube *cube = known->cube;
    if (date->t < 0 || date->t > INT32_MAX / cube->shape.chunk_dates - 1 || date->slot < 0 ||
        date->slot >= cube->shape.chunk_dates)
        return mc_error_create(known->list->pool, MC_ERR_CORRUPT,
                               "cube \"%s\": a date's row names chunk %d, slot %d, which there cannot be", cube->name,
                               date->t, date->slot);
    APR_ARRAY_PUSH(known->list, mc_cube_date) = *date;
    return MC_OK;
}

mc_error *
mc_cube_writer_dates(apr_array_header_t **dates, mc_cube_writer *writer, apr_pool_t *pool)
{
    known_dates known = { apr_array_make(pool, 64, sizeof(mc_cube_date)), writer->cube };
    *dates = known.list;
    return writer->ops->writer_dates(writer, visit_known_date, &known);
}

void
mc_cube_writer_tidy(int64_t *bytes, mc_cube_writer *writer)
{
    mc_error *error = writer->ops->tidy(writer);
    if (error == MC_OK)
        error = writer->ops->bytes(bytes, writer);
    if (error == MC_OK)
        return;
    mc_log_error(writer->ctx, MC_LOG_WARN, error);
    *bytes = -1;
}
