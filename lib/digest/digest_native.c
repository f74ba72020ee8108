/* SHA-256 for processors that have instructions for it: about ten times as fast as digest_plain.c. */
#include "digest/digest_blocks.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1")))

/* The next four words of the schedule, from the sixteen before; `words` holds four of them at each place, in turn. */
WITH_SHA static inline __m128i
next_four_words(const __m128i words[4], int i)
{
    const __m128i last = words[(i + 3) & 3];
    __m128i sum = _mm_sha256msg1_epu32(words[i & 3], words[(i + 1) & 3]);
    sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, words[(i + 2) & 3], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

/* *abef, *cdgh: the eight words as the instructions have them. */
WITH_SHA static inline void
hash_one_block(__m128i *abef, __m128i *cdgh, const uint8_t *block)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203); /* big-endian words */
    const __m128i abef_before = *abef, cdgh_before = *cdgh;
    __m128i words[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        words[i & 3] = i < 4 ? _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), order)
                             : next_four_words(words, i);
        const __m128i *constants = (const __m128i *)(const void *)(mc_sha256_constants + 4 * i);
        const __m128i sum = _mm_add_epi32(words[i & 3], _mm_loadu_si128(constants));
        *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
        *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    *abef = _mm_add_epi32(*abef, abef_before);
    *cdgh = _mm_add_epi32(*cdgh, cdgh_before);
}

WITH_SHA void
mc_sha256_blocks_native(uint32_t hash[8], const uint8_t *blocks, size_t count)
{
    __m128i *first = (__m128i *)(void *)hash, *second = (__m128i *)(void *)(hash + 4);
    const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(first), 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(second), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (size_t i = 0; i < count; i++)
        hash_one_block(&abef, &cdgh, blocks + i * MC_SHA256_BLOCK);
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(first, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(second, _mm_alignr_epi8(dchg, feba, 8));
}

/* Of the leaf of "structured extended features" the bit of SHA; SSE 4.1 came long before. */
bool
mc_sha256_has_instructions(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0 && __builtin_cpu_supports("sse4.1");
}

#else

void
mc_sha256_blocks_native(uint32_t hash[8], const uint8_t *blocks, size_t count)
{
    mc_sha256_blocks_plain(hash, blocks, count);
}

bool
mc_sha256_has_instructions(void)
{
    return false;
}

#endif
