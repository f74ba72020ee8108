/* The list of sources, made of the kinds in source_kinds.h, and the choice by type. */
#include <string.h>

#include "config/kind.h"
#include "source/source_base.h"

#define X(name) &mc_source_##name,
const mc_source_ops *const mc_source_kinds[] = { MC_SOURCE_KINDS(X) NULL };
#undef X

mc_source *
mc_source_from_config(const mc_node *node, mc_build *build)
{
    const mc_source_ops *ops = mc_kind_choose(mc_source_kinds, "source", node, strcmp, build);
    mc_source *source = ops == NULL ? NULL : ops->from_config(node, build);
    if (source != NULL)
        source->position = mc_node_position(node);
    return source;
}
