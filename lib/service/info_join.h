/*
 * Feature info of several layers as one document, in the order of the layers (WMS 1.3.0, 7.4). Text is put together; of
 * HTML the bodies, in the first document that has one; GeoJSON becomes one collection, other JSON a list of the
 * answers; of XML the content, where all answers begin with the same root element.
 */
#ifndef MC_SERVICE_INFO_JOIN_H
#define MC_SERVICE_INFO_JOIN_H

#include "mapcache/buf.h"

/* Whether answers of a media type can be joined at all. */
bool mc_info_joins(const char *mime);

/* MC_ERR_INVALID_FORMAT where these answers do not fit together, MC_ERR_UPSTREAM where one is not of its type,
 * MC_ERR_LIMIT where they are too long. */
mc_error *mc_info_join(mc_buf **joined, mc_buf *const *parts, int count, const char *mime, apr_pool_t *pool) MC_CHECKED;

/* The same of one kind; `out` is empty before. For lib/service/info_join.c. */
mc_error *mc_info_join_json(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_info_join_html(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_info_join_xml(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool) MC_CHECKED;

#endif
