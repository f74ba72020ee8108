/* SHA-256 in C, for all processors. */
#include <string.h>

#include "base/bytes.h"
#include "digest/digest_blocks.h"

const uint32_t mc_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
turn_right(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

/* One of 64 rounds; `n` is its number modulo 8, a constant: the eight words change places by their numbers. */
static inline void
hash_round(uint32_t v[8], int n, uint32_t addend)
{
    const uint32_t a = v[-n & 7], b = v[(1 - n) & 7], c = v[(2 - n) & 7];
    const uint32_t e = v[(4 - n) & 7], f = v[(5 - n) & 7], g = v[(6 - n) & 7];
    uint32_t first =
        v[(7 - n) & 7] + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) + (g ^ (e & (f ^ g))) + addend;
    uint32_t second = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) + ((a & b) | (c & (a | b)));
    v[(3 - n) & 7] += first;
    v[(7 - n) & 7] = first + second;
}

static void
hash_block(uint32_t hash[8], const uint8_t *block)
{
    uint32_t words[64], v[8];
    for (int i = 0; i < 16; i++)
        words[i] = mc_big32(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] + (turn_right(a, 7) ^ turn_right(a, 18) ^ a >> 3) +
                   (turn_right(b, 17) ^ turn_right(b, 19) ^ b >> 10);
    }
    memcpy(v, hash, sizeof(v));
    for (int i = 0; i < 64; i += 8) {
        hash_round(v, 0, words[i] + mc_sha256_constants[i]);
        hash_round(v, 1, words[i + 1] + mc_sha256_constants[i + 1]);
        hash_round(v, 2, words[i + 2] + mc_sha256_constants[i + 2]);
        hash_round(v, 3, words[i + 3] + mc_sha256_constants[i + 3]);
        hash_round(v, 4, words[i + 4] + mc_sha256_constants[i + 4]);
        hash_round(v, 5, words[i + 5] + mc_sha256_constants[i + 5]);
        hash_round(v, 6, words[i + 6] + mc_sha256_constants[i + 6]);
        hash_round(v, 7, words[i + 7] + mc_sha256_constants[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        hash[i] += v[i];
}

void
mc_sha256_blocks_plain(uint32_t hash[8], const uint8_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash_block(hash, blocks + i * MC_SHA256_BLOCK);
}
