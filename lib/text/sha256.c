#include "text/sha256.h"

#include <string.h>

#include "base/bytes.h"

enum { BLOCK = 64 };

/* FIPS 180-4, 4.2.2 and 5.3.3. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t first_state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static uint32_t
rotate_right(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void
spread_block(uint32_t words[64], const uint8_t *block)
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)mc_big_number(block + 4 * i, 4);
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        uint32_t low = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint32_t high = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        words[i] = words[i - 16] + low + words[i - 7] + high;
    }
}

static void
digest_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[64], s[8];
    spread_block(words, block);
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; i++) {
        uint32_t high = rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t one = s[7] + high + choice + round_constants[i] + words[i];
        uint32_t low = rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += one;
        s[0] = one + low + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void
mc_sha256(uint8_t digest[MC_SHA256_BYTES], const void *data, size_t size)
{
    uint32_t state[8];
    uint8_t last[2 * BLOCK] = { 0 };
    const uint8_t *at = data;
    size_t rest = size % BLOCK;
    size_t padded = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    memcpy(state, first_state, sizeof(state));
    for (size_t i = 0; i < size / BLOCK; i++)
        digest_block(state, at + BLOCK * i);
    if (rest > 0)
        memcpy(last, at + size - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t i = 0; i < padded; i += BLOCK)
        digest_block(state, last + i);
    for (int i = 0; i < 8; i++)
        (void)mc_store_big32(digest + 4 * i, state[i]);
}
