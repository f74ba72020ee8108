/*
 * The run of an ingestion, in rounds. A round is a batch of jobs for all threads: some tiles of the present image are
 * drawn, tiles that have become final are halved and encoded, the next images are decoded. Between two rounds one
 * thread sees what has become final, and hands what is encoded to the writer; no lock is needed.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "ingest/pyramid/bands.h"
#include "ingest/pyramid/ingest_private.h"
#include "ingest/pyramid/writer.h"

#define COMMIT_BYTES ((size_t)32 << 20)
#define COMMIT_TIME (APR_USEC_PER_SEC / 2)
#define PROGRESS_TIME (APR_USEC_PER_SEC / 4)

enum { COMMIT_TILES = 1000, AHEAD_MAX = 8, CHUNK_LEAST = 4, CHUNK_MOST = 128 };

typedef enum job_kind { DECODE, DRAW, FINISH } job_kind;

typedef struct job {
    job_kind kind;
    struct ahead *ahead;      /* DECODE */
    const mc_draw *draw;      /* DRAW */
    mc_partial *tile, *above; /* DRAW, FINISH; above: NULL where there is none */
    mc_tile_write put;        /* FINISH: what it is encoded to */
    bool changed;             /* DRAW */
    apr_interval_time_t spent;
} job;

/* An image that is decoded while others are drawn. */
typedef struct ahead {
    int image; /* -1: free */
    mc_raster_strip window;
    mc_error *error;  /* in `pool` */
    apr_pool_t *pool; /* of its own, as a worker fills it */
} ahead;

typedef struct pyramid_run {
    mc_ingest *ingest;
    mc_ctx *ctx;
    apr_pool_t *pool;
    mc_workers *workers;
    apr_array_header_t *queue; /* mc_partial *: final, from queue_at on */
    int queue_at;
    int chunk; /* tiles of a kind in a round */
    job *jobs;
    int job_count;
    ahead ahead[AHEAD_MAX];
    int ahead_count, next_ahead;
    mc_ingest_writer *writer;
    mc_ingest_writes filling;
    apr_time_t committed, shown;
} pyramid_run;

