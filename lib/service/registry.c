/* Which protocols there are, in the order in which a path is tried against them (docs/reference/services.md 1). */
#include <strings.h>

#include "config/kind.h"
#include "service/service_base.h"

#define X(name) &mc_service_##name,
const mc_service_ops *const mc_service_kinds[] = { MC_SERVICE_KINDS(X) NULL };
#undef X

mc_service *
mc_service_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    const char *enabled = mc_node_attr(node, "enabled");
    if (type == NULL || enabled == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "the attributes type and enabled are needed, as in type=\"wms\" enabled=\"true\"; types are %s",
                    mc_kind_types(mc_service_kinds, build->pool));
        return NULL;
    }
    if (strcasecmp(enabled, "true") != 0)
        return NULL;
    const mc_service_ops *ops = mc_kind_choose(mc_service_kinds, "service", node, strcasecmp, build);
    return ops == NULL ? NULL : ops->from_config(ops, node, build);
}
