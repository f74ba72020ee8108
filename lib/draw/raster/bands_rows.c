/* The pixels of a piece of a band, eight at a time: see bands_private.h. */
#include "draw/raster/bands_private.h"

#include <math.h>
#include <string.h>

#include "draw/raster/blocks.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WITH_AVX2 __attribute__((target("avx2,fma")))
#endif

enum { LANES = MC_OUTLINE_ROOM + 1, WIDE = 16 /* columns from which on a look at each row pays */ };

/* A row: what the lines are at its height. */
typedef struct bands_row {
    float at[MC_PIECE_LINES];
    float y;
} bands_row;

/* Columns of a row in which all lines leave something, of those from *first to *last; 1 more on both sides. */
static void
narrow_piece_columns(int *first, int *last, const mc_piece *piece, const bands_row *r, const float *inverse)
{
    float from = piece->left, to = piece->right;
    for (int i = 0; i < piece->count; i++) {
        float x = r->at[i] * inverse[i];
        if (inverse[i] < 0)
            from = x > from ? x : from;
        if (inverse[i] > 0)
            to = x < to ? x : to;
    }
    int begin = piece->column + (int)floorf(from + piece->fx) - 1,
        end = piece->column + (int)floorf(to + piece->fx) + 1;
    *first = begin > *first ? begin : *first;
    *last = end < *last ? end : *last;
}

#ifdef WITH_AVX2
WITH_AVX2 static void
cover_avx2(uint8_t *plane, int count, float x, const mc_piece *piece, const bands_row *r)
{
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    const __m256 lanes = _mm256_set_ps(7, 6, 5, 4, 3, 2, 1, 0);
    /* Nothing beyond the last column: at an acute tip there might be something, which other tiles do not show. */
    static const uint8_t all_then_none[2 * LANES] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    for (int i = 0; i < count; i += LANES) {
        __m256 px = _mm256_add_ps(_mm256_set1_ps(x + (float)i), lanes), share = _mm256_set1_ps(255);
        for (int k = 0; k < piece->count; k++) {
            __m256 inside = _mm256_fmadd_ps(px, _mm256_set1_ps(piece->a[k]), _mm256_set1_ps(r->at[k]));
            share = _mm256_mul_ps(share, _mm256_min_ps(_mm256_max_ps(inside, zero), one));
        }
        if (piece->radius > 0) {
            __m256 square = _mm256_fmadd_ps(px, px, _mm256_set1_ps(r->y * r->y));
            __m256 inside = _mm256_sub_ps(_mm256_set1_ps(piece->radius), _mm256_sqrt_ps(square));
            share = _mm256_mul_ps(share, _mm256_min_ps(_mm256_max_ps(inside, zero), one));
        }
        __m256i values = _mm256_cvtps_epi32(share);
        __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
        __m128i *at = (__m128i *)(void *)(plane + i), bytes = _mm_packus_epi16(words, words);
        const uint8_t *wanted = all_then_none + (count - i < LANES ? LANES - (count - i) : 0);
        bytes = _mm_and_si128(bytes, _mm_loadl_epi64((const __m128i *)(const void *)wanted));
        _mm_storel_epi64(at, _mm_adds_epu8(_mm_loadl_epi64(at), bytes));
    }
}
#endif

static void
cover_plain(uint8_t *plane, int count, float x, const mc_piece *piece, const bands_row *r)
{
    for (int i = 0; i < count; i++) {
        float px = x + (float)i, share = 255;
        for (int k = 0; k <= piece->count; k++) {
            if (k == piece->count && piece->radius <= 0)
                break;
            float inside =
                k < piece->count ? fmaf(px, piece->a[k], r->at[k]) : piece->radius - sqrtf(fmaf(px, px, r->y * r->y));
            share *= inside < 0 ? 0 : inside > 1 ? 1 : inside;
        }
        long sum = plane[i] + lrintf(share);
        plane[i] = (uint8_t)(sum > 255 ? 255 : sum);
    }
}

#ifdef WITH_AVX2
/* Eight pixels in a row: what all lines and the circle leave of them. */
WITH_AVX2 static inline __attribute__((always_inline)) __m128i
cover_eight_pixels(__m256 px, float y, const mc_piece *piece, const __m256 *a, int count)
{
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    __m256 share = _mm256_set1_ps(255);
    for (int k = 0; k < count; k++) {
        __m256 inside = _mm256_fmadd_ps(px, a[k], _mm256_set1_ps(piece->b[k] * y + piece->c[k]));
        share = _mm256_mul_ps(share, _mm256_min_ps(_mm256_max_ps(inside, zero), one));
    }
    if (piece->radius > 0) {
        __m256 square = _mm256_fmadd_ps(px, px, _mm256_set1_ps(y * y));
        __m256 inside = _mm256_sub_ps(_mm256_set1_ps(piece->radius), _mm256_sqrt_ps(square));
        share = _mm256_mul_ps(share, _mm256_min_ps(_mm256_max_ps(inside, zero), one));
    }
    __m256i values = _mm256_cvtps_epi32(share);
    return _mm_packus_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
}

