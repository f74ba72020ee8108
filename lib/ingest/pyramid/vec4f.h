/* B, G, R, A of a pixel as four numbers at once: vectors of the compiler. */
#ifndef MC_INGEST_PYRAMID_VEC4F_H
#define MC_INGEST_PYRAMID_VEC4F_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

typedef float mc_vec4f __attribute__((vector_size(16)));

/* The same number four times. */
static inline mc_vec4f
mc_vec4f_splat(float value)
{
    return (mc_vec4f){ value, value, value, value };
}

static inline mc_vec4f
mc_vec4f_load(const uint8_t *pixel)
{
#ifdef __SSE4_1__
    int32_t bytes;
    memcpy(&bytes, pixel, 4);
    return (mc_vec4f)_mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
#else
    return (mc_vec4f){ pixel[0], pixel[1], pixel[2], pixel[3] };
#endif
}

/* Stores the numbers rounded, at most 255. No number is below 0. */
static inline void
mc_vec4f_store(uint8_t *pixel, mc_vec4f values)
{
    mc_vec4f rounded = values + mc_vec4f_splat(0.5F);
#ifdef __SSE4_1__
    __m128i words = _mm_cvttps_epi32((__m128)rounded);
    int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(_mm_packus_epi32(words, words), words));
    memcpy(pixel, &bytes, 4);
#else
    for (int c = 0; c < 4; c++)
        pixel[c] = rounded[c] >= 255 ? 255 : (uint8_t)rounded[c];
#endif
}

#endif
