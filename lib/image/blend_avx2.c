/* Eight pixels at a time, for processors that have AVX2; the rest of the program is built for those before. */
#include "image/blend.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <stddef.h>

#define WITH_AVX2 __attribute__((target("avx2")))

/* back * (255 - front.alpha) / 255, rounded, of eight pixels. */
WITH_AVX2 static inline __m256i
attenuate_avx2(__m256i back, __m256i front)
{
    const __m256i half = _mm256_set1_epi16(128), zero = _mm256_setzero_si256();
    const __m256i alphas =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15));
    __m256i rest = _mm256_xor_si256(_mm256_shuffle_epi8(front, alphas), _mm256_set1_epi8(-1));
    __m256i low = _mm256_mullo_epi16(_mm256_unpacklo_epi8(back, zero), _mm256_unpacklo_epi8(rest, zero));
    __m256i high = _mm256_mullo_epi16(_mm256_unpackhi_epi8(back, zero), _mm256_unpackhi_epi8(rest, zero));
    low = _mm256_add_epi16(low, half);
    high = _mm256_add_epi16(high, half);
    low = _mm256_srli_epi16(_mm256_add_epi16(low, _mm256_srli_epi16(low, 8)), 8);
    high = _mm256_srli_epi16(_mm256_add_epi16(high, _mm256_srli_epi16(high, 8)), 8);
    return _mm256_packus_epi16(low, high);
}

WITH_AVX2 int
mc_blend_over_avx2(uint8_t *target, const uint8_t *source, int count)
{
    const __m256i alpha = _mm256_set1_epi32((int)0xff000000u);
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i front = _mm256_loadu_si256((const __m256i *)(const void *)(source + (size_t)i * 4));
        if (_mm256_testz_si256(front, front))
            continue;
        __m256i *place = (__m256i *)(void *)(target + (size_t)i * 4);
        if (!_mm256_testc_si256(front, alpha))
            front = _mm256_adds_epu8(front, attenuate_avx2(_mm256_loadu_si256(place), front));
        _mm256_storeu_si256(place, front);
    }
    return i;
}

WITH_AVX2 int
mc_blend_under_avx2(uint8_t *target, const uint8_t *source, int count, bool *opaque)
{
    const __m256i alpha = _mm256_set1_epi32((int)0xff000000u);
    __m256i all = _mm256_set1_epi8(-1);
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i *place = (__m256i *)(void *)(target + (size_t)i * 4);
        __m256i front = _mm256_loadu_si256(place);
        if (_mm256_testc_si256(front, alpha))
            continue;
        __m256i back = _mm256_loadu_si256((const __m256i *)(const void *)(source + (size_t)i * 4));
        if (_mm256_testz_si256(front, front))
            front = back;
        else
            front = _mm256_adds_epu8(front, attenuate_avx2(back, front));
        _mm256_storeu_si256(place, front);
        all = _mm256_and_si256(all, front);
    }
    *opaque = _mm256_testc_si256(all, alpha);
    return i;
}

bool
mc_blend_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

int
mc_blend_over_avx2(uint8_t *target, const uint8_t *source, int count)
{
    (void)target, (void)source, (void)count;
    return 0;
}

int
mc_blend_under_avx2(uint8_t *target, const uint8_t *source, int count, bool *opaque)
{
    (void)target, (void)source, (void)count;
    *opaque = true;
    return 0;
}

bool
mc_blend_has_avx2(void)
{
    return false;
}

#endif
