/* Reading, writing and joining JPEG: libjpeg with its jumps and messages under control. */
#ifndef MC_IMAGE_JPEG_JPEG_H
#define MC_IMAGE_JPEG_JPEG_H

#include <stdio.h> /* <jpeglib.h> needs FILE */

#include <jpeglib.h>
#include <setjmp.h>

#include "mapcache/image.h"

/* libjpeg's error manager with a way out. */
typedef struct mc_jpeg_errors {
    struct jpeg_error_mgr manager; /* first: libjpeg knows only this part */
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
} mc_jpeg_errors;

/*
 * Sets up `errors` for one codec object. Errors, and warnings that mean lost image data, jump to errors->jump with
 * errors->message filled; nothing is ever printed.
 */
struct jpeg_error_mgr *mc_jpeg_errors_init(mc_jpeg_errors *errors);

/* Reads from memory; the end of the data is an error instead of a made-up end-of-image marker. */
void mc_jpeg_source(struct jpeg_decompress_struct *reader, const uint8_t *data, size_t size);

/* Limits what hostile progressive files can cost; after jpeg_create_decompress. */
void mc_jpeg_limit(struct jpeg_decompress_struct *reader, struct jpeg_progress_mgr *progress);

/* A growing destination in memory that belongs to the C library's heap; the caller frees sink.data. */
typedef struct mc_jpeg_sink {
    struct jpeg_destination_mgr manager; /* first */
    uint8_t *data;
    size_t size, capacity;
} mc_jpeg_sink;

void mc_jpeg_destination(struct jpeg_compress_struct *writer, mc_jpeg_sink *sink, size_t expected);

/* Rows of B, G, R and an unused byte. */
typedef struct mc_jpeg_input {
    int width, height;
    uint8_t *(*row)(const void *baton, int y); /* only read */
    const void *baton;
} mc_jpeg_input;

/* Encodes as the format says; a restart marker after every `restart` MCUs unless that is 0. *sink holds the bytes,
 * which the caller frees, also after an error. */
mc_error *mc_jpeg_encode_input(mc_jpeg_sink *sink, const mc_format *format, const mc_jpeg_input *input, int restart,
                               apr_pool_t *pool) MC_CHECKED;

/*
 * Encodes an image that has large areas of one colour: an area is coded once. *done is false, and nothing has happened,
 * where that would not pay.
 */
mc_error *mc_jpeg_encode_pieces(mc_buf **bytes, bool *done, const mc_format *format, const mc_pixels *pixels,
                                mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The parts of a parsed baseline JPEG. */
typedef struct mc_jpeg_parts {
    const uint8_t *data;
    size_t frame;      /* offset of the SOF0 marker's height field */
    size_t scan;       /* offset of the entropy-coded data: the end of the SOS header */
    size_t end;        /* offset of EOI */
    size_t tables;     /* offset of the first Huffman table's segment; 0: none */
    size_t tables_end; /* and of what follows the last one's */
    int width, height; /* pixels */
    int unit_width;    /* pixels of an MCU */
    int unit_height;
    int restart_interval; /* MCUs; 0: none */
} mc_jpeg_parts;

/* False unless the bytes are one baseline image with a single scan of all components. */
bool mc_jpeg_parse(mc_jpeg_parts *parts, const uint8_t *data, size_t size);

/* Finds the segments between restart markers: offsets[0..count], each segment followed by a two-byte marker. False
 * unless there are exactly `count` and the markers stand in sequence. */
bool mc_jpeg_segments(size_t *offsets, int count, const mc_jpeg_parts *parts);

#endif
