/* Inflating what is nearly nothing. */
#ifndef MC_COMPRESS_INFLATE_H
#define MC_COMPRESS_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that `out` must have beyond `size`; they hold anything afterwards. */
enum { MC_INFLATE_SLACK = 32 };

/*
 * Inflates a zlib stream (RFC 1950, RFC 1951) that holds exactly `size` bytes into `out`. Runs of zeros are not written
 * but left of a cleared buffer, so that the emptier an image is the less it costs. All bytes before *begin and from
 * *end on are zero; *begin >= *end when all are. False for a broken stream, a wrong size or checksum; then `out` holds
 * anything.
 */
bool mc_inflate_sparse(uint8_t *out, size_t size, const uint8_t *stream, size_t length, size_t *begin, size_t *end);

#endif
