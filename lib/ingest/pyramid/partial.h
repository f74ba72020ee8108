/*
 * Tiles that are not final yet: a table of them, in memory up to a limit, in a scratch file beyond it. Used by one
 * thread; other threads may fill the pixels of tiles that this thread holds.
 */
#ifndef MC_INGEST_PYRAMID_PARTIAL_H
#define MC_INGEST_PYRAMID_PARTIAL_H

#include "mapcache/image.h"

typedef struct mc_partial {
    struct {
        int z, x, y;
    } at;              /* first: the key */
    mc_pixels *pixels; /* NULL: in the scratch file */
    int waiting;       /* of a level above: tiles below this one that images touch and that are not final */
    uint8_t quarters;  /* of a level above: a bit for each quarter that has its final pixels */
    bool changed;      /* an image has drawn something; of a level above: any of its quarters is set */
    int holds;         /* above 0: the tile stays in memory until mc_partial_let_go */
    int64_t slot;      /* in the scratch file; -1: none */
    struct mc_partial *older, *newer;
} mc_partial;

typedef struct mc_partials mc_partials;

/* width, height: of a tile; limit: bytes of pixels. The scratch file is made in `folder` when it is needed; the file
 * has no name and is gone with the process. */
mc_partials *mc_partials_create(int width, int height, int64_t limit, const char *folder, apr_pool_t *pool);

/* The tile, in memory and held; *is_new: the tile is a new one, and empty. MC_ERR_IO where the scratch file
 * cannot be read or written, MC_ERR_LIMIT without memory. */
mc_error *mc_partial_hold(mc_partial **partial, bool *is_new, mc_partials *partials, int z, int x, int y,
                          apr_pool_t *pool) MC_CHECKED;
void mc_partial_let_go(mc_partial *partial);

/* Forgets a tile that is final, even while the tile is held. */
void mc_partial_drop(mc_partials *partials, mc_partial *partial);

/* Moves tiles that nobody holds to the scratch file, those that were used longest ago first, until the rest is within
 * the limit. */
mc_error *mc_partials_trim(mc_partials *partials, apr_pool_t *pool) MC_CHECKED;

int mc_partials_count(const mc_partials *partials);
int64_t mc_partials_peak(const mc_partials *partials);    /* bytes of pixels in memory at most */
int64_t mc_partials_spooled(const mc_partials *partials); /* times that a tile was moved to the scratch file */

#endif
