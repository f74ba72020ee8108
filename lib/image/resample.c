/*
 * Drawing an image at another scale: each source row that is needed is interpolated across once, kept as 16-bit values,
 * and two such rows make a target row. At the source's own scale all weights are equal, and no row is kept. Weights
 * have seven bits, so that no step leaves 16 bits; since pixels are premultiplied, transparent neighbours do not darken
 * edges.
 */
#include <math.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "image/blend.h"
#include "mapcache/image.h"
#include "memory/scratch.h"

#define WEIGHT_BITS 7
#define WEIGHT_ONE (1 << WEIGHT_BITS)

/* Where one target column or row takes its two source neighbours. */
typedef struct resample_tap {
    int32_t first, second;
    int32_t weight; /* of the second: 0..WEIGHT_ONE - 1 */
} resample_tap;

/* Fills taps[0..count) for target indices *begin.. and returns their count: those whose centre lies in the source. */
static int
plan_axis(resample_tap *taps, int *begin, int target_size, int source_size, double offset, double scale,
          mc_resample mode)
{
    int count = 0;
    *begin = 0;
    for (int i = 0; i < target_size; i++) {
        double at = offset + (i + 0.5) * scale;
        if (!(at >= 0))
            continue;
        if (!(at < source_size))
            break;
        if (count == 0)
            *begin = i;
        resample_tap *t = &taps[count++];
        if (mode == MC_NEAREST) {
            *t = (resample_tap){ (int32_t)at, (int32_t)at, 0 };
            continue;
        }
        double left = floor(at - 0.5);
        int first = (int)left;
        t->weight = (int32_t)((at - 0.5 - left) * WEIGHT_ONE + 0.5);
        if (t->weight == WEIGHT_ONE) {
            first++;
            t->weight = 0;
        }
        t->first = first < 0 ? 0 : first < source_size ? first : source_size - 1;
        t->second = first + 1 < source_size ? first + 1 : source_size - 1;
    }
    return count;
}

/* Rows of the source, interpolated across: four values of WEIGHT_BITS more than a byte for each target column. */
typedef struct lines {
    int16_t *values[2];
    int row[2]; /* of the source; -1: none yet */
    const mc_pixels *source;
    const resample_tap *columns;
    int count;
    int begin, end; /* columns[begin..end) have different neighbours, so that two pixels can be read at once */
    bool even;      /* and these are next to each other with one weight for all */
} lines;

static void
find_inner_columns(lines *l)
{
    l->begin = 0;
    while (l->begin < l->count && l->columns[l->begin].first == l->columns[l->begin].second)
        l->begin++;
    l->end = l->count;
    while (l->end > l->begin && l->columns[l->end - 1].first == l->columns[l->end - 1].second)
        l->end--;
    l->even = true;
    for (int i = l->begin + 1; i < l->end && l->even; i++)
        l->even =
            l->columns[i].first == l->columns[i - 1].first + 1 && l->columns[i].weight == l->columns[l->begin].weight;
}

static void
interpolate_columns(int16_t *out, const uint8_t *row, const resample_tap *columns, int count)
{
    for (int i = 0; i < count; i++) {
        const uint8_t *a = row + (size_t)columns[i].first * 4, *b = row + (size_t)columns[i].second * 4;
        for (int c = 0; c < 4; c++)
            *out++ = (int16_t)(a[c] * WEIGHT_ONE + (b[c] - a[c]) * columns[i].weight);
    }
}

#ifdef __SSE4_1__
/* Four pixels of two rows mixed: two in each half. */
static inline void
mix_down(__m128i out[2], const uint8_t *upper, const uint8_t *lower, __m128i weights)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)upper);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)lower);
    out[0] = _mm_maddubs_epi16(_mm_unpacklo_epi8(a, b), weights);
    out[1] = _mm_maddubs_epi16(_mm_unpackhi_epi8(a, b), weights);
}

static inline __m128i
mix_across(__m128i left, __m128i right, __m128i factor)
{
    const __m128i half = _mm_set1_epi16(WEIGHT_ONE / 2);
    __m128i mixed = _mm_add_epi16(left, _mm_mulhrs_epi16(_mm_sub_epi16(right, left), factor));
    return _mm_srli_epi16(_mm_add_epi16(mixed, half), WEIGHT_BITS);
}

/*
 * Pixels of a target row at the source's own scale, which need no lines: rows first, then each pixel with its
 * neighbour. Returns how many, a multiple of four; beyond are at most seven.
 */
