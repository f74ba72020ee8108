/*
 * Blocks of an overview: many features in one value of a row, packed, in drawing order. A row of its own costs the
 * database and us more than a small feature does.
 *
 * The rows of the source are cut into windows in drawing order: each row has a place in its window, which stays the
 * same as long as the row does. Each block holds features of one window that begin in one cell of the plane. So a map
 * reads the blocks of its own cells, and a window is put in order again by the places of its features; and a row that
 * has changed is found again by its window and its place.
 *
 * A block, in numbers of 7 bits a byte, the lowest first (as in TWKB):
 *   the number of attributes; the number of different tuples of values; for each tuple and attribute the length of the
 *   text plus one, and the text as UTF-8; 0 for null
 *   for each feature: its place in the window less that of the feature before; the number of its tuple, from 0; the
 *   bytes of its geometry times two, plus one where they are TWKB and not WKB; its geometry
 */
#ifndef MC_VECTOR_LEVELS_LEVEL_BLOCKS_H
#define MC_VECTOR_LEVELS_LEVEL_BLOCKS_H

#include <apr_tables.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

/* A window has at most so many places. */
enum { MC_LEVEL_PLACES = 1 << 22 };

typedef struct mc_level_feature {
    const uint8_t *geometry;
    size_t size;
    bool packed; /* TWKB, else WKB */
    const char *const *values;
    uint32_t place;
} mc_level_feature;

/* Appends the features of a block, mc_level_feature, each of so many attributes, in drawing order; `pool` has a copy of
 * the block. MC_ERR_CORRUPT: the bytes are no block, with nothing appended. */
mc_error *mc_level_read_block(apr_array_header_t *features, const void *block, size_t size, int attributes,
                              apr_pool_t *pool) MC_CHECKED;

/* The blocks of one window, as they are read. */
typedef struct mc_level_window mc_level_window;

/* `attributes`: so many values has each feature. Lives as long as `pool`. */
mc_level_window *mc_level_window_create(int attributes, apr_pool_t *pool);

/* Copies a block of the window. MC_ERR_CORRUPT: the bytes are no block, with nothing added. */
mc_error *mc_level_window_add(mc_level_window *window, const void *block, size_t size) MC_CHECKED;

/* The next feature in drawing order, valid until the window is cleared; false: there is none. Nothing is added once one
 * was taken. */
bool mc_level_window_next(mc_level_feature *feature, mc_level_window *window);

/* For the blocks of the next window. */
void mc_level_window_clear(mc_level_window *window);

#endif
