/* Which protocols there are, in the order in which a path is tried against them (docs/reference/services.md 1). */
#include <apr_strings.h>
#include <strings.h>

#include "service/service_base.h"

#define X(name) &mc_service_##name,
const mc_service_ops *const mc_service_kinds[] = { MC_SERVICE_KINDS(X) NULL };
#undef X

static const char *
service_type_names(apr_pool_t *pool)
{
    const char *names = mc_service_kinds[0]->type;
    for (int i = 1; mc_service_kinds[i] != NULL; i++)
        names = apr_pstrcat(pool, names, ", ", mc_service_kinds[i]->type, NULL);
    return names;
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
    mc_complain(build->diagnostics, MC_REFUSED, node, "unknown service type \"%s\": it is one of %s", type,
                service_type_names(build->pool));
    return NULL;
}
