/* The list of sources, made of the kinds in source_kinds.h, and the choice by type. */
#include <apr_strings.h>
#include <string.h>

#include "source/source_base.h"

#define X(name) &mc_source_##name,
const mc_source_ops *const mc_source_kinds[] = { MC_SOURCE_KINDS(X) NULL };
#undef X

static const char *
known_types(apr_pool_t *pool)
{
    char *list = "";
    for (int i = 0; mc_source_kinds[i] != NULL; i++)
        list = apr_pstrcat(pool, list, i == 0 ? "" : ", ", mc_source_kinds[i]->type, NULL);
    return list;
}

mc_source *
mc_source_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    if (type == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<source> has no type: one of %s", known_types(build->pool));
        return NULL;
    }
    for (int i = 0; mc_source_kinds[i] != NULL; i++)
        if (strcmp(mc_source_kinds[i]->type, type) == 0)
            return mc_source_kinds[i]->from_config(node, build);
    mc_complain(build->diagnostics, MC_REFUSED, node, "no source has the type \"%s\": it is one of %s", type,
                known_types(build->pool));
    return NULL;
}
