/*
 * What the caches behind HTTP share: "rest" itself, and the object stores "s3", "azure" and "google", which are "rest"
 * with a signature on each request.
 */
#ifndef MC_CACHE_REST_REST_BASE_H
#define MC_CACHE_REST_REST_BASE_H

#include "cache/cache_base.h"
#include "http/http.h"

typedef enum mc_rest_operation {
    MC_REST_GET,
    MC_REST_HEAD,
    MC_REST_PUT,
    MC_REST_DELETE,
    MC_REST_LIST, /* of names; GET of another address */
    MC_REST_OPERATIONS
} mc_rest_operation;

typedef struct mc_rest_cache mc_rest_cache;

/* A request, before it is sent. The URL is encoded; its path begins at `path` and ends before `query`. */
typedef struct mc_rest_request {
    const char *method;
    const char *url;
    const char *host;     /* what the server is told in Host */
    const char *path;     /* "/bucket/a%20b" */
    const char *query;    /* "name=value&...", encoded and sorted by name; "" without */
    apr_table_t *headers; /* to be sent, Host among them */
    const void *body;     /* or NULL */
    size_t body_size;
    apr_time_t now; /* by the time of day */
} mc_rest_request;

/* How requests of a kind of store prove who asks. */
typedef struct mc_rest_signer {
    /* Before requests are sent: what they are signed with, which may have to be asked for. NULL: `secret` stays NULL.
     */
    mc_error *(*prepare)(const void **secret, mc_rest_cache *cache, mc_ctx *ctx, apr_pool_t *pool);
    /* Adds headers, or a query to the URL. */
    mc_error *(*sign)(mc_rest_request *request, const mc_rest_cache *cache, const void *secret, apr_pool_t *pool);
    /* After a refusal with an error's code ("" where the store says none): whether another secret may help. May be
     * NULL. */
    bool (*renew)(mc_rest_cache *cache, const void *secret, const char *code);
} mc_rest_signer;

/* How a kind of store lists its objects. */
typedef struct mc_rest_lister {
    /* How many parts of a path stand before the name of an object: account, bucket, container. */
    int (*leading)(const mc_rest_cache *cache);
    /* The query for the names that begin so, behind what the last answer has ended with ("" for the first), sorted. */
    const char *(*query)(const char *prefix, const char *after, apr_pool_t *pool);
    const char *page, *object, *name, *size, *next; /* elements of the answer; `page` is all of it */
} mc_rest_lister;

struct mc_rest_cache {
    mc_cache_base base;
    const char *url;
    const mc_node *header_tree; /* or NULL */
    const char *header_file;    /* or NULL */
    apr_array_header_t *operation_nodes;
    bool use_redirects, detect_blank;
    int connection_timeout, timeout; /* seconds */
    int connections, busy_retries;
    mc_number_list absent;
    const mc_rest_signer *signer; /* or NULL */
    const mc_rest_lister *lister; /* or NULL: the store does not list */
    bool encoded_plus; /* for a space: "%2B" in place of "+", which is not the same where requests are signed */
    mc_template *template;
    apr_table_t *headers[MC_REST_OPERATIONS];
    mc_tile_key *first; /* the first tile of a tileset that uses the cache; NULL: none does */
    apr_hash_t *uses;   /* address of a tileset's first tile on a grid -> "tileset "a" on grid "b"" */
    const char *header_files[MC_REST_OPERATIONS][2]; /* of all operations, of this one; NULL: none */
};

/* Check sums of S3's objects, which come with answers, and one goes with tiles: headers, the sum in base64. */
#define MC_REST_CRC32C "x-amz-checksum-crc32c"
#define MC_REST_SHA256 "x-amz-checksum-sha256"

extern const mc_key mc_rest_header_keys[], mc_rest_operation_keys[];

/* Rows of all kinds, whose structs begin with mc_rest_cache. */
#define MC_REST_FIELD(field_) offsetof(mc_rest_cache, field_)
#define MC_REST_KEYS                                                                                                   \
    MC_CACHE_KEYS(mc_rest_cache),                                                                                      \
        MC_KEY_LINE(                                                                                                   \
            "url", MC_REST_FIELD(url),                                                                                 \
            "Address of a tile, with {tileset}, {grid}, {z}, {x} or {inv_x}, {y} or {inv_y}, {ext}, {dim} and "        \
            "{dim:NAME}.",                                                                                             \
            .flags = MC_KEY_REQUIRED),                                                                                 \
        MC_KEY_TREE("headers", MC_REST_FIELD(header_tree), NULL,                                                       \
                    "Headers of all requests, one element each: <Name>value</Name>."),                                 \
        MC_KEY_TEXT("header_file", MC_REST_FIELD(header_file),                                                         \
                    "File with further headers, a line `Name: value` each; read with every request.",                  \
                    .flags = MC_KEY_WORKDIR),                                                                          \
        MC_KEY_TREE("operation", MC_REST_FIELD(operation_nodes), mc_rest_operation_keys,                               \
                    "Headers of the requests of one operation.", .flags = MC_KEY_REPEATABLE),                          \
        MC_KEY_BOOL("use_redirects", MC_REST_FIELD(use_redirects),                                                     \
                    "Clients that ask for one tile are sent to the address of the tile, whether it is there or not.",  \
                    .fallback = "false"),                                                                              \
        MC_KEY_INT("connection_timeout", MC_REST_FIELD(connection_timeout), "Seconds to wait for a connection.",       \
                   .min = 1, .max = 86400, .fallback = "30"),                                                          \
        MC_KEY_INT("timeout", MC_REST_FIELD(timeout), "Seconds to wait for the whole answer.", .min = 1, .max = 86400, \
                   .fallback = "120"),                                                                                 \
        MC_KEY_FLAG("detect_blank", MC_REST_FIELD(detect_blank), "Fully transparent tiles are not stored."),           \
        MC_KEY_NUMBERS("absent", MC_REST_FIELD(absent),                                                                \
                       "Statuses that say that there is no such tile. 403 as well where the store says so to those "   \
                       "who may not list.",                                                                            \
                       .flags = MC_KEY_OURS, .min = 1, .max = 8, .fallback = "404 410"),                               \
        MC_KEY_INT("connections", MC_REST_FIELD(connections),                                                          \
                   "Requests of one map that are sent at a time, a connection each.", .flags = MC_KEY_OURS, .min = 1,  \
                   .max = 256, .fallback = "64"),                                                                      \
        MC_KEY_INT("busy_retries", MC_REST_FIELD(busy_retries),                                                        \
                   "How often a request is sent again, after a growing while, that the store has no time for (429, "   \
                   "500, 502, 503, 504) or that is lost on its way.",                                                  \
                   .flags = MC_KEY_OURS, .max = 10, .fallback = "3")

