/* See tile_mask.h. A mask has a bit for each pixel, rows filled up to bytes (TIFF 6.0, "PhotometricInterpretation"). */
#include "cache/blocks/tile_mask.h"

#include <string.h>

#include "compress/inflate.h"
#include "image/codec.h"

enum { NOT_COMPRESSED = 1, DEFLATE = 8, DEFLATE_OF_OLD = 32946, SIDE_MAX = 4096 };

const mc_tiff_index *
mc_tile_mask_of(const mc_tiff_levels *levels, int image)
{
    const mc_tiff_index *whole = &levels->indexes[image];
    for (int i = 0; i < levels->count; i++) {
        const mc_tiff_index *mask = &levels->indexes[i];
        if (mask->part == MC_TIFF_MASK && mask->width == whole->width && mask->height == whole->height &&
            mask->tile_width == whole->tile_width && mask->tile_height == whole->tile_height)
            return mask;
    }
    return NULL;
}

/* The bits of a mask, `size` of them at `bits`, which has room for MC_INFLATE_SLACK more. */
static bool
unpack_mask(uint8_t *bits, size_t size, const mc_tiff_index *mask, const mc_buf *stored)
{
    size_t begin, end;
    if (mask->compression == DEFLATE || mask->compression == DEFLATE_OF_OLD) {
        memset(bits, 0, size + MC_INFLATE_SLACK);
        return mc_inflate_sparse(bits, size, stored->data, stored->size, &begin, &end);
    }
    if (mask->compression != NOT_COMPRESSED || stored->size != size)
        return false;
    memcpy(bits, stored->data, size);
    return true;
}

/* How many of `side` pixels of the tile at `place` lie in the image. */
static int
count_inside(uint32_t whole, uint32_t side, uint64_t place)
{
    uint64_t begin = place * side;
    return begin >= whole ? 0 : (int)(whole - begin < side ? whole - begin : side);
}

/* Clears what lies beyond the edges; returns how many pixels are left. */
static int
count_seen(uint8_t *bits, size_t row_bytes, const mc_tiff_index *index, int64_t number)
{
    int seen = 0, width = count_inside(index->width, index->tile_width, (uint64_t)number % index->columns);
    int height = count_inside(index->height, index->tile_height, (uint64_t)number / index->columns);
    for (int y = 0; y < (int)index->tile_height; y++) {
        uint8_t *row = bits + (size_t)y * row_bytes;
        int inside = y < height ? width : 0;
        for (int i = 0; i < (int)row_bytes; i++) {
            int left = inside - 8 * i;
            row[i] &= (uint8_t)(left >= 8 ? 0xff : left <= 0 ? 0 : 0xff << (8 - left));
            seen += __builtin_popcount(row[i]);
        }
    }
    return seen;
}

/* The tile as a PNG, transparent where the bits are not set. */
static mc_error *
cut_masked_tile(mc_buf **data, const uint8_t *bits, size_t row_bytes, const mc_tiff_index *index, mc_ctx *ctx,
                apr_pool_t *pool)
{
    const mc_format png = { .ops = &mc_format_png_ops,
                            .type = MC_FORMAT_PNG,
                            .name = "PNG",
                            .extension = "png",
                            .mime = "image/png",
                            .compression = MC_PNG_FAST };
    mc_pixels *pixels;
    MC_TRY(mc_image_decode(&pixels, (*data)->data, (*data)->size, ctx, pool));
    mc_pixels_attach(pixels, pool);
    if (pixels->width != (int)index->tile_width || pixels->height != (int)index->tile_height)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a TIFF has another size than the file says");
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++)
            if ((bits[(size_t)y * row_bytes + (size_t)(x / 8)] & (0x80 >> (x % 8))) == 0)
                memset(pixels->data + (size_t)y * pixels->stride + 4 * (size_t)x, 0, 4);
    pixels->opacity = MC_TRANSLUCENT;
    return mc_format_encode(data, &png, pixels, MC_FOR_STORE, ctx, pool);
}

mc_error *
mc_tile_mask_apply(mc_buf **data, const mc_tiff_index *index, int64_t number, const mc_tiff_index *mask,
                   const mc_buf *stored, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    size_t row_bytes = ((size_t)index->tile_width + 7) / 8, size = row_bytes * index->tile_height;
    if (mc_image_sniff((*data)->data, (*data)->size) == MC_CODING_UNKNOWN)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a TIFF is no picture");
    if (index->tile_width > SIDE_MAX || index->tile_height > SIDE_MAX)
        return MC_OK; /* no grid has such tiles */
    uint8_t *bits = apr_palloc(pool, size + MC_INFLATE_SLACK);
    memset(bits, mask == NULL ? 0xff : 0, size);
    if (stored != NULL && !unpack_mask(bits, size, mask, stored))
        return mc_error_create(pool, MC_ERR_CORRUPT,
                               "the mask of a tile of a TIFF cannot be read: it is neither Deflate nor of its size");
    int seen = count_seen(bits, row_bytes, index, number);
    bool whole = seen == (int)index->tile_width * (int)index->tile_height;
    if (seen == 0)
        *data = NULL;
    if (seen == 0 || whole || (key->mime != NULL && strcmp(key->mime, "image/jpeg") == 0))
        return MC_OK;
    return cut_masked_tile(data, bits, row_bytes, index, ctx, pool);
}
