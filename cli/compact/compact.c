/* `mapcache compact`: gives back what stores do not need any more, beside the servers that use them. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/stores.h"
#include "cli/common/style.h"
#include "cli/common/words.h"

typedef struct compacting {
    apr_pool_t *pool;
    const char *file;
    apr_array_header_t *names; /* of const char * */
    bool orphans, dry, json, quiet;
    mc_server *server;
    mc_cache *cache; /* that is being worked on */
    int stores, failures;
    int64_t before, after, free;
} compacting;

static volatile int stop;

/* Ends the wait for a database. */
static bool
is_compact_stopped(void *baton)
{
    (void)baton;
    return stop != 0;
}

static const mc_cli_option compact_rows[] = {
    MC_OPTION_TEXT("config", 'c', "FILE", offsetof(compacting, file), "configuration file (required)",
                   .required = true),
    MC_OPTION_TEXTS("cache", 'C', "NAME", offsetof(compacting, names), "only this cache; may be repeated"),
    MC_OPTION_FLAG("orphans", 'O', offsetof(compacting, orphans),
                   "also remove tiles that this configuration no longer knows, and leftover files"),
    MC_OPTION_DRY_RUN(offsetof(compacting, dry), "change nothing, say what would be done"),
    MC_OPTION_JSON(offsetof(compacting, json), "an object a line, for programs"),
    MC_OPTION_QUIET(offsetof(compacting, quiet)),
    MC_OPTION_END,
};

static void
set_compact_defaults(void *options, apr_pool_t *pool)
{
    ((compacting *)options)->names = apr_array_make(pool, 4, sizeof(const char *));
}

const mc_cli_option_table mc_compact_option_table = { compact_rows, sizeof(compacting), set_compact_defaults };

static const char *
size_words(const compacting *c, int64_t bytes)
{
    return mc_cli_size_words((double)bytes, c->pool);
}

static bool
is_compact_group_known(void *baton, const mc_store_group *group)
{
    const compacting *c = baton;
    return mc_stores_known(mc_server_config(c->server), c->cache, group);
}

static const char *
or_any(const char *name)
{
    return name == NULL ? "*" : *name == '\0' ? "-" : name;
}

static void
tell_orphan(void *baton, const mc_store *store, const mc_store_group *group)
{
    const compacting *c = baton;
    if (!c->orphans || c->json)
        return;
    printf("%s: %lld tiles (%s) of tileset %s, grid %s, dimensions %s, level %d are not known%s\n", store->name,
           (long long)group->tiles, size_words(c, group->bytes), or_any(group->tileset), or_any(group->grid),
           or_any(group->dim), group->z, c->dry ? "" : ": removed");
}

static void
tell_progress(void *baton, const mc_store *store, const char *what, double done)
{
    const compacting *c = baton;
    if (!c->quiet && !c->json && mc_cli_is_screen(stderr))
        fprintf(stderr, "\033[2K%s %s: %.0f%%\r", what, store->name, done * 100);
}

static void
tell_json(const compacting *c, const mc_store *before, const mc_store *after, const mc_error *error)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "store", before->name);
    mc_json_string(line.json, "cache", before->cache);
    mc_json_string(line.json, "type", before->kind);
    mc_json_boolean(line.json, "dry_run", c->dry);
    mc_json_integer(line.json, "size", before->bytes);
    mc_json_integer(line.json, "reclaimable_size", before->free_bytes);
    if (before->orphans >= 0) {
        mc_json_integer(line.json, "nb_orphaned_tiles", before->orphans);
        mc_json_integer(line.json, "orphaned_size", before->orphan_bytes);
        mc_json_integer(line.json, "nb_leftover_files", before->leftovers > 0 ? before->leftovers : 0);
    }
    if (after != NULL) {
        mc_json_integer(line.json, "size_after", after->bytes);
        mc_json_integer(line.json, "reclaimable_size_after", after->free_bytes);
    }
    if (error != MC_OK)
        mc_json_string(line.json, "error", mc_error_chain(error, line.pool));
    mc_cli_json_line_end(&line);
}

