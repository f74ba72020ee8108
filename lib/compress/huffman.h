/* Prefix codes as DEFLATE has them (RFC 1951, 3.2.2): lengths from frequencies, codes from lengths. */
#ifndef MC_COMPRESS_HUFFMAN_H
#define MC_COMPRESS_HUFFMAN_H

#include <stdint.h>

enum { MC_HUFFMAN_SYMBOLS_MAX = 288, MC_HUFFMAN_FREQUENCY_MAX = (1 << 24) - 1 };

/* A code in the order in which its bits are written, the lowest first, and how many they are: 0 for no code. */
typedef struct mc_huffman_code {
    uint16_t bits;
    uint16_t length;
} mc_huffman_code;

/*
 * Lengths of a complete code of at most `limit` bits, 0 for symbols that do not occur: a Huffman code, or close to one
 * where `limit` (7 to 15, with 2^limit no less than `count`) is short. Where fewer than two symbols occur, two get a
 * code of one bit. Frequencies are at most MC_HUFFMAN_FREQUENCY_MAX, and so is their sum; `count` is 2 to
 * MC_HUFFMAN_SYMBOLS_MAX.
 */
void mc_huffman_lengths(uint8_t *lengths, const uint32_t *frequencies, int count, int limit);

/* The canonical code of these lengths, each at most 15. */
void mc_huffman_codes(mc_huffman_code *codes, const uint8_t *lengths, int count);

#endif
