/* Bytes times bytes over 255, by SSE 4.1. */
#ifndef MC_IMAGE_SCALE_SSE_H
#define MC_IMAGE_SCALE_SSE_H

#ifdef __SSE4_1__

#include <smmintrin.h>

/* value * factor / 255, rounded, of eight values in 16-bit lanes. */
static inline __m128i
mc_scale_eight(__m128i values, __m128i factors)
{
    __m128i product = _mm_add_epi16(_mm_mullo_epi16(values, factors), _mm_set1_epi16(128));
    return _mm_srli_epi16(_mm_add_epi16(product, _mm_srli_epi16(product, 8)), 8);
}

/* The same of sixteen bytes. */
static inline __m128i
mc_scale_sixteen(__m128i values, __m128i factors)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i low = mc_scale_eight(_mm_unpacklo_epi8(values, zero), _mm_unpacklo_epi8(factors, zero));
    __m128i high = mc_scale_eight(_mm_unpackhi_epi8(values, zero), _mm_unpackhi_epi8(factors, zero));
    return _mm_packus_epi16(low, high);
}

/* The alpha of each of four pixels in all four of its bytes. */
static inline __m128i
mc_spread_alphas(__m128i pixels)
{
    return _mm_shuffle_epi8(pixels, _mm_setr_epi8(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15));
}

#endif

#endif
