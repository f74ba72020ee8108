/* Which protocols there are, in the order in which a path is tried against them (docs/reference/services.md 1). */
#include <apr_strings.h>
#include <strings.h>

#include "service/service_base.h"

const mc_key mc_service_plain_keys[] = { MC_SERVICE_KEYS(struct { mc_service_base base; }), MC_KEY_END };

#define X(name) &mc_service_##name,
const mc_service_ops *const mc_service_kinds[] = { MC_SERVICE_KINDS(X) NULL };
#undef X

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

mc_service *
mc_service_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    const char *enabled = mc_node_attr(node, "enabled");
    if (type == NULL || enabled == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<service> needs the attribute \"%s\"",
                    type == NULL ? "type" : "enabled");
        return NULL;
    }
    if (strcasecmp(enabled, "true") != 0)
        return NULL;
    for (const mc_service_ops *const *kind = mc_service_kinds; *kind != NULL; kind++) {
        if (strcasecmp((*kind)->type, type) != 0)
            continue;
        mc_service *service = (*kind)->from_config(node, build);
        if (service != NULL)
            service->ops = *kind;
        return service;
    }
    mc_complain(build->diagnostics, MC_REFUSED, node,
                "unknown service type \"%s\": it is one of wms, wmts, tms, gmaps, kml, ve, mapguide, demo, metrics, "
                "health, status, jobs",
                type);
    return NULL;
}