/* Reads the keys of `ops` into the struct that begins with `cache`, and takes the template apart. */
bool mc_rest_read(mc_rest_cache *cache, const mc_cache_ops *ops, const mc_node *node, mc_build *build);

/* A tile to be asked for, stored or removed, and the answer. */
typedef struct mc_rest_ask {
    mc_rest_operation operation;
    const mc_tile_key *key;
    const mc_buf *body;               /* of PUT */
    const char *list_url, *list_path; /* of LIST: without a query; the path lies in the URL */
    const char *list_query;
    const char *address, *path; /* before it is signed; NULL: not known yet */
    const char *url;            /* as it was sent */
    bool absent;                /* the store says that there is none */
    mc_http_reply reply;        /* else */
    mc_error *error;
    bool again; /* it may succeed a little later */
} mc_rest_ask;

/*
 * Sends all of the requests together, those that fail for a passing reason again while there is time, and waits for
 * them. The first error that is left is the one of all: MC_ERR_UPSTREAM where the store refuses or answers nonsense,
 * MC_ERR_UNAVAILABLE where it is away or busy, MC_ERR_TIMEOUT. Messages have the cache's name, their causes (log) what
 * the store says.
 */
mc_error *mc_rest_send(mc_rest_cache *cache, mc_rest_ask *asks, int count, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The encoded address of a tile; in *path, where its path begins. MC_ERR_INVALID_DIMENSION, MC_ERR_LAYER_NOT_DEFINED
 * where what a client has named would lead elsewhere. */
mc_error *mc_rest_url(const char **url, const char **path, const mc_rest_cache *cache, const mc_tile_key *key,
                      apr_pool_t *pool) MC_CHECKED;

/* The same of an expanded template. */
mc_error *mc_rest_encode_url(const char **url, const char **path, const mc_rest_cache *cache, const char *text,
                             const mc_tile_key *key, apr_pool_t *pool) MC_CHECKED;

/* The request of an ask, its headers with those of files, signed. */
mc_error *mc_rest_request_make(mc_rest_request *request, const mc_rest_ask *ask, const mc_rest_cache *cache,
                               const void *secret, apr_pool_t *pool) MC_CHECKED;

/* Sets ask->absent, or ask->error and ask->again, by what has come. *code: the store's own word for the error, or "".
 */
void mc_rest_judge(mc_rest_ask *ask, const char **code, const mc_rest_cache *cache, apr_pool_t *pool);

/* The text of the first element of that name in an answer, without markup and control characters, at most 300 bytes; ""
 * where there is none. For <Error><Code>..</Code></Error> and its like: no parser of XML. */
const char *mc_rest_xml_text(const char *body, size_t size, const char *element, apr_pool_t *pool);

/* The same of any size and with all of its characters: for what is not shown to people. */
const char *mc_rest_xml_value(const char *body, size_t size, const char *element, apr_pool_t *pool);

/* "Name: value" lines into the table; a line that is none is left out. */
void mc_rest_header_lines(apr_table_t *headers, const char *text, apr_pool_t *pool);

/* The whole of a small file, up to its first zero byte. MC_ERR_IO, with its name. */
mc_error *mc_rest_file_text(const char **text, const char *path, size_t most, apr_pool_t *pool) MC_CHECKED;

/* Entries of mc_cache_ops that all kinds share. */
mc_error *mc_rest_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_rest_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                          apr_pool_t *pool);
mc_error *mc_rest_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_rest_exist_all(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
mc_error *mc_rest_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_rest_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_rest_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
mc_error *mc_rest_reach(mc_cache *cache, mc_ctx *ctx);
mc_error *mc_rest_redirect(const char **url, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
bool mc_rest_tells_grids(const mc_cache *cache);
bool mc_rest_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_rest_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                       void *baton, mc_ctx *ctx);
mc_error *mc_rest_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
void mc_rest_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);

#define MC_REST_OPS                                                                                                    \
    .get = mc_rest_get, .get_all = mc_rest_get_all, .exists = mc_rest_exists, .exist_all = mc_rest_exist_all,          \
    .put = mc_rest_put, .remove = mc_rest_remove, .remove_all = mc_rest_remove_all,                                    \
    .tells_grids = mc_rest_tells_grids, .reach = mc_rest_reach, .redirect = mc_rest_redirect,                          \
    .measure = mc_rest_measure, .used_by = mc_rest_used_by

/* And those of kinds that have a lister. */
#define MC_REST_LISTING_OPS MC_REST_OPS, .lists = mc_rest_lists, .list = mc_rest_list

#endif
