/* What the files of the WMTS service share. */
#ifndef MC_SERVICE_WMTS_WMTS_H
#define MC_SERVICE_WMTS_WMTS_H

#include "service/service_base.h"

#define MC_WMTS_VERSION "1.0.0"

/* Whether the request came as key-value pairs (else: as a path). */
bool mc_wmts_is_kvp(const mc_call *call);

/* Media types of a tileset's tiles, as advertised. */
const apr_array_header_t *mc_wmts_formats(const mc_tileset *tileset, apr_pool_t *pool);

/* The capabilities document; `brief`: only its version and update sequence (OWS 1.1.0 table 7). */
mc_error *mc_wmts_capabilities(mc_request *request, bool brief, const char *mime, const mc_call *call, mc_ctx *ctx,
                               apr_pool_t *pool) MC_CHECKED;

void mc_wmts_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool);

#endif
