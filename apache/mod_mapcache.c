/*
 * The Apache module: the directive MapCacheAlias, the hooks that find a request's alias, and the process runtime.
 * Everything that is not httpd's is done by the library (include/mapcache/server.h).
 *
 *     MapCacheAlias <url path> <file> [quick]
 *
 * Ordinary aliases are taken in the fixups hook, after authentication, authorisation and rewriting. `quick` ones are
 * answered before any of that: faster, and open to everybody.
 */
#include "mod_mapcache.h"

#include <ap_mpm.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "config/reload_state.h"
#include "directives.h"

APLOG_USE_MODULE(mapcache);

static const char handler_name[] = "mapcache";

typedef struct frontend_server_config {
    apr_array_header_t *aliases; /* frontend_alias *, in the order of trying */
    bool any_quick;
} frontend_server_config;

/* What fixups has found out for the handler. */
typedef struct frontend_match {
    const frontend_alias *alias;
    const char *path;
} frontend_match;

/* One for the process, for all aliases; NULL in the parent, and where it could not be made. */
static mc_runtime *process_runtime;
/* Of all processes, as long as the server lives. */
static struct mc_metrics *server_metrics;
static struct mc_shared_cache *server_memory;
static mc_log process_log;

static void *
create_server_config(apr_pool_t *pool, server_rec *s)
{
    (void)s;
    frontend_server_config *config = apr_pcalloc(pool, sizeof(*config));
    config->aliases = apr_array_make(pool, 2, sizeof(frontend_alias *));
    return config;
}

/* A virtual host's own aliases are tried before those of the main server. */
static void *
merge_server_config(apr_pool_t *pool, void *main_config, void *host_config)
{
    const frontend_server_config *outer = main_config;
    const frontend_server_config *inner = host_config;
    frontend_server_config *config = apr_pcalloc(pool, sizeof(*config));
    config->aliases = apr_array_append(pool, inner->aliases, outer->aliases);
    config->any_quick = inner->any_quick || outer->any_quick;
    return config;
}

static const char *
set_alias(cmd_parms *cmd, void *unused, const char *path, const char *file, const char *mode)
{
    (void)unused;
    const char *misplaced = ap_check_cmd_context(cmd, NOT_IN_DIR_LOC_FILE);
    if (misplaced != NULL)
        return misplaced;
    if (path[0] != '/')
        return apr_pstrcat(cmd->pool, "MapCacheAlias: the URL path must begin with a slash: ", path, NULL);
    frontend_server_config *config = ap_get_module_config(cmd->server->module_config, &mapcache_module);
    frontend_alias *alias = apr_pcalloc(cmd->pool, sizeof(*alias));
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    alias->path = apr_pstrmemdup(cmd->pool, path, length);
    alias->file = ap_server_root_relative(cmd->pool, file);
    if (alias->file == NULL)
        return apr_pstrcat(cmd->pool, "MapCacheAlias: not a file path: ", file, NULL);
    alias->quick = mode != NULL && strcmp(mode, "quick") == 0;
    const char *wrong = frontend_load(alias, cmd);
    if (wrong != NULL)
        return apr_pstrcat(cmd->pool, "MapCacheAlias ", path, ": ", wrong, NULL);
    APR_ARRAY_PUSH(config->aliases, frontend_alias *) = alias;
    config->any_quick = config->any_quick || alias->quick;
    return NULL;
}

/*
 * What follows the alias in a decoded path ("" or "/..."), or NULL. As mod_alias: a run of slashes matches any run of
 * slashes, and a match ends at the end of the path or at a slash.
 */
static const char *
match_alias(const char *path, const char *alias)
{
    while (*alias != '\0') {
        if (*alias == '/') {
            if (*path != '/')
                return NULL;
            while (*alias == '/')
                alias++;
            while (*path == '/')
                path++;
        } else if (*alias++ != *path++) {
            return NULL;
        }
    }
    return *path == '\0' || *path == '/' ? path : NULL;
}

static const frontend_alias *
find_alias(const char **rest, const request_rec *r, const char *path, bool quick)
{
    const frontend_server_config *config = ap_get_module_config(r->server->module_config, &mapcache_module);
    for (int i = 0; i < config->aliases->nelts; i++) {
        const frontend_alias *alias = APR_ARRAY_IDX(config->aliases, i, const frontend_alias *);
        *rest = match_alias(path, alias->path);
        if (*rest != NULL) /* the first one that matches decides, so that the order means the same in both hooks */
            return alias->quick == quick ? alias : NULL;
    }
    return NULL;
}

