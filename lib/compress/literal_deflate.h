/*
 * Deflate for filtered rows of imagery, where next to nothing repeats but zeros: each block has a Huffman code of its
 * own, and the only matches are runs of zeros. Two to two and a half times as fast as ISA-L's level 1.
 */
#ifndef MC_COMPRESS_LITERAL_DEFLATE_H
#define MC_COMPRESS_LITERAL_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes `size` bytes of `data` to `out` as a stream of zlib (RFC 1950); the number of bytes, 0 where they do not fit
 * into `room`, which libdeflate_zlib_compress_bound() makes sure of for what can be shrunk. The same input gives the
 * same bytes on all machines. Any thread.
 */
size_t mc_literal_deflate(uint8_t *out, size_t room, const uint8_t *data, size_t size);

#endif
