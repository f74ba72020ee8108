/* See sld_elements.h. */
#include "draw/sld/sld_elements.h"

#include <apr_strings.h>
#include <string.h>

static const mc_sld_element *
find_element(const mc_sld_element *rows, const char *name, mc_sld_compare *compare)
{
    for (; rows->name != NULL; rows++)
        if (compare(name, rows->name) == 0)
            return rows;
    return NULL;
}

static void
read_element(const mc_sld_element *row, void *into, mc_sld *sld, const mc_node *node)
{
    if (row->read != NULL)
        row->read((char *)into + row->offset, sld, node);
}

static void
report_element(mc_sld *sld, const mc_node *node, const char *parent)
{
    mc_sld_lacking(sld, node,
                   apr_psprintf(sld->build->pool, "<%s>%s%s", mc_sld_name(node), parent == NULL ? "" : " of ",
                                parent == NULL ? "" : parent));
}

void
mc_sld_read_elements(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows, const char *parent)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const mc_sld_element *row = find_element(rows, mc_sld_name(child), strcmp);
        if (row != NULL)
            read_element(row, into, sld, child);
        else
            report_element(sld, child, parent);
    }
}

void
mc_sld_read_known(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const mc_sld_element *row = find_element(rows, mc_sld_name(child), strcmp);
        if (row != NULL)
            read_element(row, into, sld, child);
    }
}

bool
mc_sld_check_elements(mc_sld *sld, const mc_node *node, const mc_sld_element *rows, const char *parent)
{
    bool fits = true;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (find_element(rows, mc_sld_name(child), strcmp) != NULL)
            continue;
        report_element(sld, child, parent);
        fits = false;
    }
    return fits;
}

static const char *
name_attribute(const mc_node *node)
{
    const char *name = mc_node_attr(node, "name");
    return name == NULL ? "" : name;
}

bool
mc_sld_read_named(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows, mc_sld_compare *compare)
{
    const mc_sld_element *row = find_element(rows, name_attribute(node), compare);
    if (row != NULL)
        read_element(row, into, sld, node);
    return row != NULL;
}

void
mc_sld_report_option(mc_sld *sld, const mc_node *node, const char *of)
{
    mc_sld_lacking(
        sld, node,
        apr_psprintf(sld->build->pool, "the option %s%s", mc_config_quote(name_attribute(node), sld->build->pool), of));
}

void
mc_sld_read_option(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows)
{
    if (mc_sld_read_named(into, sld, node, rows, strcmp))
        return;
    (void)mc_sld_plain(sld, node); /* a value that differs between features is said to, as well */
    mc_sld_report_option(sld, node, "");
}

int
mc_sld_read_choice(mc_sld *sld, const mc_node *node, const char *const *choices)
{
    int choice = mc_sld_choice(mc_sld_plain(sld, node), choices, strcmp);
    if (choice < 0)
        mc_sld_report_option(sld, node, "");
    return choice;
}
