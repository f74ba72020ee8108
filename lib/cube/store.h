/*
 * What a store of cubes can do. Three tables: what the cube is (one row), its dates, and its chunks; a date is there
 * once its row is, and that comes in the same transaction as its chunks.
 */
#ifndef MC_CUBE_STORE_H
#define MC_CUBE_STORE_H

#include "cube/sql.h"
#include "mapcache/ctx.h"
#include "mapcache/cube.h"
#include "text/time.h"

/* Of the layout of the tables; a store with another one is refused. */
enum { MC_CUBE_VERSION = 1 };

/* The part of a chunk that lies in the rows of a window, at one date. */
typedef struct mc_cube_piece {
    int64_t time_us;
    int slot;
    bool stored; /* the chunk is there; else the date only */
    int y, x;    /* y counted from the level's first row */
    const void *cover, *data;
    size_t cover_size, data_size;
} mc_cube_piece;

/* A whole chunk. */
typedef struct mc_cube_chunk {
    int t, y, x; /* y with the level's first_row */
    const void *cover, *data;
    size_t cover_size, data_size;
} mc_cube_chunk;

/* Which dates and chunks are read. */
typedef struct mc_cube_query {
    mc_time_span span;
    int most; /* the latest so many dates */
    int level;
    mc_cube_window window; /* in pixels of the level */
} mc_cube_query;

typedef mc_error *mc_cube_take_piece(void *baton, const mc_cube_piece *piece);
typedef mc_error *mc_cube_take_date(void *baton, const mc_cube_date *date);
typedef mc_error *mc_cube_take_chunk(void *baton, const mc_cube_chunk *chunk);

/* A writer of a cube, for one thread. */
typedef struct mc_cube_writer {
    const struct mc_cube_ops *ops;
    const mc_cube *cube;
    mc_ctx *ctx;
    apr_pool_t *pool;
} mc_cube_writer;

typedef struct mc_cube_ops {
    size_t size; /* of the type's own struct */
    /* In one snapshot, in any order; `stored` false where a date has no chunk in the window. */
    mc_error *(*read)(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_piece *take, void *baton,
                      mc_ctx *ctx, apr_pool_t *pool);
    /* Latest first. */
    mc_error *(*dates)(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_date *take, void *baton,
                       mc_ctx *ctx, apr_pool_t *pool);

    /* Waits until nobody else writes to the cube; makes the tables where there are none; MC_ERR_CONFIG where they are
     * of another shape. The writer ends with `pool`, and what it has not committed is as if it never was. */
    mc_error *(*write)(mc_cube_writer **writer, const mc_cube *cube, mc_ctx *ctx, apr_pool_t *pool);
    mc_error *(*begin)(mc_cube_writer *writer);
    mc_error *(*writer_dates)(mc_cube_writer *writer, mc_cube_take_date *take, void *baton); /* all, latest first */
    /* Chunks of row y with columns x0 <= x < x1: given to `take`, and removed unless `keep`. */
    mc_error *(*take_out)(mc_cube_writer *writer, int t, int y, int x0, int x1, bool keep, mc_cube_take_chunk *take,
                          void *baton);
    mc_error *(*clear)(mc_cube_writer *writer, int y); /* removes all chunks from row y on, of all dates */
    mc_error *(*put)(mc_cube_writer *writer, const mc_cube_chunk *chunk); /* one that is not there */
    mc_error *(*put_date)(mc_cube_writer *writer, const mc_cube_date *date);
    mc_error *(*sign)(mc_cube_writer *writer, const char *signature); /* the store has another shape now */
    mc_error *(*commit)(mc_cube_writer *writer);
    /* After the last commit: the room of what was taken out can be used again. */
    mc_error *(*tidy)(mc_cube_writer *writer);
    mc_error *(*bytes)(int64_t *bytes, mc_cube_writer *writer); /* of all its tables, or of the file */
} mc_cube_ops;

