/* Reading and writing PNG (ISO/IEC 15948): the parts that both are made of. */
#ifndef MC_IMAGE_PNG_PNG_H
#define MC_IMAGE_PNG_PNG_H

#include <stdlib.h>

#include "base/bytes.h"
#include "image/box.h"

enum { MC_PNG_GRAY = 0, MC_PNG_RGB = 2, MC_PNG_PALETTE = 3, MC_PNG_GRAY_ALPHA = 4, MC_PNG_RGBA = 6 };

/* The image header (11.2.2). */
typedef struct mc_png_header {
    uint32_t width, height;
    int depth, color, interlace;
} mc_png_header;

/*
 * Undoes the filters (clause 9) of `height` rows of 1 + row_size bytes in place. `step` is the distance to the pixel on
 * the left: 1, 3 or 4 bytes. False for an unknown filter type. Rows outside of *begin..*end hold zeros only; there are
 * none inside when *begin >= *end.
 */
bool mc_png_unfilter(uint8_t *rows, size_t row_size, uint32_t height, int step, uint32_t *begin, uint32_t *end);

/*
 * The same for pixels of four bytes below a row of zeros, where most columns are zero as well: only columns that are
 * not all zero are processed. *begin and *end may hold more rows than necessary.
 */
bool mc_png_unfilter_window(uint8_t *rows, size_t row_size, uint32_t height, uint32_t *begin, uint32_t *end);

/* Whether `size` bytes are zero. */
bool mc_png_is_zero(const uint8_t *bytes, size_t size);

/* Decodes a PNG of any form, through libpng. */
mc_error *mc_png_decode_any(mc_pixels **pixels, const mc_png_header *header, const uint8_t *data, size_t size,
                            apr_pool_t *pool) MC_CHECKED;

/* As mc_image_decode_box, for 8-bit RGBA, the form of products. *done is false, and nothing has happened, for other
 * forms. */
mc_error *mc_png_decode_box(bool *done, mc_box_image *image, mc_box_room *room, void *baton, const uint8_t *data,
                            size_t size, apr_pool_t *pool) MC_CHECKED;

/* R, G, B, A as in the file to premultiplied B, G, R, A. *all and *any gather the AND and OR of the alphas. */
void mc_png_premultiply(uint8_t *out, const uint8_t *rgba, uint32_t count, uint8_t *all, uint8_t *any);
static inline mc_opacity
mc_png_opacity(uint8_t all, uint8_t any)
{
    return all == 255 ? MC_OPAQUE : any == 0 ? MC_EMPTY : MC_TRANSLUCENT;
}

/* Of left, above and above left the one next to left + above - above left; of equally near ones the first (9.4). */
static inline uint8_t
mc_png_predict_paeth(int left, int above, int corner)
{
    int from_left = abs(above - corner), from_above = abs(left - corner), from_corner = abs(left + above - 2 * corner);
    if (from_left <= from_above && from_left <= from_corner)
        return (uint8_t)left;
    return (uint8_t)(from_above <= from_corner ? above : corner);
}

/* How the rows of an image data stream are compressed. */
typedef enum mc_deflate_level {
    MC_DEFLATE_STORED,
    MC_DEFLATE_QUICK,
    MC_DEFLATE_LITERALS, /* as quick as QUICK, for imagery that a filter has made small numbers of */
    MC_DEFLATE_GOOD,
    MC_DEFLATE_BEST
} mc_deflate_level;

/* Appends signature and IHDR; then chunks; an IDAT with the zlib stream of `rows`; IEND. */
mc_error *mc_png_begin(mc_buf *png, const mc_png_header *header, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_png_chunk(mc_buf *png, const char type[4], const void *data, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_png_image_data(mc_buf *png, const uint8_t *rows, size_t size, mc_deflate_level level,
                            apr_pool_t *pool) MC_CHECKED;
mc_error *mc_png_end(mc_buf *png, apr_pool_t *pool) MC_CHECKED;

/*
 * The zlib stream of `rows`: `written` bytes that begin `before` bytes after *stream, which is scratch memory that the
 * caller releases (none after an error). The caller fills the bytes before.
 */
mc_error *mc_png_deflate(uint8_t **stream, size_t *written, size_t before, const uint8_t *rows, size_t size,
                         mc_deflate_level level, apr_pool_t *pool) MC_CHECKED;

/* Writes the filtered rows of an 8-bit RGB (opaque) or RGBA image: mc_png_rows_size bytes. Returns how they are to be
 * compressed: as `level` says, or MC_DEFLATE_LITERALS instead of MC_DEFLATE_QUICK. */
size_t mc_png_rows_size(const mc_pixels *pixels, bool opaque);
mc_deflate_level mc_png_rows(uint8_t *rows, const mc_pixels *pixels, bool opaque, mc_deflate_level level);

/* True for imagery: neighbours that are nearly never equal, in a few sampled rows. Flat runs of drawn maps compress
 * better unfiltered. */
bool mc_png_looks_like_photo(const mc_pixels *pixels);

/*
 * Filters rows of 1 + row_size bytes in place, all by one filter: at MC_DEFLATE_QUICK by the one that leaves the fewest
 * bits where hardly anything would repeat, else by the row above. `step`: bytes of a pixel, 3 or 4. Returns what
 * mc_png_rows returns.
 */
mc_deflate_level mc_png_filter(uint8_t *rows, size_t row_size, int height, int step, mc_deflate_level level);

/*
 * Filters the end of a row of `size` bytes by 32 bytes at a time, down to the place that is returned: what stands
 * before is left to the caller. `out` may be `row`. Only where mc_png_has_avx2().
 */
bool mc_png_has_avx2(void);
size_t mc_png_filter_paeth_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step);
size_t mc_png_filter_average_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step);

/* Up to 256 colours in the order of their indices: premultiplied B, G, R, A. The `translucent` first ones are not
 * opaque. */
typedef struct mc_palette {
    int count, translucent;
    uint8_t colors[256][4];
} mc_palette;

/* Appends PLTE and, where needed or `always`, tRNS. */
mc_error *mc_png_palette(mc_buf *png, const mc_palette *palette, bool always, apr_pool_t *pool) MC_CHECKED;

/* The palette of an image that has at most `maximum` colours, and width * height indices. False when it has more. */
bool mc_palette_exact(mc_palette *palette, uint8_t *indices, const mc_pixels *pixels, int maximum);

/* A palette of at most `maximum` colours (2..256) that serves the image well, and its indices. */
void mc_palette_quantize(mc_palette *palette, uint8_t *indices, const mc_pixels *pixels, int maximum);

#endif
