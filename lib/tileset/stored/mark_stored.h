/* Stored tiles are marked as old in their stores: they go out at once as they are, and are drawn anew behind the
 * answer, by any process that shares the store (lib/cache/marked.h). */
#ifndef MC_TILESET_MARK_STORED_H
#define MC_TILESET_MARK_STORED_H

#include "changes/box_set.h"
#include "mapcache/tileset.h"

/* Why no stored tile of the tileset can ever be old, for people: it has no source, or keeps nothing. NULL: tiles can.
 */
const char *mc_tileset_unchangeable(const mc_tileset *tileset, apr_pool_t *pool);

/* The same, or why its tiles cannot be marked: the store does not keep their times. */
const char *mc_tileset_unmarkable(const mc_tileset *tileset, apr_pool_t *pool);

/* What is marked. */
typedef struct mc_mark_area {
    const mc_box_set *boxes;   /* in `srs`, x first; NULL: everything */
    const char *srs;           /* NULL: boxes are in the CRS of each grid */
    const char *grid;          /* also its variants for fine screens; NULL: all grids */
    int minzoom, maxzoom;      /* inclusive; levels that a grid does not have are none */
    const apr_table_t *values; /* of dimensions, by name, as stored; all values of the others. NULL: all of all */
    bool or_remove;            /* tiles that cannot be marked are removed: their store does not keep times */
    bool dry_run;              /* only counts */
    int64_t most;              /* tiles that are marked; 0: any number */
} mc_mark_area;

typedef struct mc_mark_counts {
    int64_t looked; /* stored tiles of the area; with tiles of further formats */
    int64_t marked; /* or would be, in a dry run; those that were marked before do not count */
} mc_mark_counts;

/*
 * Marks the stored tiles of the area, whole metatiles, in all formats of the tileset. `counts` is added to.
 * MC_ERR_BUSY: `most` tiles were marked, and there are more, which the next call marks. MC_ERR_LIMIT: as of
 * mc_tileset_walk_stored. A tile that somebody draws while it is marked may be stored as new with the data of before.
 * Caches in front of the tileset's configuration are told.
 */
mc_error *mc_tileset_mark_stored(mc_mark_counts *counts, const mc_tileset *tileset, const mc_mark_area *area,
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Has caches in front drop the area: a moment later, when what was changed is stored, and whatever values of dimensions
 * are meant, as no key names these. Nobody waits for them; mc_purgers_finish does. `cdns` NULL: there are none. */
void mc_tileset_purge_in_front(const mc_tileset *tileset, const struct mc_cdns *cdns, const mc_mark_area *area,
                               const mc_ctx *ctx, apr_pool_t *pool);

/* Marks all stored tiles of the metatile of a tile that are older than `older` (0: all). */
mc_error *mc_tileset_mark_metatile(mc_mark_counts *counts, const mc_tile_request *wanted, apr_time_t older,
                                   mc_ctx *ctx) MC_CHECKED;

#endif
