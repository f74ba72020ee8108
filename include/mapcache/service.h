/*
 * Protocols: from a URL to a checked request, from the model to documents.
 */
#ifndef MAPCACHE_SERVICE_H
#define MAPCACHE_SERVICE_H

#include "mapcache/map.h"
#include "mapcache/server.h"

typedef enum mc_request_kind {
    MC_REQUEST_TILE,     /* u.tile */
    MC_REQUEST_MAP,      /* u.map */
    MC_REQUEST_INFO,     /* u.info */
    MC_REQUEST_DOCUMENT, /* u.document: capabilities, a demo page, KML */
    MC_REQUEST_FORWARD,  /* u.forward: a forwarding rule takes it */
} mc_request_kind;

typedef struct mc_document {
    mc_buf *text;
    const char *mime;
    uint64_t tag;         /* mc_hash64 of the text; 0: not computed yet */
    bool momentary;       /* as things stand now: without a validator, and nobody may keep it */
    const char *vary;     /* names of request headers that it depends on, or NULL */
    const char *location; /* the client is sent on to that address; without text then */
    const char *policy;   /* of a page: what it may load, as in Content-Security-Policy; or NULL */
} mc_document;

/* What is asked of one layer under a pixel. */
typedef struct mc_info_question {
    mc_tileset *tileset;
    mc_info_request info;
} mc_info_question;

/* A parsed and checked request: past this point numbers are finite and inside their limits. */
typedef struct mc_request {
    mc_request_kind kind;
    apr_array_header_t *warnings; /* of const char *: headers "Warning" of the answer; NULL: none */
    const char *vary;             /* of a tile or a map: names of request headers that it depends on; NULL: none */
    const apr_table_t *headers;   /* of a tile or a map: further headers of the answer; NULL: none */
    union {
        mc_tile_stack tile;
        mc_map_request map;
        struct {
            mc_info_question *questions; /* of one point and one format; the answers are joined in this order */
            int count;
        } info;
        mc_document document;
        struct {
            const struct mc_forwarding_rule *rule;
            const char *path; /* of the request below the alias, no leading slash */
            const char *url;  /* to be fetched: path and parameters appended, encoded */
        } forward;
    } u;
} mc_request;

typedef struct mc_service mc_service;

/* How a request came in: what a service needs to parse it and to write URLs. */
typedef struct mc_call {
    const mc_config *config;
    mc_service *service;
    const mc_http_request *http;
    const char *path;          /* after the service's prefix, doubled slashes collapsed, no leading one */
    const apr_table_t *params; /* decoded query; keys any case, the first of a repeated key wins */
    const char *full_path;     /* the same with the prefix */
    const char *base;          /* metadata <url> or the request's base URL, with a trailing slash */
    mc_error *refused;         /* why only a forwarding rule may take the request; MC_OK: no reason */
    bool draws_errors;         /* `report` may answer with a picture of the size of the map: the request is admitted */
} mc_call;

typedef struct mc_service_ops {
    const char *type;   /* of <service type="..."> */
    const char *prefix; /* of the path */
    const mc_key *keys;
    const char *help;
    /* node NULL: the legacy form, all defaults */
    mc_service *(*from_config)(const struct mc_service_ops *ops, const mc_node *node, mc_build *build);
    mc_error *(*parse)(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool);
    /* The service's own error body; NULL text means plain text. *status may be changed (WMTS KVP errors are 400). */
    void (*report)(mc_document *body, int *status, const mc_error *error, const mc_call *call,
                   apr_pool_t *pool); /* NULL: text/plain */
    /* The methods of an address, as in an Allow header; NULL: GET, HEAD, POST. OPTIONS is answered for all. */
    const char *(*methods)(const mc_call *call, apr_pool_t *pool);
    size_t (*body_limit)(const mc_call *call); /* bytes of a POST's body that are read at most; NULL: none */
    bool unlisted;                             /* for operators: strangers are not told that there is such a service */
    bool forwards;                             /* has forwarding rules: looks at call->refused itself */
    const struct mc_operation *operations;     /* what requests may say (lib/service/param.h); NULL: nothing */
} mc_service_ops;

struct mc_service {
    const mc_service_ops *ops;
    bool strict;
    const char *cors; /* NULL: the configuration's; "off", "*" or a list of origins */
};

/* <forwarding_rule> of the wms service (docs/reference/services.md 4.5). */
typedef struct mc_forwarding_rule {
    const char *name;
    bool append_pathinfo;
    apr_int64_t max_post_length;      /* bytes */
    const struct mc_http_block *http; /* where to, with which headers (lib/source/http_block.h) */
    const apr_array_header_t *params; /* private to lib/service */
} mc_forwarding_rule;

extern const mc_service_ops mc_service_metrics;        /* the one that the server has to know of */
extern const mc_service_ops *const mc_service_kinds[]; /* in dispatch order, ends with NULL */

/*
 * What the services cannot offer, or not as a client would expect: complaints at the elements of `root`. Names with a
 * slash are errors for `check` only: whoever asks by parameters gets such tilesets. Also fills what the services have
 * to know of all names.
 */
void mc_services_check(mc_config *config, const mc_node *root, mc_diagnostics *diagnostics);

/*
 * A <service> element. NULL where it is not enabled, and where a complaint refuses it.
 */
mc_service *mc_service_from_config(const mc_node *node, mc_build *build);

/* Fills `call` by the path of a request (docs/reference/services.md 1); call->service is NULL where there is none. */
void mc_service_find(mc_call *call, const mc_config *config, const mc_http_request *http, apr_pool_t *pool);

/* The methods that an address is asked by, as in an Allow header, without OPTIONS. */
const char *mc_service_methods(const mc_call *call, apr_pool_t *pool);

/*
 * Finds the service of a request and parses the request. `call` is filled as far as possible also when an error is
 * returned: where call->service is set, its report() writes the error's body. Results live in `pool`.
 */
mc_error *mc_service_dispatch(mc_call *call, mc_request *request, const mc_config *config, const mc_http_request *http,
                              mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
