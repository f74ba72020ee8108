/* The kinds of dimensions. A new kind is its file and one line here. */
#include <string.h>

#include "dimension/dimension_base.h"

#define X(name) &mc_dimension_##name,
const mc_dimension_ops *const mc_dimension_kinds[] = { MC_DIMENSION_KINDS(X) NULL };
#undef X

static const mc_dimension_ops *
find_kind(const char *type)
{
    for (const mc_dimension_ops *const *kind = mc_dimension_kinds; *kind != NULL; kind++)
        if (strcmp((*kind)->type, type) == 0)
            return *kind;
    return NULL;
}

mc_dimension *
mc_dimension_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    if (type == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a dimension needs the attribute type=\"values|regex|...\"");
        return NULL;
    }
    const mc_dimension_ops *ops = find_kind(type);
    if (ops == NULL) {
        mc_complain(
            build->diagnostics, MC_REFUSED, node,
            "unknown dimension type \"%s\": one of values, regex, sqlite, time, postgresql, elasticsearch, cube "
            "is needed",
            type);
        return NULL;
    }
    mc_dimension *dimension = ops->from_config(node, build);
    if (dimension != NULL)
        dimension->ops = ops;
    return dimension;
}
