/*
 * JPEG out of maps that are mostly background. With a restart marker after every four MCUs, each such piece is coded by
 * itself: pieces of one colour are coded once for all places where they stand, and only the others are encoded, as an
 * image of their own that is one piece wide. The pixels are those that encoding the whole gives.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "base/workers.h"
#include "image/codec.h"
#include "image/jpeg/jpeg.h"

/* A piece is four MCUs of two by two blocks, as colour is sampled by default. Fewer than LEAST_PIECES cost less than
 * the search. A job of PIECES_OF_A_JOB takes about 0.3 ms. */
enum {
    UNIT = 16,
    UNITS_OF_A_PIECE = 4,
    PIECE_WIDTH = UNIT * UNITS_OF_A_PIECE,
    LEAST_PIECES = 16,
    PIECES_OF_A_JOB = 96,
    COLORS_MAX = 4
};

/* Where a piece's upper left corner lies. */
typedef struct corner {
    int x, y;
} corner;

typedef struct pieces {
    const mc_format *format;
    const mc_pixels *pixels;
    int count;         /* of all pieces, row by row */
    int *coded;        /* which of the different pieces stands there */
    corner *different; /* pieces to encode */
    int different_count;
    uint32_t colors[COLORS_MAX]; /* that have been met as pieces of one colour */
    int color_coded[COLORS_MAX], color_count;
    mc_jpeg_sink *sinks; /* of each job */
    int jobs;
} pieces;

/* Whether a row of a piece has one colour. */
static bool
row_is(const uint8_t *row, uint32_t color)
{
#ifdef __SSE4_1__
    const __m128i same = _mm_set1_epi32((int)color);
    __m128i differ = _mm_setzero_si128();
    for (int x = 0; x < PIECE_WIDTH; x += 4)
        differ = _mm_or_si128(
            differ, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(row + (size_t)x * 4)), same));
    return _mm_testz_si128(differ, differ);
#else
    for (int x = 0; x < PIECE_WIDTH; x++)
        if (memcmp(row + (size_t)x * 4, &color, 4) != 0)
            return false;
    return true;
#endif
}

static bool
is_uniform(const mc_pixels *pixels, corner at, uint32_t *color)
{
    const uint8_t *row = pixels->data + (size_t)at.y * pixels->stride + (size_t)at.x * 4;
    int rows = pixels->height - at.y < UNIT ? pixels->height - at.y : UNIT;
    memcpy(color, row, 4);
    for (int y = 0; y < rows; y++)
        if (!row_is(row + (size_t)y * pixels->stride, *color))
            return false;
    return true;
}

/* The number of a piece of that colour: of one met before, if there is one. */
static int
code_of_color(pieces *p, corner at, uint32_t color)
{
    for (int i = 0; i < p->color_count; i++)
        if (p->colors[i] == color)
            return p->color_coded[i];
    if (p->color_count < COLORS_MAX) {
        p->colors[p->color_count] = color;
        p->color_coded[p->color_count++] = p->different_count;
    }
    p->different[p->different_count] = at;
    return p->different_count++;
}

static void
find_pieces(pieces *p)
{
    int across = p->pixels->width / PIECE_WIDTH;
    for (int i = 0; i < p->count; i++) {
        corner at = { i % across * PIECE_WIDTH, i / across * UNIT };
        uint32_t color;
        if (is_uniform(p->pixels, at, &color)) {
            p->coded[i] = code_of_color(p, at, color);
            continue;
        }
        p->different[p->different_count] = at;
        p->coded[i] = p->different_count++;
    }
}

/* The pieces of one job as an image. */
typedef struct job_rows {
    const mc_pixels *pixels;
    const corner *corners;
} job_rows;

static uint8_t *
piece_row(const void *baton, int y)
{
    const job_rows *rows = baton;
    corner at = rows->corners[y / UNIT];
    int row = at.y + y % UNIT, last = rows->pixels->height - 1;
    /* Below the image, its last row goes on. */
    return rows->pixels->data + (size_t)(row < last ? row : last) * rows->pixels->stride + (size_t)at.x * 4;
}

static int
pieces_of(const pieces *p, int job)
{
    int left = p->different_count - job * PIECES_OF_A_JOB;
    return left < PIECES_OF_A_JOB ? left : PIECES_OF_A_JOB;
}

static mc_error *
encode_job(void *baton, int index, mc_ctx *ctx)
{
    pieces *p = baton;
    job_rows rows = { p->pixels, p->different + index * PIECES_OF_A_JOB };
    mc_jpeg_input input = { PIECE_WIDTH, pieces_of(p, index) * UNIT, piece_row, &rows };
    return mc_jpeg_encode_input(&p->sinks[index], p->format, &input, UNITS_OF_A_PIECE, ctx->pool);
}

