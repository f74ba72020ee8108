/*
 * Filters of PNG (ISO/IEC 15948, clause 9) for what is written. Imagery is filtered as a whole by one filter: a few
 * sampled rows tell by which one the fewest bits are needed, and whether it is worthwhile to look for what repeats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "image/png/png.h"

enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH };

enum {
    FILTERS = 3, /* that are tried */
    SAMPLED_ROWS = 16,
    PIECE = 512, /* bytes of a sampled row */
    SEEN_BITS = 10,
    SPARED_MAX = 60,
    SMALL = 4096 /* bytes of an image of which the codes of a block would be a large part */
};

bool
mc_png_looks_like_photo(const mc_pixels *pixels)
{
    int step = pixels->height > SAMPLED_ROWS ? pixels->height / SAMPLED_ROWS : 1;
    int64_t visible = 0, equal = 0;
    for (int y = step / 2; y < pixels->height; y += step) {
        const uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        for (int x = 1; x < pixels->width; x++) {
            uint32_t here, left;
            memcpy(&here, row + (size_t)x * 4, 4);
            memcpy(&left, row + (size_t)x * 4 - 4, 4);
            if (here >> 24 == 0)
                continue;
            visible++;
            equal += here == left;
        }
    }
    return equal * 4 < visible;
}

static inline uint8_t
predict_byte(int filter, uint8_t left, uint8_t above, uint8_t corner)
{
    switch (filter) {
    case FILTER_UP:
        return above;
    case FILTER_AVERAGE:
        return (uint8_t)((left + above) >> 1);
    default:
        return mc_png_predict_paeth(left, above, corner);
    }
}

#ifdef __SSE4_1__
static inline __m128i
load_bytes(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline __m128i
distance_bytes(__m128i a, __m128i b)
{
    return _mm_sub_epi8(_mm_max_epu8(a, b), _mm_min_epu8(a, b));
}

/* The distance from the corner is the sum of the two others where left and above lie on the same side of the corner
 * (255 where the sum is larger: no other distance is), else their difference. */
static inline __m128i
predict_paeth_bytes(__m128i left, __m128i above, __m128i corner)
{
    __m128i from_left = distance_bytes(above, corner), from_above = distance_bytes(left, corner);
    __m128i same_side = _mm_cmpeq_epi8(_mm_cmpeq_epi8(_mm_max_epu8(left, corner), left),
                                       _mm_cmpeq_epi8(_mm_max_epu8(above, corner), above));
    __m128i from_corner =
        _mm_blendv_epi8(distance_bytes(from_left, from_above), _mm_adds_epu8(from_left, from_above), same_side);
    __m128i least = _mm_min_epu8(_mm_min_epu8(from_left, from_above), from_corner);
    __m128i nearest = _mm_blendv_epi8(corner, above, _mm_cmpeq_epi8(from_above, least));
    return _mm_blendv_epi8(nearest, left, _mm_cmpeq_epi8(from_left, least));
}

static inline __m128i
predict_bytes(int filter, __m128i left, __m128i above, __m128i corner)
{
    switch (filter) {
    case FILTER_UP:
        return above;
    case FILTER_AVERAGE: /* the instruction rounds up */
        return _mm_sub_epi8(_mm_avg_epu8(left, above), _mm_and_si128(_mm_xor_si128(left, above), _mm_set1_epi8(1)));
    default:
        return predict_paeth_bytes(left, above, corner);
    }
}
#endif

/* Filters one row, from its end on: what stands on the left is still as it was. `out` may be `row`. */
__attribute__((always_inline)) static inline void
filter_bytes(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step, int filter)
{
    size_t i = size;
#ifdef __SSE4_1__
    for (; i >= step + 16; i -= 16) {
        size_t at = i - 16;
        __m128i predicted =
            predict_bytes(filter, load_bytes(row + at - step), load_bytes(above + at), load_bytes(above + at - step));
        _mm_storeu_si128((__m128i *)(void *)(out + at), _mm_sub_epi8(load_bytes(row + at), predicted));
    }
#endif
    for (; i > step; i--)
        out[i - 1] = (uint8_t)(row[i - 1] - predict_byte(filter, row[i - 1 - step], above[i - 1], above[i - 1 - step]));
    for (; i > 0; i--)
        out[i - 1] = (uint8_t)(row[i - 1] - predict_byte(filter, 0, above[i - 1], 0));
}

static void
filter_row(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step, int filter)
{
    bool wide = mc_png_has_avx2();
    switch (filter) { /* a constant for each: the choice is out of the loop */
    case FILTER_UP:
        filter_bytes(out, row, above, size, step, FILTER_UP);
        return;
    case FILTER_AVERAGE:
        size = wide ? mc_png_filter_average_avx2(out, row, above, size, step) : size;
        filter_bytes(out, row, above, size, step, FILTER_AVERAGE);
        return;
    default:
        size = wide ? mc_png_filter_paeth_avx2(out, row, above, size, step) : size;
        filter_bytes(out, row, above, size, step, FILTER_PAETH);
    }
}

/* From the last row to the first, so that each row still finds the one above it as it was. Empty rows stay as they
 * are: with a filter they would be as empty, but for the filter's number, which would end every run of zeros. */
static void
filter_rows(uint8_t *rows, size_t row_size, int height, int step, int filter)
{
    for (int y = height - 1; y > 0; y--) {
        uint8_t *row = rows + (size_t)y * (row_size + 1);
        if (mc_png_is_zero(row + 1, row_size))
            continue;
        row[0] = (uint8_t)filter;
        filter_row(row + 1, row + 1, row - row_size, row_size, (size_t)step, filter);
    }
}

/* Pieces of rows, each from elsewhere in its row, as each of the filters leaves them. */
typedef struct row_samples {
    uint8_t bytes[FILTERS][SAMPLED_ROWS * PIECE];
    size_t size;
} row_samples;

/* Which filters are tried. */
static const int filters[FILTERS] = { FILTER_PAETH, FILTER_AVERAGE, FILTER_UP };

static void
sample_rows(row_samples *samples, const uint8_t *rows, size_t row_size, int height, int step)
{
    int every = height > SAMPLED_ROWS ? height / SAMPLED_ROWS : 1;
    size_t size = row_size < PIECE ? row_size : PIECE - PIECE % (size_t)step, room = (row_size - size) / (size_t)step;
    samples->size = 0;
    for (int i = 0, y = every / 2 > 0 ? every / 2 : 1; i < SAMPLED_ROWS && y < height; i++, y += every) {
        const uint8_t *row = rows + (size_t)y * (row_size + 1) + 1 + room * (size_t)(i % 4) / 4 * (size_t)step;
        for (int k = 0; k < FILTERS; k++)
            filter_row(samples->bytes[k] + samples->size, row, row - row_size - 1, size, (size_t)step, filters[k]);
        samples->size += size;
    }
}

/* The bits that the bytes would need, each by how often it occurs; *costs: the bits of each byte. */
static double
estimate_bits(double costs[256], const uint8_t *bytes, size_t size)
{
    uint32_t counts[4][256] = { { 0 } }; /* one counter that is raised twice in a row waits for itself */
    double bits = 0;
    size_t at = 0;
    for (; at + 4 <= size; at += 4) {
        counts[0][bytes[at]]++;
        counts[1][bytes[at + 1]]++;
        counts[2][bytes[at + 2]]++;
        counts[3][bytes[at + 3]]++;
    }
    for (; at < size; at++)
        counts[0][bytes[at]]++;
    for (int i = 0; i < 256; i++) {
        uint32_t count = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];
        costs[i] = count > 0 ? log2((double)size / count) : 0;
        bits += count * costs[i];
    }
    return bits;
}

