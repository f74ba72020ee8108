/* The keys that all services have, and services that have no others. */
#include "service/service_base.h"

const mc_key mc_service_plain_keys[] = { MC_SERVICE_KEYS(struct { mc_service_base base; }), MC_KEY_END };

bool
mc_service_read(mc_service_base *base, const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_attr enabled = { "enabled", "true", NULL };
    mc_attr type = { "type", ops->type, &enabled };
    const mc_node defaults = { .file = "", .name = "service", .text = "", .attrs = &type };
    base->service.ops = ops;
    return mc_config_read(base, node != NULL ? node : &defaults, ops->keys, build->diagnostics);
}

mc_service *
mc_service_plain(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_service_base *base = apr_pcalloc(build->pool, sizeof(*base));
    return mc_service_read(base, ops, node, build) ? &base->service : NULL;
}
