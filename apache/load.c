/*
 * Loading the files that aliases name. httpd reads its configuration twice when it starts; what the first reading has
 * parsed is carried over to the second, unless the file has changed in between. A restart always reads again.
 */
#include "mod_mapcache.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <http_core.h>
#include <sys/stat.h>

#include "base/files.h"

APLOG_USE_MODULE(mapcache);

typedef struct loaded_file {
    apr_pool_t *pool; /* outlives the reading that made it */
    mc_server *server;
    mc_diagnostics *diagnostics;
    struct stat stamp;
} loaded_file;

static const char carried_key[] = "mapcache: files of the first reading";
static const char current_key[] = "mapcache: files of this reading";

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

static apr_status_t
release_file(void *data)
{
    loaded_file *file = data;
    apr_pool_destroy(file->pool);
    return APR_SUCCESS;
}

static const char *
load_server_file(loaded_file **out, const char *name, const struct stat *stamp, cmd_parms *cmd)
{
    apr_pool_t *pool; /* no other pool's child: when the process ends, nobody else may destroy it first */
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    loaded_file *file = apr_pcalloc(pool, sizeof(*file));
    file->pool = pool;
    file->stamp = *stamp;
    file->diagnostics = mc_diagnostics_create(pool);
    mc_error *error = mc_server_load(&file->server, name, file->diagnostics, pool);
    if (error != MC_OK) {
        const char *text = apr_pstrdup(cmd->pool, error->message);
        if (error->cause != NULL)
            text = apr_pstrcat(cmd->pool, text, ": ", mc_error_chain(error->cause, cmd->pool), NULL);
        apr_pool_destroy(pool);
        return text;
    }
    *out = file;
    return NULL;
}

/* The file as the first reading left it, if it is still the same; out of the table, for its new owner. */
static loaded_file *
take_carried(const char *name, const struct stat *stamp, apr_pool_t *process_pool)
{
    apr_hash_t *carried = table_of(carried_key, process_pool);
    loaded_file *file = apr_hash_get(carried, name, APR_HASH_KEY_STRING);
    if (file == NULL || !mc_files_same(&file->stamp, stamp))
        return NULL;
    apr_hash_set(carried, name, APR_HASH_KEY_STRING, NULL);
    return file;
}

const char *
frontend_load(frontend_alias *alias, cmd_parms *cmd)
{
    apr_pool_t *process_pool = cmd->server->process->pool;
    bool first_reading = ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG;
    apr_hash_t *current = first_reading ? table_of(carried_key, process_pool) : table_of(current_key, cmd->pool);
    loaded_file *file = apr_hash_get(current, alias->file, APR_HASH_KEY_STRING);
    if (file == NULL) {
        struct stat stamp;
        if (stat(alias->file, &stamp) != 0)
            return apr_psprintf(cmd->pool, "%s: the file cannot be read: %pm", alias->file,
                                &(apr_status_t){ APR_FROM_OS_ERROR(errno) });
        if (!first_reading)
            file = take_carried(alias->file, &stamp, process_pool);
        if (file == NULL) {
            const char *wrong = load_server_file(&file, alias->file, &stamp, cmd);
            if (wrong != NULL)
                return wrong;
        }
        apr_hash_set(current, apr_pstrdup(file->pool, alias->file), APR_HASH_KEY_STRING, file);
        if (!first_reading)
            apr_pool_cleanup_register(cmd->pool, file, release_file, apr_pool_cleanup_null);
    }
    alias->server = file->server;
    alias->diagnostics = file->diagnostics;
    return NULL;
}

void
frontend_load_finished(apr_pool_t *process_pool)
{
    apr_hash_t *carried = table_of(carried_key, process_pool);
    for (apr_hash_index_t *i = apr_hash_first(NULL, carried); i != NULL; i = apr_hash_next(i)) {
        void *file;
        apr_hash_this(i, NULL, NULL, &file);
        release_file(file);
    }
    apr_hash_clear(carried);
}
