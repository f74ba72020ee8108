/* What the files of the demo service share. */
#ifndef MC_SERVICE_PAGES_DEMO_H
#define MC_SERVICE_PAGES_DEMO_H

#include "service/service_base.h"

/* The files of the pages, and their names in the same order. */
enum { MC_DEMO_SCRIPT, MC_DEMO_STYLE, MC_DEMO_OL_SCRIPT, MC_DEMO_OL_STYLE };
#define MC_DEMO_FILES "demo.js|demo.css|ol.js|ol.css"

/* One of the files. MC_ERR_NOT_FOUND where OpenLayers is not installed. */
mc_error *mc_demo_static(mc_document *document, int file, apr_pool_t *pool) MC_CHECKED;

/* The configuration of one protocol's page as JSON that may stand inside a <script> element. */
const char *mc_demo_json(const char *service, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool);

#endif
