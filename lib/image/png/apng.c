/*
 * Animated PNG out (PNG, third edition: acTL, fcTL and fdAT). The first frame is the image itself; of each later one
 * the rectangle that differs from the frame before replaces what stands there. Frames do not depend on each other's
 * bytes, so idle workers encode them side by side.
 */
#include "image/png/apng.h"

#include <apr_strings.h>
#include <string.h>

#include "base/workers.h"
#include "image/png/png.h"
#include "mapcache/trace.h"
#include "memory/scratch.h"

/* Bytes of an fdAT before its image data: the sequence number. */
enum { SEQUENCE_SIZE = 4 };

/* The number of equal bytes at the front of two rows, in whole pixels. */
static size_t
equal_pixels(const uint8_t *a, const uint8_t *b, size_t count)
{
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
        uint64_t left, right;
        memcpy(&left, a + i * 4, 8);
        memcpy(&right, b + i * 4, 8);
        if (left != right)
            break;
    }
    while (i < count && memcmp(a + i * 4, b + i * 4, 4) == 0)
        i++;
    return i;
}

static size_t
equal_pixels_at_end(const uint8_t *a, const uint8_t *b, size_t count)
{
    size_t i = 0;
    while (i < count && memcmp(a + (count - 1 - i) * 4, b + (count - 1 - i) * 4, 4) == 0)
        i++;
    return i;
}

mc_changed
mc_pixels_changed(const mc_pixels *before, const mc_pixels *after)
{
    MC_ASSERT(before->width == after->width && before->height == after->height);
    size_t left = (size_t)after->width, right = 0, row_size = (size_t)after->width * 4;
    int top = -1, bottom = 0;
    for (int y = 0; y < after->height; y++) {
        const uint8_t *a = before->data + (size_t)y * before->stride, *b = after->data + (size_t)y * after->stride;
        if (memcmp(a, b, row_size) == 0)
            continue;
        if (top < 0)
            top = y;
        bottom = y + 1;
        /* Only what lies outside of the rectangle so far can widen it. */
        size_t front = equal_pixels(a, b, left);
        left = front < left ? front : left;
        right += (size_t)after->width - right -
                 equal_pixels_at_end(a + right * 4, b + right * 4, (size_t)after->width - right);
    }
    if (top < 0)
        return (mc_changed){ 0 };
    return (mc_changed){ (int)left, top, (int)(right - left), bottom - top };
}

/* One frame's rectangle and its compressed rows, with room for the sequence number before them. */
typedef struct apng_frame {
    mc_changed place;
    uint8_t *stream; /* scratch */
    size_t size;
} apng_frame;

typedef struct apng_encoding {
    const mc_animation *animation;
    mc_deflate_level level;
    bool opaque; /* all frames */
    apng_frame *frames;
} apng_encoding;

/* A frame must have pixels: one in which nothing has changed repeats the first one. */
static mc_changed
apng_frame_box(const mc_animation *animation, int index)
{
    const mc_pixels *pixels = animation->frames[index];
    if (index == 0)
        return (mc_changed){ 0, 0, pixels->width, pixels->height };
    mc_changed changed = mc_pixels_changed(animation->frames[index - 1], pixels);
    return changed.width > 0 ? changed : (mc_changed){ 0, 0, 1, 1 };
}

static mc_error *
encode_frame(void *baton, int index, mc_ctx *ctx)
{
    apng_encoding *e = baton;
    apng_frame *f = &e->frames[index];
    const mc_pixels *whole = e->animation->frames[index];
    f->place = apng_frame_box(e->animation, index);
    mc_pixels part = { .width = f->place.width,
                       .height = f->place.height,
                       .stride = whole->stride,
                       .data = whole->data + (size_t)f->place.top * whole->stride + (size_t)f->place.left * 4 };
    size_t size = mc_png_rows_size(&part, e->opaque);
    uint8_t *rows = mc_scratch_acquire(size);
    if (rows == NULL)
        return mc_error_create(ctx->pool, MC_ERR_NO_MEMORY, "no memory for a frame of %d x %d pixels", part.width,
                               part.height);
    mc_deflate_level level = mc_png_rows(rows, &part, e->opaque, e->level);
    mc_error *error = mc_png_deflate(&f->stream, &f->size, SEQUENCE_SIZE, rows, size, level, ctx->pool);
    mc_scratch_release(rows);
    return error;
}

