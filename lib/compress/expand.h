/* Brotli (RFC 7932) and Zstandard (RFC 8878). Each library is in a module of its own. */
#ifndef MC_COMPRESS_EXPAND_H
#define MC_COMPRESS_EXPAND_H

#include "mapcache/buf.h"

/* Expand to at most `most` bytes; *out is attached to `pool`. MC_ERR_CORRUPT for what is no such stream, or has been
 * cut off, MC_ERR_LIMIT for more bytes, MC_ERR_UNAVAILABLE where the module is not to be had. */
mc_error *mc_brotli_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_zstd_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool) MC_CHECKED;

/* Compress to one stream; *out is attached to `pool`. `quality`: of Brotli 0 to 11, of Zstandard 1 to 22. The same
 * input gives the same bytes. Brotli's window is of 4 MB, so that mc_packing_of knows the stream again; a frame of
 * Zstandard says how many bytes it expands to. MC_ERR_NO_MEMORY; MC_ERR_UNAVAILABLE where the module is not to be had.
 */
mc_error *mc_brotli_compress(mc_buf **out, const void *data, size_t size, int quality, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_zstd_compress(mc_buf **out, const void *data, size_t size, int quality, apr_pool_t *pool) MC_CHECKED;

/* What the modules bring: both append to `out`. expand: up to its maximum. compress: `out` has room for `bound` bytes
 * more, and that many are enough. */
typedef struct mc_expander {
    mc_error *(*expand)(mc_buf *out, const void *data, size_t size, apr_pool_t *pool);
    size_t (*bound)(size_t size);
    mc_error *(*compress)(mc_buf *out, const void *data, size_t size, int quality, apr_pool_t *pool);
} mc_expander;

#define MC_BROTLI_SYMBOL "mc_brotli_expander"
#define MC_ZSTD_SYMBOL "mc_zstd_expander"
extern const mc_expander mc_brotli_expander, mc_zstd_expander;

#endif
