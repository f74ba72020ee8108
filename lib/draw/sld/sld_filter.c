/* Filters and expressions of styles: OGC 02-059 (1.0), 04-095 (1.1), 09-026r1 (2.0; ValueReference). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/sld/sld.h"
#include "draw/style/spatial.h"
#include "text/text.h"

static const struct {
    const char *name;
    mc_expression_kind kind;
} operators[] = { { "Add", MC_ADD }, { "Sub", MC_SUBTRACT }, { "Mul", MC_MULTIPLY }, { "Div", MC_DIVIDE } };

static const struct {
    const char *name;
    mc_filter_kind kind;
    int operands;
} comparisons[] = {
    { "PropertyIsEqualTo", MC_FILTER_EQUAL, 2 },
    { "PropertyIsNotEqualTo", MC_FILTER_NOT_EQUAL, 2 },
    { "PropertyIsLessThan", MC_FILTER_LESS, 2 },
    { "PropertyIsLessThanOrEqualTo", MC_FILTER_LESS_OR_EQUAL, 2 },
    { "PropertyIsGreaterThan", MC_FILTER_GREATER, 2 },
    { "PropertyIsGreaterThanOrEqualTo", MC_FILTER_GREATER_OR_EQUAL, 2 },
    { "PropertyIsBetween", MC_FILTER_BETWEEN, 3 },
    { "PropertyIsLike", MC_FILTER_LIKE, 2 },
    { "PropertyIsNull", MC_FILTER_NULL, 1 },
    { "And", MC_FILTER_AND, 0 },
    { "Or", MC_FILTER_OR, 0 },
    { "Not", MC_FILTER_NOT, 0 },
};

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

/* Of what functions put together: its blanks are meant (" (", "; "), unless a line break shows that they are how the
 * file is laid out. */
