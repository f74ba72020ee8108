/*
 * Compositing of premultiplied pixels (Porter and Duff, 1984: over). Groups of four pixels that are all transparent or
 * all opaque, which most of a map is, need no arithmetic.
 */
#include "image/blend.h"

#include <string.h>

#include "image/scale_sse.h"
#include "mapcache/image.h"

static inline uint8_t
scale_blend_channel(unsigned value, unsigned factor)
{
    unsigned product = value * factor + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

static inline uint8_t
add_blend_saturated(unsigned a, unsigned b)
{
    return (uint8_t)(a + b > 255 ? 255 : a + b); /* colours above their alpha come from outside */
}

static inline void
over_pixel(uint8_t *target, const uint8_t *source)
{
    unsigned rest = 255u - source[3];
    for (int c = 0; c < 4; c++)
        target[c] = add_blend_saturated(source[c], scale_blend_channel(target[c], rest));
}

static inline void
under_pixel(uint8_t *target, const uint8_t *source)
{
    unsigned rest = 255u - target[3];
    for (int c = 0; c < 4; c++)
        target[c] = add_blend_saturated(target[c], scale_blend_channel(source[c], rest));
}

void
mc_blend_over_reference(uint8_t *target, const uint8_t *source, int count)
{
    for (int i = 0; i < count; i++)
        over_pixel(target + (size_t)i * 4, source + (size_t)i * 4);
}

bool
mc_blend_under_reference(uint8_t *target, const uint8_t *source, int count)
{
    uint8_t all = 255;
    for (int i = 0; i < count; i++) {
        under_pixel(target + (size_t)i * 4, source + (size_t)i * 4);
        all &= target[(size_t)i * 4 + 3];
    }
    return all == 255;
}

#ifdef __SSE4_1__

/* back * (255 - front.alpha) / 255, rounded, of four pixels. */
static inline __m128i
attenuate_sse(__m128i back, __m128i front)
{
    return mc_scale_sixteen(back, _mm_xor_si128(mc_spread_alphas(front), _mm_set1_epi8(-1)));
}

void
mc_blend_over(uint8_t *target, const uint8_t *source, int count)
{
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    int i = mc_blend_has_avx2() ? mc_blend_over_avx2(target, source, count) : 0;
    for (; i + 4 <= count; i += 4) {
        __m128i front = _mm_loadu_si128((const __m128i *)(const void *)(source + (size_t)i * 4));
        if (_mm_testz_si128(front, front))
            continue;
        __m128i *place = (__m128i *)(void *)(target + (size_t)i * 4);
        if (!_mm_testc_si128(front, alpha))
            front = _mm_adds_epu8(front, attenuate_sse(_mm_loadu_si128(place), front));
        _mm_storeu_si128(place, front);
    }
    mc_blend_over_reference(target + (size_t)i * 4, source + (size_t)i * 4, count - i);
}

bool
mc_blend_under(uint8_t *target, const uint8_t *source, int count)
{
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    __m128i all = _mm_set1_epi8(-1);
    bool first = true;
    int i = mc_blend_has_avx2() ? mc_blend_under_avx2(target, source, count, &first) : 0;
    for (; i + 4 <= count; i += 4) {
        __m128i *place = (__m128i *)(void *)(target + (size_t)i * 4);
        __m128i front = _mm_loadu_si128(place);
        if (_mm_testc_si128(front, alpha))
            continue;
        __m128i back = _mm_loadu_si128((const __m128i *)(const void *)(source + (size_t)i * 4));
        if (_mm_testz_si128(front, front))
            front = back;
        else
            front = _mm_adds_epu8(front, attenuate_sse(back, front));
        _mm_storeu_si128(place, front);
        all = _mm_and_si128(all, front);
    }
    bool rest = mc_blend_under_reference(target + (size_t)i * 4, source + (size_t)i * 4, count - i);
    return first && rest && _mm_testc_si128(all, alpha);
}

#else

void
mc_blend_over(uint8_t *target, const uint8_t *source, int count)
{
    mc_blend_over_reference(target, source, count);
}

bool
mc_blend_under(uint8_t *target, const uint8_t *source, int count)
{
    return mc_blend_under_reference(target, source, count);
}

#endif

/* The part of the source that falls into the target. */
typedef struct overlap {
    int target_x, target_y, source_x, source_y, width, height;
} overlap;

static bool
clip_pixel_overlap(overlap *part, const mc_pixels *target, int x, int y, const mc_pixels *source)
{
    int64_t left = x > 0 ? x : 0, top = y > 0 ? y : 0;
    int64_t right = (int64_t)x + source->width, bottom = (int64_t)y + source->height;
    if (right > target->width)
        right = target->width;
    if (bottom > target->height)
        bottom = target->height;
    if (left >= right || top >= bottom)
        return false;
    *part = (overlap){ .target_x = (int)left,
                       .target_y = (int)top,
                       .source_x = (int)(left - x),
                       .source_y = (int)(top - y),
                       .width = (int)(right - left),
                       .height = (int)(bottom - top) };
    return true;
}

static bool
overlap_covers_target(const overlap *part, const mc_pixels *target)
{
    return part->width == target->width && part->height == target->height;
}

static uint8_t *
blend_row_address(const mc_pixels *pixels, int x, int y)
{
    return pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
}

static void
copy_overlap_pixels(mc_pixels *target, const mc_pixels *source, const overlap *part)
{
    for (int row = 0; row < part->height; row++)
        memcpy(blend_row_address(target, part->target_x, part->target_y + row),
               blend_row_address(source, part->source_x, part->source_y + row), (size_t)part->width * 4);
}

/* What is known of a part of an image: of a translucent one, nothing. */
static mc_opacity
opacity_of_part(const overlap *part, const mc_pixels *source)
{
    bool whole = part->width == source->width && part->height == source->height;
    return whole || source->opacity != MC_TRANSLUCENT ? source->opacity : MC_OPACITY_UNKNOWN;
}

void
mc_pixels_copy(mc_pixels *target, int x, int y, const mc_pixels *source)
{
    overlap part;
    if (!clip_pixel_overlap(&part, target, x, y, source))
        return;
    copy_overlap_pixels(target, source, &part);
    mc_opacity copied = opacity_of_part(&part, source);
    if (overlap_covers_target(&part, target))
        target->opacity = copied;
    else if (copied != target->opacity || copied == MC_TRANSLUCENT)
        target->opacity = MC_OPACITY_UNKNOWN;
}

void
mc_pixels_over(mc_pixels *target, int x, int y, const mc_pixels *source)
{
    overlap part;
    if (source->opacity == MC_EMPTY || !clip_pixel_overlap(&part, target, x, y, source))
        return;
    if (source->opacity == MC_OPAQUE || target->opacity == MC_EMPTY) {
        bool opaque = target->opacity == MC_OPAQUE;
        mc_pixels_copy(target, x, y, source);
        if (opaque)
            target->opacity = MC_OPAQUE;
        return;
    }
    for (int row = 0; row < part.height; row++)
        mc_blend_over(blend_row_address(target, part.target_x, part.target_y + row),
                      blend_row_address(source, part.source_x, part.source_y + row), part.width);
    if (target->opacity != MC_OPAQUE)
        target->opacity = MC_OPACITY_UNKNOWN;
}

bool
mc_pixels_under(mc_pixels *target, int x, int y, const mc_pixels *source)
{
    overlap part;
    if (target->opacity == MC_OPAQUE)
        return true;
    if (source->opacity == MC_EMPTY || !clip_pixel_overlap(&part, target, x, y, source))
        return mc_pixels_opacity(target) == MC_OPAQUE;
    if (target->opacity == MC_EMPTY) {
        mc_pixels_copy(target, x, y, source);
        return mc_pixels_opacity(target) == MC_OPAQUE;
    }
    bool filled = true;
    for (int row = 0; row < part.height; row++)
        filled &= mc_blend_under(blend_row_address(target, part.target_x, part.target_y + row),
                                 blend_row_address(source, part.source_x, part.source_y + row), part.width);
    if (overlap_covers_target(&part, target)) {
        target->opacity = filled ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
        return filled;
    }
    target->opacity = MC_OPACITY_UNKNOWN;
    /* Where the part itself has holes, the whole has them too. */
    return filled && mc_pixels_opacity(target) == MC_OPAQUE;
}
