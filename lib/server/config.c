/* <mapcache>: the model of a whole file, built in the order of docs/reference/configuration.md 1.1. */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "cache/quota/quota.h"
#include "cdn/cdn.h"
#include "changes/watch.h"
#include "config/config_files.h"
#include "data/expand.h"
#include "mapcache/cube.h"
#include "mapcache/jobs.h"
#include "mapcache/server.h"
#include "mapcache/service.h"
#include "server/server_private.h"
#include "telemetry/telemetry.h"
#include "text/text.h"

typedef struct root_config {
    int mode;
    apr_array_header_t *metadata, *environment, *cubes, *sources, *grids, *formats, *caches, *rulesets, *tilesets,
        *services, *cdns;
    const mc_node *legacy_services;
    const char *default_format, *merge_format;
    int errors;
    const mc_node *locker;
    const char *lock_dir;
    int lock_retry;
    int threaded_fetching;
    int log_level;
    bool auto_reload;
    const mc_node *connection_pool;
    const mc_node *jobs, *changes;
    const char *workers;
    int io_workers;
    const char *memory_cache;
    apr_int64_t memory_budget;
    int open_files;
    int max_origin_requests;
    int max_slow_requests;
    int max_slow_requests_per_client;
    double deadline;
    const char *cors;
    bool server_timing, cache_status;
    const mc_node *telemetry;
} root_config;

typedef struct pool_config {
    int max_connections;
    int time_to_live;
} pool_config;

static const mc_key pool_keys[] = {
    MC_KEY_INT(
        "max_connections", offsetof(pool_config, max_connections),
        "Connections by PostgreSQL connection string, of all processes of a server together; never more than 64. "
        "<open_files> bounds SQLite handles.",
        .max = 2147483647, .fallback = "1024"),
    MC_KEY_INT("time_to_live_us", offsetof(pool_config, time_to_live),
               "Microseconds after which a connection to PostgreSQL that is not used is closed.", .max = 2147483647,
               .fallback = "60000000"),
    MC_KEY_END,
};

#define FIELD(member) offsetof(root_config, member)
#define MANY MC_KEY_REPEATABLE

