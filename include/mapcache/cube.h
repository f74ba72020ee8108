/*
 * Data cubes: images of one area at many dates (docs/datacube.md). A cube is stored in chunks of some columns, some
 * rows and several dates: the history of a place, and the map of a date, are few rows of a database.
 */
#ifndef MAPCACHE_CUBE_H
#define MAPCACHE_CUBE_H

#include <apr_time.h>

#include "mapcache/grid.h"

struct mc_ctx;
struct mc_time_span;

enum {
    mc_chunk_side_max = 512,      /* pixels along a side of a chunk */
    mc_chunk_dates_max = 4096,    /* dates of a chunk */
    mc_chunk_bytes_max = 8 << 20, /* bytes of a chunk */
    mc_cube_side_max = 1 << 24,   /* pixels along a side of a cube */
    mc_cube_overviews_max = 16    /* overviews of a cube */
};

/* The place of the pixels of a cube, or of one of its overviews, and how they are cut into chunks. Column 0 is in the
 * west, row 0 in the north. */
typedef struct mc_cube_shape {
    const char *srs;
    mc_extent extent;  /* in units of the CRS, x (longitude) first; a whole number of pixels of the cube */
    double resolution; /* units of the CRS for a pixel */
    int width, height; /* pixels */
    int bands;         /* of 8 bits each: 1 grey, 3 red, green, blue, 4 with (straight) alpha */
    int chunk_width, chunk_height, chunk_dates;
    int columns, rows; /* of chunks; those at the eastern and southern edge are cut off by the extent */
    int first_row;     /* number of the first row of chunks in the store: rows count on from level to level */
} mc_cube_shape;

typedef struct mc_cube {
    const struct mc_cube_ops *ops; /* lib/cube/store.h */
    const char *name;
    mc_cube_shape shape;
    mc_cube_shape *overviews; /* each has half the pixels along each side of what is before it */
    int overview_count;
    const struct mc_cube_sql *sql;
} mc_cube;

/* Level 0 is the cube itself, 1 its first overview. */
static inline const mc_cube_shape *
mc_cube_level(const mc_cube *cube, int level)
{
    return level == 0 ? &cube->shape : &cube->overviews[level - 1];
}

mc_cube *mc_cube_from_config(const mc_node *node, mc_build *build);

/* Half open: x0 <= column < x1, y0 <= row < y1. */
typedef struct mc_cube_window {
    int x0, y0, x1, y1;
} mc_cube_window;

/* A date of the cube and where its pixels are: slot (from 0) of the chunks with number t. */
typedef struct mc_cube_date {
    int64_t time_us; /* microseconds since 1970, UTC */
    int t, slot;
    int revision; /* how often it has been corrected */
} mc_cube_date;

/* Stands between a date and its revision in the values of cube dimensions: "2024-05-01~2". */
#define MC_CUBE_REVISION '~'

/*
 * The dates that are wholly stored and lie in one of `count` spans (0: in any): the latest `most` of them, in the order
 * of time. *dates: an array of mc_cube_date in `pool`; empty where nobody has written to the store. MC_ERR_UNAVAILABLE,
 * MC_ERR_IO: the store cannot be read. MC_ERR_CONFIG: the store holds a cube of another shape.
 */
mc_error *mc_cube_dates(apr_array_header_t **dates, const mc_cube *cube, const struct mc_time_span *spans, int count,
                        int most, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The pixels of a window at one date: rows from north to south, without gaps. */
typedef struct mc_cube_plane {
    int64_t time_us;
    uint8_t *samples; /* bands of a pixel one behind the other; undefined where the pixel is not known */
    uint8_t *present; /* one byte for each pixel: 0 where the pixel is not known */
} mc_cube_plane;

/*
 * Reads a window (in pixels of the cube, inside of the cube, not empty) at the dates that mc_cube_dates would name.
 * *planes: an array of mc_cube_plane in `pool`, in the order of time, all of one moment, whoever writes meanwhile.
 * MC_ERR_LIMIT where the planes would take more than mc_cube_read_max bytes; MC_ERR_CORRUPT where a chunk of the store
 * is damaged; other errors as mc_cube_dates.
 */
enum { mc_cube_read_max = 1 << 27 };
mc_error *mc_cube_read(apr_array_header_t **planes, const mc_cube *cube, const struct mc_time_span *spans, int count,
                       int most, const mc_cube_window *window, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Pixels of one row: `count` from column x of row y on; bands of a pixel one behind the other. Bit `bit` and the next
 * of the mask say which are known, the lowest of a byte first; mask NULL: all are. */
typedef struct mc_cube_run {
    int x, y, count;
    const uint8_t *samples, *mask;
    size_t bit;
} mc_cube_run;
typedef void mc_cube_take_run(void *baton, const mc_cube_run *run);

static inline bool
mc_cube_run_knows(const mc_cube_run *run, int i)
{
    size_t bit = run->bit + (size_t)i;
    return run->mask == NULL || (run->mask[bit / 8] >> bit % 8 & 1);
}

/* Reads a window of any size at one date, in pixels of a level (0: the cube itself). `take` gets the known pixels as
 * runs in any order, each pixel at most once; a run is valid until `take` returns. Errors as mc_cube_read. */
mc_error *mc_cube_scan(const mc_cube *cube, int level, int64_t time_us, const mc_cube_window *window,
                       mc_cube_take_run *take, void *baton, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The types of cubes; a list that ends with NULL. */
typedef struct mc_cube_kind {
    const char *type;
    const mc_key *keys;
    const char *help;
    mc_cube *(*from_config)(const mc_node *node, mc_build *build); /* NULL after a complaint */
} mc_cube_kind;
extern const mc_cube_kind *const mc_cube_kinds[];

#endif
