/*
 * The fixed Huffman tables of our JPEG files. Tiles can be joined without decoding only if they share their tables, so
 * tables follow from the quantisation alone; they were trained on tiles and lack the codes that no image can need.
 */
#ifndef MC_IMAGE_JPEG_TABLES_H
#define MC_IMAGE_JPEG_TABLES_H

#include "image/jpeg/jpeg.h"

enum { MC_JPEG_TRAINED = 12 };

/* Tables for qualities up to `quality` from the entry before on; quality as in jpeg_set_quality(). */
typedef struct mc_jpeg_trained {
    int quality;
    const uint8_t *tables[2][2]; /* of luminance and chrominance: DC, AC */
} mc_jpeg_trained;

extern const mc_jpeg_trained mc_jpeg_trained_tables[MC_JPEG_TRAINED];

/* Replaces the writer's Huffman tables 0 and 1 by those that its quantisation tables call for: the best ones that have
 * a code for whatever pixels can give. After the parameters are set, before jpeg_start_compress(). */
void mc_jpeg_use_trained(struct jpeg_compress_struct *writer);

/* Whether the writer's tables have all codes that these coefficients need, which may come from any encoder. */
bool mc_jpeg_codes_all(struct jpeg_decompress_struct *reader, jvirt_barray_ptr *coefficients,
                       const struct jpeg_compress_struct *writer);

#endif
