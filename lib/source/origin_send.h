/* Requests of sources to their origins. An origin that has failed several times in a row is left alone for a while, so
 * that nobody waits for it: mc_source_render asks its circuit breaker before the first attempt, what is sent here
 * reports to it. */
#ifndef MC_SOURCE_ORIGIN_SEND_H
#define MC_SOURCE_ORIGIN_SEND_H

#include "mapcache/source.h"
#include "source/http_block.h"

/* Scheme, host and port of an address, without user and password, for source->endpoint; in `pool`. */
const char *mc_origin_endpoint(const char *url, apr_pool_t *pool);

/*
 * As mc_http_send_all, for requests of one source. No connection, no answer in time, and the statuses 429, 502, 503 and
 * 504 are failures of the origin; any other answer is a sign of life.
 */
void mc_origin_send_all(mc_http_exchange *exchanges, int count, int connections, const mc_source *source, mc_ctx *ctx,
                        apr_pool_t *pool);

/* For `mapcache check --connect`: asks the address, and complains where nobody answers, or the server says that it
 * cannot (429, 5xx) or may not (401, 403, 407). Any other answer will do. */
void mc_origin_inspect(const mc_source *source, const mc_http_block *block, const char *url,
                       mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool);

#endif
