/* Deflate at the pace of images that somebody waits for: ISA-L's level 1, or where that is not built in libdeflate's.
 * The same input gives the same bytes. */
#ifndef MC_COMPRESS_QUICK_DEFLATE_H
#define MC_COMPRESS_QUICK_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Some of the bytes of a stream; the next ones lie elsewhere. */
typedef struct mc_deflate_part {
    const void *data;
    size_t size;
} mc_deflate_part;

/* Bytes of memory that mc_quick_deflate works in, whatever is in them. */
size_t mc_quick_deflate_memory(void);

/*
 * Writes `size` bytes of `data` to `out` as a stream of zlib (RFC 1950), or a member of gzip (RFC 1952); the number of
 * bytes, 0 where they do not fit into `room`. `memory`: aligned to 64 bytes. Any thread.
 */
size_t mc_quick_deflate(void *memory, void *out, size_t room, const void *data, size_t size, bool gzip);

/* The same for bytes that lie in `count` parts: a stream of the same bytes, which need no room in one piece. Where
 * ISA-L is not built: 0 for more than one part. */
size_t mc_quick_deflate_parts(void *memory, void *out, size_t room, const mc_deflate_part *parts, int count, bool gzip);

#endif
