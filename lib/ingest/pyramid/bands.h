/* The rows of tiles that an image is drawn on, in an order in which its own rows go by once. */
#ifndef MC_INGEST_PYRAMID_BANDS_H
#define MC_INGEST_PYRAMID_BANDS_H

#include "ingest/pyramid/ingest_private.h"

/* Tiles of one row. */
typedef struct mc_ingest_band {
    const mc_ingest_chain *chain;
    int y;
    int first, end; /* rows of the image, from the top; end: the first that it does not need */
    int keep;       /* the first row that this band or a later one needs */
} mc_ingest_band;

/* Those of an image, in all chains, into `pool`. Errors: those of PROJ, where the image has another CRS than the grid.
 */
mc_error *mc_ingest_bands(apr_array_header_t **bands, const mc_ingest *ingest, int number, apr_pool_t *pool) MC_CHECKED;

#endif
