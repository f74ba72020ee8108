/* See deflate.h. */
#include "compress/deflate.h"

#include <libdeflate.h>

size_t
mc_deflate(void *out, size_t room, const void *data, size_t size, int level, bool gzip)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    if (compressor == NULL)
        return 0;
    size_t written = (gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress)(compressor, data, size, out, room);
    libdeflate_free_compressor(compressor);
    return written;
}
