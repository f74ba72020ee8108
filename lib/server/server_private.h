/* What the files of this folder share. */
#ifndef MC_SERVER_SERVER_PRIVATE_H
#define MC_SERVER_SERVER_PRIVATE_H

#include "base/account.h"
#include "mapcache/server.h"
#include "mapcache/service.h"

extern const mc_key mc_root_keys[];

/* Follows the change logs that the tilesets of a configuration show, until it is followed by a later one of the same
 * file; `owner` keeps the configuration meanwhile. */
void mc_config_follow_changes(const mc_config *config, const mc_owner *owner, mc_process *process);

/* The enabled services, in dispatch order. */
apr_array_header_t *mc_services_from_config(const apr_array_header_t *nodes, const mc_node *legacy, mc_build *build);

/* Sends a request on to another server as a forwarding rule says (docs/reference/services.md 4.5). *result: the answer
 * of that server with status and headers. */
mc_error *mc_server_forward(mc_result *result, mc_call *call, mc_request *request, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* A finished answer of any kind of request, before headers are made of it. */
mc_error *mc_server_result(mc_result *result, const mc_config *config, mc_call *call, mc_request *request,
                           uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Status, headers and body of an answer, preconditions evaluated; and of an error, in the service's own form. */
void mc_response_success(mc_http_response *response, const mc_result *result, const mc_call *call, apr_pool_t *pool);
void mc_response_failure(mc_http_response *response, const mc_error *error, const mc_call *call, mc_ctx *ctx,
                         apr_pool_t *pool);

/*
 * Settles which form of a packed vector tile the client gets (RFC 9110, 12.5.3): the stored bytes where it accepts
 * their coding, else gzip, else what is expanded; each form has a tag of its own. MC_ERR_NOT_ACCEPTABLE where the
 * client takes none of them ("identity;q=0"), MC_ERR_CORRUPT for stored bytes that cannot be expanded.
 */
mc_error *mc_result_negotiate(mc_result *result, const mc_http_request *request, apr_pool_t *pool) MC_CHECKED;

/* The first entity tag in If-None-Match that has our form, 0 if there is none. */
uint64_t mc_request_tag(const mc_http_request *request);

/* 200, 304 or 412 by the request's preconditions (RFC 9110, 13.2.2). *tag: as the answer's tag is to be written. */
int mc_preconditions_evaluate(const char **tag, const mc_result *result, const mc_call *call, apr_pool_t *pool);

/* The header Cache-Status (RFC 9211) of a tile or a map: what became of the request here. Nothing for other answers. */
void mc_response_cache_status(mc_http_response *response, const mc_account *account, const mc_result *result,
                              apr_pool_t *pool);

/* What caches in front read of tiles and maps: by which keys they are purged, and how long they may be kept. */
void mc_response_surrogates(mc_http_response *response, const struct mc_cdns *cdns, const mc_request *request,
                            const mc_account *account, const mc_result *result, apr_pool_t *pool);

/* CORS, as the service or the configuration wants it. */
void mc_response_cors(mc_http_response *response, const mc_call *call, apr_pool_t *pool);

/* The methods of an address, in an Allow header. */
void mc_response_allow(mc_http_response *response, const mc_call *call, apr_pool_t *pool);

/* The answer to OPTIONS: Allow, and to a browser that asks before it sends a request of another site what it may send.
 */
void mc_response_options(mc_http_response *response, const mc_call *call, apr_pool_t *pool);

/* mc_config_load; `seconds`: that looks at data may take, 0 for the usual times. */
mc_error *mc_config_load_within(mc_config **config, const char *file, double seconds, mc_diagnostics *diagnostics,
                                apr_pool_t *pool) MC_CHECKED;

/* Sets the variables of the elements <environment> (const mc_node *); warns of those that have another value by now and
 * keeps that, after mc_environment_close(): this process has threads. */
void mc_environment_set(const apr_array_header_t *nodes, mc_build *build);
void mc_environment_close(void);

/* After all elements are read; `nodes`: the elements <tileset> or <cache> (const mc_node *), or NULL. */
void mc_config_connect_watches(const apr_array_header_t *nodes, mc_build *build);
void mc_config_warn_unused_caches(const mc_config *config, const apr_array_header_t *nodes, mc_build *build);
void mc_config_warn_lost_tiles(const apr_array_header_t *nodes, mc_build *build);

#endif
