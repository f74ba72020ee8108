/* Expressions and values of styles: OGC 02-059 (1.0), 04-095 (1.1), 09-026r1 (2.0; ValueReference). */
#include <apr_strings.h>
#include <string.h>

#include "draw/sld/sld_private.h"
#include "draw/style/expression.h"

/* Of what functions put together: its blanks are meant (" (", "; "), unless a line break shows that they are how the
 * file is laid out. */
static const char *
literal_text(const mc_node *node, apr_pool_t *pool)
{
    return strchr(node->text, '\n') != NULL ? mc_sld_text(node, pool) : node->text;
}

/* All child elements as expressions. False after a complaint. */
static bool
arguments_of(mc_expression *into, mc_sld *sld, const mc_node *node, int depth)
{
    const mc_expression **list = apr_pcalloc(sld->build->pool, sizeof(*list) * MC_ARGUMENTS_MAX);
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (into->argument_count == MC_ARGUMENTS_MAX) {
            mc_sld_lacking(sld, child, "more than 64 arguments");
            return false;
        }
        const mc_expression *argument = mc_sld_expression(sld, child, depth + 1);
        if (argument == NULL)
            return false;
        list[into->argument_count++] = argument;
    }
    into->arguments = list;
    return true;
}

/* The geometry of the feature, by whatever name; what a function made of it is not known. */
static const mc_expression *
geometry_argument(mc_expression *made, mc_sld *sld, const mc_node *node)
{
    if (node->children->next == NULL && mc_sld_is_geometry(node->children))
        return made;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "%s of such a geometry", made->function->name));
    return NULL;
}

/* A colour of constants is a constant. */
static const mc_expression *
fold_constants(const mc_expression *made, apr_pool_t *pool)
{
    bool constant = mc_function_is_of_colors(made->function);
    for (int i = 0; i < made->argument_count; i++)
        constant &= made->arguments[i]->kind == MC_LITERAL;
    const char *text = constant ? mc_expression_text(made, NULL, pool) : NULL;
    return text == NULL ? made : mc_sld_literal(text, pool);
}

static const mc_expression *
read_function_call(mc_sld *sld, const mc_node *node, mc_expression_kind kind, int depth)
{
    mc_expression *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    const char *name = mc_node_attr(node, "name");
    made->kind = kind;
    name = name == NULL ? "" : name;
    made->function = mc_function_find(name);
    if (made->function == NULL) {
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "the function %s", mc_config_quote(name, sld->build->pool)));
        return NULL;
    }
    sld->ids = sld->ids || strcmp(made->function->name, "id") == 0;
    if (made->function->of_geometry && node->children != NULL)
        return geometry_argument(made, sld, node);
    if (!arguments_of(made, sld, node, depth) || !mc_sld_fit_arguments(made, sld, node))
        return NULL;
    return fold_constants(made, sld->build->pool);
}

/* Names of attributes may have colons of their own (OpenStreetMap's): what stands before one is left out where the
 * document says that it is a namespace. */
static const char *
without_namespace(const char *name, const mc_node *node, apr_pool_t *pool)
{
    const char *colon = strchr(name, ':');
    if (colon == NULL)
        return name;
    const char *declared = apr_pstrcat(pool, "xmlns:", apr_pstrmemdup(pool, name, (size_t)(colon - name)), NULL);
    for (; node != NULL; node = node->parent)
        if (mc_node_attr(node, declared) != NULL)
            return colon + 1;
    return name;
}

/* False after a complaint. */
static bool
is_leaf(mc_sld *sld, const mc_node *node)
{
    if (node->children == NULL)
        return true;
    mc_sld_lacking(sld, node->children, apr_psprintf(sld->build->pool, "<%s> of a value", mc_sld_name(node->children)));
    return false;
}

static const mc_expression *
read_literal(mc_sld *sld, const mc_node *node, mc_expression_kind kind, int depth)
{
    apr_pool_t *pool = sld->build->pool;
    (void)kind;
    if (!is_leaf(sld, node))
        return NULL;
    return mc_sld_literal(depth > 0 ? literal_text(node, pool) : mc_sld_text(node, pool), pool);
}