static int
shift_most(uint8_t *out, const uint8_t *upper, const uint8_t *lower, int count, int across, int down)
{
    /* A weight must fit seven bits: a row alone is the mean of itself. */
    const __m128i weights = _mm_set1_epi16((int16_t)(down == 0 ? 0x017f : down << 8 | (WEIGHT_ONE - down)));
    const __m128i factor = _mm_set1_epi16((int16_t)(across << (15 - WEIGHT_BITS)));
    __m128i here[2], next[2];
    int i = 0;
    if (count < 8)
        return 0;
    if (down == 0)
        lower = upper;
    mix_down(here, upper, lower, weights);
    for (; i + 8 <= count; i += 4) {
        mix_down(next, upper + (size_t)i * 4 + 16, lower + (size_t)i * 4 + 16, weights);
        __m128i low = mix_across(here[0], _mm_alignr_epi8(here[1], here[0], 8), factor);
        __m128i high = mix_across(here[1], _mm_alignr_epi8(next[0], here[1], 8), factor);
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)i * 4), _mm_packus_epi16(low, high));
        here[0] = next[0];
        here[1] = next[1];
    }
    return i;
}

/* Both neighbours of one column, each lane the sum of two weighted bytes. */
static inline __m128i
interpolate_pair(const uint8_t *row, const resample_tap *t)
{
    const __m128i order = _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
    __m128i pair = _mm_loadl_epi64((const __m128i *)(const void *)(row + (size_t)t->first * 4));
    return _mm_madd_epi16(_mm_shuffle_epi8(pair, order), _mm_set1_epi32((t->weight << 16) | (WEIGHT_ONE - t->weight)));
}

static int
interpolate_inner(int16_t *out, const uint8_t *row, const resample_tap *columns, int count)
{
    int i = 0;
    for (; i + 2 <= count; i += 2) {
        __m128i two = _mm_packs_epi32(interpolate_pair(row, columns + i), interpolate_pair(row, columns + i + 1));
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)i * 4), two);
    }
    return i;
}

/* One target row of two lines: the pixels done, a multiple of four. */
static int
mix_most(uint8_t *out, const int16_t *upper, const int16_t *lower, int count, int weight)
{
    const __m128i factor = _mm_set1_epi16((int16_t)(weight << (15 - WEIGHT_BITS)));
    const __m128i half = _mm_set1_epi16(WEIGHT_ONE / 2);
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        __m128i half_of[2];
        for (int k = 0; k < 2; k++) {
            size_t at = (size_t)i * 4 + (size_t)k * 8;
            __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(upper + at));
            __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(lower + at));
            a = _mm_add_epi16(a, _mm_mulhrs_epi16(_mm_sub_epi16(b, a), factor));
            half_of[k] = _mm_srli_epi16(_mm_add_epi16(a, half), WEIGHT_BITS);
        }
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)i * 4), _mm_packus_epi16(half_of[0], half_of[1]));
    }
    return i;
}
#else
static int
interpolate_inner(int16_t *out, const uint8_t *row, const resample_tap *columns, int count)
{
    (void)out, (void)row, (void)columns, (void)count;
    return 0;
}

static int
shift_most(uint8_t *out, const uint8_t *upper, const uint8_t *lower, int count, int across, int down)
{
    (void)out, (void)upper, (void)lower, (void)count, (void)across, (void)down;
    return 0;
}

static int
mix_most(uint8_t *out, const int16_t *upper, const int16_t *lower, int count, int weight)
{
    (void)out, (void)upper, (void)lower, (void)count, (void)weight;
    return 0;
}
#endif

static void
fill_line(int16_t *out, const lines *l, int row)
{
    const uint8_t *in = l->source->data + (size_t)row * l->source->stride;
    const resample_tap *inner = l->columns + l->begin;
    int16_t *inner_out = out + (size_t)l->begin * 4;
    int done = interpolate_inner(inner_out, in, inner, l->end - l->begin);
    interpolate_columns(out, in, l->columns, l->begin);
    interpolate_columns(inner_out + (size_t)done * 4, in, inner + done, l->count - l->begin - done);
}

/* The line of a source row; the one of row `kept` stays. */
static const int16_t *
line_of(lines *l, int row, int kept)
{
    for (int k = 0; k < 2; k++)
        if (l->row[k] == row)
            return l->values[k];
    int k = l->row[0] == kept ? 1 : 0;
    fill_line(l->values[k], l, row);
    l->row[k] = row;
    return l->values[k];
}

static void
bilinear_row(uint8_t *out, lines *l, const resample_tap *t)
{
    const int16_t *upper = line_of(l, t->first, t->second), *lower = line_of(l, t->second, t->first);
    int done = mix_most(out, upper, lower, l->count, t->weight);
    for (size_t i = (size_t)done * 4; i < (size_t)l->count * 4; i++) {
        int step = ((lower[i] - upper[i]) * t->weight + WEIGHT_ONE / 2) >> WEIGHT_BITS;
        out[i] = (uint8_t)((upper[i] + step + WEIGHT_ONE / 2) >> WEIGHT_BITS);
    }
}