static mc_error *
encode_frames(apng_encoding *e, mc_ctx *ctx, apr_pool_t *pool)
{
    int count = e->animation->count;
    mc_workers *workers = ctx->process == NULL ? NULL : ctx->process->workers;
    if (workers != NULL && count > 1)
        return mc_workers_run(workers, encode_frame, e, count, mc_workers_spare(workers), ctx, pool);
    for (int i = 0; i < count; i++)
        MC_TRY(encode_frame(e, i, ctx));
    return MC_OK;
}

static mc_error *
write_control(mc_buf *png, const apng_frame *f, uint32_t sequence, int delay, apr_pool_t *pool)
{
    /* Ends with dispose 0 (the frame stays) and blend 0 (it replaces what was there). */
    uint8_t body[26] = { 0 };
    (void)mc_store_big32(body, sequence);
    (void)mc_store_big32(body + 4, (uint32_t)f->place.width);
    (void)mc_store_big32(body + 8, (uint32_t)f->place.height);
    (void)mc_store_big32(body + 12, (uint32_t)f->place.left);
    (void)mc_store_big32(body + 16, (uint32_t)f->place.top);
    body[20] = (uint8_t)(delay >> 8);
    body[21] = (uint8_t)delay;
    body[22] = 1000 >> 8;
    body[23] = (uint8_t)1000;
    return mc_png_chunk(png, "fcTL", body, sizeof(body), pool);
}

static mc_error *
write_frames(mc_buf *png, const apng_encoding *e, apr_pool_t *pool)
{
    uint32_t sequence = 0;
    for (int i = 0; i < e->animation->count; i++) {
        const apng_frame *f = &e->frames[i];
        MC_TRY(write_control(png, f, sequence++, e->animation->delay, pool));
        if (i == 0) {
            MC_TRY(mc_png_chunk(png, "IDAT", f->stream + SEQUENCE_SIZE, f->size, pool));
            continue;
        }
        (void)mc_store_big32(f->stream, sequence++);
        MC_TRY(mc_png_chunk(png, "fdAT", f->stream, SEQUENCE_SIZE + f->size, pool));
    }
    return mc_png_end(png, pool);
}

static mc_error *
write_apng_chunks(mc_buf *png, const apng_encoding *e, apr_pool_t *pool)
{
    const mc_animation *animation = e->animation;
    const mc_pixels *first = animation->frames[0];
    mc_png_header header = { .width = (uint32_t)first->width,
                             .height = (uint32_t)first->height,
                             .depth = 8,
                             .color = e->opaque ? MC_PNG_RGB : MC_PNG_RGBA };
    uint8_t control[8];
    (void)mc_store_big32(control, (uint32_t)animation->count);
    (void)mc_store_big32(control + 4, (uint32_t)animation->loops);
    MC_TRY(mc_png_begin(png, &header, pool));
    MC_TRY(mc_png_chunk(png, "acTL", control, sizeof(control), pool));
    return write_frames(png, e, pool);
}

static bool
animation_is_opaque(const mc_animation *animation)
{
    for (int i = 0; i < animation->count; i++)
        if (mc_pixels_opacity(animation->frames[i]) != MC_OPAQUE)
            return false;
    return true;
}

static void
assert_animation_valid(const mc_animation *animation)
{
    MC_ASSERT(animation->count > 0 && animation->loops >= 0);
    MC_ASSERT(animation->delay >= 0 && animation->delay <= 65535);
    for (int i = 1; i < animation->count; i++)
        MC_ASSERT(animation->frames[i]->width == animation->frames[0]->width &&
                  animation->frames[i]->height == animation->frames[0]->height);
}

mc_error *
mc_apng_encode(mc_buf **bytes, const mc_animation *animation, mc_purpose purpose, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "_mapcache_imageio_png_encode");
    assert_animation_valid(animation);
    if (animation->count > mc_frames_max)
        return mc_error_create(pool, MC_ERR_LIMIT, "an animation of %d frames is beyond the limit of %d",
                               animation->count, (int)mc_frames_max);
    apng_encoding e = { .animation = animation,
                        .level = purpose == MC_FOR_STORE ? MC_DEFLATE_GOOD : MC_DEFLATE_QUICK,
                        .opaque = animation_is_opaque(animation),
                        .frames = apr_pcalloc(pool, sizeof(apng_frame) * (size_t)animation->count) };
    mc_buf *png = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    mc_error *error = encode_frames(&e, ctx, pool);
    if (error == MC_OK)
        error = write_apng_chunks(png, &e, pool);
    for (int i = 0; i < animation->count; i++)
        mc_scratch_release(e.frames[i].stream);
    if (error == MC_OK)
        *bytes = png;
    return error;
}
