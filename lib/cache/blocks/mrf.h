/* What the XML file of an MRF says, for who looks what a file is. */
#ifndef MC_CACHE_BLOCKS_MRF_H
#define MC_CACHE_BLOCKS_MRF_H

#include "cache/cache_base.h"

typedef struct mc_mrf_about {
    int width, height;           /* pixels of the finest level */
    int page_width, page_height; /* pixels */
    bool levels;                 /* each following one is half as large */
    bool jpeg;                   /* pages are JPEG, else PNG */
    bool placed;
    mc_extent box; /* where it says that it lies, in units of its CRS */
} mc_mrf_about;

/* MC_ERR_CORRUPT, MC_ERR_CONFIG: no MRF whose pages are tiles. */
mc_error *mc_mrf_look(mc_mrf_about *about, const char *path, apr_pool_t *pool) MC_CHECKED;

#endif