/* All members but the size, each a function of the store's file: <prefix>_read and so on. */
#define MC_CUBE_OPS(prefix_)                                                                                           \
    .read = prefix_##_read, .dates = prefix_##_dates, .write = prefix_##_write, .begin = prefix_##_begin,              \
    .writer_dates = prefix_##_writer_dates, .take_out = prefix_##_take_out, .clear = prefix_##_clear,                  \
    .put = prefix_##_put, .put_date = prefix_##_put_date, .sign = prefix_##_sign, .commit = prefix_##_commit,          \
    .tidy = prefix_##_tidy, .bytes = prefix_##_size

extern const mc_cube_ops mc_cube_postgresql, mc_cube_sqlite;
extern const mc_cube_kind mc_cube_kind_postgresql, mc_cube_kind_sqlite;

/* The rows that all types have, read into a struct that begins with mc_cube_config. */
typedef struct mc_cube_config {
    const char *name, *type, *srs;
    mc_number_list extent;
    double resolution;
    int bands; /* index into "gray|rgb|rgba" */
    mc_number_list chunk;
    int overviews; /* -1: as many as it needs */
} mc_cube_config;

#define MC_CUBE_KEYS(type_)                                                                                            \
    MC_KEY_TEXT("@name", offsetof(type_, common.name),                                                                 \
                "Name by which sources, dimensions and `mapcache cube` refer to the cube; unique.",                    \
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED),                                                               \
        MC_KEY_TEXT("@type", offsetof(type_, common.type), "Kind of its store.",                                       \
                    .flags = MC_KEY_OURS | MC_KEY_REQUIRED),                                                           \
        MC_KEY_TEXT("srs", offsetof(type_, common.srs),                                                                \
                    "Coordinate reference system of its pixels, e.g. `EPSG:3857`: that of the grids it is drawn in.",  \
                    .flags = MC_KEY_OURS | MC_KEY_REQUIRED),                                                           \
        MC_KEY_NUMBERS("extent", offsetof(type_, common.extent),                                                       \
                       "West, south, east and north of the outermost pixels, in units of the CRS.",                    \
                       .flags = MC_KEY_OURS | MC_KEY_REQUIRED, .min = 4, .max = 4),                                    \
        MC_KEY_NUMBER("resolution", offsetof(type_, common.resolution),                                                \
                      "Units of the CRS for a pixel; the extent is a multiple of it.",                                 \
                      .flags = MC_KEY_OURS | MC_KEY_REQUIRED, .min = 1e-12, .max = 1e9),                               \
        MC_KEY_CHOICE("bands", offsetof(type_, common.bands), "gray|rgb|rgba", "Samples of a pixel, 8 bits each.",     \
                      .flags = MC_KEY_OURS, .fallback = "rgb"),                                                        \
        MC_KEY_NUMBERS(                                                                                                \
            "chunk", offsetof(type_, common.chunk),                                                                    \
            "Columns, rows and dates of a chunk. Default: 26 26 and 12 (gray), 4 (rgb) or 3 (rgba) dates, which fill " \
            "one page of the database; more dates make time lines quicker, fewer corrections and additions.",          \
            .flags = MC_KEY_OURS, .min = 3, .max = 3),                                                                 \
        MC_KEY_INT(                                                                                                    \
            "overviews", offsetof(type_, common.overviews),                                                            \
            "Coarser copies, each of half the resolution of the one before, for maps that show much of the cube; "     \
            "they take up to a third more room. -1: as many as it takes to have one of at most a million pixels, "     \
            "so none for a cube that is no larger. Columns and rows of a chunk must be even numbers.",                 \
            .flags = MC_KEY_OURS, .min = -1, .max = mc_cube_overviews_max, .fallback = "-1")

/* False after a complaint. */
bool mc_cube_set_up(mc_cube *cube, const mc_cube_config *config, const mc_node *node, mc_build *build);

/* The same cube with another number of overviews, as far as its signature is concerned. */
mc_cube *mc_cube_with_overviews(const mc_cube *cube, int count, apr_pool_t *pool);

/* What a row of the info table must say: shape and version. Another one is MC_ERR_CONFIG, with both in the message. */
const char *mc_cube_signature(const mc_cube *cube, apr_pool_t *pool);
/* What was asked was refused, and nothing was read; the shape fits by now. */
mc_error *mc_cube_reshaped_error(const mc_cube *cube, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_cube_check_signature(const mc_cube *cube, const char *found, apr_pool_t *pool) MC_CHECKED;

#endif
