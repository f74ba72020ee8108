/* Filters of rows that are written, 32 bytes at a time, for processors that have AVX2. See png_predict.c. */
#include "image/png/png.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2"))) static inline

WITH_AVX2 __m256i
load_wide(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

WITH_AVX2 __m256i
distance_wide(__m256i a, __m256i b)
{
    return _mm256_sub_epi8(_mm256_max_epu8(a, b), _mm256_min_epu8(a, b));
}

WITH_AVX2 __m256i
predict_average_wide(__m256i left, __m256i above)
{
    __m256i odd = _mm256_and_si256(_mm256_xor_si256(left, above), _mm256_set1_epi8(1));
    return _mm256_sub_epi8(_mm256_avg_epu8(left, above), odd); /* the instruction rounds up */
}

/* As predict_paeth_bytes. */
WITH_AVX2 __m256i
predict_paeth_wide(__m256i left, __m256i above, __m256i corner)
{
    __m256i from_left = distance_wide(above, corner), from_above = distance_wide(left, corner);
    __m256i same_side = _mm256_cmpeq_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(left, corner), left),
                                          _mm256_cmpeq_epi8(_mm256_max_epu8(above, corner), above));
    __m256i from_corner =
        _mm256_blendv_epi8(distance_wide(from_left, from_above), _mm256_adds_epu8(from_left, from_above), same_side);
    __m256i least = _mm256_min_epu8(_mm256_min_epu8(from_left, from_above), from_corner);
    __m256i nearest = _mm256_blendv_epi8(corner, above, _mm256_cmpeq_epi8(from_above, least));
    return _mm256_blendv_epi8(nearest, left, _mm256_cmpeq_epi8(from_left, least));
}

__attribute__((target("avx2"))) size_t
mc_png_filter_paeth_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    size_t i = size;
    for (; i >= step + 32; i -= 32) {
        size_t at = i - 32;
        __m256i predicted =
            predict_paeth_wide(load_wide(row + at - step), load_wide(above + at), load_wide(above + at - step));
        _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_sub_epi8(load_wide(row + at), predicted));
    }
    return i;
}

__attribute__((target("avx2"))) size_t
mc_png_filter_average_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    size_t i = size;
    for (; i >= step + 32; i -= 32) {
        size_t at = i - 32;
        __m256i predicted = predict_average_wide(load_wide(row + at - step), load_wide(above + at));
        _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_sub_epi8(load_wide(row + at), predicted));
    }
    return i;
}

bool
mc_png_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

bool
mc_png_has_avx2(void)
{
    return false;
}

size_t
mc_png_filter_paeth_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    (void)out, (void)row, (void)above, (void)step;
    return size;
}

size_t
mc_png_filter_average_avx2(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    (void)out, (void)row, (void)above, (void)step;
    return size;
}

#endif
