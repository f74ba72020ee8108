/*
 * Where the tiles of a tiled TIFF stand: TIFF 6.0 and BigTIFF, of either byte order. Only what leads to a tile is read,
 * and all of it is checked.
 */
#ifndef MC_CACHE_ARCHIVE_TIFF_INDEX_H
#define MC_CACHE_ARCHIVE_TIFF_INDEX_H

#include "cache/archive/ranges.h"

enum { MC_TIFF_JPEG = 7, MC_TIFF_WEBP = 50001, MC_TIFF_TABLES_MAX = 4096 };

/* An array of whole numbers in the file. */
typedef struct mc_tiff_array {
    uint64_t offset, count; /* bytes from the beginning; numbers */
    int width;              /* bytes of a number: 2, 4 or 8; 0: there is no array */
} mc_tiff_array;

/* What an image of the file is. */
typedef enum mc_tiff_part { MC_TIFF_PICTURE, MC_TIFF_OVERVIEW, MC_TIFF_MASK } mc_tiff_part;

/* An image in tiles. */
typedef struct mc_tiff_index {
    bool big_endian;
    mc_tiff_part part;
    uint32_t width, height;           /* pixels */
    uint32_t tile_width, tile_height; /* pixels */
    uint32_t columns, rows;           /* tiles */
    int compression, samples, planes; /* as the tags have them; planes: 1 where pixels stand together */
    mc_tiff_array offsets, counts;
    size_t tables_size; /* of the JPEG tables that all tiles share; 0: each tile is a picture of its own */
    uint8_t tables[MC_TIFF_TABLES_MAX];
} mc_tiff_index;

/* Where the first picture lies, as the tags of GeoTIFF say. */
typedef struct mc_tiff_place {
    bool known;           /* its rows run from west to east, the first one in the north */
    double x, y;          /* upper left corner, in units of the CRS */
    double width, height; /* of a pixel */
    int epsg;             /* of the CRS; 0: it has no code */
} mc_tiff_place;

/* All images in tiles of a file, the first picture in front. */
typedef struct mc_tiff_levels {
    mc_tiff_place place;
    int count; /* > 0 */
    mc_tiff_index indexes[];
} mc_tiff_levels;

/* The first image that is no overview. MC_ERR_CORRUPT: no TIFF with tiles. */
mc_error *mc_tiff_read_index(mc_tiff_index *index, mc_ranged_file *file, apr_pool_t *pool) MC_CHECKED;

/* The same, from the memory of the process where the file is known under its stamp. */
mc_error *mc_tiff_find_index(mc_tiff_index *index, mc_ranged_file *file, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* As they are in the memory of the process, where `*held` (to be released by mc_clock_cache_release) keeps them, or in
 * `pool`. Images in strips are left out, and so are further pictures. */
struct mc_clock_cache_entry;
mc_error *mc_tiff_find_levels(const mc_tiff_levels **levels, struct mc_clock_cache_entry **held, mc_ranged_file *file,
                              mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Where a tile stands, by rows from the top; *size 0: it is not there. */
mc_error *mc_tiff_find_tile(uint64_t *offset, uint64_t *size, const mc_tiff_index *index, mc_ranged_file *file,
                            uint64_t number, apr_pool_t *pool) MC_CHECKED;

/* The same of many tiles; those with a number below 0 are not there. Of a file behind HTTP by few requests. Where a
 * tile is not there, its part has no size. MC_ERR_CORRUPT: one lies beyond the end of the file, or has too many bytes.
 */
mc_error *mc_tiff_find_tiles(mc_range_part *parts, const mc_tiff_index *index, mc_ranged_file *file,
                             const int64_t *numbers, int count, apr_pool_t *pool) MC_CHECKED;

/* Makes of a tile's bytes in the file those of a picture: of a JPEG with the tables that it shares. */
mc_error *mc_tiff_join_tile(mc_buf **data, const mc_tiff_index *index, const mc_buf *stored,
                            apr_pool_t *pool) MC_CHECKED;

/* The tile's bytes, of a JPEG with the tables that it shares; NULL: it is not there. */
mc_error *mc_tiff_read_tile(mc_buf **data, const mc_tiff_index *index, mc_ranged_file *file, uint64_t number,
                            apr_pool_t *pool) MC_CHECKED;

#endif
