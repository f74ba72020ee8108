/* The rectangle of an image in which something shows. */
#include "image/box.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

/* Whether any of `count` pixels has an alpha above 0. */
static bool
has_visible_pixel(const uint8_t *pixels, int count)
{
    int x = 0;
#ifdef __SSE4_1__
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    for (; x + 16 <= count; x += 16) {
        const __m128i *four = (const __m128i *)(const void *)(pixels + (size_t)x * 4);
        __m128i any = _mm_or_si128(_mm_or_si128(_mm_loadu_si128(four), _mm_loadu_si128(four + 1)),
                                   _mm_or_si128(_mm_loadu_si128(four + 2), _mm_loadu_si128(four + 3)));
        if (!_mm_testz_si128(any, alpha))
            return true;
    }
#endif
    for (; x < count; x++)
        if (pixels[(size_t)x * 4 + 3] != 0)
            return true;
    return false;
}

static bool
pixels_all_opaque(const uint8_t *pixels, int count)
{
    int x = 0;
#ifdef __SSE4_1__
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    for (; x + 4 <= count; x += 4)
        if (!_mm_testc_si128(_mm_loadu_si128((const __m128i *)(const void *)(pixels + (size_t)x * 4)), alpha))
            return false;
#endif
    for (; x < count; x++)
        if (pixels[(size_t)x * 4 + 3] != 255)
            return false;
    return true;
}

static const uint8_t *
box_row_address(const mc_pixels *pixels, int y)
{
    return pixels->data + (size_t)y * pixels->stride;
}

/* The first and last column of a row in which something shows, within what is not inside left..right yet. */
static void
widen_visible_columns(const uint8_t *pixels, int width, int *left, int *right)
{
    int x = 0;
    while (x + 16 <= *left && !has_visible_pixel(pixels + (size_t)x * 4, 16))
        x += 16;
    while (x < *left && pixels[(size_t)x * 4 + 3] == 0)
        x++;
    *left = x < *left ? x : *left;
    x = width;
    while (x - 16 >= *right && !has_visible_pixel(pixels + (size_t)(x - 16) * 4, 16))
        x -= 16;
    while (x > *right && pixels[(size_t)(x - 1) * 4 + 3] == 0)
        x--;
    *right = x > *right ? x : *right;
}

mc_box
mc_pixels_box(const mc_pixels *pixels)
{
    if (pixels->opacity == MC_OPAQUE)
        return (mc_box){ 0, 0, pixels->width, pixels->height, MC_OPAQUE };
    int top = 0, bottom = pixels->height;
    if (pixels->opacity == MC_EMPTY)
        top = bottom;
    while (top < bottom && !has_visible_pixel(box_row_address(pixels, top), pixels->width))
        top++;
    if (top == bottom)
        return (mc_box){ .opacity = MC_EMPTY };
    while (!has_visible_pixel(box_row_address(pixels, bottom - 1), pixels->width))
        bottom--;
    int left = pixels->width, right = 0;
    for (int y = top; y < bottom; y++)
        widen_visible_columns(box_row_address(pixels, y), pixels->width, &left, &right);
    bool opaque = true;
    for (int y = top; y < bottom && opaque; y++)
        opaque = pixels_all_opaque(box_row_address(pixels, y) + (size_t)left * 4, right - left);
    return (mc_box){ left, top, right - left, bottom - top, opaque ? MC_OPAQUE : MC_TRANSLUCENT };
}
