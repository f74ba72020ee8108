/* Scripts, styles and frames of the pages, compiled in: service/pages/assets and so on (lib/CMakeLists.txt). */
#ifndef MC_SERVICE_PAGE_ASSET_H
#define MC_SERVICE_PAGE_ASSET_H

#include "mapcache/service.h"

typedef struct mc_page_asset {
    const char *name, *mime;
    const unsigned char *bytes;
    size_t size;
} mc_page_asset;

extern const mc_page_asset mc_page_assets[]; /* by name; ends with one that has none */

/*
 * Content-Security-Policy of a page: scripts and styles are files of this server, pictures and data come from this
 * server or were made by a script. Nothing is loaded from elsewhere, and no other site shows the page in a frame.
 */
#define MC_PAGE_POLICY                                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "        \
    "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

/* The asset of a name, or NULL. */
const mc_page_asset *mc_page_asset_find(const char *name);

/* Makes `document` a copy of an asset. */
void mc_page_asset_answer(mc_document *document, const mc_page_asset *asset, apr_pool_t *pool);

/* Pairs of a name and a text, to the NULL that ends them: "{name}" in an asset becomes the text, escaped for HTML. */
mc_buf *mc_page_fill(const mc_page_asset *asset, const char *const *fields, apr_pool_t *pool);

/* Makes `request` an answer with a page. */
void mc_request_page(mc_request *request, mc_buf *html);

#endif
