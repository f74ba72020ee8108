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
