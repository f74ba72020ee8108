/* The front of Brotli and Zstandard: finds their modules. */
#include "compress/expand.h"

#include "base/module.h"

static mc_error *
expand_by_module(mc_buf **out, const void *data, size_t size, size_t most, const char *module, const char *name,
                 apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, module, name, pool));
    *out = mc_buf_attach(mc_buf_create(size * 4 < most ? size * 4 : most, most), pool);
    return ((const mc_expander *)symbol)->expand(*out, data, size, pool);
}

mc_error *
mc_brotli_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool)
{
    return expand_by_module(out, data, size, most, "brotli", MC_BROTLI_SYMBOL, pool);
}

mc_error *
mc_zstd_expand(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool)
{
    return expand_by_module(out, data, size, most, "zstd", MC_ZSTD_SYMBOL, pool);
}

static mc_error *
compress_by_module(mc_buf **out, const void *data, size_t size, int quality, const char *module, const char *name,
                   apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, module, name, pool));
    const mc_expander *expander = symbol;
    size_t bound = expander->bound(size);
    if (bound == 0) /* of Brotli: more than it can count */
        return mc_error_create(pool, MC_ERR_LIMIT, "%lu bytes are too many to be compressed at once",
                               (unsigned long)size);
    mc_buf *packed = mc_buf_attach(mc_buf_create(bound, bound), pool);
    MC_TRY(mc_buf_reserve(packed, bound, pool));
    MC_TRY(expander->compress(packed, data, size, quality, pool));
    return mc_buf_duplicate(out, packed->data, packed->size, pool); /* without the room that was not needed */
}

mc_error *
mc_brotli_compress(mc_buf **out, const void *data, size_t size, int quality, apr_pool_t *pool)
{
    return compress_by_module(out, data, size, quality, "brotli", MC_BROTLI_SYMBOL, pool);
}

mc_error *
mc_zstd_compress(mc_buf **out, const void *data, size_t size, int quality, apr_pool_t *pool)
{
    return compress_by_module(out, data, size, quality, "zstd", MC_ZSTD_SYMBOL, pool);
}
