/*
 * Deflate for filtered rows of imagery, where next to nothing repeats but zeros: each block has a Huffman code of its
 * own, and the only matches are runs of zeros. Two to two and a half times as fast as ISA-L's level 1.
 */
#ifndef MC_COMPRESS_LITERAL_DEFLATE_H
#define MC_COMPRESS_LITERAL_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

/* The room in which all streams of `size` bytes fit, and with which mc_literal_deflate is the fastest: half as much
 * again, and the codes of the blocks. What does not shrink may take all of it. */
static inline size_t
mc_literal_deflate_room(size_t size)
{
    return size + size / 2 + size / 64 + 1024;
}

/*
 * Writes `size` bytes of `data` to `out` as a stream of zlib (RFC 1950); the number of bytes, 0 where they do not fit
 * into `room`, which libdeflate_zlib_compress_bound() + 1024 makes sure of for what can be shrunk. The same input and
 * room give the same bytes on all machines. Any thread.
 */
size_t mc_literal_deflate(uint8_t *out, size_t room, const uint8_t *data, size_t size);

#endif