static const char *
literal_text(const mc_node *node, apr_pool_t *pool)
{
    return strchr(node->text, '\n') != NULL ? mc_sld_text(node, pool) : node->text;
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

static const mc_expression *
function_call(mc_sld *sld, const mc_node *node, const char *name, int depth)
{
    mc_expression *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    made->kind = MC_FUNCTION;
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
    return made;
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

const mc_expression *
mc_sld_property(mc_sld *sld, const char *name)
{
    mc_expression *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    made->kind = MC_PROPERTY;
    made->property = attribute_index(sld, name);
    return made;
}

const mc_expression *
mc_sld_expression(mc_sld *sld, const mc_node *node, int depth)
{
    const char *name = mc_sld_name(node);
    apr_pool_t *pool = sld->build->pool;
    if (depth > MC_EXPRESSION_DEPTH) {
        mc_sld_lacking(sld, node, "an expression nested so deep");
        return NULL;
    }
    bool leaf =
        strcmp(name, "Literal") == 0 || strcmp(name, "PropertyName") == 0 || strcmp(name, "ValueReference") == 0;
    if (leaf && node->children != NULL) {
        mc_sld_lacking(sld, node->children, apr_psprintf(pool, "<%s> of a value", mc_sld_name(node->children)));
        return NULL;
    }
    if (strcmp(name, "Literal") == 0)
        return mc_sld_literal(depth > 0 ? literal_text(node, pool) : mc_sld_text(node, pool), pool);
    if (strcmp(name, "PropertyName") == 0 || strcmp(name, "ValueReference") == 0)
        return mc_sld_property(sld, without_namespace(mc_sld_text(node, pool), node, pool));
    if (strcmp(name, "Function") == 0)
        return function_call(sld, node, mc_node_attr(node, "name"), depth);
    if (mc_sld_is_function(node))
        return mc_sld_function(sld, node, depth);
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        if (strcmp(name, operators[i].name) == 0) {
            mc_expression *made = apr_pcalloc(pool, sizeof(*made));
            made->kind = operators[i].kind;
            if (arguments_of(made, sld, node, depth) && made->argument_count == 2)
                return made;
            mc_sld_lacking(sld, node, "this arithmetic: it needs two operands");
            return NULL;
        }
    mc_sld_lacking(sld, node, apr_psprintf(pool, "<%s>", name));
    return NULL;
}

const mc_expression *
mc_sld_value(mc_sld *sld, const mc_node *node)
{
    return mc_sld_value_inside(sld, node, 0);
}

const mc_expression *
mc_sld_value_inside(mc_sld *sld, const mc_node *node, int depth)
{
    apr_pool_t *pool = sld->build->pool;
    if (node->children == NULL) {
        bool as_it_stands = strcmp(mc_sld_name(node), "StringValue") == 0;
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

const char *
mc_sld_plain(mc_sld *sld, const mc_node *node)
{
    const mc_expression *value = mc_sld_value(sld, node);
    if (value == NULL || value->kind == MC_LITERAL)
        return value == NULL ? "" : value->literal;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
    return "";
}

static const mc_filter *read_condition(mc_sld *sld, const mc_node *node, int depth);

static const mc_filter *
read_combination(mc_sld *sld, const mc_node *node, mc_filter *made, int depth)
{
    int count = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count++;
    const mc_filter **members = apr_pcalloc(sld->build->pool, sizeof(*members) * (size_t)(count + 1));
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        members[made->member_count] = read_condition(sld, child, depth + 1);
        if (members[made->member_count++] == NULL)
            return NULL;
    }
    made->members = members;
    if (count == 0 || (made->kind == MC_FILTER_NOT && count != 1)) {
        mc_sld_lacking(sld, node, "a condition of no conditions");
        return NULL;
    }
    return made;
}

/* One of the characters that patterns are made with; false after a complaint. */
static bool
read_character(char *into, char usual, const char *text, mc_sld *sld, const mc_node *node)
{
    *into = text == NULL || *text == '\0' ? usual : *text;
    if (text == NULL || *text == '\0' || (text[1] == '\0' && (*text & 0x80) == 0))
        return true;
    mc_sld_lacking(sld, node,
                   apr_psprintf(sld->build->pool, "%s in the place of one character of ASCII",
                                mc_config_quote(text, sld->build->pool)));
    return false;
}

static bool
read_like_pattern(mc_filter *made, mc_sld *sld, const mc_node *node)
{
    const char *escape = mc_node_attr(node, "escape");
    if (escape == NULL)
        escape = mc_node_attr(node, "escapeChar");
    return read_character(&made->wildcard, '*', mc_node_attr(node, "wildCard"), sld, node) &&
           read_character(&made->single, '?', mc_node_attr(node, "singleChar"), sld, node) &&
           read_character(&made->escape, '\\', escape, sld, node);
}

/* Operands in order; the boundaries of between stand in elements of their own. */
static bool
read_operands(mc_filter *made, int wanted, mc_sld *sld, const mc_node *node)
{
    int count = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (count == wanted) {
            mc_sld_lacking(sld, child, "a comparison with more operands");
            return false;
        }
        bool boundary =
            strcmp(mc_sld_name(child), "LowerBoundary") == 0 || strcmp(mc_sld_name(child), "UpperBoundary") == 0;
        made->operands[count] = boundary ? mc_sld_value(sld, child) : mc_sld_expression(sld, child, 0);
        if (made->operands[count++] == NULL)
            return false;
    }
    if (count == wanted)
        return true;
    mc_sld_lacking(sld, node, "a comparison without its operands");
    return false;
}

/* One or more identifiers in a row: a number, or one behind the name of a layer and a dot. */
static const mc_filter *
feature_ids(mc_sld *sld, const mc_node *node)
{
    mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    int count = 0;
    for (const mc_node *at = node; at != NULL; at = at->next)
        count++;
    int64_t *ids = apr_pcalloc(sld->build->pool, sizeof(*ids) * (size_t)count);
    for (const mc_node *at = node; at != NULL; at = at->next) {
        const char *id = mc_node_attr(at, "fid"), *dot;
        id = id != NULL ? id : mc_node_attr(at, "rid");
        dot = id == NULL ? NULL : strrchr(id, '.');
        if (strcmp(mc_sld_name(at), mc_sld_name(node)) != 0 || id == NULL ||
            !mc_parse_int64(&ids[made->id_count++], dot == NULL ? id : dot + 1, INT64_MIN, INT64_MAX)) {
            mc_sld_lacking(sld, at, "this identifier of features");
            return NULL;
        }
    }
    made->kind = MC_FILTER_ID;
    sld->ids = true;
    made->ids = ids;
    return made;
}

static const mc_filter *
read_condition(mc_sld *sld, const mc_node *node, int depth)
{
    const char *name = mc_sld_name(node);
    if (strcmp(name, "FeatureId") == 0 || strcmp(name, "ResourceId") == 0 || strcmp(name, "GmlObjectId") == 0)
        return feature_ids(sld, node);
    struct mc_spatial *spatial = apr_pcalloc(sld->build->pool, sizeof(*spatial));
    if (mc_sld_spatial(spatial, sld, node)) {
        mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
        made->kind = MC_FILTER_SPATIAL;
        made->spatial = spatial;
        return made;
    }
    for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]) && depth < MC_EXPRESSION_DEPTH; i++) {
        if (strcmp(name, comparisons[i].name) != 0)
            continue;
        mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
        made->kind = comparisons[i].kind;
        if (comparisons[i].operands == 0)
            return read_combination(sld, node, made, depth);
        const char *match_case = mc_node_attr(node, "matchCase");
        made->any_case = match_case != NULL && strcmp(match_case, "false") == 0;
        if (!read_like_pattern(made, sld, node))
            return NULL;
        return read_operands(made, comparisons[i].operands, sld, node) ? made : NULL;
    }
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "the condition <%s>", name));
    return NULL;
}

const mc_filter *
mc_sld_filter(mc_sld *sld, const mc_node *filter)
{
    if (filter->children == NULL) {
        mc_sld_lacking(sld, filter, "a filter without a condition");
        return NULL;
    }
    const mc_filter *made = read_condition(sld, filter->children, 0);
    if (made == NULL || made->kind == MC_FILTER_ID || filter->children->next == NULL)
        return made;
    mc_sld_lacking(sld, filter->children->next, "a second condition of a filter");
    return NULL;
}
