/*
 * What a request, or a job on a worker, carries along: pools, the log, the trace, a deadline. Never shared between
 * threads. And what lives as long as the process (mc_process), shared by all of its requests.
 */
#ifndef MAPCACHE_CTX_H
#define MAPCACHE_CTX_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

#include "mapcache/error.h"

typedef enum mc_log_level {
    MC_LOG_EMERG,
    MC_LOG_ALERT,
    MC_LOG_CRIT,
    MC_LOG_ERROR,
    MC_LOG_WARN,
    MC_LOG_NOTICE,
    MC_LOG_INFO,
    MC_LOG_DEBUG,
} mc_log_level;

/* Where messages go: httpd's request log, standard error, a test's buffer. `write` is called from any thread. */
typedef struct mc_log {
    mc_log_level level; /* messages above it are dropped before they are formatted */
    void (*write)(void *baton, mc_log_level level, const char *message);
    void *baton;
} mc_log;

/* Told of errors and warnings, whatever the level of the log: for the status page. Called from any thread. */
struct mc_ctx;
typedef void mc_log_tap(const struct mc_ctx *ctx, mc_log_level level, const char *message);

/* One for each process, built by lib/server after the fork. Every member has its own lock inside. A NULL member is
 * "off". */
typedef struct mc_process {
    struct mc_workers *workers;               /* CPU workers (lib/base) */
    struct mc_workers *io;                    /* threads that may wait for origins and databases (lib/base) */
    struct mc_admissions *admissions;         /* how many requests may wait or draw at a time (lib/base) */
    struct mc_semaphore *drawing;             /* how many maps are drawn or composed at a time (lib/base) */
    struct mc_metrics *metrics;               /* counters and histograms (lib/base) */
    struct mc_exporter *exporter;             /* sends traces (lib/telemetry) */
    struct mc_http *http;                     /* connections to origins (lib/base) */
    struct mc_handles *handles;               /* open SQLite files (lib/db) */
    struct mc_postgres *postgres;             /* connections to PostgreSQL (lib/db) */
    struct mc_remotes *remotes;               /* connections to servers of keys and values (lib/remote) */
    struct mc_flights *flights;               /* who renders which metatile (lib/lock) */
    struct mc_memory *memory;                 /* stored tiles, footprints, absences (lib/cache) */
    struct mc_folder_watches *watches;        /* folders of products of which changes are reported (lib/footprint) */
    struct mc_coverage_index *coverages;      /* what a file tells of products (lib/footprint) */
    struct mc_clock_cache *query_results;     /* what the databases of dimensions have said (lib/dimension) */
    struct mc_clock_cache *provisional;       /* tiles that are not to be stored (lib/tileset) */
    struct mc_documents *documents;           /* capabilities as they were written last (lib/service) */
    struct mc_write_behinds *write_behinds;   /* puts that wait for slow stores (lib/cache) */
    struct mc_refreshes *refreshes;           /* who draws old tiles anew behind answers (lib/tileset) */
    struct mc_changes *changes;               /* who follows change logs, and the marks of old tiles (lib/changes) */
    struct mc_overview_follower *overviews;   /* who updates overviews after changes (lib/overview) */
    struct mc_ahead *ahead;                   /* who looks at catalogues before anybody asks (lib/map) */
    struct mc_expire_folders *expire_folders; /* who takes expire lists out of folders (lib/server) */
    struct mc_purgers *purgers;               /* who purges caches in front (lib/cdn) */
    struct mc_quotas *quotas;                 /* threads that keep caches to their <max_size> (lib/cache/quota) */
    bool brief;                               /* ends after one request: what is made once for many maps does not pay */
    bool lasting;                             /* serves until it is told to end, and then closes what it has open */
    _Atomic bool draining;                    /* it has been told to end */
    _Atomic(mc_log_tap *) tap;                /* NULL: no configuration has a status page, nothing is noted for it */
    struct mc_probes *probes;                 /* whether stores and databases answer (lib/service/operations) */
    struct mc_reload_states *reloads;         /* how the last load of each configuration ended (lib/config) */
} mc_process;