static const mc_expression *
read_property(mc_sld *sld, const mc_node *node, mc_expression_kind kind, int depth)
{
    apr_pool_t *pool = sld->build->pool;
    (void)kind;
    (void)depth;
    if (!is_leaf(sld, node))
        return NULL;
    return mc_sld_property(sld, without_namespace(mc_sld_text(node, pool), node, pool));
}

static const mc_expression *
read_arithmetic(mc_sld *sld, const mc_node *node, mc_expression_kind kind, int depth)
{
    mc_expression *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    made->kind = kind;
    if (!arguments_of(made, sld, node, depth))
        return NULL;
    bool chain = kind == MC_ADD || kind == MC_MULTIPLY; /* GeoServer writes sums and products of any length */
    if (made->argument_count == 2 || (chain && made->argument_count > 2))
        return made;
    mc_sld_lacking(sld, node, "this arithmetic: it needs two operands");
    return NULL;
}

static const mc_expression *read_value_inside(mc_sld *sld, const mc_node *node, int depth);

const mc_expression *
mc_sld_expression(mc_sld *sld, const mc_node *node, int depth)
{
    static const struct expression_element {
        const char *name;
        const mc_expression *(*read)(mc_sld *sld, const mc_node *node, mc_expression_kind kind, int depth);
        mc_expression_kind kind;
    } elements[] = {
        { "Literal", read_literal, MC_LITERAL },
        { "PropertyName", read_property, MC_PROPERTY },
        { "ValueReference", read_property, MC_PROPERTY },
        { "Function", read_function_call, MC_FUNCTION },
        { "Add", read_arithmetic, MC_ADD },
        { "Sub", read_arithmetic, MC_SUBTRACT },
        { "Mul", read_arithmetic, MC_MULTIPLY },
        { "Div", read_arithmetic, MC_DIVIDE },
    };
    const struct expression_element *row = MC_SLD_FIND(elements, mc_sld_name(node), strcmp);
    if (depth > MC_EXPRESSION_DEPTH) {
        mc_sld_lacking(sld, node, "an expression nested so deep");
        return NULL;
    }
    if (row != NULL)
        return row->read(sld, node, row->kind, depth);
    if (mc_sld_is_function(node))
        return mc_sld_function(sld, node, depth, read_value_inside);
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(node)));
    return NULL;
}

/* mc_sld_value, inside of another expression. */
static const mc_expression *
read_value_inside(mc_sld *sld, const mc_node *node, int depth)
{
    apr_pool_t *pool = sld->build->pool;
    if (node->children == NULL) {
        bool as_it_stands = mc_sld_is(node, "StringValue");
        const char *text = as_it_stands ? literal_text(node, pool) : mc_sld_text(node, pool);
        return *text == '\0' ? NULL : mc_sld_literal(text, pool);
    }
    mc_expression *joined = apr_pcalloc(pool, sizeof(*joined));
    const mc_expression **parts = apr_pcalloc(pool, sizeof(*parts) * MC_ARGUMENTS_MAX);
    *joined = (mc_expression){ .kind = MC_CONCATENATE, .arguments = parts };
    size_t at = 0;
    for (const mc_node *child = node->children; child != NULL && joined->argument_count + 2 < MC_ARGUMENTS_MAX;
         child = child->next) {
        const char *before = apr_pstrmemdup(pool, node->text + at, child->text_before - at);
        at = child->text_before;
        if (before[strspn(before, " \t\r\n")] != '\0')
            parts[joined->argument_count++] = mc_sld_literal(before, pool);
        const mc_expression *part = mc_sld_expression(sld, child, depth);
        if (part == NULL)
            return NULL;
        parts[joined->argument_count++] = part;
    }
    const char *rest = node->text + at;
    if (rest[strspn(rest, " \t\r\n")] != '\0')
        parts[joined->argument_count++] = mc_sld_literal(rest, pool);
    return joined->argument_count == 1 ? parts[0] : joined;
}

const mc_expression *
mc_sld_value(mc_sld *sld, const mc_node *node)
{
    return read_value_inside(sld, node, 0);
}

const char *
mc_sld_plain(mc_sld *sld, const mc_node *node)
{
    const mc_expression *value = mc_sld_value(sld, node);
    if (value == NULL || value->kind == MC_LITERAL)
        return value == NULL ? "" : value->literal;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
    return "";
}
