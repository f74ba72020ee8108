/* Elements of a style: names, texts, complaints, rows by their names, and the expressions that an element alone
 * becomes.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/sld/sld_private.h"
#include "text/text.h"

const char *
mc_sld_name(const mc_node *node)
{
    const char *colon = strchr(node->name, ':');
    return colon == NULL ? node->name : colon + 1;
}

bool
mc_sld_is(const mc_node *node, const char *name)
{
    return strcmp(mc_sld_name(node), name) == 0;
}

const mc_node *
mc_sld_child(const mc_node *node, const char *name)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        if (mc_sld_is(child, name))
            return child;
    return NULL;
}

const char *
mc_sld_text(const mc_node *node, apr_pool_t *pool)
{
    const char *text = node->text + strspn(node->text, " \t\r\n");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        size--;
    return apr_pstrmemdup(pool, text, size);
}

void
mc_sld_lacking(mc_sld *sld, const mc_node *node, const char *what)
{
    mc_complain(sld->build->diagnostics, MC_NOT_BUILT, node, "the style uses what cannot be drawn here: %s", what);
}

const void *
mc_sld_find_row(const void *rows, size_t count, size_t row_size, const char *name, mc_sld_compare *compare)
{
    const char *row = rows;
    for (size_t i = 0; i < count; i++, row += row_size)
        if (compare(name, *(const char *const *)(const void *)row) == 0)
            return row;
    return NULL;
}

int
mc_sld_choice(const char *text, const char *const *choices, mc_sld_compare *compare)
{
    for (int i = 0; choices[i] != NULL; i++)
        if (compare(text, choices[i]) == 0)
            return i;
    return -1;
}

bool
mc_sld_is_property(const mc_node *node)
{
    return mc_sld_is(node, "PropertyName") || mc_sld_is(node, "ValueReference");
}

bool
mc_sld_is_geometry(const mc_node *node)
{
    const char *function = mc_node_attr(node, "name");
    return node->children == NULL && (mc_sld_is_property(node) || (mc_sld_is(node, "Function") && function != NULL &&
                                                                   strcmp(function, "geometry") == 0));
}

const mc_expression *
mc_sld_literal(const char *text, apr_pool_t *pool)
{
    mc_expression *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_expression){ .kind = MC_LITERAL, .literal = text, .number = NAN };
    double number;
    if (*text != '\0' && mc_parse_double(&number, text))
        made->number = number;
    return made;
}

static int
attribute_index(mc_sld *sld, const char *name)
{
    const char **names = (const char **)sld->attributes->elts;
    for (int i = 0; i < sld->attributes->nelts; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    APR_ARRAY_PUSH(sld->attributes, const char *) = name;
    return sld->attributes->nelts - 1;
}

const mc_expression *
mc_sld_property(mc_sld *sld, const char *name)
{
    mc_expression *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    made->kind = MC_PROPERTY;
    made->property = attribute_index(sld, name);
    return made;
}
