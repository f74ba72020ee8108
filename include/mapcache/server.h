/*
 * The server as the front ends see it: a configuration is loaded, each process has a runtime, requests go in and
 * responses come out.
 *
 * Example: a program that answers one request. A parent process may fork between mc_server_load and mc_runtime_create,
 * because no thread, socket, file or database handle is open there.
 *
 *     #include <apr_general.h>
 *     #include <stdio.h>
 *
 *     static mc_error *
 *     answer_request(mc_http_response **response, const char *file, const char *path, apr_pool_t *pool)
 *     {
 *         mc_server *server;
 *         mc_runtime *runtime;
 *         MC_TRY(mc_server_load(&server, file, mc_diagnostics_create(pool), pool));
 *         MC_TRY(mc_runtime_create(&runtime, mc_server_config(server), 1, true, &mc_log_stderr, pool));
 *
 *         mc_http_request request = { .method = "GET", .path = path, .base_url = "http://localhost/maps" };
 *         mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(runtime), .log = &mc_log_stderr };
 *         mc_server_handle(response, server, &request, &ctx, pool);
 *         mc_runtime_destroy(runtime);
 *         return MC_OK;
 *     }
 *
 *     int
 *     main(int argc, char **argv)
 *     {
 *         apr_pool_t *pool;
 *         mc_http_response *response;
 *         if (argc != 3 || apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS)
 *             return 2;
 *         mc_error *error = answer_request(&response, argv[1], argv[2], pool);
 *         if (error != MC_OK)
 *             fprintf(stderr, "%s\n", mc_error_chain(error, pool));
 *         else
 *             printf("%d\n", response->status);
 *         bool answered = error == MC_OK && response->status == 200;
 *         apr_pool_destroy(pool); // before apr_terminate: a server has a root pool of its own
 *         apr_terminate();
 *         return answered ? 0 : 1;
 *     }
 */
#ifndef MAPCACHE_SERVER_H
#define MAPCACHE_SERVER_H

#include "mapcache/map.h"
#include "mapcache/trace.h"

#define MC_VERSION "0.1.0"

typedef struct mc_server mc_server;
typedef struct mc_runtime mc_runtime;
struct mc_shared_cache; /* lib/base */

typedef enum mc_errors_mode {
    MC_ERRORS_LOG,
    MC_ERRORS_REPORT,
    MC_ERRORS_EMPTY_IMG,
    MC_ERRORS_REPORT_IMG
} mc_errors_mode;
typedef enum mc_mode { MC_MODE_NORMAL, MC_MODE_SPLIT_MIRROR, MC_MODE_COMBINED_MIRROR } mc_mode;

/* The model of one configuration file: immutable once built. Lists are in file order. */
typedef struct mc_config {
    const char *file;
    uint64_t serial; /* of this model in the process: later ones have greater numbers */
    mc_mode mode;
    mc_metadata *metadata;
    apr_array_header_t *grids;    /* mc_grid *, builtin ones first */
    apr_array_header_t *tilesets; /* mc_tileset * */
    apr_array_header_t *formats;  /* mc_format *, builtin ones first */
    apr_array_header_t *caches;   /* mc_cache * */
    apr_hash_t *tilesets_by_name;
    apr_hash_t *sources;          /* mc_source * by name */
    bool names_use_separators;    /* a tileset's name has `;`, `@` or `[`, which stand between names in addresses */
    apr_hash_t *cubes;            /* mc_cube * by name */
    apr_array_header_t *services; /* struct mc_service *, in dispatch order (docs/reference/services.md 1) */
    const mc_format *default_format;
    mc_errors_mode errors;
    mc_locker *locker;
    const char *lock_dir; /* of a disk locker, also where no key names one; NULL: another locker */
    mc_log_level log_level;
    bool auto_reload;
    int threaded_fetching; /* -1: the server decides, 0: false, 1: true */
    int workers;           /* -1: auto */
    int io_workers;
    apr_int64_t memory_cache;  /* bytes for all processes together; -1: by the memory of the machine */
    apr_int64_t memory_budget; /* bytes for all processes together; 0: what the machine has */
    int open_files;
    int max_origin_requests;                  /* by one request; 0: no limit */
    int max_slow_requests;                    /* 0: by the threads of the front end */
    int max_slow_requests_per_client;         /* 0: no limit */
    int max_connections;                      /* to databases, for all processes together */
    apr_array_header_t *databases;            /* of const char *: connection strings of PostgreSQL, each once */
    apr_interval_time_t idle_connection_time; /* microseconds that one may stay idle */
    double deadline;                          /* seconds */
    const char *cors;                         /* "*", an origin list, or NULL for off */
    bool server_timing;
    bool cache_status;                       /* answers tell what became of the request (RFC 9211) */
    struct mc_telemetry *telemetry;          /* lib/telemetry; NULL: nothing of it is configured */
    struct mc_jobs *jobs;                    /* the queue that seeders share, or NULL */
    const struct mc_changes_config *changes; /* of <changes>; NULL: no change log is followed */
    const struct mc_cdns *cdns;              /* caches in front, of <cdn>; NULL: there are none */
    bool metrics;                            /* the service of that name is offered: spans feed its histograms */
    bool status_page;            /* the service status has its page, which all configurations are shown by */
    apr_time_t mtime;            /* of the file when it was read */
    apr_array_header_t *pending; /* of struct mc_data_pending: data of short forms that are not there */
} mc_config;

