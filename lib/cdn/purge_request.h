/* Requests by which a cache in front drops what has changed, and what its answers mean. */
#ifndef MC_CDN_PURGE_REQUEST_H
#define MC_CDN_PURGE_REQUEST_H

#include "cdn/cdn.h"
#include "cdn/purge_queue.h"
#include "http/http.h"
#include "mapcache/grid.h"

/* Whether caches of that type are told surrogate keys; else addresses. */
bool mc_cdn_purges_keys(mc_cdn_type type);

/* Bytes of keys in one request at most: headers of common servers have room for 8 kB. */
enum { MC_PURGE_REQUEST_BYTES = 4000 };

/*
 * One request for a batch of keys, or one for each address. `url`: of the cdn, where keys are sent to. Texts are those
 * of the items, which live longer.
 */
mc_http_exchange *mc_purge_requests(int *count, const mc_cdn *cdn, const char *url, const mc_purge_item *batch,
                                    apr_pool_t *pool);

/* MC_OK: the cache has dropped what was named, or did not have it. */
mc_error *mc_purge_answer(const mc_http_exchange *exchange, const mc_cdn *cdn, apr_pool_t *pool) MC_CHECKED;

/* The address of a tile: {tileset}, {grid}, {z}, {x}, {y}, {-y} of a template replaced. Grid x and y. */
const char *mc_purge_address(const char *url_template, const char *tileset, const mc_grid *grid, int z, int x, int y,
                             apr_pool_t *pool);

#endif
