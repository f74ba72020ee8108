/* A colour laid through a mask, over premultiplied pixels (Porter and Duff, 1984: over). */
#include "draw/raster/brush.h"

#include <string.h>

#include "image/scale_sse.h"

#ifdef __SSE4_1__
/* Two pixels in 16-bit lanes: the same arithmetic as lay_pixel. */
static inline __m128i
lay_two(__m128i target, __m128i source, __m128i mask)
{
    const __m128i alphas = _mm_set_epi8(15, 14, 15, 14, 15, 14, 15, 14, 7, 6, 7, 6, 7, 6, 7, 6);
    __m128i laid = mc_scale_eight(source, mask);
    __m128i rest = _mm_sub_epi16(_mm_set1_epi16(255), _mm_shuffle_epi8(laid, alphas));
    return _mm_add_epi16(laid, mc_scale_eight(target, rest));
}

/* Four pixels with four masks. */
static inline void
lay_four(uint8_t *target, __m128i source, uint32_t masks)
{
    const __m128i low = _mm_set_epi8(-1, 1, -1, 1, -1, 1, -1, 1, -1, 0, -1, 0, -1, 0, -1, 0);
    const __m128i high = _mm_set_epi8(-1, 3, -1, 3, -1, 3, -1, 3, -1, 2, -1, 2, -1, 2, -1, 2);
    __m128i mask = _mm_cvtsi32_si128((int)masks);
    __m128i pixels = _mm_loadu_si128((const __m128i *)(const void *)target);
    __m128i a = lay_two(_mm_cvtepu8_epi16(pixels), source, _mm_shuffle_epi8(mask, low));
    __m128i b = lay_two(_mm_cvtepu8_epi16(_mm_srli_si128(pixels, 8)), source, _mm_shuffle_epi8(mask, high));
    _mm_storeu_si128((__m128i *)(void *)target, _mm_packus_epi16(a, b));
}
#endif

static void
premultiply_color(uint8_t bgra[4], mc_color color)
{
    bgra[0] = (uint8_t)mc_brush_scaled(color.blue, color.alpha);
    bgra[1] = (uint8_t)mc_brush_scaled(color.green, color.alpha);
    bgra[2] = (uint8_t)mc_brush_scaled(color.red, color.alpha);
    bgra[3] = color.alpha;
}

void
mc_brush_color(uint8_t bgra[4], mc_color color, uint8_t mask)
{
    uint8_t source[4];
    premultiply_color(source, color);
    if (mask != 0)
        mc_brush_pixel(bgra, source, mask);
}

void
mc_brush_row(mc_pixels *target, int x, int y, const uint8_t *mask, int count, mc_color color)
{
    uint8_t source[4];
    uint8_t *pixel = target->data + (size_t)y * target->stride + (size_t)x * 4;
    uint32_t whole;
    int i = 0;
    premultiply_color(source, color);
    memcpy(&whole, source, 4);
#ifdef __SSE4_1__
    const __m128i four = _mm_set1_epi32((int)whole);
    const __m128i wide = _mm_cvtepu8_epi16(four);
    for (; i + 4 <= count; i += 4) {
        uint32_t masks;
        memcpy(&masks, mask + i, 4);
        if (masks == 0)
            continue;
        if (masks == UINT32_MAX && color.alpha == 255)
            _mm_storeu_si128((__m128i *)(void *)(pixel + (size_t)i * 4), four);
        else
            lay_four(pixel + (size_t)i * 4, wide, masks);
    }
#endif
    for (; i < count; i++)
        if (mask[i] != 0)
            mc_brush_pixel(pixel + (size_t)i * 4, source, mask[i]);
}

void
mc_brush_cells(mc_pixels *target, int x, int y, const uint8_t *mask, int count, const mc_pixels *cell, int column,
               int row)
{
    uint8_t *pixel = target->data + (size_t)y * target->stride + (size_t)x * 4;
    const uint8_t *source = cell->data + (size_t)row * cell->stride;
    for (int i = 0; i < count; i++) {
        if (mask[i] != 0)
            mc_brush_pixel(pixel + (size_t)i * 4, source + (size_t)column * 4, mask[i]);
        column = column + 1 == cell->width ? 0 : column + 1;
    }
}

void
mc_brush_fill(mc_pixels *target, mc_area *coverage, mc_fill_rule rule, mc_color color, uint8_t *mask)
{
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x, count;
        mc_area_take_row(coverage, y, rule, mask, &x, &count);
        if (count > 0)
            mc_brush_row(target, x, y, mask, count, color);
    }
    mc_area_done(coverage);
}

void
mc_brush_outline(mc_pixels *target, mc_outline *outline, mc_color color)
{
    for (int y = outline->top; y <= outline->bottom; y++) {
        int x, count;
        const uint8_t *mask = mc_outline_row(outline, y, &x, &count);
        if (count > 0)
            mc_brush_row(target, x, y, mask, count, color);
        mc_outline_clear_row(outline, y);
    }
    mc_outline_done(outline);
}
