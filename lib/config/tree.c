/* Walking the tree of the configuration file. */
#include <string.h>

#include "base/hash.h"
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

/* The end of a text counts, so that neighbours cannot be confused. */
static uint64_t
hash_node_text(const char *text, uint64_t hash)
{
    return text == NULL ? mc_hash64("", 0, hash) : mc_hash64(text, strlen(text) + 1, hash);
}

static uint64_t
hash_node_after(const mc_node *node, uint64_t hash)
{
    hash = hash_node_text(node->name, hash);
    hash = hash_node_text(node->text, hash);
    for (const mc_attr *attr = node->attrs; attr != NULL; attr = attr->next)
        hash = hash_node_text(attr->value, hash_node_text(attr->name, hash));
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        hash = hash_node_after(child, hash);
    return hash_node_text(NULL, hash);
}

uint64_t
mc_node_hash(const mc_node *node)
{
    return hash_node_after(node, 0);
}
