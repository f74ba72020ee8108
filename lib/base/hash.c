/*
 * The hash: 16 bytes a step, each folded by one 64 x 64 -> 128 bit multiplication; two lanes for long inputs. The
 * construction (multiply two words that are mixed with secrets, and fold the halves of the product) is that of mum-hash
 * by Vladimir Makarov and wyhash by Wang Yi; secrets, lanes and tail are our own, so values differ from theirs.
 * Its values are stored and shared between versions: docs/internals/base.md names where, and why XXH3 did not replace
 * it.
 */
#include "base/hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Odd numbers with balanced bits: the fractional parts of the square roots of 2, 3, 5 and 7. */
static const uint64_t k0 = 0x6a09e667f3bcc909u;
static const uint64_t k1 = 0xbb67ae8584caa73bu;
static const uint64_t k2 = 0x3c6ef372fe94f82bu;
static const uint64_t k3 = 0xa54ff53a5f1d36f1u;

static inline uint64_t
fold_product128(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t
load_hash_word(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline uint64_t
load_half_word(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

/* The last 1 to 16 bytes as two words, the rest of which is zero; with the size, they determine the bytes. Loads that
 * overlap: a copy to where it could be loaded from takes longer than the hash itself. */
static inline void
load_tail(uint64_t words[2], const unsigned char *at, size_t size)
{
    words[1] = 0;
    if (size > 8) {
        words[0] = load_hash_word(at);
        words[1] = load_hash_word(at + size - 8) >> (8 * (16 - size));
    } else if (size >= 4) {
        words[0] = load_half_word(at) | load_half_word(at + size - 4) << (8 * (size - 4));
    } else {
        words[0] =
            (uint64_t)at[0] | (uint64_t)at[size / 2] << (8 * (size / 2)) | (uint64_t)at[size - 1] << (8 * (size - 1));
    }
}

uint64_t
mc_hash64(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *at = data;
    size_t left = size;
    uint64_t secret =
        fold_product128(seed ^ k0, k1); /* in both factors: no input makes one of them zero for every seed */
    uint64_t state = secret ^ k2;
    if (left > 64) {
        uint64_t other = secret ^ k3;
        for (; left > 32; left -= 32, at += 32) {
            state = fold_product128(load_hash_word(at) ^ secret, load_hash_word(at + 8) ^ state);
            other = fold_product128(load_hash_word(at + 16) ^ secret ^ k1, load_hash_word(at + 24) ^ other);
        }
        state ^= other;
    }
    for (; left > 16; left -= 16, at += 16)
        state = fold_product128(load_hash_word(at) ^ secret ^ k2, load_hash_word(at + 8) ^ state);
    uint64_t words[2] = { 0, 0 };
    if (left > 0)
        load_tail(words, at, left);
    state = fold_product128(words[0] ^ secret ^ k3, words[1] ^ state);
    return fold_product128(state ^ k0, (uint64_t)size ^ k1);
}

static uint64_t process_seed;

static void
create_seed(void)
{
    if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) == (ssize_t)sizeof(process_seed))
        return;
    struct timespec now; /* early at boot there is no randomness; the clock is better than a constant */
    clock_gettime(CLOCK_REALTIME, &now);
    process_seed = fold_product128((uint64_t)now.tv_nsec ^ k2, (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 32);
}

uint64_t
mc_hash_seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_seed);
    return process_seed;
}