const mc_key mc_root_keys[] = {
    MC_KEY_CHOICE("@mode", FIELD(mode), "normal|split_mirror|combined_mirror",
                  "normal: the declared tilesets. The mirror modes have one tileset that answers for any layer name; "
                  "split_mirror "
                  "merges the items of a list, combined_mirror takes the list as one name.",
                  .fallback = "normal"),
    MC_KEY_TREE("metadata", FIELD(metadata), NULL, "Titles, contacts, url: what capabilities say of the whole service.",
                .flags = MANY),
    MC_KEY_TREE("environment", FIELD(environment), NULL,
                "Each child NAME is put into the environment of the process when it starts, e.g. CURL_CA_BUNDLE.",
                .flags = MANY),
    MC_KEY_TREE("cube", FIELD(cubes), NULL, "Images of one area at many dates, stored together.",
                .flags = MANY | MC_KEY_OURS),
    MC_KEY_TREE("source", FIELD(sources), NULL, "Where maps come from.", .flags = MANY),
    MC_KEY_TREE("grid", FIELD(grids), mc_grid_keys, "A tile matrix set.", .flags = MANY),
    MC_KEY_TREE("format", FIELD(formats), NULL, "An image format.", .flags = MANY),
    MC_KEY_TREE("cache", FIELD(caches), NULL, "Where tiles are stored.", .flags = MANY),
    MC_KEY_TREE("ruleset", FIELD(rulesets), mc_ruleset_keys, "Areas that show at certain levels.", .flags = MANY),
    MC_KEY_TREE("tileset", FIELD(tilesets), mc_tileset_keys, "A layer.", .flags = MANY),
    MC_KEY_TREE("service", FIELD(services), NULL, "A protocol that is offered.", .flags = MANY),
    MC_KEY_TREE("services", FIELD(legacy_services), NULL,
                "The older form, one child for each protocol; read only where no service element exists."),
    MC_KEY_TEXT("default_format", FIELD(default_format),
                "Name of the format of merged tiles, empty_img and report_img; the builtin mixed one by default."),
    MC_KEY_TEXT("merge_format", FIELD(merge_format), "The older name of default_format."),
    MC_KEY_CHOICE(
        "errors", FIELD(errors), "log|report|empty_img|report_img",
        "What a client gets to see: nothing, the message, an empty image with the message in X-Mapcache-Error, or an"
        " image with the message in it, too.",
        .fallback = "report"),
    MC_KEY_TREE("locker", FIELD(locker), mc_locker_keys, "How processes agree on who renders a metatile."),
    MC_KEY_TEXT("lock_dir", FIELD(lock_dir),
                "The older form of a disk locker's directory, by default /tmp. A disk locker's directory also has what "
                "catalogues know of their products, for the next process.",
                .flags = MC_KEY_WORKDIR),
    MC_KEY_INT("lock_retry", FIELD(lock_retry), "Accepted for MapCache's sake: waiting for a lock does not poll here.",
               .min = 1, .max = 2147483647, .fallback = "10000"),
    MC_KEY_CHOICE_CI(
        "threaded_fetching", FIELD(threaded_fetching), "false|true",
        "Whether the tiles of a map are fetched and decoded by several threads. Absent, the server decides."),
    MC_KEY_CHOICE_CI("log_level", FIELD(log_level), "emerg|alert|crit|error|warn|notice|info|debug",
                     "FastCGI and command line: messages above it are dropped. Apache has LogLevel.",
                     .fallback = "warn"),
    MC_KEY_BOOL(
        "auto_reload", FIELD(auto_reload),
        "FastCGI: read this file again when it changes, or a style, picture or palette that it names; what cannot be "
        "used leaves the old configuration in force.",
        .fallback = "false"),
    MC_KEY_TREE("connection_pool", FIELD(connection_pool), pool_keys, "Limits of MapCache's pools."),
    MC_KEY_TREE("jobs", FIELD(jobs), mc_jobs_keys,
                "The queue of seeding jobs that `mapcache jobs` and the service jobs use.", .flags = MC_KEY_OURS),
    MC_KEY_TREE("changes", FIELD(changes), mc_changes_keys,
                "Follows the change logs of databases: tiles are drawn anew once what they show has changed "
                "(docs/changes.md).",
                .flags = MC_KEY_OURS),
    MC_KEY_TREE("cdn", FIELD(cdns), mc_cdn_keys,
                "A CDN or a proxy in front, whose copies of what has changed are purged (docs/cdn.md).",
                .flags = MANY | MC_KEY_OURS),
    MC_KEY_TEXT("workers", FIELD(workers),
                "CPU worker threads of a process: auto (processors divided by the processes of the MPM) or 0 to 256.",
                .flags = MC_KEY_OURS, .fallback = "auto"),
    MC_KEY_INT("io_workers", FIELD(io_workers), "Threads of a process that may wait for origins and databases.",
               .flags = MC_KEY_OURS, .min = 1, .max = 1024, .fallback = "16"),
    MC_KEY_TEXT(
        "memory_cache", FIELD(memory_cache),
        "Bytes of stored tiles kept in memory, for all processes of a server together: auto (an eighth of the "
        "memory of the machine or of the control group, at most 4G) or a size as for <memory_budget>; 0 is off.",
        .flags = MC_KEY_OURS, .fallback = "auto"),
    MC_KEY_SIZE(
        "memory_budget", FIELD(memory_budget),
        "Bytes that images, bodies and stored tiles in use may take, for all processes of a server together and "
        "besides <memory_cache>: a request beyond that gets 503. 0: three quarters of the memory of the machine "
        "or of the control group, at least 256M a process.",
        .flags = MC_KEY_OURS, .max = 1099511627776.0, .fallback = "0"),
    MC_KEY_INT("open_files", FIELD(open_files),
               "Open SQLite files of a process, never more than a quarter of the descriptor limit.",
               .flags = MC_KEY_OURS, .min = 16, .max = 65536, .fallback = "384"),
    MC_KEY_INT("max_origin_requests", FIELD(max_origin_requests),
               "Requests to origins that one request of a client may cause, repetitions included and redirects not: a "
               "map of many layers "
               "that are not in their caches needs many. 0: no limit.",
               .flags = MC_KEY_OURS, .max = 1048576, .fallback = "1024"),
    MC_KEY_INT("max_slow_requests", FIELD(max_slow_requests),
               "Requests of a process that may draw, or wait for origins, databases and locks, at the same time; "
               "beyond, 503 at once. 0: seven eighths of the threads of mapcache.fcgi or of an Apache process, "
               "and never more (below 64 threads no limit). Stored tiles need no place.",
               .flags = MC_KEY_OURS, .max = 65536, .fallback = "0"),
    MC_KEY_INT("max_slow_requests_per_client", FIELD(max_slow_requests_per_client),
               "How many of these may be of one client, by the address that the web server tells; 0: no limit. "
               "Clients behind one proxy have one address.",
               .flags = MC_KEY_OURS, .max = 65536, .fallback = "0"),
    MC_KEY_NUMBER("deadline", FIELD(deadline), "Seconds after which a request ends with 503 or 504.",
                  .flags = MC_KEY_OURS, .min = 0.01, .max = 86400, .fallback = "60"),
    MC_KEY_LINE("cors", FIELD(cors), "Origins that browsers may read from: *, a list, or off.", .flags = MC_KEY_OURS,
                .fallback = "*"),
    MC_KEY_BOOL("cache_status", FIELD(cache_status),
                "Tell clients and caches in front what became of a tile or a map in a Cache-Status header "
                "(RFC 9211): hit, or why a source was asked.",
                .flags = MC_KEY_OURS, .fallback = "true"),
    MC_KEY_BOOL("server_timing", FIELD(server_timing), "Tell clients in a Server-Timing header where the time went.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_TREE("telemetry", FIELD(telemetry), mc_telemetry_keys,
                "Traces for a receiver of OTLP, lines about requests that were slow or no hits.", .flags = MC_KEY_OURS),
    MC_KEY_END,
};