/* Builds the model in the order of docs/reference/configuration.md 1.1. Opens nothing but the file (and watermarks).
 * Complaints go to `diagnostics`; an error if any refuses the file. */
mc_error *mc_config_load(mc_config **config, const char *file, mc_diagnostics *diagnostics,
                         apr_pool_t *pool) MC_CHECKED;

/* The same of a text that stands in no file. Complaints call it `name`; relative paths are seen from the folder of that
 * name. */
mc_error *mc_config_load_text(mc_config **config, const char *name, const char *text, mc_diagnostics *diagnostics,
                              apr_pool_t *pool) MC_CHECKED;

/* One generation: the model and its reference count. */
mc_error *mc_server_load(mc_server **server, const char *file, mc_diagnostics *diagnostics,
                         apr_pool_t *parent_pool) MC_CHECKED;
void mc_server_ref(mc_server *server);
void mc_server_unref(mc_server *server);
const mc_config *mc_server_config(const mc_server *server);

/* For messages: that there is no such thing, and what there is instead. */
const char *mc_config_lacks_tileset(const mc_config *config, const char *name, apr_pool_t *pool);
const char *mc_config_lacks_cache(const mc_config *config, const char *name, apr_pool_t *pool);
const char *mc_tileset_lacks_grid(const mc_tileset *tileset, const char *name, apr_pool_t *pool);
const char *mc_tileset_lacks_dimension(const mc_tileset *tileset, const char *name, apr_pool_t *pool);

/*
 * A value for each dimension of a tileset, in its order: the default, or what is given by name (in any case; NULL:
 * nothing is). What the configuration itself says of values is held against the given ones; databases are not asked.
 * MC_ERR_INVALID_DIMENSION where the tileset has no such dimension, or the dimension no such value.
 */
mc_error *mc_tileset_values(const char ***values, const mc_tileset *tileset, const apr_table_t *given,
                            apr_pool_t *pool) MC_CHECKED;

/* How many connections to each database one of so many processes may have. */
int mc_config_connections(const mc_config *config, int processes);

/* <memory_cache> in bytes, for all processes together: as configured, or by the memory of the machine. */
apr_int64_t mc_config_memory(const mc_config *config);

/* Asks the databases of all sources what is wrong with the layers, and how many connections they have room for, and
 * each store that is far away for a tile: not part of loading, because they may be far away, or down. */
void mc_config_inspect(const mc_config *config, int processes, mc_diagnostics *diagnostics, const mc_log *log,
                       apr_pool_t *pool);

/*
 * Budgets of the process from the configurations it serves: the first one's <workers>, <memory_cache>, <memory_budget>,
 * <open_files> win. `processes`: how many processes share them (1 where unknown). threads false: a plain CGI, where no
 * thread is started.
 */
mc_error *mc_runtime_create(mc_runtime **runtime, const mc_config *config, int processes, bool threads,
                            const mc_log *log, apr_pool_t *pool) MC_CHECKED;
void mc_runtime_destroy(mc_runtime *runtime);

/* Stores what waits to be stored, for some seconds; the log has how much was lost. Nothing waits from then on: puts are
 * stored at once. Before mc_runtime_destroy, or instead of it where threads are left that use everything. */
