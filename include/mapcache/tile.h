/*
 * A stored tile and the key it is stored under.
 */
#ifndef MAPCACHE_TILE_H
#define MAPCACHE_TILE_H

#include "mapcache/buf.h"
#include "mapcache/grid.h"
#include "mapcache/image.h"

/* The resolved value of one dimension of a tile. */
typedef struct mc_dimension_value {
    const char *name;
    const char *value;
    bool from_backend; /* resolved by sqlite, postgresql or elasticsearch: allow_path_in_dim may apply
                          (docs/reference/configuration.md 5.3.1) */
} mc_dimension_value;

typedef struct mc_tile_key {
    const char *tileset;
    const mc_grid *grid;
    int z, x, y; /* y counted from the grid's origin */
    int dimension_count;
    const mc_dimension_value *dimensions; /* in configuration order */
    const char *extension;                /* of the tileset's format; "png" without one */
    const char *mime;                     /* or NULL */
    bool renderable;   /* the tileset has a source and is not read-only: a missing store is a miss, not an error */
    bool client_named; /* the tileset's name is what a client has sent (mirror modes): no part of a path as it is */
} mc_tile_key;

typedef struct mc_tile {
    mc_buf *data;     /* encoded bytes; one reference, held by the pool that the tile was read into */
    apr_time_t mtime; /* 0: the store does not know */
    uint64_t tag;     /* hash of the bytes, the strong ETag; 0: not computed yet */
    mc_coding coding;
    bool no_data; /* nothing there, or uniform with alpha 0: skipped in maps */
    bool blank;   /* uniform: `bgra` holds the premultiplied colour */
    uint8_t bgra[4];
    bool raw;               /* a RAW tileset: never decoded */
    bool stale;             /* it should be another one by now, and is served until that is there */
    apr_time_t stale_since; /* of a stale one: since when; 0: not known */
    bool as_stored;         /* just made and stored: the store would give these bytes with this time */
    double provisional;     /* seconds for which the tile is good, which is not stored; 0: a tile as all others */
} mc_tile;

/* A stored image may be so many times as wide and as high as its grid's tiles: made for screens of a higher density. */
enum { mc_tile_oversize = 4 };

/*
 * Before a stored image is decoded: MC_ERR_CORRUPT where its header says that it has no size or is larger than
 * mc_tile_oversize times its grid's tile, so that no stored bytes decide how much memory and time they take;
 * MC_ERR_UNAVAILABLE past the request's deadline.
 */
mc_error *mc_tile_check(const mc_tile *tile, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* mc_image_decode after mc_tile_check. */
mc_error *mc_tile_decode(mc_pixels **pixels, const mc_tile *tile, const mc_grid *grid, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/* tile->tag, the hash of the bytes (mc_hash64), computed on first use. */
uint64_t mc_tile_tag(mc_tile *tile);

#endif
