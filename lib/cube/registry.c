/* The kinds of cubes. A new kind is its file and one line here. */
#include <string.h>

#include "config/kind.h"
#include "cube/store.h"

const mc_cube_kind *const mc_cube_kinds[] = { &mc_cube_kind_postgresql, &mc_cube_kind_sqlite, NULL };

mc_cube *
mc_cube_from_config(const mc_node *node, mc_build *build)
{
    const mc_cube_kind *kind = mc_kind_choose(mc_cube_kinds, "cube", node, strcmp, build);
    return kind == NULL ? NULL : kind->from_config(node, build);
}
