/* Scripts and styles of the pages, compiled in: service/pages/demo.js and so on (lib/CMakeLists.txt). */
#ifndef MC_SERVICE_PAGE_ASSET_H
#define MC_SERVICE_PAGE_ASSET_H

#include <stddef.h>

typedef struct mc_page_asset {
    const char *mime;
    const unsigned char *bytes;
    size_t size;
} mc_page_asset;

extern const mc_page_asset mc_demo_js, mc_demo_css, mc_jobs_js, mc_jobs_css;

#endif