#undef FIELD
#undef MANY

/* An object of a section: its name, NULL where it was refused or is not built. */
typedef void *from_config(const mc_node *node, mc_build *build);

typedef struct section {
    const char *noun;
    from_config *make;
    apr_hash_t *by_name;
    apr_array_header_t *in_order; /* of void *, may be NULL */
    bool unique;
} section;

/* Notes the name of an item that was complained of without being refused: who refers to it answers 503. */
static void
note_missing(const char *noun, const char *name, mc_build *build)
{
    apr_hash_set(build->missing, apr_pstrcat(build->pool, noun, " ", name, NULL), APR_HASH_KEY_STRING,
                 "is of a type that is not part of this build");
}

static void
read_section(const section *part, const apr_array_header_t *nodes, mc_build *build)
{
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        if (name == NULL || *name == '\0') {
            mc_complain(build->diagnostics, MC_REFUSED, node, "the attribute name is needed and must not be empty");
            continue;
        }
        if (part->unique && apr_hash_get(part->by_name, name, APR_HASH_KEY_STRING) != NULL) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "a %s named \"%s\" exists already; names must be unique",
                        part->noun, name);
            continue;
        }
        int refused = build->diagnostics->refused;
        void *thing = part->make(node, build);
        if (thing == NULL && build->diagnostics->refused == refused)
            note_missing(part->noun, name, build);
        if (thing == NULL)
            continue;
        apr_hash_set(part->by_name, build->mirror && strcmp(part->noun, "tileset") == 0 ? "mirror" : name,
                     APR_HASH_KEY_STRING, thing);
        if (part->in_order != NULL)
            APR_ARRAY_PUSH(part->in_order, void *) = thing;
    }
}