/* The path as httpd will have decoded it when it looks for access rules; NULL where httpd would refuse it. */
static const char *
decoded_path(const request_rec *r)
{
    if (r->uri == NULL || r->uri[0] != '/')
        return NULL;
    if (strchr(r->uri, '%') == NULL && strstr(r->uri, "/.") == NULL)
        return r->uri;
    char *path = apr_pstrdup(r->pool, r->uri);
    if (!ap_normalize_path(path, AP_NORMALIZE_NOT_ABOVE_ROOT | AP_NORMALIZE_DECODE_UNRESERVED))
        return NULL;
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config); /* AllowEncodedSlashes */
    int status = core->allow_encoded_slashes ? ap_unescape_url_keep2f(path, core->decode_encoded_slashes)
                                             : ap_unescape_url(path);
    return status == OK ? path : NULL;
}

static int
quick_handler(request_rec *r, int lookup)
{
    const frontend_server_config *config = ap_get_module_config(r->server->module_config, &mapcache_module);
    if (lookup || !config->any_quick)
        return DECLINED;
    const char *path = decoded_path(r);
    const char *rest;
    const frontend_alias *alias = path == NULL ? NULL : find_alias(&rest, r, path, true);
    if (alias == NULL)
        return DECLINED;
    return frontend_exchange(r, alias, rest, process_runtime);
}

static int
match_alias_at_fixups(request_rec *r)
{
    if (r->handler != NULL || r->uri == NULL)
        return DECLINED;
    const char *rest;
    const frontend_alias *alias = find_alias(&rest, r, r->uri, false);
    if (alias == NULL)
        return DECLINED;
    frontend_match *match = apr_palloc(r->pool, sizeof(*match));
    match->alias = alias;
    match->path = rest;
    ap_set_module_config(r->request_config, &mapcache_module, match);
    r->handler = handler_name;
    return OK;
}

static int
content_handler(request_rec *r)
{
    if (r->handler == NULL || strcmp(r->handler, handler_name) != 0)
        return DECLINED;
    const frontend_match *match = ap_get_module_config(r->request_config, &mapcache_module);
    if (match == NULL)
        return DECLINED; /* somebody else's SetHandler: without an alias there is nothing to serve */
    return frontend_exchange(r, match->alias, match->path, process_runtime);
}

/* How many aliases of the host are its own: those come first. Merged hosts end with the main server's aliases. */
static int
own_aliases(const apr_array_header_t **aliases, const server_rec *host, server_rec *main_server)
{
    const frontend_server_config *own = ap_get_module_config(host->module_config, &mapcache_module);
    const frontend_server_config *outer = ap_get_module_config(main_server->module_config, &mapcache_module);
    *aliases = own->aliases;
    return own->aliases->nelts - (host == main_server ? 0 : outer->aliases->nelts);
}

static void
log_alias(const frontend_alias *alias, server_rec *s)
{
    const apr_array_header_t *complaints = alias->diagnostics->complaints;
    for (int i = 0; i < complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(complaints, i, mc_complaint);
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s, "%s:%d:%d: %s", complaint->file, complaint->line,
                     complaint->column, complaint->text);
    }
    if (alias->reload->error != NULL) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "failed to reload config file %s, what was loaded before stays: %s",
                     alias->file, alias->reload->error);
        return;
    }
    ap_log_error(APLOG_MARK, APLOG_INFO, 0, s, "loaded mapcache configuration file from %s on %sendpoint %s",
                 alias->file, alias->quick ? "(quick) " : "", alias->path[0] == '\0' ? "/" : alias->path);
}

static const frontend_alias *
first_alias(server_rec *main_server)
{
    for (server_rec *s = main_server; s != NULL; s = s->next) {
        const frontend_server_config *config = ap_get_module_config(s->module_config, &mapcache_module);
        if (config->aliases->nelts > 0)
            return APR_ARRAY_IDX(config->aliases, 0, const frontend_alias *);
    }
    return NULL;
}

/* The most processes that serve at a time. */
static int
count_httpd_processes(void)
{
    int processes = 1;
    return ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &processes) == APR_SUCCESS && processes > 1 ? processes : 1;
}

/* What children that are forked from now on have in common. */
static void
make_shared_parts(server_rec *main_server)
{
    const frontend_alias *alias = first_alias(main_server);
    if (server_metrics == NULL)
        server_metrics = mc_runtime_metrics_create();
    if (alias != NULL)
        server_memory =
            mc_runtime_memory_create(mc_server_config(alias->server), count_httpd_processes(), server_memory);
}

static int
post_config(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary_pool, server_rec *main_server)
{
    (void)log_pool;
    (void)temporary_pool;
    ap_add_version_component(pool, "mod-mapcache/" MC_VERSION);
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG)
        return OK;
    frontend_load_finished(main_server->process->pool);
    make_shared_parts(main_server);
    for (server_rec *s = main_server; s != NULL; s = s->next) {
        const apr_array_header_t *aliases;
        int count = own_aliases(&aliases, s, main_server);
        for (int i = 0; i < count; i++)
            log_alias(APR_ARRAY_IDX(aliases, i, const frontend_alias *), s);
    }
    return OK;
}

