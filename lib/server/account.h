/* What logs, traces and metrics are told of a request by the server. */
#ifndef MC_SERVER_ACCOUNT_H
#define MC_SERVER_ACCOUNT_H

#include "base/account.h"
#include "mapcache/service.h"

/* A request on its way. */
typedef struct mc_server_account {
    mc_account account;
    struct mc_answer_label *label; /* of the tileset that is asked for; NULL: of none */
    bool several;                  /* tilesets are asked for */
    bool told;                     /* traces or lines tell of the request */
    bool counted;                  /* metrics or the status page do */
    apr_time_t begin;              /* by mc_clock_now() */
} mc_server_account;

/* Before the first span: ctx->account, and ctx->trace where one is needed. */
void mc_server_account_begin(mc_server_account *of, const mc_config *config, const mc_http_request *http, mc_ctx *ctx,
                             apr_pool_t *pool);

/* Once the request has been parsed: what is asked for. */
void mc_server_account_name(mc_server_account *of, const mc_request *request, apr_pool_t *pool);

/* Once there is a response and all spans have ended. Adds the headers that tell of the trace. */
void mc_server_account_end(mc_server_account *of, mc_http_response *response, const mc_config *config, mc_ctx *ctx,
                           apr_pool_t *pool);

#endif
