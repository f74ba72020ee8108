/* Gzip that is not compressed, so that its size can be chosen. */
#ifndef MC_COMPRESS_GZIP_STORED_H
#define MC_COMPRESS_GZIP_STORED_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes are packed into a stream of `total` bytes; total >= MC_GZIP_STORED_LEAST. */
enum { MC_GZIP_STORED_LEAST = 24 };
size_t mc_gzip_stored_room(size_t total);

/* Writes a stream of exactly `total` bytes that expands to the mc_gzip_stored_room(total) bytes of `data`. */
void mc_gzip_stored(uint8_t *out, size_t total, const uint8_t *data);

#endif
