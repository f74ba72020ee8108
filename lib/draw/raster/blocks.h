/* Which parts of a row are in use: up to 64 blocks of 2^shift columns, a bit for each. */
#ifndef MC_FEATURE_BLOCKS_H
#define MC_FEATURE_BLOCKS_H

#include <stdint.h>

enum { MC_BLOCKS_SHIFT_MIN = 4 }; /* at least sixteen columns: what is read at once */

/* The smallest blocks of which 64 are enough for so many columns. */
static inline int
mc_blocks_shift(int columns)
{
    int shift = MC_BLOCKS_SHIFT_MIN;
    while (64 << shift < columns)
        shift++;
    return shift;
}

/* Bits of the blocks with the columns first..last. */
static inline uint64_t
mc_blocks_of(int first, int last, int shift)
{
    return (UINT64_C(2) << (last >> shift)) - (UINT64_C(1) << (first >> shift));
}

/* Takes the lowest run of blocks from *bits, which are not 0: its first column and the one after its last. */
static inline void
mc_blocks_take(uint64_t *bits, int shift, int *begin, int *end)
{
    int low = __builtin_ctzll(*bits);
    uint64_t above = ~(*bits >> low);
    int count = above == 0 ? 64 : __builtin_ctzll(above);
    *begin = low << shift;
    *end = (low + count) << shift;
    *bits = low + count >= 64 ? 0 : *bits >> (low + count) << (low + count);
}

#endif