/* The from_config of a noun is the one of its room, whose result has a type of its own. */
#define MAKE(noun)                                                                                                     \
    static void *make_##noun(const mc_node *node, mc_build *build)                                                     \
    {                                                                                                                  \
        return mc_##noun##_from_config(node, build);                                                                   \
    }
MAKE(cube)
MAKE(source)
MAKE(grid)
MAKE(format)
MAKE(cache)
MAKE(ruleset)
MAKE(tileset)
#undef MAKE

static void
add_builtins(mc_config *config, mc_build *build)
{
    static const char *const grids[] = { "WGS84", "GoogleMapsCompatible", "g" };
    static const char *const formats[] = { "PNG", "PNG8", "JPEG", "mixed" };
    mc_grid_builtins(build->grids, build->pool);
    mc_format_builtins(build->formats, build->pool);
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++)
        APR_ARRAY_PUSH(config->grids, void *) = apr_hash_get(build->grids, grids[i], APR_HASH_KEY_STRING);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        APR_ARRAY_PUSH(config->formats, void *) = apr_hash_get(build->formats, formats[i], APR_HASH_KEY_STRING);
}

static void
read_sections(mc_config *config, const root_config *root, mc_build *build)
{
    const struct {
        section part;
        const apr_array_header_t *nodes;
    } sections[] = {
        { { "cube", make_cube, build->cubes, NULL, true }, root->cubes },
        { { "source", make_source, build->sources, NULL, true }, root->sources },
        { { "grid", make_grid, build->grids, config->grids, true }, root->grids },
        { { "format", make_format, build->formats, config->formats, false }, root->formats },
        { { "cache", make_cache, build->caches, config->caches, true }, root->caches },
        { { "ruleset", make_ruleset, build->rulesets, NULL, true }, root->rulesets },
        { { "tileset", make_tileset, build->tilesets, config->tilesets, true }, root->tilesets },
    };
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        read_section(&sections[i].part, sections[i].nodes, build);
}

static void
connect_source(mc_source *source, const mc_node *node, mc_build *build)
{
    if (source->ops->connect != NULL)
        source->ops->connect(source, node, build);
}

static void
visit_sources(const root_config *root, void (*visit)(mc_source *source, const mc_node *node, mc_build *build),
              mc_build *build)
{
    for (int i = 0; root->sources != NULL && i < root->sources->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(root->sources, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        mc_source *source = name == NULL ? NULL : apr_hash_get(build->sources, name, APR_HASH_KEY_STRING);
        if (source != NULL)
            visit(source, node, build);
    }
}

static void
read_default_format(mc_config *config, const root_config *root, const mc_node *node, mc_build *build)
{
    const char *name = root->default_format != NULL ? root->default_format : root->merge_format;
    config->default_format = apr_hash_get(build->formats, name == NULL ? "mixed" : name, APR_HASH_KEY_STRING);
    if (config->default_format == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "<default_format>: no format is named \"%s\"", name);
}

static void
read_locker(mc_config *config, const root_config *root, mc_build *build)
{
    if (root->locker != NULL)
        config->locker = mc_locker_from_config(root->locker, build);
    else
        config->locker = mc_locker_disk(root->lock_dir, 120, build->pool);
    config->lock_dir = mc_locker_directory(config->locker);
    if (build->diagnostics->thorough && config->locker != NULL)
        mc_locker_inspect(config->locker, root->locker, build->diagnostics, build->pool);
    for (int i = 0; i < config->tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        tileset->locker = config->locker;
        for (int j = 0; j < tileset->variant_count; j++)
            tileset->variants[j]->locker = config->locker;
    }
}

/* Two headers make browsers refuse an answer; Apache's module sees those of its server, FastCGI cannot. */
static void
note_cors(const mc_node *node, mc_build *build)
{
    if (build->diagnostics->thorough && mc_node_child(node, "cors") == NULL)
        mc_complain(build->diagnostics, MC_NOTE, node,
                    "without <cors> every site's pages may read the answers; where nginx or another server in front of "
                    "mapcache.fcgi adds Access-Control-Allow-Origin itself, write <cors>off</cors>, because browsers "
                    "refuse an answer with two");
}

static void
read_memory_cache(mc_config *config, const char *text, const mc_node *node, mc_build *build)
{
    int64_t bytes = -1;
    if (strcmp(text, "auto") != 0 && (!mc_parse_size(&bytes, text) || bytes > INT64_C(1) << 40))
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "memory_cache"),
                    "%s is not auto or a size in bytes, or with K, M, G or T, up to 1T",
                    mc_config_quote(text, build->pool));
    config->memory_cache = bytes;
}

