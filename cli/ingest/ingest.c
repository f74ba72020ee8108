/* `mapcache ingest`: from options and configuration to plans, one for each time, their runs, and the exit status. */
#include <apr_strings.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/image_inputs.h"
#include "cli/common/interrupt.h"
#include "cli/common/style.h"
#include "ingest_options.h"
#include "ingest_progress.h"
#include "mapcache/server.h"

enum { INTERRUPTED = 2, BAD_IMAGES = 3 };

/* All that one run has. */
typedef struct ingest_command_run {
    apr_pool_t *pool;
    mc_ingest_options options;
    mc_server *server;
    mc_runtime *runtime;
    mc_log log;
    mc_ctx ctx;
    mc_tileset *tileset;
    const mc_grid_link *link;
    int time;                   /* which dimension the groups are of; -1: none */
    apr_array_header_t *groups; /* mc_ingest_group */
    mc_ingest **ingests;        /* of the groups */
    mc_ingest_report report;
} ingest_command_run;

static volatile int stop;

static mc_error *create_ingest_error(ingest_command_run *run, const char *format, ...) MC_PRINTF(2, 3);

static mc_error *
create_ingest_error(ingest_command_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = apr_pvsprintf(run->pool, format, args);
    va_end(args);
    return mc_error_create(run->pool, MC_ERR_CONFIG, "%s", message);
}

static mc_error *
load_ingest_tileset(ingest_command_run *run)
{
    mc_diagnostics *diagnostics = mc_diagnostics_create(run->pool);
    MC_TRY(mc_server_load(&run->server, run->options.config, diagnostics, run->pool));
    const mc_config *config = mc_server_config(run->server);
    run->tileset = apr_hash_get(config->tilesets_by_name, run->options.tileset, APR_HASH_KEY_STRING);
    if (run->tileset == NULL)
        return create_ingest_error(run, "%s", mc_config_lacks_tileset(config, run->options.tileset, run->pool));
    run->link = mc_tileset_link(run->tileset, run->options.grid);
    if (run->link == NULL)
        return create_ingest_error(run, "%s", mc_tileset_lacks_grid(run->tileset, run->options.grid, run->pool));
    return MC_OK;
}

/* The dimension that times belong to. */
static mc_error *
choose_time(ingest_command_run *run)
{
    const mc_tileset *tileset = run->tileset;
    bool timed = false;
    run->time = -1;
    for (int i = 0; i < run->groups->nelts; i++)
        timed = timed || APR_ARRAY_IDX(run->groups, i, mc_ingest_group).value != NULL;
    if (!timed)
        return MC_OK;
    if (run->options.time_dimension != NULL) {
        run->time = mc_tileset_dimension(tileset, run->options.time_dimension, true);
    } else {
        int found = 0;
        for (int i = 0; i < tileset->dimension_count; i++)
            if (tileset->dimensions[i]->time || tileset->dimension_count == 1) {
                run->time = i;
                found++;
            }
        run->time = found == 1 ? run->time : -1;
    }
    if (run->time >= 0)
        return MC_OK;
    return create_ingest_error(
        run, "the images have times, but which dimension of tileset \"%s\" they belong to is not clear%s",
        tileset->name, run->options.time_dimension == NULL ? ": name it by --time-dimension" : "");
}

/* Values of all dimensions for one group. */
static mc_error *
values_of(const char *const **values, ingest_command_run *run, const mc_ingest_group *group)
{
    const char **made;
    MC_TRY(mc_tileset_values(&made, run->tileset, run->options.dimensions, run->pool));
    if (run->time >= 0) {
        if (group->value == NULL)
            return create_ingest_error(run, "%s has no time, although others have",
                                       APR_ARRAY_IDX(group->paths, 0, const char *));
        made[run->time] = group->value;
    }
    for (int i = 0; i < run->tileset->dimension_count; i++)
        if (made[i] == NULL || strlen(made[i]) > MC_DIMENSION_VALUE_MAX)
            return create_ingest_error(run, "dimension \"%s\" needs a value (-D %s=VALUE)",
                                       run->tileset->dimensions[i]->name, run->tileset->dimensions[i]->name);
    *values = made;
    return MC_OK;
}

