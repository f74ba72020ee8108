/*
 * Images into a cube: threads decode one batch while the caller writes the one before. Each batch is one transaction.
 */
#include "mapcache/cube_ingest.h"

#include <pthread.h>
#include <string.h>

#include "base/workers.h"
#include "ingest/cube/cube_plan.h"
#include "ingest/cube/cube_writer.h"
#include "mapcache/trace.h"

/* Bytes of a batch beyond which larger ones bring nothing. */
#define ENOUGH ((int64_t)64 << 20)

/* One is filled while the other is emptied. */
enum { SPOOLS = 2 };

typedef struct cube_ingest_run {
    mc_cube_plan plan;
    const mc_cube_ingest_options *options;
    mc_cube_report *report;
    mc_ctx *ctx;
    mc_workers *workers;   /* that decode, beside the decoding thread */
    size_t room;           /* of a spool in memory */
    size_t overviews_room; /* of each of two overviews */
    mc_spool spools[SPOOLS];
    mc_cube_image **images; /* of the batch that is decoded */
    int image_count;
    mc_spool *spool;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int decoded, written; /* batches so far; lock */
    bool given_up;        /* the writer has failed: nothing further is decoded; lock */
    mc_error *failure;    /* of decoding as a whole; lock; in `pool` */
    apr_pool_t *pool;     /* of the decoding thread */
    apr_pool_t *words;    /* of images' failures; lock */
    int done;             /* images, for the caller's eyes */
} cube_ingest_run;

static bool
cube_ingest_stopped(const cube_ingest_run *r)
{
    return r->options->stop != NULL && *r->options->stop != 0;
}

static void
send_cube_event(cube_ingest_run *r, mc_cube_event_kind kind, const char *path, const char *message, int64_t time_us)
{
    const mc_cube_event event = { kind, path, message, time_us, r->done, r->plan.image_count };
    if (r->options->tell != NULL)
        r->options->tell(r->options->baton, &event);
}

/* What is left out, in the order of its dates. */
static void
tell_failed(cube_ingest_run *r, const mc_cube_stack *stack)
{
    for (int i = 0; i < stack->count; i++) {
        const mc_error *failure = stack->images[i].failure;
        if (failure != MC_OK)
            send_cube_event(r, MC_CUBE_IMAGE_LEFT_OUT, stack->images[i].input->path,
                            mc_error_chain(failure, r->ctx->pool), stack->date.time_us);
    }
    r->report->left_out += stack->count;
    r->done += stack->count;
    send_cube_event(r, MC_CUBE_DATE_LEFT_OUT, NULL, NULL, stack->date.time_us);
}

/* --- decoding ----------------------------------------------------------------------------------------------------- */

/* A file that cannot be used is its own failure, a scratch file that cannot be written everybody's. */
static mc_error *
decode_one(void *baton, int index, mc_ctx *job_ctx)
{
    cube_ingest_run *r = baton;
    mc_cube_image *image = r->images[index];
    mc_error *error = mc_cube_image_decode(image, &r->plan.cube->shape, r->spool, &r->options->raster, job_ctx->pool);
    if (error != MC_OK && r->spool->memory == NULL && error->kind == MC_ERR_IO)
        return error;
    pthread_mutex_lock(&r->lock);
    image->failure = mc_error_copy(error, r->words);
    pthread_mutex_unlock(&r->lock);
    return MC_OK;
}

static mc_error *
decode_batch(cube_ingest_run *r, mc_cube_batch *batch, mc_spool *spool, mc_ctx *ctx)
{
    bool fits = batch->bytes <= r->room;
    if (spool->memory == NULL || !fits) {
        mc_spool_close(spool);
        MC_TRY(mc_spool_open(spool, fits ? r->room : batch->bytes, fits ? NULL : r->options->scratch, ctx->pool));
        r->report->spooled = r->report->spooled || !fits;
    }
    r->spool = spool;
    r->image_count = 0;
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count; j++)
            r->images[r->image_count++] = &batch->stacks[i].images[j];
    MC_TRY(mc_workers_run(r->workers, decode_one, r, r->image_count, mc_workers_count(r->workers), ctx, ctx->pool));
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count; j++)
            batch->stacks[i].failed = batch->stacks[i].failed || batch->stacks[i].images[j].failure != MC_OK;
    return MC_OK;
}

/* Waits for a spool that has been emptied. False: there is nothing to be done any more. */
static bool
may_decode(cube_ingest_run *r, int index)
{
    pthread_mutex_lock(&r->lock);
    while (!r->given_up && index - r->written >= SPOOLS)
        pthread_cond_wait(&r->changed, &r->lock);
    bool may = !r->given_up;
    pthread_mutex_unlock(&r->lock);
    return may;
}

