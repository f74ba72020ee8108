/* `mapcache cube`: images into data cubes, what dates they have, and their overviews. */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/common/bar.h"
#include "cli/common/image_inputs.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "cli/common/words.h"
#include "cube_options.h"
#include "mapcache/server.h"
#include "text/time.h"

enum { INTERRUPTED = 2, LEFT_OUT = 3 };

/* All that one run has. */
typedef struct cube_run {
    apr_pool_t *pool;
    mc_cube_options options;
    mc_server *server;
    mc_runtime *runtime;
    mc_log log;
    mc_ctx ctx;
    const mc_cube *cube;
    apr_array_header_t *inputs; /* of mc_cube_input */
    mc_cube_report report;
    apr_time_t began;
    bool bar, drawn; /* a bar is wanted; stands on the line */
} cube_run;

static volatile int stop;

static mc_error *
open_cube(cube_run *run)
{
    mc_diagnostics *diagnostics = mc_diagnostics_create(run->pool);
    MC_TRY(mc_server_load(&run->server, run->options.config, diagnostics, run->pool));
    const mc_config *config = mc_server_config(run->server);
    run->cube = apr_hash_get(config->cubes, run->options.cube, APR_HASH_KEY_STRING);
    if (run->cube == NULL)
        return mc_error_create(run->pool, MC_ERR_CONFIG, "the configuration has no cube \"%s\"", run->options.cube);
    MC_TRY(mc_runtime_create(&run->runtime, config, 1, true, &run->log, run->pool));
    run->ctx = (mc_ctx){ .process = mc_runtime_process(run->runtime), .log = &run->log };
    apr_pool_create(&run->ctx.pool, run->pool);
    return MC_OK;
}

/* --- when images are of ------------------------------------------------------------------------------------------- */

static mc_error *
parse_time(mc_time_span *span, const char *text, apr_pool_t *pool)
{
    const char *wrong = mc_time_parse(span, text, strlen(text), apr_time_now());
    if (wrong == NULL && span->start_us < span->end_us)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" is no time: %s", text,
                           wrong == NULL ? "it ends before it begins" : wrong);
}

/* The time of an image, counted from 0, by --date. */
static mc_error *
time_of(int64_t *time_us, int image, const mc_cube_options *options, apr_pool_t *pool)
{
    mc_time_span span;
    MC_TRY(parse_time(&span, options->date, pool));
    *time_us = span.start_us;
    const char *wrong = options->step == NULL ? NULL : mc_time_step(time_us, options->step, image);
    return wrong == NULL
               ? MC_OK
               : mc_error_create(pool, MC_ERR_CONFIG, "--date %s/%s: %s", options->date, options->step, wrong);
}

static mc_error *
add_cube_input_group(cube_run *run, const mc_ingest_group *group)
{
    const mc_cube_options *options = &run->options;
    mc_time_span span = { 0, 0 };
    if (group->value == NULL && options->date == NULL)
        return mc_error_create(run->pool, MC_ERR_CONFIG, "%s: nothing says when it is of (--time, --date)",
                               APR_ARRAY_IDX(group->paths, 0, const char *));
    if (group->value != NULL)
        MC_TRY(parse_time(&span, group->value, run->pool));
    for (int i = 0; i < group->paths->nelts; i++) {
        if (group->value == NULL)
            MC_TRY(time_of(&span.start_us, i, options, run->pool));
        mc_cube_input input = { .path = APR_ARRAY_IDX(group->paths, i, const char *),
                                .time_us = span.start_us,
                                .placed = options->placed,
                                .left = options->at[0],
                                .top = options->at[1] };
        APR_ARRAY_PUSH(run->inputs, mc_cube_input) = input;
    }
    return MC_OK;
}

static mc_error *
find_inputs(cube_run *run)
{
    const mc_cube_options *options = &run->options;
    apr_array_header_t *groups;
    MC_TRY(mc_ingest_inputs(&groups, options->paths, options->list, options->time, run->pool));
    run->inputs = apr_array_make(run->pool, 64, sizeof(mc_cube_input));
    for (int i = 0; i < groups->nelts; i++)
        MC_TRY(add_cube_input_group(run, &APR_ARRAY_IDX(groups, i, mc_ingest_group)));
    return run->inputs->nelts > 0 ? MC_OK : mc_error_create(run->pool, MC_ERR_CONFIG, "no images were named");
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static void
print_cube_event_json(const cube_run *run, const mc_cube_event *event)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    switch (event->kind) {
    case MC_CUBE_IMAGE_LEFT_OUT:
        mc_json_string(line.json, "left_out", event->path);
        mc_json_string(line.json, "reason", event->message);
        break;
    case MC_CUBE_DATE_LEFT_OUT:
        mc_json_string(line.json, "left_out_time", mc_time_text(event->time_us, line.pool));
        break;
    case MC_CUBE_COMMITTED:
        mc_json_integer(line.json, "images", event->images);
        mc_json_integer(line.json, "of", event->of);
        mc_json_decimals(line.json, "seconds", (double)(mc_clock_now() - run->began) / APR_USEC_PER_SEC, 2);
        break;
    }
    mc_cli_json_line_end(&line);
}

static void
print_cube_event(void *baton, const mc_cube_event *event)
{
    cube_run *run = baton;
    const mc_cube_options *options = &run->options;
    mc_cli_clear_bar(&run->drawn);
    if (options->json && !(event->kind == MC_CUBE_COMMITTED && options->quiet))
        print_cube_event_json(run, event);
    else if (!options->json && event->kind == MC_CUBE_IMAGE_LEFT_OUT)
        fprintf(stderr, "mapcache cube: left out: %s\n", event->message);
    if (event->kind == MC_CUBE_COMMITTED && run->bar) {
        printf("\r%d of %d", event->images, event->of);
        run->drawn = true;
    }
    fflush(stdout);
}

