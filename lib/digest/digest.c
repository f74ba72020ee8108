#include "digest/digest.h"

#include <apr_md5.h>
#include <apr_sha1.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "digest/digest_blocks.h"

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

enum { BLOCK = MC_SHA256_BLOCK, LENGTH_AT = 56 /* where the length stands in the last block */ };

/* Bytes that are hashed piece by piece. */
typedef struct sha256_state {
    uint32_t hash[8];
    uint8_t block[BLOCK];
    size_t filled;
    uint64_t total;
} sha256_state;

typedef void hash_function(uint32_t hash[8], const uint8_t *blocks, size_t count);

static hash_function *hash_blocks;
static pthread_once_t hash_once = PTHREAD_ONCE_INIT;

static void
choose_hash_function(void)
{
    hash_blocks = mc_sha256_has_instructions() ? mc_sha256_blocks_native : mc_sha256_blocks_plain;
}

static void
begin_sha256(sha256_state *state)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    pthread_once(&hash_once, choose_hash_function);
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
            hash_blocks(state->hash, at, size / BLOCK);
            at += size / BLOCK * BLOCK;
            size %= BLOCK;
            continue;
        }
        size_t part = BLOCK - state->filled < size ? BLOCK - state->filled : size;
        memcpy(state->block + state->filled, at, part);
        state->filled += part;
        at += part;
        size -= part;
        if (state->filled == BLOCK) {
            hash_blocks(state->hash, state->block, 1);
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

#if defined(__SSE4_2__)

static uint32_t
add_one_to_crc(uint32_t crc, uint8_t byte)
{
    return _mm_crc32_u8(crc, byte);
}

static uint32_t
add_eight_to_crc(uint32_t crc, const uint8_t *bytes)
{
    return (uint32_t)_mm_crc32_u64(crc, mc_little64(bytes));
}

#else

static uint32_t
add_one_to_crc(uint32_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int i = 0; i < 8; i++)
        crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    return crc;
}

static uint32_t
add_eight_to_crc(uint32_t crc, const uint8_t *bytes)
{
    for (int i = 0; i < 8; i++)
        crc = add_one_to_crc(crc, bytes[i]);
    return crc;
}

#endif

void
mc_md5(uint8_t digest[MC_MD5_BYTES], const void *data, size_t size)
{
    apr_md5(digest, data, size);
}

uint32_t
mc_crc32c(const void *data, size_t size)
{
    const uint8_t *at = data;
    uint32_t crc = 0xffffffff;
    for (; size >= 8; at += 8, size -= 8)
        crc = add_eight_to_crc(crc, at);
    for (; size > 0; at++, size--)
        crc = add_one_to_crc(crc, *at);
    return ~crc;
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