/* What a request's tilesets live in, and how it is kept beyond the request: each taking is dropped once, on any thread.
 */
typedef struct mc_owner {
    void (*take)(void *thing);
    void (*drop)(void *thing);
    void *thing;
} mc_owner;

typedef struct mc_ctx {
    apr_pool_t *pool; /* scratch of this request or job; never another thread's */
    mc_process *process;
    const mc_log *log;
    struct mc_trace *trace;         /* NULL: tracing is off */
    struct mc_account *account;     /* what is known of the request (lib/base); NULL: it is no client's request */
    struct mc_cache_reads *reads;   /* gets that share a look at their file (lib/cache); NULL: each by itself */
    struct mc_admission *admission; /* of the request, with its copies (lib/base); NULL: everything is let in */
    struct mc_semaphore *inside;    /* the gate that has been passed, or NULL (lib/base) */
    struct mc_cache_writes *writes; /* puts that wait for their common transaction (lib/cache); NULL: none waits */
    struct mc_lock_session *locks;  /* of a lock server, that has the locks held for this request (lib/lock) */
    struct mc_made_tiles *made;     /* what a metatile has come to, for who waits for it (lib/tileset); or NULL */
    bool wants_fresh;               /* what is made of tiles now is kept: stale ones are waited for (lib/tileset) */
    bool past_memory;               /* what memory keeps for a time is known to be old (lib/cache) */
    bool bulk;                      /* such a transaction is being stored */
    apr_time_t deadline;            /* by mc_clock_now() (base/clock.h), 0 for none */
    apr_interval_time_t allowance;  /* from the begin of the request to its deadline; 0: unknown */
    const mc_owner *owner;          /* of the configuration; NULL: nothing may outlive the request */
    const apr_table_t *headers;     /* of the client's request, for {Header} in origin headers; may be NULL */
    bool (*abandoned)(void *baton); /* true once the client has gone; may be NULL; cheap, called between steps */
    void *abandoned_baton;
    void (*slow)(void *baton, bool begins); /* told by mc_slow_begin and mc_slow_end; may be NULL */
    void *slow_baton;
} mc_ctx;

/*
 * Around what may take long: waiting for an origin, a lock, a database, or much computing. A front end that answers
 * quick requests on few threads lets another thread take over meanwhile. On the request's own thread only, may be
 * nested, and no lock is held when it ends, because the thread may then have to wait for its turn.
 */
static inline mc_ctx *
mc_slow_begin(mc_ctx *ctx)
{
    if (ctx->slow != 0)
        ctx->slow(ctx->slow_baton, true);
    return ctx;
}

static inline void
mc_slow_end(mc_ctx **ctx)
{
    if ((*ctx)->slow != 0)
        (*ctx)->slow((*ctx)->slow_baton, false);
}

/* The rest of the enclosing scope is slow. */
#define MC_SLOW(ctx) __attribute__((cleanup(mc_slow_end), unused)) mc_ctx *mc_slow_scope = mc_slow_begin(ctx)

/* Formats and writes one message; newlines and control characters inside are made harmless. */
void mc_log_write(const mc_ctx *ctx, mc_log_level level, const char *format, ...) MC_PRINTF(3, 4);

/* Logs an error with its whole chain. */
void mc_log_error(const mc_ctx *ctx, mc_log_level level, const mc_error *error);

/* Writes "[time] [mapcache:level] [pid N:tid M] message" lines to standard error, one write each. */
extern const mc_log mc_log_stderr;

/* Whether the client has gone, so that nobody waits for the answer. */
static inline bool
mc_ctx_abandoned(const mc_ctx *ctx)
{
    return ctx->abandoned != NULL && ctx->abandoned(ctx->abandoned_baton);
}

/* MC_ERR_UNAVAILABLE once the deadline has passed or the client has gone; else MC_OK. */
mc_error *mc_ctx_check(mc_ctx *ctx, apr_pool_t *result_pool) MC_CHECKED;

/* Microseconds until the deadline, at least 0; `otherwise` when there is none or it is further away than that. */
apr_interval_time_t mc_ctx_remaining(const mc_ctx *ctx, apr_interval_time_t otherwise);

#endif
