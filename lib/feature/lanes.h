/* Sixteen bytes of coverage at once, and a bit for each. */
#ifndef MC_FEATURE_LANES_H
#define MC_FEATURE_LANES_H

#include <stdint.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

/* Which of sixteen bytes are at least `least`, the first one in the lowest bit. */
static inline unsigned
mc_lanes_from(const uint8_t *bytes, uint8_t least)
{
#ifdef __SSE4_1__
    __m128i all = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(all, _mm_set1_epi8((char)least)), all));
#else
    unsigned bits = 0;
    for (int i = 0; i < 16; i++)
        bits |= (unsigned)(bytes[i] >= least) << i;
    return bits;
#endif
}

/* Copies sixteen bytes, those above `most` as `most`. */
static inline void
mc_lanes_most(uint8_t *out, const uint8_t *bytes, uint8_t most)
{
#ifdef __SSE4_1__
    __m128i all = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_min_epu8(all, _mm_set1_epi8((char)most)));
#else
    for (int i = 0; i < 16; i++)
        out[i] = bytes[i] < most ? bytes[i] : most;
#endif
}

/* Copies sixteen bytes, those whose bits are set as 0. */
static inline void
mc_lanes_without(uint8_t *out, const uint8_t *bytes, unsigned bits)
{
#ifdef __SSE4_1__
    const __m128i each = _mm_set1_epi64x((int64_t)0x8040201008040201);
    const __m128i halves = _mm_set_epi8(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    __m128i spread = _mm_and_si128(_mm_shuffle_epi8(_mm_cvtsi32_si128((int)bits), halves), each);
    __m128i all = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_andnot_si128(_mm_cmpeq_epi8(spread, each), all));
#else
    for (int i = 0; i < 16; i++)
        out[i] = (bits >> i & 1) != 0 ? 0 : bytes[i];
#endif
}

#endif
