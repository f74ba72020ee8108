/*
 * Loading the files that aliases name. httpd reads its configuration twice when it starts; what the first reading has
 * parsed is carried over to the second, unless a file has changed in between. A restart always reads again; where a
 * file cannot be used then, what it was before the restart stays in force, because httpd would end otherwise.
 */
#include "mod_mapcache.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <http_core.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_files.h"

APLOG_USE_MODULE(mapcache);

typedef struct loaded_file {
    apr_pool_t *pool; /* outlives the reading that made it */
    apr_pool_t *process_pool;
    const char *name;
    mc_server *server;
    mc_diagnostics *diagnostics;
    frontend_reload reload;
} loaded_file;

static const char carried_key[] = "mapcache: files of the first reading";
static const char current_key[] = "mapcache: files of this reading";
static const char former_key[] = "mapcache: files of the reading before";

static apr_hash_t *
table_of(const char *key, apr_pool_t *pool)
{
    void *table = NULL;
    apr_pool_userdata_get(&table, key, pool);
    if (table == NULL) {
        table = apr_hash_make(pool);
        apr_pool_userdata_setn(table, key, NULL, pool);
    }
    return table;
}

static void
release_files(apr_hash_t *table)
{
    for (apr_hash_index_t *i; (i = apr_hash_first(NULL, table)) != NULL;) {
        void *file;
        apr_hash_this(i, NULL, NULL, &file);
        apr_hash_set(table, ((loaded_file *)file)->name, APR_HASH_KEY_STRING, NULL); /* first: the key goes with it */
        apr_pool_destroy(((loaded_file *)file)->pool);
    }
}

static apr_status_t
release_former_files(void *process_pool)
{
    release_files(table_of(former_key, process_pool));
    return APR_SUCCESS;
}

/* When httpd forgets a reading: what it has loaded is kept until the next one has come to its end. */
static apr_status_t
retire_file(void *data)
{
    loaded_file *file = data;
    apr_hash_set(table_of(former_key, file->process_pool), file->name, APR_HASH_KEY_STRING, file);
    return APR_SUCCESS;
}

static const char *
load_server_file(loaded_file **out, const char *name, cmd_parms *cmd)
{
    apr_pool_t *pool; /* no other pool's child: when the process ends, nobody else may destroy it first */
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    loaded_file *file = apr_pcalloc(pool, sizeof(*file));
    file->pool = pool;
    file->process_pool = cmd->server->process->pool;
    file->name = apr_pstrdup(pool, name);
    file->diagnostics = mc_diagnostics_create(pool);
    mc_error *error = mc_server_load(&file->server, name, file->diagnostics, pool);
    if (error != MC_OK) {
        const char *text = apr_pstrdup(cmd->pool, error->message);
        if (error->cause != NULL)
            text = apr_pstrcat(cmd->pool, text, ": ", mc_error_chain(error->cause, cmd->pool), NULL);
        apr_pool_destroy(pool);
        return text;
    }
    file->reload.loaded = apr_time_now();
    *out = file;
    return NULL;
}

/* Out of a table, for its new owner; NULL: not there. */
static loaded_file *
take_file(const char *key, const char *name, apr_pool_t *process_pool)
{
    apr_hash_t *table = table_of(key, process_pool);
    loaded_file *file = apr_hash_get(table, name, APR_HASH_KEY_STRING);
    if (file != NULL)
        apr_hash_set(table, file->name, APR_HASH_KEY_STRING, NULL);
    return file;
}

/* The file as the first reading left it, if it and all that it was read of are still the same. */
static loaded_file *
take_carried(const char *name, apr_pool_t *process_pool)
{
    loaded_file *file = take_file(carried_key, name, process_pool);
    if (file == NULL || mc_config_files_changed(file->diagnostics->read) == NULL)
        return file;
    apr_pool_destroy(file->pool);
    return NULL;
}

/* What served before this restart, instead of what cannot be used. */
static loaded_file *
take_former(const char *name, const char *wrong, apr_pool_t *process_pool)
{
    loaded_file *file = take_file(former_key, name, process_pool);
    if (file == NULL)
        return NULL;
    free(file->reload.error);
    file->reload.error = strdup(wrong);
    file->reload.failed = apr_time_now();
    return file;
}

static apr_status_t
forget_error(void *data)
{
    loaded_file *file = data;
    free(file->reload.error);
    return APR_SUCCESS;
}

/* *out: newly loaded, or what is to be used in its place. */
static const char *
load_or_keep(loaded_file **out, const char *name, bool first_reading, cmd_parms *cmd)
{
    apr_pool_t *process_pool = cmd->server->process->pool;
    *out = first_reading ? NULL : take_carried(name, process_pool);
    if (*out != NULL)
        return NULL;
    const char *wrong = load_server_file(out, name, cmd);
    if (wrong == NULL)
        apr_pool_cleanup_register((*out)->pool, *out, forget_error, apr_pool_cleanup_null);
    else
        *out = take_former(name, wrong, process_pool);
    return *out == NULL ? wrong : NULL;
}

const char *
frontend_load(frontend_alias *alias, cmd_parms *cmd)
{
    apr_pool_t *process_pool = cmd->server->process->pool;
    bool first_reading = ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG;
    apr_hash_t *current = first_reading ? table_of(carried_key, process_pool) : table_of(current_key, cmd->pool);
    loaded_file *file = apr_hash_get(current, alias->file, APR_HASH_KEY_STRING);
    if (file == NULL) {
        const char *wrong = load_or_keep(&file, alias->file, first_reading, cmd);
        if (wrong != NULL)
            return wrong;
        apr_hash_set(current, file->name, APR_HASH_KEY_STRING, file);
        if (!first_reading)
            apr_pool_cleanup_register(cmd->pool, file, retire_file, apr_pool_cleanup_null);
    }
    alias->server = file->server;
    alias->diagnostics = file->diagnostics;
    alias->reload = &file->reload;
    return NULL;
}

void
frontend_load_finished(apr_pool_t *process_pool)
{
    static bool registered;
    release_files(table_of(carried_key, process_pool));
    release_files(table_of(former_key, process_pool));
    if (!registered)
        apr_pool_cleanup_register(process_pool, process_pool, release_former_files, apr_pool_cleanup_null);
    registered = true;
}
