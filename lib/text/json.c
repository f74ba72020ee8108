/* The front of the JSON parser: finds its module. */
#include "text/json.h"

#include "base/module.h"

mc_error *
mc_json_path_parse(mc_json_path *path, const char *text, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "json", MC_JSON_SYMBOL, pool));
    return ((const mc_json_ops *)symbol)->parse_path(path, text, pool);
}

mc_error *
mc_json_walk(const char *bytes, size_t size, const mc_json_path *path, mc_json_take *take, void *baton,
             apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "json", MC_JSON_SYMBOL, pool));
    return ((const mc_json_ops *)symbol)->walk(bytes, size, path, take, baton, pool);
}

mc_error *
mc_json_fields(const char *bytes, size_t size, mc_json_field *take, void *baton, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "json", MC_JSON_SYMBOL, pool));
    return ((const mc_json_ops *)symbol)->fields(bytes, size, take, baton, pool);
}

mc_error *
mc_json_items(const char *bytes, size_t size, const char *member, mc_json_field *take, void *baton, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "json", MC_JSON_SYMBOL, pool));
    return ((const mc_json_ops *)symbol)->items(bytes, size, member, take, baton, pool);
}
