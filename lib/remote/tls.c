#include "remote/tls.h"

#include "base/module.h"

mc_error *
mc_tls_load(const mc_tls_engine **engine, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "tls", MC_TLS_ENGINE_SYMBOL, pool));
    *engine = symbol;
    return MC_OK;
}