void mc_runtime_drain(mc_runtime *runtime);

/* Whether tiles wait to be stored, so that a configuration that ends takes its time. */
bool mc_runtime_stores_behind(mc_runtime *runtime);

/*
 * Puts <max_slow_requests> and its kin in force; before the first request, and without this call nothing is refused.
 * `threads`: how many requests the front end answers at a time; of 64 or more, an eighth stays free of requests that
 * draw or wait. 0: the configuration alone decides.
 */
void mc_runtime_limit_requests(mc_runtime *runtime, const mc_config *config, int threads);

/*
 * Counters that all processes of a server share: made by their parent, before it forks (shared memory, nothing else);
 * each child gives them to its runtime before its first request. They live as long as the parent.
 */
struct mc_metrics *mc_runtime_metrics_create(void);
void mc_runtime_share_metrics(mc_runtime *runtime, struct mc_metrics *shared);

/*
 * Stored tiles in memory that all processes of a server share: made by their parent, before it forks; each child gives
 * the memory to its runtime before its first request (docs/internals/cache/shared-memory.md). `former`: what an earlier
 * configuration of the same parent had, or NULL; kept, with all tiles in it, where the size is the same, else given up
 * (processes that have it keep it). NULL where one process serves alone, <memory_cache> is 0, or the system has not so
 * much memory: then each process has a memory of its own.
 */
struct mc_shared_cache *mc_runtime_memory_create(const mc_config *config, int processes,
                                                 struct mc_shared_cache *former);
void mc_runtime_share_memory(mc_runtime *runtime, const mc_config *config, int processes,
                             struct mc_shared_cache *shared);

mc_process *mc_runtime_process(mc_runtime *runtime);

/*
 * Writes the capabilities of WMS and WMTS and keeps them for the process, so that who asks first need not wait: after
 * the load, before the configuration is served. Until `deadline` (of mc_clock_now()). Where the configuration has no
 * <url>, the address of each client is filled in later. Nothing is written where a database or data would have to be
 * asked. Then waits for the look at catalogues that mc_server_follow has begun, some hundredths of a second at most.
 */
void mc_server_prepare(const mc_server *server, apr_time_t deadline, mc_process *process, const mc_log *log);

/* Follows the change logs of databases as <changes> says, in a process that lasts: after the load, before the
 * configuration is served. What was followed for another configuration of the same file is not followed any more. Also
 * begins the look at its catalogues (lib/map/ahead.h), which holds the configuration until it ends. */
void mc_server_follow(mc_server *server, mc_process *process);

/* Microseconds for all configurations of a process together: they are waited for. */
#define MC_PREPARING_TIME (2 * APR_USEC_PER_SEC)

typedef struct mc_http_request {
    const char *method;
    const char *path;     /* what follows the alias, URL-decoded once; "" or "/..." */
    const char *query;    /* raw, without "?"; NULL or "" if there is none */
    const char *base_url; /* scheme://host[:port]/alias without a trailing slash */
    const apr_table_t *headers;
    const char *client; /* address */
    /* Reads the body of a POST: at most `limit` bytes, MC_ERR_TOO_LARGE beyond. NULL: there is none. */
    mc_error *(*read_body)(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool);
    void *read_body_baton;
} mc_http_request;

typedef struct mc_http_response {
    int status;
    apr_table_t
        *headers; /* Content-Type, ETag, Last-Modified, Cache-Control, Expires, CORS, ...; never Content-Length */
    mc_buf *body; /* NULL: none; lives in the pool */
} mc_http_response;

/*
 * Answers a request; never fails: errors become responses. HEAD is answered like GET, the front end leaves the body out
 * (and says its length). Preconditions (If-None-Match, If-Modified-Since) are evaluated here: 304 responses have no
 * body. Opens span mapcache_handler.
 */
void mc_server_handle(mc_http_response **response, mc_server *server, const mc_http_request *request, mc_ctx *ctx,
                      apr_pool_t *pool);

/* For front ends that are sent bodies before anybody reads them: so many bytes of the request's body the service would
 * read at most; 0: none. */
size_t mc_server_body_limit(const mc_server *server, const mc_http_request *request, apr_pool_t *pool);

#endif
