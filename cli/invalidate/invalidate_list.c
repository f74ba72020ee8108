/* `mapcache invalidate --expire-list FILE`: stored tiles are marked as old that lines of osm2pgsql or imposm name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "changes/expire_list.h"
#include "cli/common/help.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "cli/common/words.h"
#include "invalidate.h"
#include "mapcache/server.h"
#include "tileset/stored/mark_stored.h"

/* Exit statuses; broken lines that are named one by one. */
enum { FAILED = 1, INCOMPLETE = 2, LINES_NAMED = 10 };

static volatile int expire_stop;

const char *
mc_check_expire_options(const mc_cli_call *call)
{
    const mc_invalidate_options *options = call->options;
    if (options->config == NULL)
        return "--expire-list needs --config";
    if (options->drop || options->geometry != NULL || options->role != NULL || call->arguments->nelts > 0)
        return "--drop, --geometry, --role and a TABLE are for --sql";
    return NULL;
}

typedef struct list_reading {
    const char *name;
    int64_t named;
} list_reading;

static void
tell_broken_line(void *baton, int64_t line)
{
    list_reading *reading = baton;
    if (reading->named++ < LINES_NAMED)
        fprintf(stderr, "mapcache invalidate: %s, line %" PRId64 ": no tile z/x/y of Web Mercator\n", reading->name,
                line);
}

/* NULL after a message: it could not be read. */
static mc_expire_list *
read_expire_list(const char *name, apr_pool_t *pool)
{
    list_reading reading = { name, 0 };
    bool input = strcmp(name, "-") == 0;
    int file = input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    mc_expire_list *list = mc_expire_list_create(tell_broken_line, &reading, pool);
    int why = file < 0 ? errno : mc_expire_list_read(list, file);
    if (!input && file >= 0)
        close(file);
    if (why != 0) {
        fprintf(stderr, "mapcache invalidate: %s: %s\n", name, strerror(why));
        return NULL;
    }
    if (list->broken > LINES_NAMED)
        fprintf(stderr, "mapcache invalidate: %s: %" PRId64 " lines are broken, the rest counts\n", name, list->broken);
    return list;
}

static void
print_marked(const mc_invalidate_options *options, const mc_tileset *tileset, const mc_mark_counts *counts,
             apr_pool_t *pool)
{
    if (!options->json) {
        printf("%s: %s %s\n", tileset->name, options->dry_run ? "would mark" : "marked",
               mc_cli_count_words(counts->marked, "tile", pool));
        return;
    }
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "tileset", tileset->name);
    mc_json_boolean(line.json, "dry_run", options->dry_run);
    mc_json_integer(line.json, options->dry_run ? "would_mark" : "marked", counts->marked);
    mc_json_integer(line.json, "marked_before", counts->looked - counts->marked);
    mc_cli_json_line_end(&line);
}

static bool
is_expire_stopped(void *baton)
{
    (void)baton;
    return expire_stop != 0;
}

/* All tilesets, or the one that is named. */
static int
mark_listed(const mc_config *config, const mc_invalidate_options *options, const mc_expire_list *list, mc_ctx *ctx)
{
    int status = list->broken > 0 ? INCOMPLETE : 0;
    const mc_mark_area area = { .boxes = list->boxes,
                                .srs = "EPSG:3857",
                                .grid = options->grid,
                                .minzoom = options->zooms.has_zoom ? options->zooms.minzoom : 0,
                                .maxzoom = options->zooms.has_zoom ? options->zooms.maxzoom : INT_MAX,
                                .or_remove = true,
                                .dry_run = options->dry_run };
    for (int i = 0; i < config->tilesets->nelts && expire_stop == 0 && list->tiles > 0; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        mc_mark_counts counts = { 0 };
        if ((options->tileset != NULL && strcmp(options->tileset, tileset->name) != 0) || tileset->master != NULL ||
            mc_tileset_unchangeable(tileset, ctx->pool) != NULL)
            continue;
        mc_error *error = mc_tileset_mark_stored(&counts, tileset, &area, ctx, ctx->pool);
        print_marked(options, tileset, &counts, ctx->pool);
        if (error == MC_OK)
            continue;
        fprintf(stderr, "mapcache invalidate: tileset \"%s\": %s\n", tileset->name, mc_error_chain(error, ctx->pool));
        status = INCOMPLETE;
    }
    return expire_stop != 0 ? INCOMPLETE : status;
}

/* NULL, or what is wrong with the names. */
static const char *
check_expire_names(const mc_config *config, const mc_invalidate_options *options, apr_pool_t *pool)
{
    if (options->tileset == NULL)
        return NULL;
    const mc_tileset *tileset = apr_hash_get(config->tilesets_by_name, options->tileset, APR_HASH_KEY_STRING);
    if (tileset == NULL)
        return mc_config_lacks_tileset(config, options->tileset, pool);
    if (options->grid != NULL && mc_tileset_link(tileset, options->grid) == NULL)
        return mc_tileset_lacks_grid(tileset, options->grid, pool);
    return mc_tileset_unchangeable(tileset, pool);
}

int
mc_invalidate_list(const mc_cli_call *call, const mc_invalidate_options *options)
{
    mc_server *server;
    mc_runtime *runtime;
    mc_log log = mc_log_stderr;
    log.level = mc_cli_log_level(options->verbose, call->quiet);
    mc_ctx ctx = { .pool = call->pool, .log = &log, .abandoned = is_expire_stopped };
    mc_cli_stop_on_interrupt(&expire_stop, "\ninterrupted: what is marked stays marked\n");
    mc_error *error = mc_server_load(&server, options->config, mc_diagnostics_create(call->pool), call->pool);
    const char *problem = error != MC_OK ? mc_error_chain(error, call->pool)
                                         : check_expire_names(mc_server_config(server), options, call->pool);
    const mc_expire_list *list = problem != NULL ? NULL : read_expire_list(options->list, call->pool);
    if (problem == NULL && list != NULL)
        error = mc_runtime_create(&runtime, mc_server_config(server), 1, false, &log, call->pool);
    if (problem == NULL && error != MC_OK)
        problem = mc_error_chain(error, call->pool);
    if (problem != NULL)
        fprintf(stderr, "mapcache invalidate: %s\n", problem);
    if (problem != NULL || list == NULL)
        return FAILED;
    ctx.process = mc_runtime_process(runtime);
    int status = mark_listed(mc_server_config(server), options, list, &ctx);
    mc_runtime_destroy(runtime);
    return status;
}
