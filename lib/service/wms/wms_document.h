/* A capabilities document in the making, and what its parts share. */
#ifndef MC_SERVICE_WMS_WMS_DOCUMENT_H
#define MC_SERVICE_WMS_WMS_DOCUMENT_H

#include "service/wms/wms.h"

typedef struct mc_wms_document {
    mc_xml *xml;
    const mc_call *call;
    mc_ctx *ctx;
    apr_pool_t *pool;
    bool v130;
    const char *url; /* of the service */
    const char *sequence;
} mc_wms_document;

/* Whether a tileset is a layer of the document. */
bool mc_wms_is_listed(const mc_wms_document *doc, const mc_tileset *tileset);

void mc_wms_write_link(const mc_wms_document *doc, const char *name, const char *url);
void mc_wms_write_keywords(const mc_wms_document *doc, const mc_metadata *metadata);
void mc_wms_write_box(const mc_wms_document *doc, const char *srs, bool swapped, const mc_extent *box);

/* The unnamed layer with all others in it. */
void mc_wms_write_layers(const mc_wms_document *doc);

#endif