static void
print_ingest_complaint(void *baton, const char *message)
{
    ingest_command_run *run = baton;
    mc_ingest_report_line(&run->report, message);
}

static void
print_ingest_progress(void *baton, const mc_ingest_counts *counts)
{
    ingest_command_run *run = baton;
    mc_ingest_report_show(&run->report, counts);
}

/* told: what is bad has been named before. */
static mc_error *
prepare_group_ingest(mc_ingest **ingest, ingest_command_run *run, const mc_ingest_group *group, int maxzoom, bool told)
{
    const mc_ingest_options *options = &run->options;
    mc_ingest_plan plan = { .tileset = run->tileset,
                            .link = run->link,
                            .paths = group->paths,
                            .minzoom = options->minzoom,
                            .maxzoom = maxzoom,
                            .raster = options->raster,
                            .resample = options->resample,
                            .cache_limit = options->cache_limit,
                            .scratch = options->scratch,
                            .threads = options->threads,
                            .skip_bad = options->skip_bad,
                            .stop = &stop,
                            .progress = print_ingest_progress,
                            .complain = told ? NULL : print_ingest_complaint,
                            .baton = run };
    memcpy(plan.background, options->background, sizeof(plan.background));
    MC_TRY(values_of(&plan.values, run, group));
    return mc_ingest_prepare(ingest, &plan, &run->ctx, run->pool);
}

/* All groups, so that whatever is bad in any of them is named; those that have nothing else are passed over. */
static mc_error *
prepare_each(ingest_command_run *run)
{
    mc_error *bad = MC_OK;
    int kept = 0;
    for (int i = 0; i < run->groups->nelts; i++) {
        const mc_ingest_group *group = &APR_ARRAY_IDX(run->groups, i, mc_ingest_group);
        mc_error *error = prepare_group_ingest(&run->ingests[kept], run, group, run->options.maxzoom, false);
        if (error == MC_OK) {
            APR_ARRAY_IDX(run->groups, kept++, mc_ingest_group) = *group;
            continue;
        }
        if (error->kind != MC_ERR_CORRUPT)
            return error;
        bad = bad == MC_OK ? error : bad;
        run->report.all.bad += run->options.skip_bad ? group->paths->nelts : 0;
    }
    run->groups->nelts = kept;
    return run->options.skip_bad && kept > 0 ? MC_OK : bad;
}

/* Down to the same level. */
static mc_error *
prepare_all(ingest_command_run *run)
{
    int maxzoom = run->options.maxzoom;
    run->ingests = apr_pcalloc(run->pool, sizeof(*run->ingests) * (size_t)(run->groups->nelts + 1));
    MC_TRY(prepare_each(run));
    for (int i = 0; i < run->groups->nelts; i++) {
        const mc_ingest_outline *outline = mc_ingest_outlined(run->ingests[i]);
        maxzoom = outline->maxzoom > maxzoom ? outline->maxzoom : maxzoom;
    }
    for (int i = 0; i < run->groups->nelts; i++)
        if (mc_ingest_outlined(run->ingests[i])->maxzoom != maxzoom)
            MC_TRY(prepare_group_ingest(&run->ingests[i], run, &APR_ARRAY_IDX(run->groups, i, mc_ingest_group), maxzoom,
                                        true));
    return MC_OK;
}

/* Whether a client that asks for the value gets its tiles; by its own pool, because answers are kept with it. */
static bool
is_ingested_value_known(ingest_command_run *run, mc_dimension *dimension, const mc_dimension_query *query)
{
    mc_ctx ctx = run->ctx;
    apr_array_header_t *values;
    bool known = false;
    apr_pool_create(&ctx.pool, run->pool);
    mc_dimension_query asked = { query->tileset, query->grid, NULL, query->value };
    if (mc_dimension_resolve(&values, dimension, &asked, &ctx, ctx.pool) == MC_OK)
        for (int i = 0; i < values->nelts; i++)
            known = known || strcmp(APR_ARRAY_IDX(values, i, const char *), query->value) == 0;
    apr_pool_destroy(ctx.pool);
    return known;
}

