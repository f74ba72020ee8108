/* Walking the tree of the configuration file. */
#include <string.h>

#include "mapcache/config.h"

static const mc_node *
first_named(const mc_node *node, const char *name)
{
    while (node != NULL && strcmp(node->name, name) != 0)
        node = node->next;
    return node;
}

const mc_node *
mc_node_child(const mc_node *node, const char *name)
{
    return node == NULL ? NULL : first_named(node->children, name);
}

const mc_node *
mc_node_next(const mc_node *node)
{
    return first_named(node->next, node->name);
}

const char *
mc_node_attr(const mc_node *node, const char *name)
{
    for (const mc_attr *attr = node == NULL ? NULL : node->attrs; attr != NULL; attr = attr->next)
        if (strcmp(attr->name, name) == 0)
            return attr->value;
    return NULL;
}
