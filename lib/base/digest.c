#include "base/digest.h"

#include <apr_md5.h>
#include <apr_sha1.h>
#include <string.h>

#include "base/bytes.h"

enum { BLOCK = 64, LENGTH_AT = 56 /* where the length stands in the last block */ };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
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

/* Bytes that are hashed piece by piece. */
typedef struct sha256_state {
    uint32_t hash[8];
    uint8_t block[BLOCK];
    size_t filled;
    uint64_t total;
} sha256_state;

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
        hash_round(v, 0, words[i] + round_constants[i]);
        hash_round(v, 1, words[i + 1] + round_constants[i + 1]);
        hash_round(v, 2, words[i + 2] + round_constants[i + 2]);
        hash_round(v, 3, words[i + 3] + round_constants[i + 3]);
        hash_round(v, 4, words[i + 4] + round_constants[i + 4]);
        hash_round(v, 5, words[i + 5] + round_constants[i + 5]);
        hash_round(v, 6, words[i + 6] + round_constants[i + 6]);
        hash_round(v, 7, words[i + 7] + round_constants[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        hash[i] += v[i];
}

static void
begin_sha256(sha256_state *state)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(state->hash, start, sizeof(start));
    state->filled = 0;
    state->total = 0;
}

static void
add_sha256(sha256_state *state, const void *data, size_t size)
{
    const uint8_t *at = data;
    state->total += size;
    while (size > 0) {
        if (state->filled == 0 && size >= BLOCK) {
            hash_block(state->hash, at);
            at += BLOCK;
            size -= BLOCK;
            continue;
        }
        size_t part = BLOCK - state->filled < size ? BLOCK - state->filled : size;
        memcpy(state->block + state->filled, at, part);
        state->filled += part;
        at += part;
        size -= part;
        if (state->filled == BLOCK) {
            hash_block(state->hash, state->block);
            state->filled = 0;
        }
    }
}

static void
end_sha256(uint8_t digest[MC_SHA256_BYTES], sha256_state *state)
{
    static const uint8_t padding[BLOCK] = { 0x80 };
    uint64_t bits = state->total * 8;
    uint8_t length[8];
    size_t pad = (state->filled < LENGTH_AT ? LENGTH_AT : BLOCK + LENGTH_AT) - state->filled;
    (void)mc_store_big32(mc_store_big32(length, (uint32_t)(bits >> 32)), (uint32_t)bits);
    add_sha256(state, padding, pad);
    add_sha256(state, length, sizeof(length));
    for (int i = 0; i < 8; i++)
        (void)mc_store_big32(digest + 4 * i, state->hash[i]);
}

void
mc_sha256(uint8_t digest[MC_SHA256_BYTES], const void *data, size_t size)
{
    sha256_state state;
    begin_sha256(&state);
    add_sha256(&state, data, size);
    end_sha256(digest, &state);
}

/* The key in one block, with each of its bytes changed (RFC 2104, 2). */
static void
mask_key(uint8_t masked[BLOCK], const uint8_t *key, size_t size, uint8_t mask)
{
    memset(masked, mask, BLOCK);
    for (size_t i = 0; i < size; i++)
        masked[i] ^= key[i];
}

void
mc_hmac_sha256(uint8_t digest[MC_SHA256_BYTES], const void *key, size_t key_size, const void *data, size_t size)
{
    uint8_t short_key[MC_SHA256_BYTES], inner[BLOCK], outer[BLOCK];
    sha256_state state;
    if (key_size > BLOCK) {
        mc_sha256(short_key, key, key_size);
        key = short_key;
        key_size = sizeof(short_key);
    }
    mask_key(inner, key, key_size, 0x36);
    mask_key(outer, key, key_size, 0x5c);
    begin_sha256(&state);
    add_sha256(&state, inner, BLOCK);
    add_sha256(&state, data, size);
    end_sha256(digest, &state);
    begin_sha256(&state);
    add_sha256(&state, outer, BLOCK);
    add_sha256(&state, digest, MC_SHA256_BYTES);
    end_sha256(digest, &state);
}

void
mc_hmac_sha1(uint8_t digest[MC_SHA1_BYTES], const void *key, size_t key_size, const void *data, size_t size)
{
    uint8_t short_key[MC_SHA1_BYTES], inner[BLOCK], outer[BLOCK];
    apr_sha1_ctx_t state;
    if (key_size > BLOCK) {
        apr_sha1_init(&state);
        apr_sha1_update_binary(&state, key, (unsigned)key_size);
        apr_sha1_final(short_key, &state);
        key = short_key;
        key_size = sizeof(short_key);
    }
    mask_key(inner, key, key_size, 0x36);
    mask_key(outer, key, key_size, 0x5c);
    apr_sha1_init(&state);
    apr_sha1_update_binary(&state, inner, BLOCK);
    apr_sha1_update_binary(&state, data, (unsigned)size);
    apr_sha1_final(digest, &state);
    apr_sha1_init(&state);
    apr_sha1_update_binary(&state, outer, BLOCK);
    apr_sha1_update_binary(&state, digest, MC_SHA1_BYTES);
    apr_sha1_final(digest, &state);
}

void
mc_md5(uint8_t digest[MC_MD5_BYTES], const void *data, size_t size)
{
    apr_md5(digest, data, size);
}

void
mc_hex_text(char *text, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = '\0';
}
