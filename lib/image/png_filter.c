/* PNG row filters undone (ISO/IEC 15948 clause 9), and its colours made ours. */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "image/png.h"

enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH };

static void
undo_up(uint8_t *row, const uint8_t *above, size_t size)
{
    size_t i = 0;
#ifdef __SSE4_1__
    for (; i + 16 <= size; i += 16) {
        __m128i *place = (__m128i *)(void *)(row + i);
        __m128i up = _mm_loadu_si128((const __m128i *)(const void *)(above + i));
        _mm_storeu_si128(place, _mm_add_epi8(_mm_loadu_si128(place), up));
    }
#endif
    for (; i < size; i++)
        row[i] = (uint8_t)(row[i] + above[i]);
}

static void
undo_sub(uint8_t *row, size_t size, size_t step)
{
    for (size_t i = step; i < size; i++)
        row[i] = (uint8_t)(row[i] + row[i - step]);
}

static void
undo_average(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    for (size_t i = 0; i < size; i++) {
        unsigned left = i < step ? 0 : row[i - step];
        row[i] = (uint8_t)(row[i] + (left + above[i]) / 2);
    }
}

static inline uint8_t
paeth(int left, int above, int corner)
{
    int estimate = left + above - corner;
    int to_left = abs(estimate - left), to_above = abs(estimate - above), to_corner = abs(estimate - corner);
    if (to_left <= to_above && to_left <= to_corner)
        return (uint8_t)left;
    return (uint8_t)(to_above <= to_corner ? above : corner);
}

static void
undo_paeth(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    for (size_t i = 0; i < size; i++) {
        int left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
        row[i] = (uint8_t)(row[i] + paeth(left, above[i], corner));
    }
}

#ifdef __SSE4_1__

/* One pixel of three or four bytes, moved as four: the caller sees to it that the fourth may be touched. */
static inline __m128i
load_pixel(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, 4);
    return _mm_cvtsi32_si128(value);
}

static inline void
store_pixel(uint8_t *at, __m128i pixel, size_t step)
{
    int32_t value = _mm_cvtsi128_si32(pixel);
    memcpy(at, &value, step == 4 ? 4 : 3);
}

static inline void
undo_sub_pixels(uint8_t *row, size_t size, size_t step)
{
    __m128i left = _mm_setzero_si128();
    for (size_t i = 0; i < size; i += step) {
        left = _mm_add_epi8(left, load_pixel(row + i));
        store_pixel(row + i, left, step);
    }
}

static inline void
undo_average_pixels(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    const __m128i one = _mm_set1_epi8(1);
    __m128i left = _mm_setzero_si128();
    for (size_t i = 0; i < size; i += step) {
        __m128i up = load_pixel(above + i);
        /* The instruction rounds up, PNG rounds down. */
        __m128i mean = _mm_sub_epi8(_mm_avg_epu8(left, up), _mm_and_si128(_mm_xor_si128(left, up), one));
        left = _mm_add_epi8(mean, load_pixel(row + i));
        store_pixel(row + i, left, step);
    }
}

static inline void
undo_paeth_pixels(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    for (size_t i = 0; i < size; i += step) {
        __m128i up = _mm_unpacklo_epi8(load_pixel(above + i), zero);
        __m128i from_left = _mm_sub_epi16(up, corner), from_up = _mm_sub_epi16(left, corner);
        __m128i from_corner = _mm_abs_epi16(_mm_add_epi16(from_left, from_up));
        from_left = _mm_abs_epi16(from_left);
        from_up = _mm_abs_epi16(from_up);
        __m128i least = _mm_min_epi16(from_corner, _mm_min_epi16(from_left, from_up));
        __m128i predicted = _mm_blendv_epi8(corner, up, _mm_cmpeq_epi16(least, from_up));
        predicted = _mm_blendv_epi8(predicted, left, _mm_cmpeq_epi16(least, from_left));
        corner = up;
        /* Bytes wrap around: the zero high halves stay zero. */
        left = _mm_add_epi8(predicted, _mm_unpacklo_epi8(load_pixel(row + i), zero));
        store_pixel(row + i, _mm_packus_epi16(left, left), step);
    }
}

/* False where the last pixel's fourth byte would lie outside; then the plain loops do it. */
static bool
undo_pixels(int filter, uint8_t *row, const uint8_t *above, size_t size, size_t step, bool last)
{
    if (step == 1 || (step == 3 && last))
        return false;
    if (filter == FILTER_SUB && step == 4)
        undo_sub_pixels(row, size, 4);
    else if (filter == FILTER_SUB)
        undo_sub_pixels(row, size, 3);
    else if (filter == FILTER_AVERAGE && step == 4)
        undo_average_pixels(row, above, size, 4);
    else if (filter == FILTER_AVERAGE)
        undo_average_pixels(row, above, size, 3);
    else if (filter == FILTER_PAETH && step == 4)
        undo_paeth_pixels(row, above, size, 4);
    else if (filter == FILTER_PAETH)
        undo_paeth_pixels(row, above, size, 3);
    else
        return false;
    return true;
}