/* Columns as they come: for what the fast ways leave. */
static void
bilinear_columns(uint8_t *out, const lines *l, const resample_tap *t, int begin, int end)
{
    const uint8_t *upper = l->source->data + (size_t)t->first * l->source->stride;
    const uint8_t *lower = l->source->data + (size_t)t->second * l->source->stride;
    for (int i = begin; i < end; i++) {
        const resample_tap *column = &l->columns[i];
        for (int c = 0; c < 4; c++) {
            size_t a = (size_t)column->first * 4 + (size_t)c, b = (size_t)column->second * 4 + (size_t)c;
            int left = upper[a] * WEIGHT_ONE + (lower[a] - upper[a]) * t->weight;
            int right = upper[b] * WEIGHT_ONE + (lower[b] - upper[b]) * t->weight;
            int step = ((right - left) * column->weight + WEIGHT_ONE / 2) >> WEIGHT_BITS;
            out[(size_t)i * 4 + (size_t)c] = (uint8_t)((left + step + WEIGHT_ONE / 2) >> WEIGHT_BITS);
        }
    }
}

static void
shifted_row(uint8_t *out, const lines *l, const resample_tap *t)
{
    const resample_tap *inner = l->columns + l->begin;
    const uint8_t *upper = l->source->data + (size_t)t->first * l->source->stride + (size_t)inner->first * 4;
    const uint8_t *lower = l->source->data + (size_t)t->second * l->source->stride + (size_t)inner->first * 4;
    int done = shift_most(out + (size_t)l->begin * 4, upper, lower, l->end - l->begin, inner->weight, t->weight);
    bilinear_columns(out, l, t, 0, l->begin);
    bilinear_columns(out, l, t, l->begin + done, l->count);
}

static void
nearest_row(uint8_t *out, const uint8_t *row, const resample_tap *columns, int count)
{
    for (int i = 0; i < count; i++)
        memcpy(out + (size_t)i * 4, row + (size_t)columns[i].first * 4, 4);
}

static bool
is_shift(double offset, double scale)
{
    return fabs(scale - 1) < 1e-4 && fabs(offset - nearbyint(offset)) < 0.02 && fabs(offset) < 1e6;
}

/* Scratch memory of one drawing. */
typedef struct resample_drawing {
    resample_tap *columns, *rows;
    int16_t *values[2];
    uint8_t *line;
} resample_drawing;

static uint8_t *
acquire_drawing_scratch(resample_drawing *d, const mc_pixels *target)
{
    size_t width = (size_t)target->width, columns = width * sizeof(resample_tap),
           rows = (size_t)target->height * sizeof(resample_tap);
    size_t values = width * 4 * sizeof(int16_t);
    uint8_t *scratch = mc_scratch_require(columns + rows + 2 * values + width * 4);
    MC_ASSERT(scratch != NULL);
    d->columns = (resample_tap *)(void *)scratch;
    d->rows = (resample_tap *)(void *)(scratch + columns);
    d->values[0] = (int16_t *)(void *)(scratch + columns + rows);
    d->values[1] = d->values[0] + width * 4;
    d->line = scratch + columns + rows + 2 * values;
    return scratch;
}

static void
draw_resampled(mc_pixels *target, const mc_pixels *source, double x0, double y0, double scale_x, double scale_y,
               mc_resample mode, const resample_drawing *d)
{
    int left, top;
    int width = plan_axis(d->columns, &left, target->width, source->width, x0, scale_x, mode);
    int height = plan_axis(d->rows, &top, target->height, source->height, y0, scale_y, mode);
    if (width == 0 || height == 0)
        return;
    lines l = { .values = { d->values[0], d->values[1] },
                .row = { -1, -1 },
                .source = source,
                .columns = d->columns,
                .count = width };
    find_inner_columns(&l);
    bool direct = source->opacity == MC_OPAQUE || target->opacity == MC_EMPTY;
    for (int j = 0; j < height; j++) {
        uint8_t *place = target->data + (size_t)(top + j) * target->stride + (size_t)left * 4;
        uint8_t *line = direct ? place : d->line;
        if (mode == MC_NEAREST)
            nearest_row(line, source->data + (size_t)d->rows[j].first * source->stride, d->columns, width);
        else if (l.even && l.begin < l.end)
            shifted_row(line, &l, &d->rows[j]);
        else
            bilinear_row(line, &l, &d->rows[j]);
        if (!direct)
            mc_blend_over(place, line, width);
    }
    bool whole = width == target->width && height == target->height;
    if (whole && source->opacity == MC_OPAQUE)
        target->opacity = MC_OPAQUE;
    else if (target->opacity != MC_OPAQUE)
        target->opacity = MC_OPACITY_UNKNOWN;
}

void
mc_pixels_resample(mc_pixels *target, const mc_pixels *source, double x0, double y0, double scale_x, double scale_y,
                   mc_resample mode)
{
    MC_ASSERT(isfinite(x0) && isfinite(y0) && isfinite(scale_x) && isfinite(scale_y) && scale_x > 0 && scale_y > 0);
    if (source->opacity == MC_EMPTY)
        return;
    if (is_shift(x0, scale_x) && is_shift(y0, scale_y)) {
        mc_pixels_over(target, -(int)nearbyint(x0), -(int)nearbyint(y0), source);
        return;
    }
    resample_drawing d;
    uint8_t *scratch = acquire_drawing_scratch(&d, target);
    draw_resampled(target, source, x0, y0, scale_x, scale_y, mode, &d);
    mc_scratch_release(scratch);
}
