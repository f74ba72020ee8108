/* See kind.h. */
#include "config/kind.h"

#include <apr_strings.h>
#include <string.h>

/* A list of pointers to any one type: read as bytes, because no pointer to void may stand for another one in place. */
static const void *
kind_at(const void *kinds, size_t index)
{
    const void *kind;
    memcpy(&kind, (const char *)kinds + index * sizeof(kind), sizeof(kind));
    return kind;
}

static const char *
type_of_kind(const void *kind)
{
    return *(const char *const *)kind;
}

const char *
mc_kind_types(const void *kinds, apr_pool_t *pool)
{
    const char *list = "";
    for (size_t i = 0; kind_at(kinds, i) != NULL; i++)
        list = apr_pstrcat(pool, list, i == 0 ? "" : ", ", type_of_kind(kind_at(kinds, i)), NULL);
    return list;
}

const void *
mc_kind_choose(const void *kinds, const char *noun, const mc_node *node, mc_kind_compare *compare, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    for (size_t i = 0; type != NULL && kind_at(kinds, i) != NULL; i++)
        if (compare(type_of_kind(kind_at(kinds, i)), type) == 0)
            return kind_at(kinds, i);
    const char *types = mc_kind_types(kinds, build->pool);
    if (type == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "a %s needs the attribute type: one of %s", noun, types);
    else
        mc_complain(build->diagnostics, MC_REFUSED, node, "no %s has the type %s: it is one of %s", noun,
                    mc_config_quote(type, build->pool), types);
    return NULL;
}