static void
write_process_message(void *baton, mc_log_level level, const char *message)
{
    ap_log_error(APLOG_MARK, (int)level, 0, (server_rec *)baton, "%s", message);
}

static apr_status_t
end_runtime(void *unused)
{
    (void)unused;
    mc_runtime_destroy(process_runtime);
    process_runtime = NULL;
    return APR_SUCCESS;
}

/* For /ready and others. */
static void
tell_of_alias_reload(const frontend_alias *alias)
{
    mc_reload_states *states = mc_runtime_process(process_runtime)->reloads;
    mc_reload_states_tell_text(states, alias->file, NULL, alias->reload->loaded);
    if (alias->reload->error != NULL)
        mc_reload_states_tell_text(states, alias->file, alias->reload->error, alias->reload->failed);
}

/* What all aliases follow; and their capabilities, in the order of the configuration of Apache. */
static void
prepare_aliases(server_rec *main_server)
{
    for (server_rec *s = main_server; s != NULL; s = s->next) {
        const apr_array_header_t *aliases;
        int count = own_aliases(&aliases, s, main_server);
        for (int i = 0; i < count; i++) {
            const frontend_alias *alias = APR_ARRAY_IDX(aliases, i, const frontend_alias *);
            tell_of_alias_reload(alias);
            mc_server_follow(alias->server, mc_runtime_process(process_runtime));
        }
    }
    const apr_time_t deadline = mc_clock_now() + MC_PREPARING_TIME;
    for (server_rec *s = main_server; s != NULL; s = s->next) {
        const apr_array_header_t *aliases;
        int count = own_aliases(&aliases, s, main_server);
        for (int i = 0; i < count && mc_clock_now() < deadline; i++)
            mc_server_prepare(APR_ARRAY_IDX(aliases, i, const frontend_alias *)->server, deadline,
                              mc_runtime_process(process_runtime), &process_log);
    }
}

/* Threads, handles and connections exist from here on, after the fork. */
static void
child_init(apr_pool_t *child_pool, server_rec *main_server)
{
    const frontend_alias *alias = first_alias(main_server);
    if (alias == NULL)
        return;
    const mc_config *config = mc_server_config(alias->server);
    const int processes = count_httpd_processes();
    int threads = 1;
    int threaded = AP_MPMQ_NOT_SUPPORTED;
    ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded);
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);

    process_log.level = frontend_log_level(ap_get_server_module_loglevel(main_server, APLOG_MODULE_INDEX));
    process_log.write = write_process_message;
    process_log.baton = main_server;
    /* prefork ends its children inside a signal handler, where nothing may be closed in order: there the runtime's pool
     * belongs to nobody and ends with the process. */
    apr_pool_t *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    mc_error *error = mc_runtime_create(&process_runtime, config, processes, true, &process_log, pool);
    if (error != MC_OK) {
        process_runtime = NULL;
        ap_log_error(APLOG_MARK, APLOG_CRIT, 0, main_server, "mapcache cannot serve: %s", mc_error_chain(error, pool));
        return;
    }
    mc_runtime_limit_requests(process_runtime, config, threads);
    mc_runtime_share_metrics(process_runtime, server_metrics);
    mc_runtime_share_memory(process_runtime, config, processes, server_memory);
    mc_runtime_process(process_runtime)->lasting = threaded != AP_MPMQ_NOT_SUPPORTED;
    if (threaded != AP_MPMQ_NOT_SUPPORTED)
        apr_pool_cleanup_register(child_pool, NULL, end_runtime, apr_pool_cleanup_null);
    prepare_aliases(main_server);
    ap_log_error(APLOG_MARK, APLOG_DEBUG, 0, main_server, "mapcache runtime of one of at most %d processes is ready",
                 processes);
}

static void
register_hooks(apr_pool_t *pool)
{
    (void)pool;
    frontend_cors_register();
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_quick_handler(quick_handler, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_fixups(match_alias_at_fixups, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(content_handler, NULL, NULL, APR_HOOK_MIDDLE);
}

static const command_rec directives[] = {
#define X(name, values, function, help) AP_INIT_TAKE23(name, function, NULL, RSRC_CONF, help),
    MC_APACHE_DIRECTIVES(X)
#undef X
        { NULL },
};

module AP_MODULE_DECLARE_DATA mapcache_module = {
    STANDARD20_MODULE_STUFF, NULL,       NULL,           create_server_config,
    merge_server_config,     directives, register_hooks, AP_MODULE_FLAG_NONE,
};
