/* Streams of libdeflate, whole. */
#ifndef MC_COMPRESS_DEFLATE_H
#define MC_COMPRESS_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Compresses to a gzip member, or else to a zlib stream, at a level of libdeflate (0: stored, 12: best). Returns its
 * bytes; 0 where it does not fit into `room`, or there is no memory. */
size_t mc_deflate(void *out, size_t room, const void *data, size_t size, int level, bool gzip);

#endif
