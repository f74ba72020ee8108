/* The blocks of SHA-256 (FIPS 180-4, 6.2.2): in C for all processors, and by the instructions that many have for it. */
#ifndef MC_DIGEST_DIGEST_BLOCKS_H
#define MC_DIGEST_DIGEST_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MC_SHA256_BLOCK = 64 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
extern const uint32_t mc_sha256_constants[64];

/* Hashes `count` blocks of MC_SHA256_BLOCK bytes into the eight words. */
void mc_sha256_blocks_plain(uint32_t hash[8], const uint8_t *blocks, size_t count);

/* The same by instructions of the processor: only where mc_sha256_has_instructions() is true. */
void mc_sha256_blocks_native(uint32_t hash[8], const uint8_t *blocks, size_t count);
bool mc_sha256_has_instructions(void);

#endif
