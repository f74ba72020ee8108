/* What all dimensions have in common: their attributes, the spans, the registry of kinds. */
#include "mapcache/dimension.h"

#include <apr_strings.h>
#include <string.h>

#include "dimension/kinds.h"
#include "mapcache/trace.h"

const mc_dimension_ops *const mc_dimension_kinds[] = { &mc_dimension_values, &mc_dimension_regex, NULL };

/* Kinds of MapCache's vocabulary that this build does not have. */
static const char *const kinds_not_built[] = { "sqlite", "time", "postgresql", "elasticsearch", NULL };

static const mc_dimension_ops *
find_kind(const char *type)
{
    for (const mc_dimension_ops *const *kind = mc_dimension_kinds; *kind != NULL; kind++)
        if (strcmp((*kind)->type, type) == 0)
            return *kind;
    return NULL;
}

static void
complain_of_kind(const mc_node *node, const char *type, mc_diagnostics *diagnostics)
{
    for (const char *const *kind = kinds_not_built; *kind != NULL; kind++)
        if (strcmp(*kind, type) == 0) {
            mc_complain(diagnostics, MC_NOT_BUILT, node, "dimension type \"%s\" is not part of this build", type);
            return;
        }
    mc_complain(
        diagnostics, MC_REFUSED, node,
        "unknown dimension type \"%s\": one of values, regex, sqlite, time, postgresql, elasticsearch is needed", type);
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
        complain_of_kind(node, type, build->diagnostics);
        return NULL;
    }
    mc_dimension *dimension = ops->from_config(node, build);
    if (dimension != NULL)
        dimension->ops = ops;
    return dimension;
}

void
mc_dimension_set_common(mc_dimension *dimension, const mc_dimension_common *common)
{
    dimension->name = common->name;
    dimension->unit = common->unit;
    dimension->default_value = common->default_value;
    dimension->time = common->time;
}

mc_error *
mc_dimension_resolve(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_dimension_get_entries_for_value");
    if (query->value != NULL && strlen(query->value) > MC_DIMENSION_VALUE_MAX)
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension->name,
                                "the value of dimension %s is longer than %d bytes", dimension->name,
                                MC_DIMENSION_VALUE_MAX);
    return dimension->ops->resolve(values, dimension, query, ctx, pool);
}

mc_error *
mc_dimension_list(apr_array_header_t **values, mc_dimension *dimension, mc_ctx *ctx, apr_pool_t *pool)
{
    return dimension->ops->list(values, dimension, ctx, pool);
}