/* All rows of a piece that is at most sixteen pixels wide and has `count` lines. */
WITH_AVX2 static inline __attribute__((always_inline)) void
add_small(mc_outline *outline, const mc_piece *piece, const int box[4], int count)
{
    /* Nothing beyond the last column: at an acute tip there might be something, which other tiles do not show. */
    static const uint8_t all_then_none[4 * LANES] = { 255, 255, 255, 255, 255, 255, 255, 255,
                                                      255, 255, 255, 255, 255, 255, 255, 255 };
    const int first = box[0], columns = box[2] - first + 1;
    const __m128i wanted =
        _mm_loadu_si128((const __m128i *)(const void *)(all_then_none + (size_t)(2 * LANES - columns)));
    const __m256 lanes = _mm256_set_ps(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256 px = _mm256_add_ps(_mm256_set1_ps((float)(first - piece->column) + 0.5F - piece->fx), lanes);
    const __m256 beside = _mm256_add_ps(px, _mm256_set1_ps(LANES));
    const uint64_t blocks = mc_blocks_of(first, first + ((columns - 1) | MC_OUTLINE_ROOM), outline->block_bits);
    __m256 a[MC_PIECE_LINES];
    for (int k = 0; k < count; k++)
        a[k] = _mm256_set1_ps(piece->a[k]);
    for (int y = box[1]; y <= box[3]; y++) {
        float at = (float)(y - piece->row) + 0.5F - piece->fy;
        __m128i *to = (__m128i *)(void *)(outline->plane + (size_t)y * (size_t)outline->stride + first);
        __m128i words = cover_eight_pixels(px, at, piece, a, count);
        if (columns <= LANES) {
            __m128i bytes = _mm_and_si128(_mm_packus_epi16(words, words), wanted);
            _mm_storel_epi64(to, _mm_adds_epu8(_mm_loadl_epi64(to), bytes));
        } else {
            __m128i bytes = _mm_packus_epi16(words, cover_eight_pixels(beside, at, piece, a, count));
            _mm_storeu_si128(to, _mm_adds_epu8(_mm_loadu_si128(to), _mm_and_si128(bytes, wanted)));
        }
        outline->touched[y] |= blocks;
    }
}

WITH_AVX2 static void
add_small_avx2(mc_outline *outline, const mc_piece *piece, const int box[4])
{
    switch (piece->count) {
    case 4:
        add_small(outline, piece, box, 4);
        return;
    case 5:
        add_small(outline, piece, box, 5);
        return;
    default:
        add_small(outline, piece, box, piece->count);
    }
}
#endif

static void
add_piece_row(mc_outline *outline, const mc_piece *piece, const float *inverse, int y, int first, int last)
{
    bands_row r = { .y = (float)(y - piece->row) + 0.5F - piece->fy };
    for (int i = 0; i < piece->count; i++)
        r.at[i] = piece->b[i] * r.y + piece->c[i];
    if (last - first >= WIDE)
        narrow_piece_columns(&first, &last, piece, &r, inverse);
    if (first > last)
        return;
    uint8_t *plane = outline->plane + (size_t)y * (size_t)outline->stride + first;
    float x = (float)(first - piece->column) + 0.5F - piece->fx;
#ifdef WITH_AVX2
    if (outline->pairs && __builtin_cpu_supports("fma"))
        cover_avx2(plane, last - first + 1, x, piece, &r);
    else
#endif
        cover_plain(plane, last - first + 1, x, piece, &r);
    outline->touched[y] |= mc_blocks_of(first, first + ((last - first) | MC_OUTLINE_ROOM), outline->block_bits);
}

void
mc_piece_add(mc_outline *outline, const mc_piece *piece)
{
    int first = piece->column + (int)floorf(piece->left + piece->fx);
    int last = piece->column + (int)floorf(piece->right + piece->fx);
#ifdef WITH_AVX2
    /* As large as it is by itself, not on this map: each way has roundings of its own. */
    const bool is_small = last - first < 2 * LANES && outline->pairs && __builtin_cpu_supports("fma");
#endif
    int top = piece->row + (int)floorf(piece->top + piece->fy);
    int bottom = piece->row + (int)floorf(piece->bottom + piece->fy);
    first = first < 0 ? 0 : first;
    top = top < 0 ? 0 : top;
    last = last >= outline->width ? outline->width - 1 : last;
    bottom = bottom >= outline->height ? outline->height - 1 : bottom;
    if (first > last || top > bottom)
        return;
    outline->dirty = outline->summed = true;
    outline->top = top < outline->top ? top : outline->top;
    outline->bottom = bottom > outline->bottom ? bottom : outline->bottom;
#ifdef WITH_AVX2
    if (is_small) {
        add_small_avx2(outline, piece, (const int[4]){ first, top, last, bottom });
        return;
    }
#endif
    float inverse[MC_PIECE_LINES] = { 0 };
    for (int i = 0; i < piece->count && last - first >= WIDE; i++)
        inverse[i] = fabsf(piece->a[i]) > 1e-3F ? -1 / piece->a[i] : 0;
    for (int y = top; y <= bottom; y++)
        add_piece_row(outline, piece, inverse, y, first, last);
}
