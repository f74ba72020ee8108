/*
 * Where the tiles of a tiled TIFF stand: TIFF 6.0 and BigTIFF, of either byte order. Only what leads to a tile is read,
 * and all of it is checked.
 */
#ifndef MC_CACHE_ARCHIVE_TIFF_INDEX_H
#define MC_CACHE_ARCHIVE_TIFF_INDEX_H

#include "cache/archive/ranges.h"

enum { MC_TIFF_JPEG = 7, MC_TIFF_TABLES_MAX = 4096 };

/* An array of whole numbers in the file. */
typedef struct mc_tiff_array {
    uint64_t offset, count; /* bytes from the beginning; numbers */
    int width;              /* bytes of a number: 2, 4 or 8; 0: there is no array */
} mc_tiff_array;

/* The first image that is no overview. */
typedef struct mc_tiff_index {
    bool big_endian;
    uint32_t width, height;           /* pixels */
    uint32_t tile_width, tile_height; /* pixels */
    uint32_t columns, rows;           /* tiles */
    int compression, samples, planes; /* as the tags have them; planes: 1 where pixels stand together */
    mc_tiff_array offsets, counts;
    size_t tables_size; /* of the JPEG tables that all tiles share; 0: each tile is a picture of its own */
    uint8_t tables[MC_TIFF_TABLES_MAX];
} mc_tiff_index;

/* MC_ERR_CORRUPT: no TIFF with tiles. */
mc_error *mc_tiff_read_index(mc_tiff_index *index, mc_ranged_file *file, apr_pool_t *pool) MC_CHECKED;

/* The same, from the memory of the process where the file is known under its stamp. */
mc_error *mc_tiff_find_index(mc_tiff_index *index, mc_ranged_file *file, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Where a tile stands, by rows from the top; *size 0: it is not there. */
mc_error *mc_tiff_find_tile(uint64_t *offset, uint64_t *size, const mc_tiff_index *index, mc_ranged_file *file,
                            uint64_t number, apr_pool_t *pool) MC_CHECKED;

/* The tile's bytes, of a JPEG with the tables that it shares; NULL: it is not there. */
mc_error *mc_tiff_read_tile(mc_buf **data, const mc_tiff_index *index, mc_ranged_file *file, uint64_t number,
                            apr_pool_t *pool) MC_CHECKED;

#endif
