/*
 * Overviews of a cube that has been stored with another number of them. The cube counts as one without any until all of
 * them are made: whoever reads it so may do it all the while, and what is cut off can be begun again.
 */
#include <stdlib.h>
#include <string.h>

#include "ingest/cube/cube_plan.h"
#include "ingest/cube/cube_writer.h"
#include "mapcache/trace.h"

typedef struct cube_lift_run {
    const mc_cube *cube;  /* as it is to be */
    const mc_cube *plain; /* without overviews */
    mc_cube_writer *writer;
    apr_array_header_t *dates; /* of mc_cube_date, by t and slot */
    const mc_cube_ingest_options *options;
    mc_cube_report *report;
} cube_lift_run;

static bool
cube_lift_stopped(const cube_lift_run *r)
{
    return r->options->stop != NULL && *r->options->stop != 0;
}

/* A writer for the cube as it is stored, with whatever number of overviews. MC_ERR_CONFIG: it is of another shape. */
static mc_error *
open_writer(cube_lift_run *r, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *first = MC_OK;
    for (int i = -1; i <= mc_cube_overviews_max; i++) { /* the number that is wanted first */
        const mc_cube *stored = i < 0 ? r->cube : mc_cube_with_overviews(r->cube, i, pool);
        apr_pool_t *own;
        apr_pool_create(&own, pool);
        mc_error *error = mc_cube_writer_open(&r->writer, stored, r->options->stop, ctx, own);
        if (error == MC_OK)
            return MC_OK;
        first = first == MC_OK ? mc_error_copy(error, pool) : first;
        bool other = error->kind == MC_ERR_CONFIG;
        error = mc_error_copy(error, pool);
        apr_pool_destroy(own);
        if (!other)
            return error;
    }
    return first;
}

static mc_error *
sign_lifted_cube(const cube_lift_run *r, const mc_cube *as)
{
    MC_TRY(r->writer->ops->sign(r->writer, mc_cube_signature(as, r->writer->pool)));
    MC_TRY(r->writer->ops->commit(r->writer));
    r->writer->cube = as;
    return MC_OK;
}

/* Removes what overviews there are, also those of a run that was cut off. */
static mc_error *
begin_anew(const cube_lift_run *r)
{
    MC_TRY(r->writer->ops->begin(r->writer));
    MC_TRY(r->writer->ops->clear(r->writer, r->cube->shape.rows));
    return sign_lifted_cube(r, r->plain);
}

static int
compare_date_slots(const void *a, const void *b)
{
    const mc_cube_date *one = a, *other = b;
    return one->t != other->t ? (one->t < other->t ? -1 : 1) : (one->slot > other->slot) - (one->slot < other->slot);
}

/* Dates that are made together: of one chunk number, as many as there is memory for what they cover. */
static int
count_dates(const cube_lift_run *r, int first)
{
    const mc_cube_shape *shape = &r->cube->shape;
    const mc_cube_date *dates = (const mc_cube_date *)(const void *)r->dates->elts;
    int64_t most = r->options->memory / 6 / ((int64_t)shape->columns * shape->rows);
    int end = first + 1;
    while (end < r->dates->nelts && dates[end].t == dates[first].t && end - first < most)
        end++;
    return end - first;
}

static mc_error *
make_date_overviews(const cube_lift_run *r, int first, int count, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &r->cube->shape;
    const mc_cube_date *dates = &APR_ARRAY_IDX(r->dates, first, mc_cube_date);
    mc_cube_stack *stacks = apr_pcalloc(pool, sizeof(*stacks) * (size_t)count);
    mc_cube_image *images = apr_pcalloc(pool, sizeof(*images) * (size_t)count); /* each is all of the cube */
    for (int i = 0; i < count; i++) {
        images[i].chunks = (mc_cube_window){ 0, 0, shape->columns, shape->rows };
        stacks[i] = (mc_cube_stack){ .date = dates[i], .images = &images[i], .count = 1 };
    }
    const mc_cube_batch batch = { .stacks = stacks,
                                  .count = count,
                                  .first_t = dates->t,
                                  .end_t = dates->t + 1,
                                  .patch = first > 0 && dates[-1].t == dates->t };
    MC_TRY(r->writer->ops->begin(r->writer));
    MC_TRY(mc_cube_batch_lift(r->writer, r->cube, &batch, r->options, r->report, pool));
    return r->writer->ops->commit(r->writer);
}

static mc_error *
make_cube_overviews(const cube_lift_run *r, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    MC_TRY(begin_anew(r));
    if (r->cube->overview_count == 0) { /* they were only to be removed */
        r->report->dates = r->dates->nelts;
        return MC_OK;
    }
    apr_pool_create(&scratch, pool);
    for (int i = 0, count; i < r->dates->nelts; i += count) {
        if (cube_lift_stopped(r))
            return MC_OK;
        apr_pool_clear(scratch);
        count = count_dates(r, i);
        MC_TRY(make_date_overviews(r, i, count, scratch));
        r->report->dates += count;
        const mc_cube_event event = { .kind = MC_CUBE_COMMITTED, .images = r->report->dates, .of = r->dates->nelts };
        if (r->options->tell != NULL)
            r->options->tell(r->options->baton, &event);
    }
    MC_TRY(r->writer->ops->begin(r->writer));
    return sign_lifted_cube(r, r->cube);
}

mc_error *
mc_cube_make_overviews(mc_cube_report *report, const mc_cube *cube, const mc_cube_ingest_options *options, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_make_overviews");
    cube_lift_run r = { cube, mc_cube_with_overviews(cube, 0, pool), .options = options, .report = report };
    *report = (mc_cube_report){ .bytes_before = -1, .bytes_after = -1 };
    mc_error *error = open_writer(&r, ctx, pool);
    if (cube_lift_stopped(&r)) { /* nothing has been written */
        mc_error_ignore(error);
        return MC_OK;
    }
    MC_TRY(error);
    MC_TRY(cube->ops->bytes(&report->bytes_before, r.writer));
    report->bytes_after = report->bytes_before;
    if (r.writer->cube->overview_count == cube->overview_count)
        return MC_OK;
    MC_TRY(mc_cube_writer_dates(&r.dates, r.writer, pool));
    qsort(r.dates->elts, (size_t)r.dates->nelts, sizeof(mc_cube_date), compare_date_slots);
    error = make_cube_overviews(&r, pool);
    if (error != MC_OK && cube_lift_stopped(&r)) { /* in the middle of a transaction, which is as if it never was */
        mc_error_ignore(error);
        report->bytes_after = -1;
        return MC_OK;
    }
    MC_TRY(error);
    mc_cube_writer_tidy(&report->bytes_after, r.writer);
    return MC_OK;
}