static void
read_switches(mc_config *config, const root_config *root, const mc_node *node, mc_build *build)
{
    config->mode = (mc_mode)root->mode;
    config->errors = (mc_errors_mode)root->errors;
    config->threaded_fetching = root->threaded_fetching;
    config->log_level = (mc_log_level)root->log_level;
    config->auto_reload = root->auto_reload;
    config->workers = -1;
    if (strcmp(root->workers, "auto") != 0 && !mc_parse_int(&config->workers, root->workers, 0, 256))
        mc_complain(build->diagnostics, MC_REFUSED, node, "<workers>: \"%s\" should be auto or a number from 0 to 256",
                    root->workers);
    config->io_workers = root->io_workers;
    read_memory_cache(config, root->memory_cache, node, build);
    config->memory_budget = root->memory_budget;
    config->open_files = root->open_files;
    config->max_origin_requests = root->max_origin_requests;
    config->max_slow_requests = root->max_slow_requests;
    config->max_slow_requests_per_client = root->max_slow_requests_per_client;
    config->deadline = root->deadline;
    config->cors = strcmp(root->cors, "off") == 0 ? NULL : root->cors;
    config->server_timing = root->server_timing;
    config->cache_status = root->cache_status;
    config->telemetry = mc_telemetry_from_config(root->telemetry, build);
    note_cors(node, build);
    pool_config pools = { .max_connections = 1024, .time_to_live = 60000000 };
    if (root->connection_pool != NULL)
        (void)mc_config_read(&pools, root->connection_pool, pool_keys, build->diagnostics);
    config->max_connections = pools.max_connections;
    config->idle_connection_time = pools.time_to_live;
}

static void
create_lists(mc_config *config, mc_build *build)
{
    config->grids = apr_array_make(build->pool, 8, sizeof(void *));
    config->formats = apr_array_make(build->pool, 8, sizeof(void *));
    config->caches = apr_array_make(build->pool, 8, sizeof(void *));
    config->tilesets = apr_array_make(build->pool, 8, sizeof(void *));
    config->metadata = mc_metadata_create(build->pool);
    build->grids = apr_hash_make(build->pool);
    build->formats = apr_hash_make(build->pool);
    build->cubes = apr_hash_make(build->pool);
    build->sources = apr_hash_make(build->pool);
    build->caches = apr_hash_make(build->pool);
    build->rulesets = apr_hash_make(build->pool);
    build->tilesets = apr_hash_make(build->pool);
    build->missing = apr_hash_make(build->pool);
}

/* Tilesets of short forms whose data are not there answer 503. */
static void
note_pending(const mc_config *config, mc_build *build)
{
    build->waiting = "cannot be read yet: its data are not there, or not to be opened";
    for (int i = 0; i < config->pending->nelts; i++)
        apr_hash_set(
            build->missing,
            apr_pstrcat(build->pool, "source ", APR_ARRAY_IDX(config->pending, i, mc_data_pending).source, NULL),
            APR_HASH_KEY_STRING, build->waiting);
}

