/* Two rows of an outline at a time, for processors that have AVX2; the same arithmetic as in outline.c. */
#include "draw/raster/outline_private.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <string.h>

#define WITH_AVX2 __attribute__((target("avx2")))

/* The larger of what is there and what four pixels of a row get. */
WITH_AVX2 static inline void
put_four(uint8_t *mask, __m128i covered)
{
    uint32_t four;
    memcpy(&four, mask, 4);
    four = (uint32_t)_mm_cvtsi128_si32(_mm_max_epu8(covered, _mm_cvtsi32_si128((int)four)));
    memcpy(mask, &four, 4);
}

/* Coverage of four pixels in the low half and of those below them in the high half, as bytes at the start of each. */
WITH_AVX2 static inline __m256i
cover_four_by_two(__m256 px, __m256 py, __m256 along_y, const mc_segment *s)
{
    const __m256 zero = _mm256_setzero_ps(), dx = _mm256_set1_ps(s->dx), dy = _mm256_set1_ps(s->dy);
    const __m256i low_bytes =
        _mm256_broadcastsi128_si256(_mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0));
    __m256 t = _mm256_mul_ps(_mm256_add_ps(_mm256_mul_ps(px, dx), along_y), _mm256_set1_ps(s->per_length2));
    t = _mm256_min_ps(_mm256_max_ps(t, zero), _mm256_set1_ps(1));
    __m256 ex = _mm256_sub_ps(px, _mm256_mul_ps(t, dx)), ey = _mm256_sub_ps(py, _mm256_mul_ps(t, dy));
    __m256 distance = _mm256_sqrt_ps(_mm256_add_ps(_mm256_mul_ps(ex, ex), _mm256_mul_ps(ey, ey)));
    __m256 share = _mm256_max_ps(_mm256_sub_ps(_mm256_set1_ps(s->reach), distance), zero);
    share = _mm256_mul_ps(_mm256_min_ps(share, _mm256_set1_ps(s->most)), _mm256_set1_ps(s->steps));
    __m256i values = _mm256_cvttps_epi32(_mm256_add_ps(share, _mm256_set1_ps(0.5F)));
    values = _mm256_mullo_epi16(values, _mm256_set1_epi32(s->factor));
    return _mm256_shuffle_epi8(values, low_bytes);
}

WITH_AVX2 int
mc_outline_rows_avx2(mc_outline *outline, const mc_segment *s, int top, int bottom)
{
    const __m256 lanes = _mm256_set_ps(3, 2, 1, 0, 3, 2, 1, 0), rows = _mm256_set_ps(1, 1, 1, 1, 0, 0, 0, 0);
    int row = top, begin, end;
    mc_segment_columns(&begin, &end, 0, s); /* of all rows where s->half is 0 */
    for (; row < bottom; row += 2) {
        float y = (float)(row - s->ay) + 0.5F - s->fy;
        int first = begin, last = end;
        if (s->half != 0) {
            int first_below, last_below;
            mc_segment_columns(&first, &last, y, s);
            mc_segment_columns(&first_below, &last_below, y + 1, s);
            first = first_below < first ? first_below : first;
            last = last_below > last ? last_below : last;
        }
        first = first < 0 ? 0 : first;
        last = last >= outline->width ? outline->width - 1 : last;
        if (first > last)
            continue;
        uint8_t *mask = outline->plane + (size_t)row * (size_t)outline->stride + first;
        __m256 py = _mm256_add_ps(_mm256_set1_ps(y), rows), along_y = _mm256_mul_ps(py, _mm256_set1_ps(s->dy));
        float x = (float)(first - s->ax) + 0.5F - s->fx;
        for (int i = 0; i <= last - first; i += 4) {
            __m256 px = _mm256_add_ps(_mm256_set1_ps(x), _mm256_add_ps(_mm256_set1_ps((float)i), lanes));
            __m256i both = cover_four_by_two(px, py, along_y, s);
            put_four(mask + i, _mm256_castsi256_si128(both));
            put_four(mask + i + outline->stride, _mm256_extracti128_si256(both, 1));
        }
        uint64_t blocks = mc_blocks_of(first, first + ((last - first) | MC_OUTLINE_MARGIN), outline->block_bits);
        outline->touched[row] |= blocks;
        outline->touched[row + 1] |= blocks;
    }
    return row;
}

#else

int
mc_outline_rows_avx2(mc_outline *outline, const mc_segment *s, int top, int bottom)
{
    (void)outline, (void)s, (void)bottom;
    return top;
}

#endif
