/* Whole buffers as gzip (RFC 1952) and back. */
#ifndef MC_COMPRESS_GZIP_H
#define MC_COMPRESS_GZIP_H

#include "compress/quick_deflate.h"
#include "mapcache/buf.h"

typedef enum mc_gzip_level { MC_GZIP_FAST, MC_GZIP_GOOD, MC_GZIP_BEST } mc_gzip_level;

/* Whether bytes begin as gzip does. */
bool mc_is_gzip(const void *data, size_t size);

/* Compresses; *out is attached to `pool`. The same input gives the same bytes. */
mc_error *mc_gzip(mc_buf **out, const void *data, size_t size, mc_gzip_level level, apr_pool_t *pool) MC_CHECKED;

/* Compresses bytes that lie in parts, `size` of them, as MC_GZIP_FAST does; *out NULL: they have to lie in one piece.
 */
mc_error *mc_gzip_parts(mc_buf **out, const mc_deflate_part *parts, int count, size_t size,
                        apr_pool_t *pool) MC_CHECKED;

/* Expands all members, to at most `most` bytes; *out is attached to `pool`. MC_ERR_CORRUPT for what is no gzip or
 * truncated, MC_ERR_LIMIT for more bytes. */
mc_error *mc_gunzip(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool) MC_CHECKED;

#endif
