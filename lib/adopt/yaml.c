/* The front of the YAML parser: finds its module. */
#include "adopt/yaml.h"

#include "base/module.h"

mc_error *
mc_yaml_parse(mc_branch **root, const char *file, const char *bytes, size_t size, int *room, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "yaml", MC_YAML_SYMBOL, pool));
    return ((const mc_yaml_ops *)symbol)->parse(root, file, bytes, size, room, pool);
}