static void
build_model(mc_config *config, const mc_node *node, mc_build *build)
{
    root_config root = { .threaded_fetching = -1 };
    (void)mc_config_read(&root, node, mc_root_keys, build->diagnostics);
    build->mirror = root.mode != MC_MODE_NORMAL;
    create_lists(config, build);
    note_pending(config, build);
    for (int i = 0; root.metadata != NULL && i < root.metadata->nelts; i++)
        mc_metadata_add(config->metadata, APR_ARRAY_IDX(root.metadata, i, const mc_node *));
    mc_environment_set(root.environment, build);
    add_builtins(config, build);
    if (root.changes != NULL)
        config->changes = build->changes = mc_changes_from_config(root.changes, build);
    config->cdns = build->cdns = mc_cdns_from_config(root.cdns, build);
    read_sections(config, &root, build);
    visit_sources(&root, connect_source, build); /* they are read before what some of them refer to */
    visit_sources(&root, mc_source_refuse_loop, build);
    mc_config_connect_watches(root.tilesets, build);
    mc_config_warn_unused_caches(config, root.caches, build);
    mc_quota_compare_places(root.caches, build);
    mc_config_warn_lost_tiles(root.tilesets, build);
    config->tilesets_by_name = build->tilesets;
    config->sources = build->sources;
    config->cubes = build->cubes;
    if (root.jobs != NULL)
        config->jobs = build->jobs = mc_jobs_from_config(root.jobs, build);
    config->services = mc_services_from_config(root.services, root.legacy_services, build);
    for (int i = 0; i < config->services->nelts; i++)
        if (APR_ARRAY_IDX(config->services, i, const mc_service *)->ops == &mc_service_metrics)
            config->metrics = true;
    config->status_page = build->status_page;
    mc_services_check(config, node, build->diagnostics);
    if (config->services->nelts == 0)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "no service is enabled, so every request answers 500: at least one <service "
                    "type=\"wms|wmts|tms|...\" enabled=\"true\"/> is needed");
    read_default_format(config, &root, node, build);
    read_locker(config, &root, build);
    read_switches(config, &root, node, build);
}

mc_error *
mc_config_load(mc_config **config, const char *file, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    return mc_config_load_within(config, file, 0, diagnostics, pool);
}

/* From the tree to the model. */
static mc_error *
load_from_tree(mc_config *config, mc_node *root, double seconds, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    mc_data_expand(root, &config->pending, seconds, diagnostics, pool);
    config->databases = apr_array_make(pool, 4, sizeof(const char *));
    mc_build build = { .pool = pool, .diagnostics = diagnostics, .databases = config->databases };
    build_model(config, root, &build);
    return mc_diagnostics_error(diagnostics, pool);
}

mc_error *
mc_config_load_within(mc_config **config, const char *file, double seconds, mc_diagnostics *diagnostics,
                      apr_pool_t *pool)
{
    apr_finfo_t info;
    mc_node *root;
    static _Atomic uint64_t serial;
    *config = apr_pcalloc(pool, sizeof(**config));
    (*config)->serial = atomic_fetch_add(&serial, 1) + 1;
    (*config)->file = apr_pstrdup(pool, file);
    mc_config_files_note(diagnostics->read, file);
    if (apr_stat(&info, file, APR_FINFO_MTIME, pool) == APR_SUCCESS)
        (*config)->mtime = info.mtime;
    MC_TRY(mc_config_parse_file(&root, file, diagnostics, pool));
    return load_from_tree(*config, root, seconds, diagnostics, pool);
}

mc_error *
mc_config_load_text(mc_config **config, const char *name, const char *text, mc_diagnostics *diagnostics,
                    apr_pool_t *pool)
{
    mc_node *root;
    *config = apr_pcalloc(pool, sizeof(**config));
    (*config)->file = apr_pstrdup(pool, name);
    MC_TRY(mc_config_parse_text(&root, name, text, strlen(text), diagnostics, pool));
    return load_from_tree(*config, root, 0, diagnostics, pool);
}