static void *
decode_cube_batches(void *baton)
{
    cube_ingest_run *r = baton;
    mc_ctx ctx = { .process = r->ctx->process, .log = r->ctx->log };
    mc_error *error = MC_OK;
    apr_pool_create(&ctx.pool, r->pool);
    for (int i = 0; i < r->plan.batches->nelts && error == MC_OK && may_decode(r, i); i++) {
        apr_pool_clear(ctx.pool);
        error = mc_error_copy(
            decode_batch(r, &APR_ARRAY_IDX(r->plan.batches, i, mc_cube_batch), &r->spools[i % SPOOLS], &ctx), r->pool);
        pthread_mutex_lock(&r->lock);
        r->failure = error;
        r->decoded = i + 1;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static mc_error *
wait_for_decoded_batch(cube_ingest_run *r, int index)
{
    pthread_mutex_lock(&r->lock);
    while (r->decoded <= index)
        pthread_cond_wait(&r->changed, &r->lock);
    mc_error *error = r->decoded == index + 1 ? r->failure : MC_OK;
    pthread_mutex_unlock(&r->lock);
    return error;
}

static void
hand_back(cube_ingest_run *r, mc_cube_batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count; j++)
            mc_cube_image_forget(&batch->stacks[i].images[j]);
    pthread_mutex_lock(&r->lock);
    r->written++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void
count_batch(cube_ingest_run *r, const mc_cube_batch *batch)
{
    for (int i = 0; i < batch->count; i++) {
        const mc_cube_stack *stack = &batch->stacks[i];
        if (stack->failed) {
            tell_failed(r, stack);
            continue;
        }
        for (int j = 0; j < stack->count; j++)
            r->report->pixels += (int64_t)stack->images[j].width * stack->images[j].height;
        r->report->images += stack->count;
        r->report->dates += !stack->known;
        r->report->corrected += stack->known;
        r->done += stack->count;
    }
    send_cube_event(r, MC_CUBE_COMMITTED, NULL, NULL, 0);
}

static mc_error *
commit_cube_batch(cube_ingest_run *r, const mc_cube_batch *batch, mc_spool *spool, mc_cube_writer *writer)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, r->ctx->pool);
    mc_error *error = writer->ops->begin(writer);
    if (error == MC_OK)
        error = mc_cube_batch_write(writer, batch, spool, r->overviews_room, r->options->scratch, r->report, pool);
    if (error == MC_OK)
        error = writer->ops->commit(writer);
    apr_pool_destroy(pool);
    return error;
}

static mc_error *
write_cube_batches(cube_ingest_run *r, mc_cube_writer *writer)
{
    for (int i = 0; i < r->plan.batches->nelts && !cube_ingest_stopped(r); i++) {
        mc_cube_batch *batch = &APR_ARRAY_IDX(r->plan.batches, i, mc_cube_batch);
        MC_TRY(wait_for_decoded_batch(r, i));
        if (cube_ingest_stopped(r))
            return MC_OK;
        mc_error *error = commit_cube_batch(r, batch, &r->spools[i % SPOOLS], writer);
        if (error == MC_OK)
            count_batch(r, batch);
        hand_back(r, batch);
        MC_TRY(error);
    }
    return MC_OK;
}

static void
give_up(cube_ingest_run *r)
{
    pthread_mutex_lock(&r->lock);
    r->given_up = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static mc_error *
decode_and_write(cube_ingest_run *r, mc_cube_writer *writer, apr_pool_t *pool)
{
    pthread_t thread;
    int threads = r->options->threads > 0 ? r->options->threads : mc_processors();
    MC_TRY(mc_workers_create(&r->workers, threads - 1, pool));
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->pool = mc_task_pool_acquire();
    r->words = mc_task_pool_acquire();
    r->images = apr_palloc(pool, sizeof(*r->images) * (size_t)(r->plan.image_count + 1));
    mc_error *error;
    if (pthread_create(&thread, NULL, decode_cube_batches, r) == 0) {
        error = write_cube_batches(r, writer);
        give_up(r);
        pthread_join(thread, NULL);
    } else {
        error = mc_error_create(pool, MC_ERR_LIMIT, "the thread that decodes images cannot be started");
    }
    mc_workers_destroy(r->workers);
    error = mc_error_copy(error, pool);
    for (int i = 0; i < r->plan.image_count; i++)
        mc_cube_image_forget(&r->plan.images[i]);
    for (int i = 0; i < SPOOLS; i++)
        mc_spool_close(&r->spools[i]);
    mc_task_pool_release(r->words);
    mc_task_pool_release(r->pool);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    return error;
}

mc_error *
mc_cube_ingest(mc_cube_report *report, const mc_cube *cube, const mc_cube_input *inputs, int count,
               const mc_cube_ingest_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_ingest");
    mc_cube_writer *writer;
    apr_array_header_t *dates;
    /* A third of the memory is for each of the spools, a sixth for each of two overviews. */
    int64_t most = cube->overview_count == 0 ? options->memory / SPOOLS : options->memory / 3;
    int64_t room = most < ENOUGH ? most : ENOUGH;
    cube_ingest_run *r = apr_pcalloc(pool, sizeof(*r));
    *report = (mc_cube_report){ .bytes_before = -1, .bytes_after = -1 };
    *r = (cube_ingest_run){ .options = options,
                            .report = report,
                            .ctx = ctx,
                            .room = (size_t)room,
                            .overviews_room = (size_t)(options->memory / 6) };
    for (int i = 0; i < SPOOLS; i++)
        r->spools[i] = (mc_spool){ NULL, 0, -1 };
    mc_error *error = mc_cube_writer_open(&writer, cube, options->stop, ctx, pool);
    if (cube_ingest_stopped(r)) { /* nothing has been written */
        mc_error_ignore(error);
        return MC_OK;
    }
    MC_TRY(error);
    MC_TRY(cube->ops->bytes(&report->bytes_before, writer));
    MC_TRY(mc_cube_writer_dates(&dates, writer, pool));
    mc_cube_plan_make(&r->plan, cube, inputs, count, dates, r->room, options, pool);
    if (r->plan.largest > r->room && (int64_t)r->plan.largest <= most)
        r->room = r->plan.largest; /* chunks that hold many dates are worth more than other batches' size */
    for (int i = 0; i < r->plan.failed_count; i++)
        tell_failed(r, &r->plan.stacks[r->plan.stack_count + i]);
    MC_TRY(decode_and_write(r, writer, pool));
    mc_cube_writer_tidy(&report->bytes_after, writer);
    return MC_OK;
}
