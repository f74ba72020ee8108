/* Filters and expressions of styles: OGC 02-059 (1.0), 04-095 (1.1), 09-026r1 (2.0; ValueReference). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/sld/sld_elements.h"
#include "draw/style/spatial.h"
#include "text/text.h"

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
    if (arguments_of(made, sld, node, depth) && made->argument_count == 2)
        return made;
    mc_sld_lacking(sld, node, "this arithmetic: it needs two operands");
    return NULL;
}

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
        return mc_sld_function(sld, node, depth);
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(node)));
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

const char *
mc_sld_plain(mc_sld *sld, const mc_node *node)
{
    const mc_expression *value = mc_sld_value(sld, node);
    if (value == NULL || value->kind == MC_LITERAL)
        return value == NULL ? "" : value->literal;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
    return "";
}

/* What a condition's element becomes. */
typedef struct condition_element {
    const char *name;
    const mc_filter *(*read)(mc_sld *sld, const mc_node *node, const struct condition_element *row, int depth);
    mc_filter_kind kind;
    int operands; /* of a comparison */
} condition_element;

static const mc_filter *read_condition(mc_sld *sld, const mc_node *node, int depth);

static const mc_filter *
report_condition(mc_sld *sld, const mc_node *node)
{
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "the condition <%s>", mc_sld_name(node)));
    return NULL;
}

static const mc_filter *
read_combination(mc_sld *sld, const mc_node *node, const condition_element *row, int depth)
{
    mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    int count = 0;
    if (depth >= MC_EXPRESSION_DEPTH)
        return report_condition(sld, node);
    made->kind = row->kind;
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
        bool boundary = mc_sld_is(child, "LowerBoundary") || mc_sld_is(child, "UpperBoundary");
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
read_feature_ids(mc_sld *sld, const mc_node *node, const condition_element *row, int depth)
{
    mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    int count = 0;
    (void)depth;
    for (const mc_node *at = node; at != NULL; at = at->next)
        count++;
    int64_t *ids = apr_pcalloc(sld->build->pool, sizeof(*ids) * (size_t)count);
    for (const mc_node *at = node; at != NULL; at = at->next) {
        const char *id = mc_node_attr(at, "fid"), *dot;
        id = id != NULL ? id : mc_node_attr(at, "rid");
        dot = id == NULL ? NULL : strrchr(id, '.');
        if (!mc_sld_is(at, mc_sld_name(node)) || id == NULL ||
            !mc_parse_int64(&ids[made->id_count++], dot == NULL ? id : dot + 1, INT64_MIN, INT64_MAX)) {
            mc_sld_lacking(sld, at, "this identifier of features");
            return NULL;
        }
    }
    made->kind = row->kind;
    sld->ids = true;
    made->ids = ids;
    return made;
}

static const mc_filter *
read_comparison(mc_sld *sld, const mc_node *node, const condition_element *row, int depth)
{
    const char *match_case = mc_node_attr(node, "matchCase");
    mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    if (depth >= MC_EXPRESSION_DEPTH)
        return report_condition(sld, node);
    made->kind = row->kind;
    made->any_case = match_case != NULL && strcmp(match_case, "false") == 0;
    return read_like_pattern(made, sld, node) && read_operands(made, row->operands, sld, node) ? made : NULL;
}

static const mc_filter *
read_spatial(mc_sld *sld, const mc_node *node)
{
    struct mc_spatial *spatial = apr_pcalloc(sld->build->pool, sizeof(*spatial));
    mc_filter *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    if (!mc_sld_spatial(spatial, sld, node))
        return report_condition(sld, node);
    made->kind = MC_FILTER_SPATIAL;
    made->spatial = spatial;
    return made;
}

static const condition_element conditions[] = {
    { "PropertyIsEqualTo", read_comparison, MC_FILTER_EQUAL, 2 },
    { "PropertyIsNotEqualTo", read_comparison, MC_FILTER_NOT_EQUAL, 2 },
    { "PropertyIsLessThan", read_comparison, MC_FILTER_LESS, 2 },
    { "PropertyIsLessThanOrEqualTo", read_comparison, MC_FILTER_LESS_OR_EQUAL, 2 },
    { "PropertyIsGreaterThan", read_comparison, MC_FILTER_GREATER, 2 },
    { "PropertyIsGreaterThanOrEqualTo", read_comparison, MC_FILTER_GREATER_OR_EQUAL, 2 },
    { "PropertyIsBetween", read_comparison, MC_FILTER_BETWEEN, 3 },
    { "PropertyIsLike", read_comparison, MC_FILTER_LIKE, 2 },
    { "PropertyIsNull", read_comparison, MC_FILTER_NULL, 1 },
    { "And", read_combination, MC_FILTER_AND, 0 },
    { "Or", read_combination, MC_FILTER_OR, 0 },
    { "Not", read_combination, MC_FILTER_NOT, 0 },
    { "FeatureId", read_feature_ids, MC_FILTER_ID, 0 },
    { "ResourceId", read_feature_ids, MC_FILTER_ID, 0 },
    { "GmlObjectId", read_feature_ids, MC_FILTER_ID, 0 },
};

static const mc_filter *
read_condition(mc_sld *sld, const mc_node *node, int depth)
{
    const condition_element *row = MC_SLD_FIND(conditions, mc_sld_name(node), strcmp);
    return row != NULL ? row->read(sld, node, row, depth) : read_spatial(sld, node);
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
