/* From a tile to a request: the address, and the headers. */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/rest/rest_base.h"
#include "http/http_address.h"
#include "text/text.h"

enum { HEADER_FILE_BYTES = 64 << 10, FIRST_FILE_BYTES = 4096 };

static const char *const method_names[MC_REST_OPERATIONS] = { "GET", "HEAD", "PUT", "DELETE", "GET" };

/* Whether a part of the path is "." or "..", which servers and libcurl take for another path. */
static bool
has_dot_segment(const char *path)
{
    for (const char *at = path; *at != '\0'; at += *at == '/') {
        size_t size = strcspn(at, "/");
        if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += size;
    }
    return false;
}

mc_error *
mc_rest_encode_url(const char **url, const char **path, const mc_rest_cache *cache, const char *text,
                   const mc_tile_key *key, apr_pool_t *pool)
{
    const char *host = strstr(text, "://");
    const char *begin = host == NULL ? NULL : strchr(host + 3, '/');
    if (begin == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "cache \"%s\": the address of a tile has no path",
                               cache->base.cache.name);
    if (has_dot_segment(begin))
        return key->dimension_count > 0
                   ? mc_error_create(pool, MC_ERR_INVALID_DIMENSION, "the value of a dimension is no name of a tile")
                   : mc_error_create(pool, MC_ERR_LAYER_NOT_DEFINED, "the name of the layer is no name of a tile");
    const char *server = apr_pstrmemdup(pool, text, (size_t)(begin - text));
    const char *coded = mc_url_encode(begin, "/", true, true, pool); /* of '+' only those of spaces are left */
    *url = apr_pstrcat(pool, server, cache->encoded_plus ? mc_replace_all(coded, "+", "%2B", pool) : coded, NULL);
    *path = *url + (begin - text);
    return MC_OK;
}

mc_error *
mc_rest_url(const char **url, const char **path, const mc_rest_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    char text[MC_PATH_MAX];
    MC_TRY(mc_template_expand(text, cache->template, key, pool));
    return mc_rest_encode_url(url, path, cache, text, key, pool);
}

void
mc_rest_header_lines(apr_table_t *headers, const char *text, apr_pool_t *pool)
{
    for (const char *at = text; *at != '\0'; at += *at == '\n') {
        size_t size = strcspn(at, "\n");
        const char *line = mc_unwrap_text(apr_pstrmemdup(pool, at, size), pool);
        const char *colon = strchr(line, ':');
        if (colon != NULL && mc_is_token(line, (size_t)(colon - line)))
            apr_table_setn(headers, apr_pstrmemdup(pool, line, (size_t)(colon - line)),
                           mc_header_value(mc_unwrap_text(colon + 1, pool), pool));
        at += size;
    }
}

mc_error *
mc_rest_file_text(const char **text, const char *path, size_t most, apr_pool_t *pool)
{
    char reason[128];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold the request up */
    if (file < 0)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, reason, sizeof(reason)));
    char first[FIRST_FILE_BYTES], *bytes;
    size_t size = mc_files_read_at(file, 0, first, sizeof(first));
    if (size < sizeof(first))
        bytes = apr_pstrmemdup(pool, first, size);
    else {
        bytes = apr_palloc(pool, most + 1);
        size = mc_files_read_at(file, 0, bytes, most + 1);
    }
    close(file);
    if (size > most)
        return mc_error_create(pool, MC_ERR_IO, "%s: it is larger than %lu bytes", path, (unsigned long)most);
    bytes[size] = '\0';
    *text = bytes;
    return MC_OK;
}

static mc_error *
add_header_file(apr_table_t *headers, const char *file, const mc_rest_cache *cache, apr_pool_t *pool)
{
    const char *text;
    mc_error *error = mc_rest_file_text(&text, file, HEADER_FILE_BYTES, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_IO, "cache \"%s\": its file of headers cannot be read",
                             cache->base.cache.name);
    mc_rest_header_lines(headers, text, pool);
    return MC_OK;
}

/* What the server takes the tile for: the media type of the tileset's format, else what its first bytes say. */
static const char *
media_type_of(const mc_rest_ask *ask)
{
    if (ask->key->mime != NULL)
        return ask->key->mime;
    return mc_coding_mime(mc_image_sniff(ask->body->data, ask->body->size));
}

mc_error *
mc_rest_request_make(mc_rest_request *request, const mc_rest_ask *ask, const mc_rest_cache *cache, const void *secret,
                     apr_pool_t *pool)
{
    const bool list = ask->operation == MC_REST_LIST;
    const char *url = list ? ask->list_url : ask->address, *path = list ? ask->list_path : ask->path;
    if (url == NULL)
        MC_TRY(mc_rest_url(&url, &path, cache, ask->key, pool));
    *request = (mc_rest_request){
        .method = method_names[ask->operation],
        .url = list ? apr_pstrcat(pool, url, "?", ask->list_query, NULL) : url,
        .path = path,
        .query = list ? ask->list_query : "",
        .headers = apr_table_copy(pool, cache->headers[ask->operation]),
        .now = apr_time_now(),
    };
    for (int i = 0; i < 2; i++)
        if (cache->header_files[ask->operation][i] != NULL)
            MC_TRY(add_header_file(request->headers, cache->header_files[ask->operation][i], cache, pool));
    if (apr_table_get(request->headers, "Host") == NULL)
        apr_table_setn(request->headers, "Host", mc_http_host_of(url, pool));
    request->host = apr_table_get(request->headers, "Host");
    if (ask->operation == MC_REST_PUT) {
        const char *type = media_type_of(ask);
        request->body = ask->body->data;
        request->body_size = ask->body->size;
        if (type != NULL && apr_table_get(request->headers, "Content-Type") == NULL)
            apr_table_setn(request->headers, "Content-Type", type);
    }
    return cache->signer == NULL ? MC_OK : cache->signer->sign(request, cache, secret, pool);
}
