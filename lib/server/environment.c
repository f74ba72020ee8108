/* <environment>: variables of the process, for libraries that read them at any time and from any thread. A variable
 * that is set while another thread reads one is undefined, so none is set once there are threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_private.h"

static atomic_bool closed;

void
mc_environment_close(void)
{
    atomic_store(&closed, true);
}

static void
set_variable(const mc_node *node, mc_build *build)
{
    const char *now = getenv(node->name), *value = node->text == NULL ? "" : node->text;
    if (now != NULL && strcmp(now, value) == 0)
        return;
    if (atomic_load(&closed))
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "variables of the environment are set when a process starts: %s is as it was, and another value "
                    "counts after a restart",
                    node->name);
    else
        setenv(node->name, value, 1);
}

void
mc_environment_set(const apr_array_header_t *nodes, mc_build *build)
{
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++)
        for (const mc_node *child = APR_ARRAY_IDX(nodes, i, const mc_node *)->children; child != NULL;
             child = child->next)
            set_variable(child, build);
}
