/* Two pictures beside each other: whether they are the same, and where they are not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum {
    LOOKS_DIFFERENT = 16, /* of 255: a pixel of which a channel differs by more */
    SIDE_MAX = 4096,      /* of a picture that is looked at */
};

/* The picture of an answer; NULL: there is none. */
static mc_pixels *
decode_answer(const mc_compare_answer *answer, mc_compare *compare, apr_pool_t *pool)
{
    mc_pixels *pixels;
    int width, height;
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(compare->runtime), .log = compare->log };
    if (answer->status != 200 || answer->body == NULL || answer->body->size == 0 ||
        mc_image_size(&width, &height, answer->body->data, answer->body->size, pool) != MC_OK || width > SIDE_MAX ||
        height > SIDE_MAX || mc_image_decode(&pixels, answer->body->data, answer->body->size, &ctx, pool) != MC_OK)
        return NULL;
    return mc_pixels_attach(pixels, pool);
}

/* How far the channels of two pixels are from each other at most. */
static int
pixel_distance(const uint8_t *a, const uint8_t *b)
{
    int most = 0;
    for (int channel = 0; channel < 4; channel++)
        if (abs(a[channel] - b[channel]) > most)
            most = abs(a[channel] - b[channel]);
    return most;
}

static const uint8_t *
pixel_at(const mc_pixels *pixels, int x, int y)
{
    return pixels->data + (size_t)y * pixels->stride + 4 * (size_t)x;
}

/* Whether a pixel is of a colour that the other picture has not within one pixel: lines that are resampled, or drawn by
 * another rule for edges, are no difference. */
static bool
is_stray_pixel(const uint8_t *pixel, const mc_pixels *other, int x, int y)
{
    for (int channel = 0; channel < 4; channel++) {
        int least = 255, most = 0;
        for (int row = y > 0 ? y - 1 : 0; row <= y + 1 && row < other->height; row++)
            for (int column = x > 0 ? x - 1 : 0; column <= x + 1 && column < other->width; column++) {
                int value = pixel_at(other, column, row)[channel];
                least = value < least ? value : least;
                most = value > most ? value : most;
            }
        if (pixel[channel] < least - LOOKS_DIFFERENT || pixel[channel] > most + LOOKS_DIFFERENT)
            return true;
    }
    return false;
}

static bool
looks_different(const mc_pixels *there, const mc_pixels *here, int x, int y)
{
    const uint8_t *a = pixel_at(there, x, y), *b = pixel_at(here, x, y);
    return pixel_distance(a, b) > LOOKS_DIFFERENT && (is_stray_pixel(a, here, x, y) || is_stray_pixel(b, there, x, y));
}

/* Where the pixels look different, in red over a pale copy of the first picture. */
static void
draw_difference(mc_compare_pair *pair, const mc_pixels *there, const mc_pixels *here, mc_compare *compare,
                apr_pool_t *pool)
{
    mc_pixels *drawn;
    apr_hash_t *formats = apr_hash_make(pool);
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(compare->runtime), .log = compare->log };
    mc_format_builtins(formats, pool);
    if (mc_pixels_create(&drawn, there->width, there->height, true, pool) != MC_OK)
        return;
    mc_pixels_attach(drawn, pool);
    for (int y = 0; y < there->height; y++)
        for (int x = 0; x < there->width; x++) {
            const uint8_t *a = pixel_at(there, x, y);
            uint8_t *out = drawn->data + (size_t)y * drawn->stride + 4 * (size_t)x;
            bool differs = looks_different(there, here, x, y);
            int gray = 255 - a[3] + (a[0] + a[1] + a[2]) / 3;
            out[0] = out[1] = differs ? 40 : (uint8_t)(200 + gray * 55 / 255);
            out[2] = differs ? 210 : out[0];
            out[3] = 255;
        }
    drawn->opacity = MC_OPAQUE;
    if (mc_format_encode(&pair->difference, apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING), drawn, MC_FOR_STORE,
                         &ctx, pool) != MC_OK)
        pair->difference = NULL;
}

/* A place where a pixel is unlike its right neighbour or the one below; the search begins anywhere. */
static void
find_focus(mc_compare_pair *pair, const mc_pixels *pixels, mc_compare *compare)
{
    int width = pixels->width, height = pixels->height, count = width * height;
    int begin = mc_compare_choose(compare, count);
    for (int i = 0; i < count; i++) {
        int at = (begin + i) % count, x = at % width, y = at / width;
        const uint8_t *pixel = pixels->data + (size_t)y * pixels->stride + 4 * (size_t)x;
        if ((x + 1 < width && pixel_distance(pixel, pixel + 4) > LOOKS_DIFFERENT) ||
            (y + 1 < height && pixel_distance(pixel, pixel + pixels->stride) > LOOKS_DIFFERENT)) {
            pair->has_focus = true;
            pair->focus[0] = (x + 1.0) / width;
            pair->focus[1] = (y + 1.0) / height;
            return;
        }
    }
}

static void
compare_pixels(mc_compare_pair *pair, const mc_pixels *there, const mc_pixels *here, mc_compare *compare,
               apr_pool_t *pool)
{
    const mc_buf *a = pair->answers[0].body, *b = pair->answers[1].body;
    int64_t different = 0, equal = 0, count = (int64_t)there->width * there->height;
    if (there->width != here->width || there->height != here->height) {
        pair->verdict = MC_COMPARE_DIFFERENT;
        pair->share = 1;
        return;
    }
    for (int y = 0; y < there->height; y++)
        for (int x = 0; x < there->width; x++) {
            equal += pixel_distance(pixel_at(there, x, y), pixel_at(here, x, y)) == 0;
            different += looks_different(there, here, x, y);
        }
    pair->share = (double)different / (double)count;
    if (a->size == b->size && memcmp(a->data, b->data, a->size) == 0)
        pair->verdict = MC_COMPARE_SAME_BYTES;
    else
        pair->verdict = equal == count        ? MC_COMPARE_SAME_PIXELS
                        : pair->share <= 0.01 ? MC_COMPARE_CLOSE
                                              : MC_COMPARE_DIFFERENT;
    if (different > 0)
        draw_difference(pair, there, here, compare, pool);
}

void
mc_compare_pictures(mc_compare_pair *pair, mc_compare *compare, apr_pool_t *pool)
{
    mc_pixels *there = decode_answer(&pair->answers[0], compare, pool),
              *here = decode_answer(&pair->answers[1], compare, pool);
    const mc_pixels *shown = there != NULL ? there : here;
    pair->verdict = there != NULL ? MC_COMPARE_ONLY_THERE : here != NULL ? MC_COMPARE_ONLY_HERE : MC_COMPARE_NEITHER;
    uint8_t bgra[4];
    bool empty = shown != NULL && (there == NULL || here == NULL) && mc_pixels_uniform(shown, bgra) && bgra[3] == 0;
    if (shown == NULL || empty) { /* an empty picture stands for what is not there */
        pair->verdict = MC_COMPARE_NEITHER;
        return;
    }
    pair->width = shown->width;
    pair->height = shown->height;
    find_focus(pair, shown, compare);
    if (there != NULL && here != NULL)
        compare_pixels(pair, there, here, compare, pool);
}
