/* Which parts of a row are in use: up to 64 blocks of 2^block_bits columns, a bit for each. */
#ifndef MC_DRAW_RASTER_BLOCKS_H
#define MC_DRAW_RASTER_BLOCKS_H

#include <stdint.h>

enum { MC_BLOCKS_BITS_MIN = 4 }; /* at least sixteen columns, because that many are read at once */

/* The smallest blocks of which 64 are enough for so many columns. */
static inline int
mc_blocks_bits(int columns)
{
    int block_bits = MC_BLOCKS_BITS_MIN;
    while (64 << block_bits < columns)
        block_bits++;
    return block_bits;
}

/* Bits of the blocks with the columns first..last. */
static inline uint64_t
mc_blocks_of(int first, int last, int block_bits)
{
    return (UINT64_C(2) << (last >> block_bits)) - (UINT64_C(1) << (first >> block_bits));
}

/* Takes the lowest run of blocks from *bits, which are not 0: its first column and the one after its last. */
static inline void
mc_blocks_take(uint64_t *bits, int block_bits, int *begin, int *end)
{
    int low = __builtin_ctzll(*bits);
    uint64_t above = ~(*bits >> low);
    int count = above == 0 ? 64 : __builtin_ctzll(above);
    *begin = low << block_bits;
    *end = (low + count) << block_bits;
    *bits = low + count >= 64 ? 0 : *bits >> (low + count) << (low + count);
}

#endif
