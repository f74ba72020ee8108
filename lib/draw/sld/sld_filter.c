/* Filters of styles: OGC 02-059 (1.0), 04-095 (1.1), 09-026r1 (2.0; ValueReference). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/sld/sld_private.h"
#include "draw/style/spatial.h"
#include "text/text.h"

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
