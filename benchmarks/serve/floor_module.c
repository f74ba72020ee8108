/* The least that Apache costs: a quick handler that answers the files of a folder from memory. FloorFolder names the
 * folder. */
#include <httpd.h> /* first: the others rely on it */

#include <apr_buckets.h>
#include <apr_file_io.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <http_config.h>
#include <http_protocol.h>
#include <string.h>

typedef struct body {
    char *data;
    apr_size_t size;
} body;

static apr_hash_t *bodies; /* by file name */

static const char *
read_file(const char *path, const char *name, apr_pool_t *pool)
{
    apr_file_t *handle;
    apr_finfo_t info;
    body *b = apr_pcalloc(pool, sizeof(*b));
    if (apr_file_open(&handle, path, APR_READ, 0, pool) != APR_SUCCESS ||
        apr_file_info_get(&info, APR_FINFO_SIZE, handle) != APR_SUCCESS)
        return "cannot read the folder's files";
    b->size = (apr_size_t)info.size;
    b->data = apr_palloc(pool, b->size);
    apr_status_t status = apr_file_read_full(handle, b->data, b->size, NULL);
    apr_file_close(handle);
    apr_hash_set(bodies, apr_pstrdup(pool, name), APR_HASH_KEY_STRING, b);
    return status == APR_SUCCESS ? NULL : "cannot read the folder's files";
}

static const char *
set_folder(cmd_parms *cmd, void *unused, const char *folder)
{
    apr_dir_t *dir;
    apr_finfo_t entry;
    const char *error = NULL;
    apr_pool_t *pool = cmd->server->process->pool;
    (void)unused;
    bodies = apr_hash_make(pool);
    if (apr_dir_open(&dir, folder, cmd->pool) != APR_SUCCESS)
        return "cannot read the folder";
    while (error == NULL && apr_dir_read(&entry, APR_FINFO_NAME, dir) == APR_SUCCESS)
        if (entry.name[0] != '.')
            error = read_file(apr_pstrcat(pool, folder, "/", entry.name, NULL), entry.name, pool);
    apr_dir_close(dir);
    return error;
}

static int
answer_from_folder(request_rec *r, int lookup)
{
    if (lookup || strncmp(r->uri, "/floor/", 7) != 0)
        return DECLINED;
    const body *b = apr_hash_get(bodies, r->uri + 7, APR_HASH_KEY_STRING);
    if (b == NULL)
        return HTTP_NOT_FOUND;
    ap_set_content_type(r, "image/jpeg");
    ap_set_content_length(r, (apr_off_t)b->size);
    apr_table_setn(r->headers_out, "ETag", "\"0123456789abcdef\"");
    apr_table_setn(r->headers_out, "Cache-Control", "max-age=300");
    apr_table_setn(r->headers_out, "Expires", "Thu, 01 Jan 2037 00:00:00 GMT");
    apr_table_setn(r->headers_out, "Last-Modified", "Thu, 01 Jan 2015 00:00:00 GMT");
    apr_table_setn(r->headers_out, "Access-Control-Allow-Origin", "*");
    apr_bucket_brigade *out = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    APR_BRIGADE_INSERT_TAIL(out, apr_bucket_immortal_create(b->data, b->size, out->bucket_alloc));
    APR_BRIGADE_INSERT_TAIL(out, apr_bucket_eos_create(out->bucket_alloc));
    return ap_pass_brigade(r->output_filters, out) == APR_SUCCESS ? OK : DONE;
}

static void
register_floor_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_quick_handler(answer_from_folder, NULL, NULL, APR_HOOK_FIRST);
}

static const command_rec commands[] = {
    AP_INIT_TAKE1("FloorFolder", set_folder, NULL, RSRC_CONF, "folder of the files to answer with"), { NULL }
};

module AP_MODULE_DECLARE_DATA floor_module = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands,
                                               register_floor_hooks };