static bool
ingest_run_stopped(const pyramid_run *run)
{
    const volatile int *stop = run->ingest->plan.stop;
    return stop != NULL && *stop != 0;
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

/* What is wrong with an image is the affair of who wants to draw it. */
static void
open_ahead_window(const mc_ingest *ingest, ahead *ahead)
{
    const mc_raster_info *info = &ingest->images[ahead->image].info;
    ahead->error = mc_raster_strip_open(&ahead->window, info, &ingest->plan.raster, ahead->pool);
}

static mc_error *
do_job(void *baton, int index, mc_ctx *ctx)
{
    pyramid_run *run = baton;
    job *job = &run->jobs[index];
    apr_time_t began = mc_clock_now();
    mc_error *error = MC_OK;
    switch (job->kind) {
    case DECODE:
        open_ahead_window(run->ingest, job->ahead);
        break;
    case DRAW:
        error = mc_draw_tile(&job->changed, job->tile->pixels, job->draw, job->tile->at.x, job->tile->at.y, ctx);
        break;
    case FINISH:
        error = mc_ingest_finish(&job->put, run->ingest, job->tile, job->above, ctx);
        break;
    }
    job->spent = mc_clock_now() - began;
    return error;
}

static job *
add_job(pyramid_run *run, job_kind kind)
{
    job *added = &run->jobs[run->job_count++];
    *added = (job){ .kind = kind };
    return added;
}

static void
count_time(mc_ingest_counts *counts, const job *job)
{
    double seconds = (double)job->spent / APR_USEC_PER_SEC;
    double *const sums[] = { &counts->decode, &counts->draw, &counts->encode };
    *sums[job->kind] += seconds;
}

/* --- what becomes final --------------------------------------------------------------------------------------------
 */

static mc_error *settle_partial_tile(pyramid_run *run, mc_partial *tile);

/* The tile above, held; it learns how many below it are to come when it is made. */
static mc_error *
hold_above(mc_partial **above, pyramid_run *run, const mc_partial *tile)
{
    mc_ingest *ingest = run->ingest;
    const mc_ingest_chain *chain = mc_ingest_chain_of(ingest, tile->at.z);
    bool is_new;
    *above = NULL;
    if (tile->at.z == chain->top)
        return MC_OK;
    int z = tile->at.z - 1, x = tile->at.x / 2, y = tile->at.y / 2;
    MC_TRY(mc_partial_hold(above, &is_new, ingest->partials, z, x, y, run->pool));
    if (is_new)
        (*above)->waiting = mc_ingest_touched_below(ingest, chain, z, x, y);
    return MC_OK;
}

/* One of those below a tile is final; lets go of it. */
static mc_error *
tell_above(pyramid_run *run, mc_partial *above)
{
    if (above == NULL)
        return MC_OK;
    MC_ASSERT(above->waiting > 0);
    mc_partial_let_go(above);
    return --above->waiting == 0 ? settle_partial_tile(run, above) : MC_OK;
}

/* A tile that is final: finished in a later round, or forgotten where no image has data in it. Nobody holds it. */
static mc_error *
settle_partial_tile(pyramid_run *run, mc_partial *tile)
{
    mc_partial *above;
    if (tile->changed) {
        APR_ARRAY_PUSH(run->queue, mc_partial *) = tile;
        return MC_OK;
    }
    MC_TRY(hold_above(&above, run, tile));
    mc_partial_drop(run->ingest->partials, tile);
    return tell_above(run, above);
}

static mc_error *
take_finished(pyramid_run *run, job *job)
{
    mc_ingest *ingest = run->ingest;
    mc_partial *tile = job->tile, *above = job->above;
    mc_ingest_writes *writes = &run->filling;
    APR_ARRAY_PUSH(writes->list, mc_tile_write) = job->put;
    writes->bytes += job->put.data->size;
    if (above != NULL) {
        above->quarters |= (uint8_t)(1U << mc_ingest_quarter(ingest->plan.link->grid, tile->at.x, tile->at.y));
        above->changed = true;
    }
    mc_partial_drop(ingest->partials, tile);
    return tell_above(run, above);
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

static mc_error *
add_finishes(pyramid_run *run)
{
    bool is_new;
    for (int i = 0; i < run->chunk && run->queue_at < run->queue->nelts; i++) {
        mc_partial *tile = APR_ARRAY_IDX(run->queue, run->queue_at, mc_partial *);
        job *job = add_job(run, FINISH);
        run->queue_at++;
        MC_TRY(mc_partial_hold(&tile, &is_new, run->ingest->partials, tile->at.z, tile->at.x, tile->at.y, run->pool));
        job->tile = tile;
        MC_TRY(hold_above(&job->above, run, tile));
    }
    if (run->queue_at == run->queue->nelts) {
        apr_array_clear(run->queue);
        run->queue_at = 0;
    }
    return MC_OK;
}

/* What has been encoded goes to the store if it is enough, or has waited long enough. Only where it is far too much
 * already is the batch before waited for. */
static mc_error *
commit_ingested_tiles(pyramid_run *run)
{
    const mc_ingest_writes *filling = &run->filling;
    bool much = filling->list->nelts >= COMMIT_TILES || filling->bytes >= COMMIT_BYTES;
    bool too_much = filling->list->nelts >= 4 * COMMIT_TILES || filling->bytes >= 2 * COMMIT_BYTES;
    if (filling->list->nelts == 0 || (!much && mc_clock_now() - run->committed < COMMIT_TIME) ||
        (!too_much && mc_ingest_writer_busy(run->writer)))
        return MC_OK;
    run->committed = mc_clock_now();
    return mc_ingest_writer_store(run->writer, &run->filling, run->pool);
}

static void
report_run_progress(pyramid_run *run, bool now)
{
    mc_ingest *ingest = run->ingest;
    if (ingest->plan.progress == NULL || (!now && mc_clock_now() - run->shown < PROGRESS_TIME))
        return;
    run->shown = mc_clock_now();
    ingest->plan.progress(ingest->plan.baton, &ingest->counts);
}

/* Runs the jobs of the round, with those that finish tiles, and sees to what they leave. */
static mc_error *
run_ingest_round(pyramid_run *run)
{
    mc_ingest *ingest = run->ingest;
    mc_ingest_counts *counts = &ingest->counts;
    MC_TRY(add_finishes(run));
    mc_error *error =
        mc_workers_run(run->workers, do_job, run, run->job_count, ingest->plan.threads - 1, run->ctx, run->pool);
    for (int i = 0; i < run->job_count; i++)
        count_time(counts, &run->jobs[i]);
    for (int i = 0; i < run->job_count; i++)
        if (run->jobs[i].kind == FINISH && error == MC_OK) {
            error = take_finished(run, &run->jobs[i]);
        } else if (run->jobs[i].kind == FINISH) {
            mc_buf_unref(run->jobs[i].put.data);
        }
    if (error == MC_OK)
        error = mc_partials_trim(ingest->partials, run->pool);
    if (error == MC_OK)
        error = commit_ingested_tiles(run);
    mc_ingest_writer_count(run->writer, counts);
    counts->peak = mc_partials_peak(ingest->partials);
    counts->spooled = mc_partials_spooled(ingest->partials);
    report_run_progress(run, false);
    return error;
}

static void
begin_round(pyramid_run *run)
{
    run->job_count = 0;
    apr_pool_clear(run->pool);
}

/* --- decoding ahead ----------------------------------------------------------------------------------------------- */

/* The next images, when half of the places are free: so that several threads decode at once. */
static void
add_decodes(pyramid_run *run)
{
    int waiting = 0;
    for (int i = 0; i < run->ahead_count; i++)
        waiting += run->ahead[i].image >= 0;
    if (waiting > run->ahead_count / 2)
        return;
    for (int i = 0; i < run->ahead_count && run->next_ahead < run->ingest->count; i++) {
        ahead *ahead = &run->ahead[i];
        if (ahead->image >= 0)
            continue;
        ahead->image = run->next_ahead++;
        ahead->pool = mc_task_pool_acquire();
        add_job(run, DECODE)->ahead = ahead;
    }
}

static ahead *
ahead_of(pyramid_run *run, int image)
{
    for (int i = 0; i < run->ahead_count; i++)
        if (run->ahead[i].image == image)
            return &run->ahead[i];
    return NULL;
}

static void
release_ahead_image(ahead *ahead)
{
    if (ahead->image < 0)
        return;
    mc_raster_strip_close(&ahead->window);
    mc_task_pool_release(ahead->pool);
    ahead->image = -1;
}

/* --- one image ---------------------------------------------------------------------------------------------------- */

static mc_error *
add_draw(pyramid_run *run, const mc_draw *draw, int x, int y)
{
    bool is_new;
    mc_partial *tile;
    MC_TRY(mc_partial_hold(&tile, &is_new, run->ingest->partials, draw->z, x, y, run->pool));
    job *job = add_job(run, DRAW);
    job->draw = draw;
    job->tile = tile;
    return MC_OK;
}

/* The tiles that have been drawn: those that no later image touches are final. */
static mc_error *
take_drawn(pyramid_run *run, const mc_ingest_chain *chain, int image)
{
    for (int i = 0; i < run->job_count; i++) {
        mc_partial *tile = run->jobs[i].tile;
        if (run->jobs[i].kind != DRAW)
            continue;
        tile->changed = tile->changed || run->jobs[i].changed;
        mc_partial_let_go(tile);
        mc_tile_range block = { tile->at.x, tile->at.y, tile->at.x + 1, tile->at.y + 1 };
        if (!mc_tile_index_any(chain->tile_index, &block, image))
            MC_TRY(settle_partial_tile(run, tile));
    }
    return MC_OK;
}

/* Rounds without drawing, until not more is final than one round can take. */
static mc_error *
keep_up(pyramid_run *run, int most)
{
    while (run->queue->nelts - run->queue_at > most) {
        begin_round(run);
        MC_TRY(run_ingest_round(run));
    }
    return MC_OK;
}

static mc_error *
draw_band(pyramid_run *run, const mc_ingest_band *band, int number, const mc_raster_strip *window)
{
    mc_ingest *ingest = run->ingest;
    const mc_tile_range *range = &band->chain->ranges[number];
    mc_draw draw = { .placement = &ingest->images[number].placement,
                     .window = window,
                     .mode = band->chain->modes[number],
                     .z = band->chain->direct };
    for (int x = range->minx; x < range->maxx && !ingest_run_stopped(run);) {
        begin_round(run);
        add_decodes(run);
        for (int i = 0; i < run->chunk && x < range->maxx; i++, x++)
            MC_TRY(add_draw(run, &draw, x, band->y));
        MC_TRY(run_ingest_round(run));
        MC_TRY(take_drawn(run, band->chain, number));
        MC_TRY(keep_up(run, run->chunk));
    }
    return MC_OK;
}

/* Waits for the image, if it has not been decoded yet. */
static mc_error *
fetch_ahead_image(ahead **ahead, pyramid_run *run, int number)
{
    while ((*ahead = ahead_of(run, number)) == NULL) {
        begin_round(run);
        add_decodes(run);
        MC_TRY(run_ingest_round(run));
    }
    return MC_OK;
}

/* An image that turns out to be bad is an empty one, or the end. */
static mc_error *
handle_ahead_error(pyramid_run *run, ahead *ahead)
{
    mc_ingest *ingest = run->ingest;
    if (ahead->error == MC_OK)
        return MC_OK;
    if (!ingest->plan.skip_bad)
        return mc_error_copy(ahead->error, ingest->pool);
    if (ingest->plan.complain != NULL)
        ingest->plan.complain(ingest->plan.baton, mc_error_chain(ahead->error, ahead->pool));
    ingest->counts.bad++;
    ingest->counts.inputs--;
    ahead->window.rows.height = 0;
    return MC_OK;
}

static mc_error *
ingest_image(pyramid_run *run, int number)
{
    ahead *ahead;
    apr_array_header_t *bands;
    MC_TRY(fetch_ahead_image(&ahead, run, number));
    MC_TRY(handle_ahead_error(run, ahead));
    bool good = ahead->error == MC_OK;
    MC_TRY(mc_ingest_bands(&bands, run->ingest, number, ahead->pool));
    for (int i = 0; i < bands->nelts && !ingest_run_stopped(run); i++) {
        const mc_ingest_band *band = &APR_ARRAY_IDX(bands, i, mc_ingest_band);
        mc_error *error = good ? mc_raster_strip_move(&ahead->window, band->keep, band->end, ahead->pool) : MC_OK;
        if (error != MC_OK)
            return mc_error_copy(error, run->ingest->pool);
        MC_TRY(draw_band(run, band, number, &ahead->window));
    }
    release_ahead_image(ahead);
    run->ingest->counts.done += good && !ingest_run_stopped(run);
    return MC_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static mc_error *
ingest_all_images(pyramid_run *run)
{
    mc_ingest *ingest = run->ingest;
    for (int i = 0; i < ingest->count && !ingest_run_stopped(run); i++)
        MC_TRY(ingest_image(run, i));
    MC_TRY(keep_up(run, 0));
    MC_ASSERT(ingest_run_stopped(run) || mc_partials_count(ingest->partials) == 0);
    MC_TRY(mc_ingest_writer_store(run->writer, &run->filling, run->pool));
    return mc_ingest_writer_wait(run->writer, run->pool);
}

static const char *
scratch_folder(const mc_ingest_plan *plan)
{
    const char *folder = plan->scratch != NULL ? plan->scratch : getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

/* One for each thread, as long as they need no more memory together than the partial tiles. */
static int
images_ahead(const mc_ingest *ingest)
{
    int64_t largest = 1, count = ingest->plan.threads;
    for (int i = 0; i < ingest->count; i++) {
        const mc_raster_info *info = &ingest->images[i].info;
        int64_t size = mc_raster_strip_bytes(info);
        largest = size > largest ? size : largest;
    }
    if (count > ingest->plan.cache_limit / largest)
        count = ingest->plan.cache_limit / largest;
    return count < 1 ? 1 : count > AHEAD_MAX ? AHEAD_MAX : (int)count;
}

static void
set_up_ingest_run(pyramid_run *run, mc_ingest *ingest)
{
    const mc_grid *grid = ingest->plan.link->grid;
    int64_t tile = (int64_t)grid->tile_width * grid->tile_height * 4, chunk = ingest->plan.cache_limit / (6 * tile);
    run->chunk = chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk > CHUNK_MOST ? CHUNK_MOST : (int)chunk;
    run->queue = apr_array_make(ingest->pool, 256, sizeof(mc_partial *));
    run->jobs = apr_palloc(ingest->pool, sizeof(job) * (size_t)(2 * run->chunk + AHEAD_MAX));
    run->ahead_count = images_ahead(ingest);
    for (int i = 0; i < AHEAD_MAX; i++)
        run->ahead[i].image = -1;
    run->committed = run->shown = mc_clock_now();
    ingest->partials = mc_partials_create(grid->tile_width, grid->tile_height, ingest->plan.cache_limit,
                                          scratch_folder(&ingest->plan), ingest->pool);
    run->filling = mc_ingest_writes_create(ingest->pool);
    apr_pool_create(&run->pool, ingest->pool);
}

/* Two ingestions would each read what the other is about to change. */
static mc_error *
lock_ingest_grid(mc_lock **lock, const mc_ingest *ingest, mc_ctx *ctx)
{
    const mc_tileset *tileset = ingest->plan.tileset;
    const char *grid = ingest->plan.link->grid->name;
    *lock = NULL;
    if (tileset->locker == NULL)
        return MC_OK;
    const char *name = apr_pstrcat(ingest->pool, "ingest-", tileset->name, "-", grid, NULL);
    MC_TRY(mc_locker_try(lock, tileset->locker, name, ctx, ingest->pool));
    if (*lock != NULL)
        return MC_OK;
    return mc_error_create(ingest->pool, MC_ERR_UNAVAILABLE, "another ingestion into tileset \"%s\" is under way",
                           tileset->name);
}

mc_error *
mc_ingest_run(mc_ingest *ingest, mc_ctx *ctx)
{
    pyramid_run run = { .ingest = ingest, .ctx = ctx };
    mc_lock *held;
    MC_TRY(lock_ingest_grid(&held, ingest, ctx));
    set_up_ingest_run(&run, ingest);
    mc_error *error = mc_workers_create(&run.workers, ingest->plan.threads - 1, ingest->pool);
    if (error == MC_OK)
        error = mc_ingest_writer_create(&run.writer, ingest->plan.tileset, ctx, ingest->pool);
    if (error == MC_OK) {
        error = mc_error_copy(ingest_all_images(&run), ingest->pool);
        mc_error *late = mc_ingest_writer_wait(run.writer, ingest->pool);
        error = error == MC_OK ? late : error;
        mc_ingest_writer_count(run.writer, &ingest->counts);
        report_run_progress(&run, true);
    }
    mc_ingest_writer_destroy(run.writer);
    mc_workers_destroy(run.workers);
    for (int i = 0; i < AHEAD_MAX; i++)
        release_ahead_image(&run.ahead[i]);
    mc_ingest_writes_release(&run.filling);
    if (held != NULL)
        mc_lock_release(held);
    return error;
}
