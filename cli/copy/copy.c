/*
 * `mapcache copy`: tiles from a tileset, a cache or a file to another one. Each grid and each set of values of
 * dimensions is a run of the seeder, and with --verify another one that compares.
 */
#include "copy.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/style.h"

/* Exit statuses. */
enum { FAILED = 1, INTERRUPTED = 2, DIFFERENT = 4 };

static const char *
open_sides(mc_copy *copy)
{
    const mc_copy_options *options = copy->options;
    mc_config *config = NULL;
    mc_error *error = MC_OK;
    if (options->seed.config != NULL)
        error = mc_config_load(&config, options->seed.config, mc_diagnostics_create(copy->pool), copy->pool);
    if (error == MC_OK)
        error = mc_copy_find_source(&copy->from, options->from, config, copy->pool);
    if (error == MC_OK)
        error = mc_copy_find_target(&copy->to, options->to, config, copy->pool);
    return error == MC_OK ? mc_copy_plan(copy) : mc_error_chain(error, copy->pool);
}

/* Reads one tile, which need not be there: a source that cannot be read would look like an empty one. */
static mc_error *
look_at_source(const mc_copy *copy, const mc_copy_part *part)
{
    mc_runtime *runtime;
    mc_tile *tile;
    const mc_seed_pair *pair = &part->pair;
    const char **values = mc_tileset_defaults(pair->source, copy->pool);
    for (int i = 0; i < pair->source->dimension_count; i++)
        values[i] = apr_table_get(part->values, pair->source->dimensions[i]->name);
    const mc_tile_request first = { pair->source, pair->source_link, pair->source_link->minzoom, 0, 0, values, NULL };
    MC_TRY(mc_runtime_create(&runtime, pair->config, 1, false, copy->log, copy->pool));
    mc_ctx ctx = { .pool = copy->pool, .process = mc_runtime_process(runtime), .log = copy->log };
    mc_error *error = mc_tileset_stored(&tile, &first, &ctx, copy->pool);
    mc_runtime_destroy(runtime);
    return error;
}

/* Where there are several, which one the lines that follow are about. */
static void
announce_part(const mc_copy *copy, const mc_copy_part *part, const char *deed)
{
    const mc_seed_pair *pair = &part->pair;
    const apr_array_header_t *values = apr_table_elts(part->values);
    if (copy->parts->nelts == 1 || copy->options->seed.quiet || copy->options->seed.json)
        return;
    printf("%s tileset \"%s\", grid \"%s\"", deed, pair->source->name, pair->source_link->grid->name);
    for (int i = 0; i < values->nelts; i++) {
        const apr_table_entry_t *value = &APR_ARRAY_IDX(values, i, apr_table_entry_t);
        printf(", %s=%s", value->key, value->val);
    }
    puts("");
    fflush(stdout);
}

static int
run_part(const mc_cli_call *call, const mc_copy *copy, mc_copy_part *part, mc_seed_mode mode)
{
    mc_seed_options options = copy->options->seed;
    options.mode = mode;
    options.pair = &part->pair;
    options.dimensions = part->values;
    options.tileset = part->pair.source->name;
    if (mode == MC_SEED_COMPARE) {
        options.percent = 100;
        options.checkpoint = NULL;
        options.resume = false;
    }
    announce_part(copy, part, mode == MC_SEED_COMPARE ? "comparing" : "copying");
    return mc_seed_run(call, &options);
}

static int
copy_and_verify(const mc_cli_call *call, const mc_copy *copy, mc_copy_part *part)
{
    mc_error *error = look_at_source(copy, part);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache copy: %s\n", mc_error_chain(error, copy->pool));
        return FAILED;
    }
    int status = run_part(call, copy, part, MC_SEED_COPY);
    bool failed = part->pair.failed > 0;
    if (status == FAILED || mc_seed_was_interrupted() || !copy->options->verify)
        return status != 0 ? status : failed ? FAILED : 0;
    int compared = run_part(call, copy, part, MC_SEED_COMPARE);
    if (compared == FAILED)
        return FAILED;
    return part->pair.failed > 0 ? DIFFERENT : failed ? FAILED : status;
}

/* After all parts have been copied without a failure. */
static int
send_copied_archive(const mc_copy *copy)
{
    const mc_seed_options *options = &copy->options->seed;
    if (!options->quiet && !options->json) {
        printf("sending the archive to %s\n", copy->to.name);
        fflush(stdout);
    }
    mc_error *error = mc_copy_send_archive(&copy->to, copy->log, copy->pool);
    if (error == MC_OK)
        return 0;
    fprintf(stderr, "mapcache copy: %s\n", mc_error_chain(error, copy->pool));
    return mc_seed_was_interrupted() ? INTERRUPTED : FAILED;
}

int
mc_command_copy(mc_cli_call *call)
{
    mc_log log = mc_log_stderr;
    const mc_copy_options *options = call->options;
    mc_copy copy = { .options = options, .log = &log, .pool = call->pool };
    log.level = mc_cli_log_level(options->seed.verbose, call->quiet);
    const char *problem = open_sides(&copy);
    if (problem == NULL && copy.to.far != NULL && options->seed.checkpoint != NULL)
        problem = "an archive that is sent to a store is made anew by each run: there is no place to go on at "
                  "(--checkpoint); copy into a file first, and the file to the store";
    if (problem != NULL) {
        mc_copy_forget_archive(&copy.to, copy.pool);
        mc_cli_refuse(call, problem);
        return FAILED;
    }
    int status = 0;
    for (int i = 0; i < copy.parts->nelts && !mc_seed_was_interrupted(); i++) {
        int one = copy_and_verify(call, &copy, &APR_ARRAY_IDX(copy.parts, i, mc_copy_part));
        status = one == FAILED || status == 0 ? one : status;
        if (one == FAILED)
            break;
    }
    if (status == 0 && copy.to.far != NULL && !options->seed.dry_run && !mc_seed_was_interrupted())
        status = send_copied_archive(&copy);
    else if (copy.to.far != NULL && !options->seed.dry_run)
        fprintf(stderr, "mapcache copy: the archive is not whole, and is not sent: %s is left as it was\n",
                copy.to.name);
    mc_copy_forget_archive(&copy.to, copy.pool);
    return mc_seed_was_interrupted() && status == 0 ? INTERRUPTED : status;
}
