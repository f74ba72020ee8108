/* Brotli (RFC 7932) and Zstandard (RFC 8878), which archives of others are compressed with: reading only. Each library
 * is in a module of its own. */
#ifndef MC_COMPRESS_EXPAND_H
#define MC_COMPRESS_EXPAND_H

#include "mapcache/buf.h"

/* Expand to at most `most` bytes; *out is attached to `pool`. MC_ERR_CORRUPT for what is no such stream, or has been
 * cut off, MC_ERR_LIMIT for more bytes, MC_ERR_UNAVAILABLE where the module is not to be had. */
mc_error *mc_brotli_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_zstd_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool) MC_CHECKED;

/* What the modules bring: appends to `out`, up to its maximum. */
typedef struct mc_expander {
    mc_error *(*expand)(mc_buf *out, const void *data, size_t size, apr_pool_t *pool);
} mc_expander;

#define MC_BROTLI_SYMBOL "mc_brotli_expander"
#define MC_ZSTD_SYMBOL "mc_zstd_expander"
extern const mc_expander mc_brotli_expander, mc_zstd_expander;

#endif
