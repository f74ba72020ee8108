/* The kinds of cubes. A new kind is its file and one line here. */
#include <string.h>

#include "cube/store.h"

const mc_cube_kind *const mc_cube_kinds[] = { &mc_cube_kind_postgresql, &mc_cube_kind_sqlite, NULL };

static const struct {
    const char *type;
    mc_cube *(*from_config)(const mc_node *node, mc_build *build);
} makers[] = {
    { "postgresql", mc_cube_postgresql_from_config },
    { "sqlite3", mc_cube_sqlite_from_config },
};

mc_cube *
mc_cube_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    for (size_t i = 0; type != NULL && i < sizeof(makers) / sizeof(makers[0]); i++)
        if (strcmp(makers[i].type, type) == 0)
            return makers[i].from_config(node, build);
    mc_complain(build->diagnostics, MC_REFUSED, node, "a cube needs the attribute type=\"postgresql|sqlite3\"");
    return NULL;
}
