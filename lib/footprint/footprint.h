/*
 * Footprints: decoded tiles of a product without their transparent margins. Footprints stay in the memory of the
 * process, with the absences of tiles and the coverage of files. Each is valid for the stamp of its file (DESIGN.md,
 * Never stale).
 */
#ifndef MC_FOOTPRINT_FOOTPRINT_H
#define MC_FOOTPRINT_FOOTPRINT_H

#include "mapcache/cache.h"

/* Reference-counted and read-only. */
typedef struct mc_footprint {
    _Atomic unsigned references;
    int tile_width, tile_height;  /* pixels of the whole tile */
    int left, top, width, height; /* of the box of what shows, in the tile; width 0: nothing shows */
    mc_opacity opacity;           /* of the pixels in the box: MC_OPAQUE, MC_TRANSLUCENT, MC_EMPTY */
    size_t stride;                /* bytes from row to row */
    const uint8_t *pixels;        /* premultiplied B, G, R, A */
    uint64_t tag;                 /* of the stored bytes, as mc_tile_tag */
    apr_time_t mtime;             /* 0: the store does not know */
} mc_footprint;

mc_footprint *mc_footprint_ref(mc_footprint *footprint);
void mc_footprint_unref(mc_footprint *footprint); /* NULL is ignored */

/* A footprint of pixels that are there already, with one reference, the caller's; `tile` has its tag and time. */
mc_footprint *mc_footprint_create(const mc_pixels *pixels, mc_tile *tile);

/* One tile that is wanted of a batch. */
typedef struct mc_footprint_want {
    mc_tile_key key;         /* set by the caller; lives as long as the batch */
    mc_footprint *footprint; /* a reference of the batch; NULL: the tile is absent, or not known yet */
    bool known;              /* `footprint` is known: no mc_footprints_fetch is needed */
    int file;                /* wants of the same store file have the same number; for grouping */
} mc_footprint_want;

typedef struct mc_footprints mc_footprints;

/*
 * Looks at the store files of all wants (one stat() each) and fills in what memory knows of them under these stamps:
 * footprints, absences, what lies outside of a file's coverage. Reads and decodes nothing. Everything is released with
 * `pool`. Errors of single files come up at their mc_footprints_fetch.
 */
mc_error *mc_footprints_look(mc_footprints **batch, mc_cache *cache, mc_footprint_want *wants, int count, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* Many combinations of dimensions that share many tiles. */
typedef struct mc_footprint_sift {
    mc_tile_key key;                             /* of any of the tiles, but without the dimensions */
    const mc_dimension_value *const *dimensions; /* by combination; they live as long as the batch */
    int count;
    mc_tile_range range; /* the tiles, of the key's level */
} mc_footprint_sift;

/*
 * The same in two steps: mc_footprints_begin finds the combinations that may have tiles in the range at all,
 * mc_footprints_may_have tells of each of them where it has none, and mc_footprints_complete takes the wants that are
 * left. The files of all combinations are looked at, unless their folders are watched and nothing is reported of them.
 * combinations (room for all): the numbers of those that are left, from the last to the first, *kept of them; the
 * others have certainly no tile there, and none is made. *batch is NULL where tiles of one combination may stand in
 * several files: mc_footprints_look has to be asked.
 */
mc_error *mc_footprints_begin(mc_footprints **batch, int *combinations, int *kept, mc_cache *cache,
                              const mc_footprint_sift *sift, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* False: combinations[index] has certainly no tile in that range of the key's level, and none is made. */
bool mc_footprints_may_have(mc_footprints *batch, int index, const mc_tile_range *range);

/* The wants; combinations[indexes[i]] is that of wants[i]. Once for each mc_footprints_begin. */
mc_error *mc_footprints_complete(mc_footprints *batch, mc_footprint_want *wants, const int *indexes, int count,
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/*
 * Before anybody wants a tile: learns where each of the combinations has tiles, from memory, the index of coverage or
 * else its file, so that mc_footprints_begin finds it known. The key's place is better one without tiles. Errors of
 * single files are left to those who want their tiles; an error: the deadline of ctx has passed, or it was abandoned.
 */
mc_error *mc_footprints_ahead(mc_cache *cache, const mc_footprint_sift *sift, mc_ctx *ctx) MC_CHECKED;

/*
 * Reads and decodes one want that is not known, remembers what may be remembered, and marks it known. May run on any
 * thread with its own ctx, one thread for each want. Wants of one file fetched one after the other by one ctx share a
 * handle and a read transaction between mc_cache_reads_begin and _end. MC_ERR_CORRUPT where the bytes are no image.
 */
mc_error *mc_footprints_fetch(mc_footprints *batch, int index, mc_ctx *ctx) MC_CHECKED;

#endif