#else

static bool
undo_pixels(int filter, uint8_t *row, const uint8_t *above, size_t size, size_t step, bool last)
{
    (void)filter, (void)row, (void)above, (void)size, (void)step, (void)last;
    return false;
}

#endif

static bool
undo_row(int filter, uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    switch (filter) {
    case FILTER_NONE:
        return true;
    case FILTER_SUB:
        undo_sub(row, size, step);
        return true;
    case FILTER_UP:
        undo_up(row, above, size);
        return true;
    case FILTER_AVERAGE:
        undo_average(row, above, size, step);
        return true;
    case FILTER_PAETH:
        undo_paeth(row, above, size, step);
        return true;
    default:
        return false;
    }
}

/* Above the first row all is zero (9.2): each filter becomes one that needs no row above. */
static bool
undo_first_row(int filter, uint8_t *row, size_t size, size_t step)
{
    if (filter == FILTER_UP || filter == FILTER_NONE)
        return true;
    if (filter == FILTER_SUB || filter == FILTER_PAETH) {
        undo_sub(row, size, step);
        return true;
    }
    if (filter != FILTER_AVERAGE)
        return false;
    for (size_t i = step; i < size; i++)
        row[i] = (uint8_t)(row[i] + row[i - step] / 2);
    return true;
}

bool
mc_png_unfilter(uint8_t *rows, size_t row_size, uint32_t height, int step)
{
    if (!undo_first_row(rows[0], rows + 1, row_size, (size_t)step))
        return false;
    for (uint32_t y = 1; y < height; y++) {
        uint8_t *row = rows + y * (row_size + 1) + 1;
        const uint8_t *above = row - (row_size + 1);
        if (undo_pixels(row[-1], row, above, row_size, (size_t)step, y + 1 == height))
            continue;
        if (!undo_row(row[-1], row, above, row_size, (size_t)step))
            return false;
    }
    return true;
}

static inline uint8_t
scaled(unsigned value, unsigned alpha)
{
    unsigned product = value * alpha + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

#ifdef __SSE4_1__
static inline __m128i
premultiplied(__m128i rgba)
{
    const __m128i zero = _mm_setzero_si128(), half = _mm_set1_epi16(128), alpha = _mm_set1_epi32((int)0xff000000u);
    const __m128i alphas = _mm_setr_epi8(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15);
    __m128i factor = _mm_or_si128(_mm_shuffle_epi8(rgba, alphas), alpha); /* alpha itself stays */
    __m128i low = _mm_mullo_epi16(_mm_unpacklo_epi8(rgba, zero), _mm_unpacklo_epi8(factor, zero));
    __m128i high = _mm_mullo_epi16(_mm_unpackhi_epi8(rgba, zero), _mm_unpackhi_epi8(factor, zero));
    low = _mm_add_epi16(low, half);
    high = _mm_add_epi16(high, half);
    low = _mm_srli_epi16(_mm_add_epi16(low, _mm_srli_epi16(low, 8)), 8);
    high = _mm_srli_epi16(_mm_add_epi16(high, _mm_srli_epi16(high, 8)), 8);
    return _mm_packus_epi16(low, high);
}
#endif

void
mc_png_premultiply(uint8_t *out, const uint8_t *rgba, uint32_t count, uint8_t *all, uint8_t *any)
{
    uint32_t x = 0;
#ifdef __SSE4_1__
    const __m128i order = _mm_setr_epi8(2, 1, 0, 3, 6, 5, 4, 7, 10, 9, 8, 11, 14, 13, 12, 15);
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    __m128i set = _mm_set1_epi8(-1), seen = _mm_setzero_si128();
    for (; x + 4 <= count; x += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(rgba + (size_t)x * 4));
        set = _mm_and_si128(set, four);
        seen = _mm_or_si128(seen, four);
        if (_mm_testz_si128(four, alpha))
            four = _mm_setzero_si128();
        else if (!_mm_testc_si128(four, alpha))
            four = premultiplied(four);
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)x * 4), _mm_shuffle_epi8(four, order));
    }
    if (!_mm_testc_si128(set, alpha))
        *all = 0;
    if (!_mm_testz_si128(seen, alpha))
        *any = 255;
#endif
    for (; x < count; x++) {
        const uint8_t *in = rgba + (size_t)x * 4;
        uint8_t *pixel = out + (size_t)x * 4, red = in[0], green = in[1], blue = in[2], a = in[3];
        pixel[0] = scaled(blue, a);
        pixel[1] = scaled(green, a);
        pixel[2] = scaled(red, a);
        pixel[3] = a;
        *all &= a;
        *any |= a;
    }
}
