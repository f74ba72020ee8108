/* The kinds of dimensions. A new kind is its file and one line here. */
#include <string.h>

#include "config/kind.h"
#include "dimension/dimension_base.h"

#define X(name) &mc_dimension_##name,
const mc_dimension_ops *const mc_dimension_kinds[] = { MC_DIMENSION_KINDS(X) NULL };
#undef X

mc_dimension *
mc_dimension_from_config(const mc_node *node, mc_build *build)
{
    const mc_dimension_ops *ops = mc_kind_choose(mc_dimension_kinds, "dimension", node, strcmp, build);
    mc_dimension *dimension = ops == NULL ? NULL : ops->from_config(node, build);
    if (dimension != NULL)
        dimension->ops = ops;
    return dimension;
}
