/*
 * JPEG has no transparency. Which pixels of a tile hold data stands in comments of the file (ITU-T T.81, B.2.4.5), so
 * that a later image finds its neighbour's pixels and not the background around them.
 */
#ifndef MC_INGEST_PYRAMID_MASK_H
#define MC_INGEST_PYRAMID_MASK_H

#include "mapcache/image.h"

/* The pixels that hold data, as lengths of runs, row by row. NULL where all pixels hold data. In `pool`. */
typedef struct mc_mask mc_mask;
mc_mask *mc_mask_create(const mc_pixels *pixels, apr_pool_t *pool);

/* The JPEG with the mask in it, attached to `pool`; `jpeg` itself where these bytes are no JPEG. */
mc_error *mc_mask_insert(mc_buf **masked, mc_buf *jpeg, const mc_mask *mask, apr_pool_t *pool) MC_CHECKED;

/* Empties the pixels that hold no data by the mask in `data`, the bytes from which the pixels were decoded. False: the
 * mask does not fit the pixels. */
bool mc_mask_apply(mc_pixels *pixels, const uint8_t *data, size_t size);

#endif
