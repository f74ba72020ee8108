/* Which protocols there are, in the order in which a path is tried against them (spec services 1). */
#include <apr_strings.h>
#include <strings.h>

#include "service/service_base.h"

const mc_service_ops *const mc_service_kinds[] = {
    &mc_service_tms,
    &mc_service_wmts,
    &mc_service_demo,
    &mc_service_gmaps,
    &mc_service_kml,
    &mc_service_ve,
    &mc_service_mapguide,
    &mc_service_metrics,
    &mc_service_health,
    &mc_service_status,
    &mc_service_jobs,
    &mc_service_wms,
    NULL,
};

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
