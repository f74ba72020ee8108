/* Encoding an image as JPEG: whole, in strips by several workers, or from pieces that are known. */
#include <stdlib.h>

#include "base/workers.h"
#include "image/codec.h"
#include "image/jpeg/jpeg_header.h"
#include "mapcache/trace.h"

/* A strip holds a multiple of eight rows of MCUs, whatever their height: so the restart markers, numbered modulo eight,
 * go on from strip to strip. Less than LEAST rows are encoded before a worker is awake. */
enum { STRIP_UNIT = 128, LEAST_ROWS = 512, STRIPS_MAX = 16 };

/* Rows of an image from `top` on. */
typedef struct strip_rows {
    const mc_pixels *pixels;
    int top;
} strip_rows;

static uint8_t *
strip_row(const void *baton, int y)
{
    const strip_rows *rows = baton;
    return rows->pixels->data + (size_t)(rows->top + y) * rows->pixels->stride;
}

/* Writes `height` rows from row `y` on as one image. *sink holds the bytes, which the caller frees, also after an
 * error. */
static mc_error *
encode_rows(mc_jpeg_sink *sink, const mc_format *format, const mc_pixels *pixels, int y, int height, apr_pool_t *pool)
{
    strip_rows rows = { pixels, y };
    mc_jpeg_input input = { pixels->width, height, strip_row, &rows };
    return mc_jpeg_encode_input(sink, format, &input, 0, pool);
}

typedef struct strips {
    const mc_format *format;
    const mc_pixels *pixels;
    int rows; /* of each but the last */
    mc_jpeg_sink sinks[STRIPS_MAX];
} strips;

static mc_error *
encode_strip(void *baton, int index, mc_ctx *ctx)
{
    strips *s = baton;
    int y = index * s->rows, left = s->pixels->height - y;
    return encode_rows(&s->sinks[index], s->format, s->pixels, y, left < s->rows ? left : s->rows, ctx->pool);
}

/* The strips as one image: the first one's header with the whole height, and a restart marker between the strips. */
static mc_error *
join_strips(mc_buf **bytes, const strips *s, int count, apr_pool_t *pool)
{
    mc_jpeg_parts parts[STRIPS_MAX];
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        MC_ASSERT(mc_jpeg_parse(&parts[i], s->sinks[i].data, s->sinks[i].size));
        MC_ASSERT(s->rows % (8 * parts[i].unit_height) == 0 && parts[i].restart_interval > 0);
        size += s->sinks[i].size;
    }
    mc_buf *joined = mc_buf_attach(mc_buf_create(size, size), pool);
    MC_TRY(mc_buf_append(joined, parts[0].data, parts[0].scan, pool));
    uint8_t *frame = joined->data + parts[0].frame;
    frame[0] = (uint8_t)(s->pixels->height >> 8);
    frame[1] = (uint8_t)s->pixels->height;
    for (int i = 0; i < count; i++) {
        static const uint8_t restart[] = { 0xff, 0xd7 }, end[] = { 0xff, 0xd9 };
        MC_TRY(mc_buf_append(joined, parts[i].data + parts[i].scan, parts[i].end - parts[i].scan, pool));
        MC_TRY(mc_buf_append(joined, i + 1 < count ? restart : end, 2, pool));
    }
    *bytes = joined;
    return MC_OK;
}

static mc_error *
encode_strips(mc_buf **bytes, const mc_format *format, const mc_pixels *pixels, int helpers, mc_ctx *ctx,
              apr_pool_t *pool)
{
    int wanted = helpers + 1 < STRIPS_MAX ? helpers + 1 : STRIPS_MAX;
    int units = (pixels->height + STRIP_UNIT - 1) / STRIP_UNIT;
    strips s = { .format = format, .pixels = pixels, .rows = (units + wanted - 1) / wanted * STRIP_UNIT };
    int count = (pixels->height + s.rows - 1) / s.rows;
    mc_error *error = mc_workers_run(ctx->process->workers, encode_strip, &s, count, count - 1, ctx, pool);
    if (error == MC_OK)
        error = join_strips(bytes, &s, count, pool);
    for (int i = 0; i < count; i++)
        free(s.sinks[i].data);
    return error;
}

/* How many workers may help: only those that have nothing else to do. */
static int
count_jpeg_helpers(const mc_format *format, const mc_pixels *pixels, const mc_ctx *ctx)
{
    bool markers = format->optimize != MC_JPEG_OPTIMIZED && format->optimize != MC_JPEG_ARITHMETIC;
    if (!markers || pixels->height < LEAST_ROWS || ctx->process == NULL)
        return 0;
    return mc_workers_spare(ctx->process->workers);
}

static mc_error *
jpeg_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
            apr_pool_t *pool)
{
    MC_SPAN(ctx, "_mapcache_imageio_jpeg_encode");
    if (purpose == MC_ON_THE_FLY) {
        bool done;
        MC_TRY(mc_jpeg_encode_pieces(bytes, &done, format, pixels, ctx, pool));
        if (done)
            return MC_OK;
    }
    int helpers = count_jpeg_helpers(format, pixels, ctx);
    if (helpers > 0)
        return encode_strips(bytes, format, pixels, helpers, ctx, pool);
    mc_jpeg_sink sink;
    mc_error *error = encode_rows(&sink, format, pixels, 0, pixels->height, pool);
    /* Not of what strips are made of, where workers are idle: the bytes are the same with and without them. */
    if (error == MC_OK && purpose == MC_FOR_STORE && pixels->height < LEAST_ROWS)
        mc_jpeg_leave_out(&sink);
    if (error == MC_OK)
        error = mc_buf_duplicate(bytes, sink.data, sink.size, pool);
    free(sink.data);
    return error;
}

const struct mc_format_ops mc_format_jpeg_ops = { "JPEG", jpeg_encode };
