/* Any bytes as a deflate stream: what zlib reads, our inflater must read alike. The first two bytes are the content's
 * size. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "compress/inflate.h"
#include "fuzz_support.h"
#include "mapcache/error.h"

/* The same stream with a head and the checksum that fits. */
static uint8_t *
wrap(const uint8_t *stream, size_t length, const uint8_t *content, size_t size)
{
    uint32_t sum = (uint32_t)adler32(1, content, (uInt)size);
    uint8_t *wrapped = malloc(length + 6);
    memcpy(wrapped, "\x78\x01", 2);
    memcpy(wrapped + 2, stream, length);
    for (int i = 0; i < 4; i++)
        wrapped[2 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    return wrapped;
}

/* Whether the stream is good and holds `size` bytes; *length becomes its own. */
static bool
inflate_by_zlib(uint8_t *out, size_t size, const uint8_t *stream, size_t *length)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)stream, .avail_in = (uInt)*length, .next_out = out, .avail_out = (uInt)size
    };
    if (inflateInit2(&z, -15) != Z_OK)
        return false;
    bool good = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == size;
    *length = good ? z.total_in : *length;
    inflateEnd(&z);
    return good;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t wanted = (size_t)data[0] << 8 | data[1], used = size - 2, begin, end;
    uint8_t *expected = calloc(1, wanted + 1), *inflated = malloc(wanted + MC_INFLATE_SLACK);
    bool good = inflate_by_zlib(expected, wanted, data + 2, &used);
    uint8_t *wrapped = wrap(data + 2, used, expected, wanted);
    bool ours = mc_inflate_sparse(inflated, wanted, wrapped, used + 6, &begin, &end);
    MC_ASSERT(ours || !good);
    MC_ASSERT(!good || memcmp(expected, inflated, wanted) == 0);
    for (size_t i = 0; ours && i < wanted; i++)
        MC_ASSERT((i >= begin && i < end) || inflated[i] == 0);
    free(wrapped);
    free(expected);
    free(inflated);
    return 0;
}
