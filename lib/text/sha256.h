/* SHA-256 (FIPS 180-4): for names of things that nobody may make another thing of the same name of. */
#ifndef MC_TEXT_SHA256_H
#define MC_TEXT_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { MC_SHA256_BYTES = 32 };

void mc_sha256(uint8_t digest[MC_SHA256_BYTES], const void *data, size_t size);

#endif
