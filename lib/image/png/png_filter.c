/* PNG row filters undone (ISO/IEC 15948 clause 9), and its colours made ours. */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "image/png/png.h"
#include "image/scale_sse.h"

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

static void
undo_paeth(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    for (size_t i = 0; i < size; i++) {
        int left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
        row[i] = (uint8_t)(row[i] + mc_png_predict_paeth(left, above[i], corner));
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

/* What Paeth's filter adds to each channel: pixels in 16-bit lanes. */
static inline __m128i
predicted_by_paeth(__m128i left, __m128i up, __m128i corner)
{
    __m128i from_left = _mm_sub_epi16(up, corner), from_up = _mm_sub_epi16(left, corner);
    __m128i from_corner = _mm_abs_epi16(_mm_add_epi16(from_left, from_up));
    from_left = _mm_abs_epi16(from_left);
    from_up = _mm_abs_epi16(from_up);
    __m128i least = _mm_min_epi16(from_corner, _mm_min_epi16(from_left, from_up));
    __m128i predicted = _mm_blendv_epi8(corner, up, _mm_cmpeq_epi16(least, from_up));
    return _mm_blendv_epi8(predicted, left, _mm_cmpeq_epi16(least, from_left));
}

static inline void
undo_paeth_pixels(uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    for (size_t i = 0; i < size; i += step) {
        __m128i up = _mm_unpacklo_epi8(load_pixel(above + i), zero);
        __m128i predicted = predicted_by_paeth(left, up, corner);
        corner = up;
        /* Bytes wrap around: the zero high halves stay zero. */
        left = _mm_add_epi8(predicted, _mm_unpacklo_epi8(load_pixel(row + i), zero));
        store_pixel(row + i, _mm_packus_epi16(left, left), step);
    }
}

/* By force: sizes of pixels must become constants, and a band's state must stay in registers. */
#define INLINED __attribute__((always_inline)) static inline

/*
 * Paeth's filter makes each pixel wait for the one on its left, but four rows can be undone at a time, each a pixel
 * behind the one above it: at turn t, row k is at pixel t - k, and what is above that was made one turn before.
 */
typedef struct band {
    uint8_t *rows[4];
    const uint8_t *above;
    size_t count; /* pixels of a row */
} band;

/* Two rows of a band as they were in the last turn: the upper row's pixel in the low half. */
typedef struct band_pair {
    __m128i left, up;
} band_pair;

/* Pixel `at` of a row, and zero beyond its ends (also before the first: `at` wraps around). */
INLINED __m128i
band_pixel(const band *b, const uint8_t *row, size_t at, size_t step, bool inside)
{
    return inside || at < b->count ? load_pixel(row + at * step) : _mm_setzero_si128();
}

INLINED void
band_store(const band *b, int k, size_t at, __m128i pixel, size_t step, bool inside)
{
    if (inside || at < b->count)
        store_pixel(b->rows[k] + at * step, pixel, step);
}

/* Rows k and k + 1: the first one's pixel `at` and the second one's before that. */
INLINED void
band_pair_turn(const band *b, band_pair *pair, int k, __m128i up, size_t at, size_t step, bool inside)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i raw = _mm_unpacklo_epi32(band_pixel(b, b->rows[k], at, step, inside),
                                     band_pixel(b, b->rows[k + 1], at - 1, step, inside));
    pair->left = _mm_add_epi8(predicted_by_paeth(pair->left, up, pair->up), _mm_unpacklo_epi8(raw, zero));
    pair->up = up;
    __m128i packed = _mm_packus_epi16(pair->left, zero);
    band_store(b, k, at, packed, step, inside);
    band_store(b, k + 1, at - 1, _mm_srli_epi64(packed, 32), step, inside);
}

INLINED void
band_turn(const band *b, band_pair *first, band_pair *second, size_t t, size_t step, bool inside)
{
    __m128i above = _mm_unpacklo_epi8(band_pixel(b, b->above, t, step, inside), _mm_setzero_si128());
    __m128i upper = _mm_unpacklo_epi64(above, first->left), lower = _mm_alignr_epi8(second->left, first->left, 8);
    band_pair_turn(b, first, 0, upper, t, step, inside);
    band_pair_turn(b, second, 2, lower, t - 2, step, inside);
}

INLINED void
undo_paeth_band(uint8_t *row, size_t stride, size_t size, size_t step)
{
    const __m128i zero = _mm_setzero_si128();
    band b = { .above = row - stride, .count = size / step };
    band_pair first = { zero, zero }, second = { zero, zero };
    for (size_t k = 0; k < 4; k++)
        b.rows[k] = row + k * stride;
    size_t t = 0;
    for (; t < 3; t++)
        band_turn(&b, &first, &second, t, step, false);
    for (; t < b.count; t++)
        band_turn(&b, &first, &second, t, step, true);
    for (; t < b.count + 3; t++)
        band_turn(&b, &first, &second, t, step, false);
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
mc_png_is_zero(const uint8_t *bytes, size_t size)
{
    size_t i = 0;
#ifdef __SSE4_1__
    for (; i + 64 <= size; i += 64) {
        const __m128i *at = (const __m128i *)(const void *)(bytes + i);
        __m128i any = _mm_or_si128(_mm_or_si128(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)),
                                   _mm_or_si128(_mm_loadu_si128(at + 2), _mm_loadu_si128(at + 3)));
        if (!_mm_testz_si128(any, any))
            return false;
    }
#endif
    for (; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Columns of filtered rows that do not depend on what is right of them, nor, since it is zero, left of them. */
typedef struct png_plane {
    uint8_t *rows;
    size_t stride, from, size, step; /* bytes: from row to row, of a row the first ones after its filter, of a pixel */
    uint32_t height;
} png_plane;

static int
filter_of(const png_plane *p, uint32_t y)
{
    return p->rows[y * p->stride];
}

static uint8_t *
plane_row_address(const png_plane *p, uint32_t y)
{
    return p->rows + y * p->stride + 1 + p->from;
}

/* Whether four rows from y on can be undone together; the last row of a file may not be among them where pixels have
 * three bytes, since four are read. */
static bool
is_band(const png_plane *p, uint32_t y)
{
    if (p->step == 1 || p->height - y < (p->step == 3 ? 5 : 4))
        return false;
    for (uint32_t k = 0; k < 4; k++)
        if (filter_of(p, y + k) != FILTER_PAETH)
            return false;
    return true;
}

/* Undoes the filter of row y > 0, or of several rows: returns how many, 0 for an unknown filter. */
static uint32_t
undo_some(const png_plane *p, uint32_t y)
{
    uint8_t *row = plane_row_address(p, y);
    if (is_band(p, y)) {
#ifdef __SSE4_1__
        if (p->step == 4)
            undo_paeth_band(row, p->stride, p->size, 4);
        else
            undo_paeth_band(row, p->stride, p->size, 3);
        return 4;
#endif
    }
    if (undo_pixels(filter_of(p, y), row, row - p->stride, p->size, p->step, y + 1 == p->height))
        return 1;
    return undo_row(filter_of(p, y), row, row - p->stride, p->size, p->step) ? 1 : 0;
}

static bool
undo_plane(const png_plane *p, uint32_t *begin, uint32_t *end)
{
    if (!undo_first_row(filter_of(p, 0), plane_row_address(p, 0), p->size, p->step))
        return false;
    bool above_is_zero = mc_png_is_zero(plane_row_address(p, 0), p->size);
    *begin = above_is_zero ? p->height : 0;
    *end = above_is_zero ? 0 : 1;
    for (uint32_t y = 1, done; y < p->height; y += done) {
        int filter = filter_of(p, y);
        done = 1;
        /* Nothing comes of nothing, whatever the filter. */
        if (filter <= FILTER_PAETH && (above_is_zero || filter <= FILTER_SUB) &&
            mc_png_is_zero(plane_row_address(p, y), p->size)) {
            above_is_zero = true;
            continue;
        }
        done = undo_some(p, y);
        if (done == 0)
            return false;
        above_is_zero = false;
        *begin = *begin < y ? *begin : y;
        *end = y + done;
    }
    return true;
}

bool
mc_png_unfilter(uint8_t *rows, size_t row_size, uint32_t height, int step, uint32_t *begin, uint32_t *end)
{
    png_plane whole = { rows, row_size + 1, 0, row_size, (size_t)step, height };
    return undo_plane(&whole, begin, end);
}

/* The columns in which any row has a byte that is not zero. */
static void
find_columns(png_plane *p, size_t row_size)
{
    size_t left = row_size, right = 0;
    for (uint32_t y = 0; y < p->height; y++) {
        const uint8_t *row = plane_row_address(p, y);
        size_t i = 0;
        while (i + 64 <= left && mc_png_is_zero(row + i, 64))
            i += 64;
        left = i < left ? i : left;
        i = row_size;
        while (i >= right + 64 && mc_png_is_zero(row + i - 64, 64))
            i -= 64;
        right = i > right ? i : right;
    }
    p->from = left / p->step * p->step;
    p->size = left < right ? right - p->from : 0;
}

/* The columns right of what has been undone, where that does not end with zeros. */
static void
undo_right(const png_plane *p, uint32_t y, size_t row_size)
{
    uint8_t *row = p->rows + y * p->stride + 1;
    const uint8_t *above = row - p->stride;
    for (size_t i = p->from + p->size; i < row_size; i++) {
        int left = row[i - p->step], up = above[i], corner = above[i - p->step];
        int predicted[] = { 0, left, up, (left + up) / 2, mc_png_predict_paeth(left, up, corner) };
        row[i] = (uint8_t)(row[i] + predicted[filter_of(p, y)]);
    }
}

bool
mc_png_unfilter_window(uint8_t *rows, size_t row_size, uint32_t height, uint32_t *begin, uint32_t *end)
{
    png_plane p = { rows, row_size + 1, 0, row_size, 4, height };
    find_columns(&p, row_size);
    *begin = 0;
    *end = height;
    uint32_t first, last;
    if (p.size > 0 && !undo_plane(&p, &first, &last))
        return false;
    bool open = false;
    for (uint32_t y = 0; y < height; y++) {
        if (filter_of(&p, y) > FILTER_PAETH)
            return false;
        if (!open && (p.size == 0 || mc_png_is_zero(plane_row_address(&p, y) + p.size - 4, 4)))
            continue;
        open = true;
        undo_right(&p, y, row_size);
    }
    return true;
}

static inline uint8_t
scale_by_alpha(unsigned value, unsigned alpha)
{
    unsigned product = value * alpha + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

#ifdef __SSE4_1__
static inline __m128i
premultiply_sse(__m128i rgba)
{
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    return mc_scale_sixteen(rgba, _mm_or_si128(mc_spread_alphas(rgba), alpha)); /* alpha itself stays */
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
            four = premultiply_sse(four);
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
        pixel[0] = scale_by_alpha(blue, a);
        pixel[1] = scale_by_alpha(green, a);
        pixel[2] = scale_by_alpha(red, a);
        pixel[3] = a;
        *all &= a;
        *any |= a;
    }
}
