/* The rows of tiles on which an image is drawn, in an order for which each row of the image is decoded once. */
#ifndef MC_INGEST_PYRAMID_BANDS_H
#define MC_INGEST_PYRAMID_BANDS_H

#include "ingest/pyramid/ingest_private.h"

/* Tiles of one row. */
typedef struct mc_ingest_band {
    const mc_ingest_chain *chain;
    int y;
    int first, end; /* rows of the image, from the top: first <= row < end are needed */
    int keep;       /* the first row that this band or a later one needs */
} mc_ingest_band;

/* The bands of an image in all chains, in `pool`. Errors: those of PROJ, where the image has another CRS than the grid.
 */
mc_error *mc_ingest_bands(apr_array_header_t **bands, const mc_ingest *ingest, int number, apr_pool_t *pool) MC_CHECKED;

#endif