static void
report_json(const cube_run *run, const char *error, int status, double seconds)
{
    const mc_cube_report *r = &run->report;
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "cube", run->options.cube);
    mc_json_integer(line.json, "status", status);
    mc_json_string(line.json, "error", error);
    mc_json_integer(line.json, "stored", r->images);
    mc_json_integer(line.json, "left_out", r->left_out);
    mc_json_integer(line.json, "dates", r->dates);
    mc_json_integer(line.json, "corrected", r->corrected);
    mc_json_integer(line.json, "chunks", r->chunks);
    mc_json_integer(line.json, "rewritten", r->rewritten);
    mc_json_integer(line.json, "pixels", r->pixels);
    mc_json_integer(line.json, "bytes_before", r->bytes_before);
    mc_json_integer(line.json, "bytes_after", r->bytes_after);
    mc_json_boolean(line.json, "spooled", r->spooled);
    mc_json_decimals(line.json, "seconds", seconds, 3);
    mc_cli_json_line_end(&line);
}

static void
print_cube_date_json(const char *time)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "time", time);
    mc_cli_json_line_end(&line);
}

static void
report_text(const cube_run *run, bool images, double seconds)
{
    const mc_cube_report *r = &run->report;
    if (!images)
        printf(r->dates == 0 && stop == 0 ? "the cube has its %d overviews already\n"
                                          : "%d overviews of %d times made in %.2f s: %lld chunks written\n",
               run->cube->overview_count, r->dates, seconds, (long long)r->chunks);
    else
        printf("%d images stored in %.2f s (%.1f/s): %d new times, %d corrected; %lld chunks written, %lld of them "
               "rewritten\n",
               r->images, seconds, seconds > 0 ? r->images / seconds : 0, r->dates, r->corrected, (long long)r->chunks,
               (long long)r->rewritten);
    if (r->bytes_before >= 0 && r->bytes_after >= 0)
        printf("store: %s before, %s now\n", mc_cli_size_words((double)r->bytes_before, run->pool),
               mc_cli_size_words((double)r->bytes_after, run->pool));
    if (r->left_out > 0)
        printf("%d images were left out\n", r->left_out);
}

/* --- the commands ------------------------------------------------------------------------------------------------- */

static mc_error *
run_cube_ingest(cube_run *run, bool images)
{
    const mc_cube_options *options = &run->options;
    mc_cube_ingest_options how = { .memory = options->cache_limit,
                                   .threads = options->threads,
                                   .scratch = options->scratch,
                                   .raster = options->raster,
                                   .stop = &stop,
                                   .tell = print_cube_event,
                                   .baton = run };
    if (images)
        MC_TRY(find_inputs(run));
    mc_cli_stop_on_interrupt(&stop, "\ninterrupted: what is being written is completed (once more: ends at once)\n");
    run->bar = !options->json && !options->quiet && mc_cli_is_screen(stdout);
    if (!images)
        return mc_cube_make_overviews(&run->report, run->cube, &how, &run->ctx, run->ctx.pool);
    return mc_cube_ingest(&run->report, run->cube, (const mc_cube_input *)(const void *)run->inputs->elts,
                          run->inputs->nelts, &how, &run->ctx, run->ctx.pool);
}

static int
run_ingest(cube_run *run, bool images)
{
    run->began = mc_clock_now();
    mc_error *error = open_cube(run);
    if (error == MC_OK)
        error = run_cube_ingest(run, images);
    mc_cli_clear_bar(&run->drawn);
    int status = error != MC_OK ? 1 : stop != 0 ? INTERRUPTED : run->report.left_out > 0 ? LEFT_OUT : 0;
    double seconds = (double)(mc_clock_now() - run->began) / APR_USEC_PER_SEC;
    const char *words = error == MC_OK ? NULL : mc_error_chain(error, run->pool);
    if (words != NULL)
        fprintf(stderr, "mapcache cube: %s\n", words);
    if (run->options.json)
        report_json(run, words, status, seconds);
    else if (words == NULL && !run->options.quiet)
        report_text(run, images, seconds);
    return status;
}

static mc_error *
list_dates(cube_run *run)
{
    apr_array_header_t *dates;
    MC_TRY(open_cube(run));
    MC_TRY(mc_cube_dates(&dates, run->cube, NULL, 0, INT32_MAX, &run->ctx, run->ctx.pool));
    for (int i = 0; i < dates->nelts; i++) {
        const char *text = mc_time_text(APR_ARRAY_IDX(dates, i, mc_cube_date).time_us, run->pool);
        if (run->options.json)
            print_cube_date_json(text);
        else
            puts(text);
    }
    return MC_OK;
}

static int
run_dates(cube_run *run)
{
    mc_error *error = list_dates(run);
    if (error != MC_OK)
        fprintf(stderr, "mapcache cube: %s\n", mc_error_chain(error, run->pool));
    return error != MC_OK;
}

int
mc_command_cube(mc_cli_call *call)
{
    cube_run run = { .log = mc_log_stderr, .pool = call->pool };
    run.options = *(const mc_cube_options *)call->options;
    run.log.level = mc_cli_log_level(run.options.verbose, call->quiet);
    unsigned mask = call->command->mask;
    int status = mask == MC_CUBE_DATES ? run_dates(&run) : run_ingest(&run, mask == MC_CUBE_INGEST);
    if (run.ctx.pool != NULL)
        apr_pool_destroy(run.ctx.pool); /* gives back what is the process's: before that ends */
    if (run.runtime != NULL)
        mc_runtime_destroy(run.runtime);
    return status;
}
