/* Digests that prove who asks, and that bytes are whole: SHA-256 (FIPS 180-4), HMAC (RFC 2104), MD5 (RFC 1321). */
#ifndef MC_DIGEST_DIGEST_H
#define MC_DIGEST_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { MC_SHA256_BYTES = 32, MC_SHA1_BYTES = 20, MC_MD5_BYTES = 16, MC_SHA256_HEX = 65 /* with the end of the text */ };

void mc_sha256(uint8_t digest[MC_SHA256_BYTES], const void *data, size_t size);

/* `digest` may be the key. */
void mc_hmac_sha256(uint8_t digest[MC_SHA256_BYTES], const void *key, size_t key_size, const void *data, size_t size);
void mc_hmac_sha1(uint8_t digest[MC_SHA1_BYTES], const void *key, size_t key_size, const void *data, size_t size);

/* Against damage on the way only: nobody trusts MD5 otherwise. */
void mc_md5(uint8_t digest[MC_MD5_BYTES], const void *data, size_t size);

/* CRC-32C (Castagnoli; RFC 3720, appendix B.4): against damage on the way only. */
uint32_t mc_crc32c(const void *data, size_t size);

/* `size` bytes as 2 * size lower-case digits, and the end of the text. */
void mc_hex_text(char *text, const uint8_t *bytes, size_t size);

#endif
