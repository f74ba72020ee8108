/* What vector tiles are packed with, in stores and in answers: told by the bytes, chosen by name. */
#ifndef MC_COMPRESS_PACKING_H
#define MC_COMPRESS_PACKING_H

#include "compress/gzip.h"

/* In the order of MC_PACKING_CHOICES. */
typedef enum mc_packing { MC_PACKED_GZIP, MC_PACKED_BROTLI, MC_PACKED_ZSTD, MC_NOT_PACKED } mc_packing;

/* As the configuration names them: a choice of mc_packing. */
#define MC_PACKING_CHOICES "gzip|brotli|zstd"

/* The content coding of HTTP: "gzip" (RFC 9110, 8.4.1.3), "br" (RFC 7932, 13), "zstd" (RFC 9659, 3); "identity" (RFC
 * 9110, 12.5.3) for what is not packed. */
const char *mc_packing_coding(mc_packing packing);

/*
 * What a vector tile is packed with, by its first bytes. A stream of Brotli has no signature: one with a window of 4 MB
 * (22 bits, RFC 7932, 9.1), as ours have and as encoders use by default, is told by its first byte, which no vector
 * tile begins with (it would be a group, which Protocol Buffers of version 3 do not have). Only for bytes that are
 * known to be vector tiles.
 */
mc_packing mc_packing_of(const void *data, size_t size);

/* Packs; *out is attached to `pool`. The same input gives the same bytes. MC_NOT_PACKED: a copy. MC_ERR_UNAVAILABLE
 * where a module is not to be had. */
mc_error *mc_pack(mc_buf **out, const void *data, size_t size, mc_packing packing, mc_gzip_level level,
                  apr_pool_t *pool) MC_CHECKED;

/* The same for bytes that lie in parts. */
mc_error *mc_pack_parts(mc_buf **out, const mc_deflate_part *parts, int count, mc_packing packing, mc_gzip_level level,
                        apr_pool_t *pool) MC_CHECKED;

/* Expands to at most `most` bytes; *out is attached to `pool`. MC_ERR_CORRUPT for broken or truncated bytes,
 * MC_ERR_LIMIT for more bytes. MC_NOT_PACKED: a copy. */
mc_error *mc_unpack(mc_buf **out, const void *data, size_t size, mc_packing packing, size_t most,
                    apr_pool_t *pool) MC_CHECKED;

/* The same tile packed in another way: *data is left alone where it is packed so already. */
mc_error *mc_repack(mc_buf **data, mc_packing packing, mc_gzip_level level, size_t most, apr_pool_t *pool) MC_CHECKED;

#endif
