/*
 * Data cubes: images of one area at many dates, stored in chunks of some columns, some rows and several dates, so that
 * what a place was over time, or an area at one date, is read with few rows of a database.
 */
#ifndef MAPCACHE_CUBE_H
#define MAPCACHE_CUBE_H

#include <apr_time.h>

#include "mapcache/grid.h"

struct mc_ctx;
struct mc_time_span;

/* Sides of a chunk in pixels, its dates, and bytes of one chunk; pixels of a cube's sides; its overviews. */
enum {
    mc_chunk_side_max = 512,
    mc_chunk_dates_max = 4096,
    mc_chunk_bytes_max = 8 << 20,
    mc_cube_side_max = 1 << 24,
    mc_cube_overviews_max = 16
};

/* Where pixels lie and how they are cut into chunks, of a cube or of one of its overviews. Column 0 is in the west, row
 * 0 in the north. */
typedef struct mc_cube_shape {
    const char *srs;
    mc_extent extent;  /* in units of the CRS, x (longitude) first; a whole number of pixels of the cube */
    double resolution; /* units of the CRS for a pixel */
    int width, height; /* pixels */
    int bands;         /* of 8 bits each: 1 grey, 3 red, green, blue, 4 with (straight) alpha */
    int chunk_width, chunk_height, chunk_dates;
    int columns, rows; /* of chunks; those at the eastern and southern edge are cut off by the extent */
    int first_row;     /* number that its first row of chunks has in the store: they count on through the levels */
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

/* Between a date and its revision in the values that cube dimensions hand to sources. */
#define MC_CUBE_REVISION '~'

/* The dates that are wholly stored and lie in one of `count` spans (0: all), in the order of time; the latest `most` of
 * them. An array of mc_cube_date. MC_ERR_UNAVAILABLE, MC_ERR_IO: the store cannot be read; one that nobody has written
 * to has no dates. MC_ERR_CONFIG: it is of another shape. */
mc_error *mc_cube_dates(apr_array_header_t **dates, const mc_cube *cube, const struct mc_time_span *spans, int count,
                        int most, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* What a window is at one date. Pixels in rows from the north, without gaps. */
typedef struct mc_cube_plane {
    int64_t time_us;
    uint8_t *samples; /* bands of a pixel one behind the other; undefined where there is none */
    uint8_t *present; /* one byte for each pixel: 0 where nothing is known */
} mc_cube_plane;

/*
 * The window at the dates that mc_cube_dates would name, in the order of time (an array of mc_cube_plane): all as they
 * were at one moment, whoever writes meanwhile. The window lies inside the cube and is not empty. MC_ERR_LIMIT where
 * the planes would take more than mc_cube_read_max bytes; MC_ERR_CORRUPT where the store holds what it cannot.
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

/* As mc_cube_read of one date, of a window of any size, in pixels of a level: its runs in any order, each pixel at most
 * once. */
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