/* Tells the dimension of a value whose tiles are stored. */
static mc_error *
tell_dimension(ingest_command_run *run, const mc_ingest_group *group, const mc_ingest *ingest)
{
    bool inserted;
    if (run->time < 0)
        return MC_OK;
    mc_dimension *dimension = run->tileset->dimensions[run->time];
    mc_dimension_query query = { run->tileset->name, run->link->grid, &mc_ingest_outlined(ingest)->extent,
                                 group->value };
    MC_TRY(mc_dimension_insert(&inserted, dimension, &query, &run->ctx, run->pool));
    if (!is_ingested_value_known(run, dimension, &query))
        mc_ingest_report_line(&run->report,
                              apr_psprintf(run->pool,
                                           "warning: dimension %s does not know \"%s\": no client will see "
                                           "these tiles%s",
                                           dimension->name, group->value,
                                           inserted ? ", although <insert_query> was run" : ""));
    return MC_OK;
}

static mc_error *
ingest_all_groups(ingest_command_run *run)
{
    mc_cli_stop_on_interrupt(&stop, "\ninterrupted: storing what is complete (once more: ends at once)\n");
    for (int i = 0; i < run->groups->nelts && stop == 0; i++) {
        const mc_ingest_group *group = &APR_ARRAY_IDX(run->groups, i, mc_ingest_group);
        mc_ingest_report_begin(&run->report, group->value);
        mc_error *error = mc_ingest_run(run->ingests[i], &run->ctx);
        mc_ingest_report_add(&run->report, mc_ingest_counted(run->ingests[i]));
        MC_TRY(error);
        if (stop == 0 && mc_ingest_counted(run->ingests[i])->done > 0)
            MC_TRY(tell_dimension(run, group, run->ingests[i]));
    }
    return MC_OK;
}

static mc_error *
ingest_and_measure(ingest_command_run *run)
{
    mc_ingest_report *report = &run->report;
    report->before = mc_ingest_store_bytes(run->ingests[0], &run->ctx);
    mc_error *error = ingest_all_groups(run);
    if (error == MC_OK && stop == 0)
        error = mc_cache_finish(run->tileset->cache, &run->ctx);
    report->after = mc_ingest_store_bytes(run->ingests[0], &run->ctx);
    return error;
}

static mc_error *
run_ingest_command(ingest_command_run *run)
{
    const mc_ingest_options *options = &run->options;
    MC_TRY(load_ingest_tileset(run));
    MC_TRY(mc_ingest_inputs(&run->groups, options->paths, options->list, options->time, run->pool));
    if (run->groups->nelts == 0)
        return create_ingest_error(run, "no image is named%s%s", options->list == NULL ? "" : " in ",
                                   options->list == NULL ? "" : options->list);
    MC_TRY(choose_time(run));
    MC_TRY(mc_runtime_create(&run->runtime, mc_server_config(run->server), 1, false, &run->log, run->pool));
    run->ctx = (mc_ctx){ .pool = run->pool, .process = mc_runtime_process(run->runtime), .log = &run->log };
    mc_error *error = prepare_all(run);
    if (error == MC_OK) {
        mc_ingest_report_outline(&run->report, run->tileset, run->link, run->ingests, run->groups->nelts);
        if (!options->dry_run)
            error = ingest_and_measure(run);
    }
    mc_runtime_destroy(run->runtime);
    return error;
}

int
mc_command_ingest(mc_cli_call *call)
{
    ingest_command_run run = { .log = mc_log_stderr, .pool = call->pool };
    run.options = *(const mc_ingest_options *)call->options;
    run.log.level = mc_cli_log_level(run.options.verbose, call->quiet);
    mc_ingest_report_init(&run.report, &run.options);
    mc_error *error = run_ingest_command(&run);
    int status = error != MC_OK ? 1 : stop != 0 ? INTERRUPTED : run.report.all.bad > 0 ? BAD_IMAGES : 0;
    mc_ingest_report_end(&run.report, error == MC_OK ? NULL : mc_error_chain(error, run.pool), status);
    return status;
}