static void
tell_store(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    compacting *c = baton;
    int64_t gain = before->free_bytes > 0 ? before->free_bytes : 0;
    if (c->orphans && before->orphan_bytes > 0)
        gain += before->orphan_bytes;
    c->stores++;
    c->before += before->bytes > 0 ? before->bytes : 0;
    c->after += after != NULL ? after->bytes : before->bytes > 0 ? before->bytes : 0;
    c->free += gain;
    c->failures += error != MC_OK;
    if (!c->quiet && !c->json && mc_cli_is_screen(stderr))
        fputs("\033[2K", stderr);
    if (c->json)
        tell_json(c, before, after, error);
    else if (error != MC_OK && stop != 0)
        fprintf(stderr, "mapcache compact: %s: interrupted\n", before->name);
    else if (error != MC_OK)
        fprintf(stderr, "mapcache compact: %s\n", mc_error_chain(error, c->pool));
    else if (after != NULL)
        printf("%s: %s before, %s now\n", before->name, size_words(c, before->bytes), size_words(c, after->bytes));
    else
        printf("%s: %s, %s of it free%s\n", before->name, size_words(c, before->bytes), size_words(c, gain),
               c->dry || gain > 0 ? "" : ": nothing to do");
    if (!c->json && before->leftovers > 0 && c->orphans)
        printf("%s: %lld files that writers have left behind%s\n", before->name, (long long)before->leftovers,
               c->dry ? "" : ": removed");
    fflush(stdout);
}

/* Of a cache that has no room to give back: its server, or its library, looks after that; or it has nothing now, as an
 * archive without a draft. `stores`: how many were told before it. */
static void
tell_no_upkeep(const compacting *c, int stores)
{
    if (c->quiet || c->json || c->stores > stores || c->cache->ops->parts != NULL)
        return;
    if (c->cache->ops->keeps_nothing) {
        printf("cache \"%s\" of type %s keeps nothing\n", c->cache->name, c->cache->ops->type);
        return;
    }
    printf("cache \"%s\": tiles of type %s have nothing to give back here%s\n", c->cache->name, c->cache->ops->type,
           c->orphans && c->cache->ops->upkeep == NULL ? ", and are not looked through for orphans" : "");
}

static bool
is_compact_cache_selected(const compacting *c, const mc_cache *cache)
{
    for (int i = 0; i < c->names->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(c->names, i, const char *), cache->name) == 0)
            return true;
    return c->names->nelts == 0;
}

static const char *
load_compact_config(compacting *c)
{
    mc_error *error = mc_server_load(&c->server, c->file, mc_diagnostics_create(c->pool), c->pool);
    if (error != MC_OK)
        return mc_error_chain(error, c->pool);
    const apr_array_header_t *caches = mc_server_config(c->server)->caches;
    for (int i = 0; i < c->names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(c->names, i, const char *);
        bool found = false;
        for (int j = 0; j < caches->nelts; j++)
            found = found || strcmp(APR_ARRAY_IDX(caches, j, mc_cache *)->name, name) == 0;
        if (!found)
            return mc_config_lacks_cache(mc_server_config(c->server), name, c->pool);
    }
    return NULL;
}

static mc_error *
run_compact_upkeep(compacting *c)
{
    static mc_log log;
    mc_runtime *runtime;
    mc_ctx ctx = { .pool = c->pool, .log = &log, .abandoned = is_compact_stopped };
    const mc_config *config = mc_server_config(c->server);
    const mc_upkeep task = { .count = c->orphans,
                             .remove_orphans = c->orphans && !c->dry,
                             .compact = !c->dry,
                             .stop = &stop,
                             .known = is_compact_group_known,
                             .orphan = tell_orphan,
                             .progress = tell_progress,
                             .report = tell_store,
                             .baton = c };
    log = mc_log_stderr;
    log.level = mc_cli_log_level(false, c->quiet);
    MC_TRY(mc_runtime_create(&runtime, config, 1, false, &log, c->pool));
    ctx.process = mc_runtime_process(runtime);
    mc_error *error = MC_OK;
    for (int i = 0; i < config->caches->nelts && error == MC_OK && stop == 0; i++) {
        c->cache = APR_ARRAY_IDX(config->caches, i, mc_cache *);
        if (!is_compact_cache_selected(c, c->cache))
            continue;
        const int stores = c->stores;
        error = mc_cache_upkeep(c->cache, &task, &ctx);
        if (error == MC_OK && stop == 0)
            tell_no_upkeep(c, stores);
    }
    mc_runtime_destroy(runtime);
    if (error == MC_OK && !c->json)
        printf("%d stores, %s%s, %s %s\n", c->stores, size_words(c, c->before), c->dry ? "" : " before",
               size_words(c, c->dry ? c->free : c->after), c->dry ? "of it can be given back" : "now");
    return error;
}

int
mc_command_compact(mc_cli_call *call)
{
    compacting *c = call->options;
    c->pool = call->pool;
    mc_cli_stop_on_interrupt(&stop, "\ninterrupted: what is not complete is taken back (once more: ends at once)\n");
    const char *problem = load_compact_config(c);
    mc_error *error = problem != NULL ? MC_OK : run_compact_upkeep(c);
    if (error != MC_OK)
        problem = mc_error_chain(error, c->pool);
    if (problem != NULL) {
        fprintf(stderr, "mapcache compact: %s\n", problem);
        return 1;
    }
    return c->failures > 0 || stop != 0 ? 2 : 0;
}
