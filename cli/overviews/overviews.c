/* `mapcache overviews build|update|list|drop`: what maps of whole tables are read from. */
#include <apr_strings.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "mapcache/server.h"
#include "overview/overview.h"
#include "overviews_list.h"

typedef struct overviews_options {
    const char *config, *tileset, *connection;
    bool is_static, quiet, verbose, json;
} overviews_options;

#define AT(field) offsetof(overviews_options, field)

static const mc_cli_option overviews_rows[] = {
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration file (required)", .required = true),
    MC_OPTION_TEXT("tileset", 't', "TILESET", AT(tileset),
                   "the tileset whose tables and shapefiles are meant (required; list: all without it)"),
    MC_OPTION_TEXT("connection", 0, "STRING", AT(connection),
                   "libpq connection string instead of the layers', for a role that may create tables"),
    MC_OPTION_FLAG("static", 0, AT(is_static),
                   "the tables do not change, or are built anew after each change: no change log is needed",
                   .commands = MC_OVERVIEWS_BUILD),
    MC_OPTION_JSON(AT(json), "an object for each level and each message"),
    MC_OPTION_QUIET(AT(quiet)),
    MC_OPTION_VERBOSE(AT(verbose)),
    MC_OPTION_END,
};

const mc_cli_option_table mc_overviews_option_table = { overviews_rows, sizeof(overviews_options), NULL };

static volatile int stop;

static bool
is_build_stopped(void *baton)
{
    (void)baton;
    return stop != 0;
}

static void
print_overview_json(const mc_overview_news *news)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, news->kind, news->name);
    if (news->resolution > 0)
        mc_json_digits(line.json, "resolution", news->resolution, 12);
    if (news->bytes > 0) {
        mc_json_integer(line.json, "features", news->features);
        mc_json_integer(line.json, "size", news->bytes);
        if (news->differs >= 0)
            mc_json_digits(line.json, "differs", news->differs, 4);
    } else
        mc_json_string(line.json, "message", news->text);
    mc_cli_json_line_end(&line);
}

/* A line that passes stands on a terminal until the next one. */
static void
print_overview_news(void *baton, const mc_overview_news *news)
{
    const overviews_options *options = baton;
    bool terminal = isatty(STDOUT_FILENO) == 1;
    if (news->passing && (options->quiet || options->json || !terminal))
        return;
    if (options->json)
        print_overview_json(news);
    else if (!options->quiet)
        printf("%s%s: %s%s", terminal ? "\r\033[K" : "", news->name, news->text, news->passing ? "" : "\n");
    fflush(stdout);
}

/* All tilesets that show tables or shapefiles, or the one that is named; one that fails does not keep the others. */
static mc_error *
list_overviews(const mc_config *config, const mc_tileset *only, const overviews_options *options, mc_ctx *ctx)
{
    mc_error *first = MC_OK;
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        mc_cli_found_printer printer = {
            .tileset = tileset->name, .json = options->json, .quiet = options->quiet, .pool = ctx->pool
        };
        const mc_overview_options wanted = { .connection = options->connection,
                                             .list = mc_cli_print_found,
                                             .baton = &printer };
        if (only != NULL ? tileset != only : !mc_overview_may_have(tileset))
            continue;
        mc_error *error = mc_overview_list(tileset, &wanted, ctx, ctx->pool);
        if (error != MC_OK && first != MC_OK)
            mc_log_error(ctx, MC_LOG_ERROR, error);
        first = first == MC_OK ? error : first;
    }
    return first;
}

static mc_error *
change_overviews(const mc_cli_call *call, const mc_tileset *tileset, mc_ctx *ctx)
{
    const overviews_options *options = call->options;
    const mc_overview_options wanted = { .is_static = options->is_static,
                                         .connection = options->connection,
                                         .tell = print_overview_news,
                                         .baton = call->options };
    mc_cli_stop_on_interrupt(&stop, "the build ends: the overviews stay as they were");
    return (call->command->mask == MC_OVERVIEWS_BUILD    ? mc_overview_build
            : call->command->mask == MC_OVERVIEWS_UPDATE ? mc_overview_update
                                                         : mc_overview_drop)(tileset, &wanted, ctx, call->pool);
}

/* `tileset` NULL: none is named. */
static mc_error *
run_overviews(const mc_cli_call *call, mc_server *server, const mc_tileset *tileset)
{
    const overviews_options *options = call->options;
    const mc_config *config = mc_server_config(server);
    mc_runtime *runtime;
    mc_log log = mc_log_stderr;
    log.level = mc_cli_log_level(options->verbose, options->quiet);
    mc_ctx ctx = { .pool = call->pool, .log = &log, .abandoned = is_build_stopped };
    MC_TRY(mc_runtime_create(&runtime, config, 1, false, &log, call->pool));
    ctx.process = mc_runtime_process(runtime);
    mc_error *error = call->command->mask == MC_OVERVIEWS_LIST ? list_overviews(config, tileset, options, &ctx)
                                                               : change_overviews(call, tileset, &ctx);
    mc_runtime_destroy(runtime);
    return error;
}

const char *
mc_check_overviews_options(mc_cli_call *call)
{
    const overviews_options *options = call->options;
    return options->tileset == NULL && call->command->mask != MC_OVERVIEWS_LIST ? "--tileset is required" : NULL;
}

int
mc_command_overviews(mc_cli_call *call)
{
    const overviews_options *options = call->options;
    mc_server *server;
    const char *wrong = NULL;
    mc_error *error = mc_server_load(&server, options->config, mc_diagnostics_create(call->pool), call->pool);
    if (error == MC_OK) {
        const mc_config *config = mc_server_config(server);
        const mc_tileset *tileset = options->tileset == NULL
                                        ? NULL
                                        : apr_hash_get(config->tilesets_by_name, options->tileset, APR_HASH_KEY_STRING);
        if (tileset == NULL && options->tileset != NULL)
            wrong = mc_config_lacks_tileset(config, options->tileset, call->pool);
        else
            error = run_overviews(call, server, tileset);
    }
    if (error != MC_OK)
        wrong = mc_error_chain(error, call->pool);
    if (wrong == NULL)
        return 0;
    fprintf(stderr, "mapcache %s: %s\n", call->command->name, wrong);
    return stop != 0 ? 2 : 1;
}
