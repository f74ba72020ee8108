/*
 * What the files of the Apache module share: an alias, and the steps from the directive to the response.
 */
#ifndef MOD_MAPCACHE_H
#define MOD_MAPCACHE_H

#include <httpd.h> /* first: httpd's other headers need it */

#include <apr_buckets.h>
#include <apr_portable.h>
#include <http_config.h>
#include <http_log.h>

#include "mapcache/server.h"

extern module AP_MODULE_DECLARE_DATA mapcache_module;

/* What became of the last load of a file. */
typedef struct frontend_reload {
    apr_time_t loaded; /* when what is in use was loaded */
    apr_time_t failed; /* when the file was read last, where it could not be used */
    char *error;       /* why; NULL: it is in use */
} frontend_reload;

/* One MapCacheAlias. Made while the configuration is read; not changed afterwards. */
typedef struct frontend_alias {
    const char *path; /* without a trailing slash; "" for the whole host */
    const char *file;
    bool quick;
    mc_server *server;
    const mc_diagnostics *diagnostics; /* what was complained about, for the log */
    const frontend_reload *reload;
} frontend_alias;

/* load.c: reads a file at most once in each reading of the configuration, and once for the two readings of a start.
 * Returns NULL, or what is wrong with the file in cmd->pool: not at a restart, where what served before goes on. */
const char *frontend_load(frontend_alias *alias, cmd_parms *cmd);
/* Frees what the readings before left behind and the last one did not take. */
void frontend_load_finished(apr_pool_t *process_pool);

/* exchange.c: answers a request for `alias`; `path` is what follows the alias, decoded. An httpd handler's result. */
int frontend_exchange(request_rec *r, const frontend_alias *alias, const char *path, mc_runtime *runtime);

/* cors.c: the headers of CORS of a response, unless httpd sets its own, before or after. */
void frontend_cors_register(void);
bool frontend_cors_owns(const char *name);
void frontend_cors_set(request_rec *r, const apr_table_t *headers);

/* requestlog.c: where messages and traces of a request go. Lives on the stack of the request's thread. */
typedef struct frontend_log {
    mc_log log;
    request_rec *r;
    apr_os_thread_t thread; /* the request's own: only it may touch r->pool */
} frontend_log;

void frontend_log_init(frontend_log *log, request_rec *r);
mc_trace *frontend_trace_create(request_rec *r); /* NULL unless the module's level is debug */
mc_log_level frontend_log_level(int httpd_level);

#endif