/* The bits that matches of four bytes would spare, where these bytes stood not long before: many in grey pictures,
 * whose channels are alike, and in maps over relief. Zeros are not counted: those are found in any case. */
static double
estimate_spared(const double costs[256], const uint8_t *bytes, size_t size, int step)
{
    enum { MATCH_BITS = 14 };
    uint32_t seen[1 << SEEN_BITS] = { 0 };
    double spared = 0;
    for (size_t i = 0; i + 4 <= size; i += (size_t)step) {
        uint32_t four = mc_little32(bytes + i), *place = &seen[four * 2654435761u >> (32 - SEEN_BITS)];
        if (*place == four && four != 0) {
            double bits = costs[bytes[i]] + costs[bytes[i + 1]] + costs[bytes[i + 2]] + costs[bytes[i + 3]];
            spared += bits > MATCH_BITS ? bits - MATCH_BITS : 0;
        }
        *place = four;
    }
    return spared;
}

/* The filter by which the samples need the fewest bits; -1 where matches would spare one in SPARED_MAX of them. */
static int
choose_filter(const row_samples *samples, int step)
{
    double costs[FILTERS][256], bits[FILTERS];
    int best = 0;
    for (int i = 0; i < FILTERS; i++) {
        bits[i] = estimate_bits(costs[i], samples->bytes[i], samples->size);
        best = bits[i] < bits[best] ? i : best;
    }
    double spared = estimate_spared(costs[best], samples->bytes[best], samples->size, step);
    return spared * SPARED_MAX > bits[best] ? -1 : filters[best];
}

mc_deflate_level
mc_png_filter(uint8_t *rows, size_t row_size, int height, int step, mc_deflate_level level)
{
    row_samples samples;
    int filter = -1;
    if (level == MC_DEFLATE_QUICK && row_size * (size_t)height >= SMALL) {
        sample_rows(&samples, rows, row_size, height, step);
        filter = choose_filter(&samples, step);
    }
    filter_rows(rows, row_size, height, step, filter < 0 ? FILTER_UP : filter);
    return filter < 0 ? level : MC_DEFLATE_LITERALS;
}