static mc_error *
encode_different(pieces *p, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_workers *workers = ctx->process == NULL ? NULL : ctx->process->workers;
    if (workers != NULL)
        return mc_workers_run(workers, encode_job, p, p->jobs, mc_workers_spare(workers), ctx, pool);
    for (int i = 0; i < p->jobs; i++)
        MC_TRY(encode_job(p, i, ctx));
    return MC_OK;
}

/* The coded bytes of one piece. */
typedef struct jpeg_pieces_code {
    const uint8_t *bytes;
    size_t size;
} jpeg_pieces_code;

/* Where each different piece's code lies. Returns the size of all pieces at their places, with markers. */
static size_t
find_codes(jpeg_pieces_code *codes, mc_jpeg_parts *first, const pieces *p)
{
    for (int job = 0; job < p->jobs; job++) {
        mc_jpeg_parts parts;
        size_t offsets[PIECES_OF_A_JOB + 1];
        int count = pieces_of(p, job);
        MC_ASSERT(mc_jpeg_parse(&parts, p->sinks[job].data, p->sinks[job].size));
        MC_ASSERT(parts.unit_width == UNIT && parts.unit_height == UNIT && parts.restart_interval == UNITS_OF_A_PIECE);
        MC_ASSERT(mc_jpeg_segments(offsets, count, &parts));
        for (int i = 0; i < count; i++)
            codes[job * PIECES_OF_A_JOB + i] =
                (jpeg_pieces_code){ parts.data + offsets[i], offsets[i + 1] - 2 - offsets[i] };
        if (job == 0)
            *first = parts;
    }
    size_t size = 0;
    for (int i = 0; i < p->count; i++)
        size += codes[p->coded[i]].size + 2;
    return size;
}

static mc_error *
put_together(mc_buf **bytes, const pieces *p, apr_pool_t *scratch, apr_pool_t *pool)
{
    mc_jpeg_parts first = { 0 };
    jpeg_pieces_code *codes = apr_palloc(scratch, sizeof(jpeg_pieces_code) * (size_t)p->different_count);
    size_t size = find_codes(codes, &first, p);
    mc_buf *made = mc_buf_attach(mc_buf_create(first.scan + size, first.scan + size), pool);
    MC_TRY(mc_buf_reserve(made, first.scan + size, pool));
    MC_TRY(mc_buf_append(made, first.data, first.scan, pool));
    uint8_t *frame = made->data + first.frame, *at = made->data + first.scan;
    frame[0] = (uint8_t)(p->pixels->height >> 8);
    frame[1] = (uint8_t)p->pixels->height;
    frame[2] = (uint8_t)(p->pixels->width >> 8);
    frame[3] = (uint8_t)p->pixels->width;
    for (int i = 0; i < p->count; i++) {
        const jpeg_pieces_code *c = &codes[p->coded[i]];
        memcpy(at, c->bytes, c->size);
        at[c->size] = 0xff;
        at[c->size + 1] = i + 1 < p->count ? (uint8_t)(0xd0 + (i & 7)) : 0xd9;
        at += c->size + 2;
    }
    made->size += size;
    *bytes = made;
    return MC_OK;
}

static mc_error *
encode_found(mc_buf **bytes, pieces *p, mc_ctx *ctx, apr_pool_t *scratch, apr_pool_t *pool)
{
    p->jobs = (p->different_count + PIECES_OF_A_JOB - 1) / PIECES_OF_A_JOB;
    p->sinks = apr_pcalloc(scratch, sizeof(mc_jpeg_sink) * (size_t)p->jobs);
    mc_error *error = encode_different(p, ctx, pool);
    if (error == MC_OK)
        error = put_together(bytes, p, scratch, pool);
    for (int i = 0; i < p->jobs; i++)
        free(p->sinks[i].data);
    return error;
}

mc_error *
mc_jpeg_encode_pieces(mc_buf **bytes, bool *done, const mc_format *format, const mc_pixels *pixels, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    int across = pixels->width / PIECE_WIDTH, down = (pixels->height + UNIT - 1) / UNIT;
    bool markers = format->optimize != MC_JPEG_OPTIMIZED && format->optimize != MC_JPEG_ARITHMETIC;
    *done = false;
    if (!markers || format->photometric == 1 || pixels->width % PIECE_WIDTH != 0 || across * down < LEAST_PIECES)
        return MC_OK;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, ctx->pool);
    pieces p = { .format = format, .pixels = pixels, .count = across * down };
    p.coded = apr_palloc(scratch, sizeof(int) * (size_t)p.count);
    p.different = apr_palloc(scratch, sizeof(corner) * (size_t)p.count);
    find_pieces(&p);
    mc_error *error = MC_OK;
    /* Where most pieces differ, whole rows make fewer bytes and as many jobs as there are workers. */
    *done = p.different_count <= p.count / 2;
    if (*done)
        error = encode_found(bytes, &p, ctx, scratch, pool);
    apr_pool_destroy(scratch);
    return error;
}
