/* Styled Layer Descriptor 1.0 (OGC 02-070) and Symbology Encoding 1.1 (OGC 05-077r4) documents. */
#include "draw/sld/sld.h"

#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config_files.h"
#include "draw/sld/sld_elements.h"
#include "draw/style/label_style.h"
#include "text/text.h"

enum { SORTS_MAX = 8 /* values of one order */ };

static const char *
text_of_child(const mc_node *node, const char *name, apr_pool_t *pool)
{
    const mc_node *child = mc_sld_child(node, name);
    return child == NULL ? NULL : mc_sld_text(child, pool);
}

/* A scale denominator; `otherwise` where there is none. */
static double
scale_of(mc_sld *sld, const mc_node *rule, const char *name, double otherwise)
{
    const mc_node *node = mc_sld_child(rule, name);
    double value;
    if (node == NULL)
        return otherwise;
    if (mc_parse_double(&value, mc_sld_plain(sld, node)) && value >= 0)
        return value;
    mc_complain(sld->build->diagnostics, MC_REFUSED, node, "%s is not a scale: a number from 0 on",
                mc_config_quote(node->text, sld->build->pool));
    sld->failed = true;
    return otherwise;
}

static const char *
title_of(const mc_node *node, apr_pool_t *pool)
{
    const mc_node *description = mc_sld_child(node, "Description");
    const char *title = text_of_child(description == NULL ? node : description, "Title", pool);
    return title != NULL ? title : text_of_child(node, "Name", pool);
}

static size_t
count_children(const mc_node *node)
{
    size_t count = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count++;
    return count;
}

static void
read_inclusion(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const ways[] = { [MC_INCLUSION_NORMAL] = "normal",
                                        [MC_INCLUSION_MAP_ONLY] = "mapOnly",
                                        [MC_INCLUSION_LEGEND_ONLY] = "legendOnly",
                                        NULL };
    mc_inclusion *inclusion = member;
    int way = mc_sld_read_choice(sld, node, ways);
    if (way >= 0)
        *inclusion = (mc_inclusion)way;
}

/* A rule with its lists, as long as they grow. */
typedef struct rule_lists {
    mc_rule_style *rule;
    mc_symbolizer *symbolizers;
    mc_text_symbol *texts;
} rule_lists;

static void
add_text(void *into, mc_sld *sld, const mc_node *node)
{
    rule_lists *lists = into;
    lists->rule->text_count += mc_sld_text_symbol(&lists->texts[lists->rule->text_count], sld, node);
}

static void
add_symbolizer(rule_lists *lists, mc_sld *sld, const mc_node *node, mc_symbolizer_kind kind)
{
    mc_symbolizer *next = &lists->symbolizers[lists->rule->symbolizer_count];
    lists->rule->symbolizer_count += mc_sld_symbolizer(next, sld, node, kind);
}

static void
add_polygon(void *into, mc_sld *sld, const mc_node *node)
{
    add_symbolizer(into, sld, node, MC_SYMBOL_POLYGON);
}

static void
add_line(void *into, mc_sld *sld, const mc_node *node)
{
    add_symbolizer(into, sld, node, MC_SYMBOL_LINE);
}

static void
add_point(void *into, mc_sld *sld, const mc_node *node)
{
    add_symbolizer(into, sld, node, MC_SYMBOL_POINT);
}

/* GeoServer's way to say that a rule is one of the map or of the legend only. */
static void
read_rule_option(void *into, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element options[] = { MC_SLD_ELEMENT("inclusion", read_inclusion, 0), MC_SLD_END };
    rule_lists *lists = into;
    mc_sld_read_option(&lists->rule->inclusion, sld, node, options);
}

static void
read_symbolizers(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element elements[] = { MC_SLD_ELEMENT("PolygonSymbolizer", add_polygon, 0),
                                               MC_SLD_ELEMENT("LineSymbolizer", add_line, 0),
                                               MC_SLD_ELEMENT("PointSymbolizer", add_point, 0),
                                               MC_SLD_ELEMENT("TextSymbolizer", add_text, 0),
                                               MC_SLD_ELEMENT("VendorOption", read_rule_option, 0),
                                               MC_SLD_SILENT("Name"),
                                               MC_SLD_SILENT("Title"),
                                               MC_SLD_SILENT("Abstract"),
                                               MC_SLD_SILENT("Description"),
                                               MC_SLD_SILENT("LegendGraphic"),
                                               MC_SLD_SILENT("Filter"),
                                               MC_SLD_SILENT("ElseFilter"),
                                               MC_SLD_SILENT("MinScaleDenominator"),
                                               MC_SLD_SILENT("MaxScaleDenominator"),
                                               MC_SLD_END };
    size_t most = count_children(node) + 1;
    rule_lists lists = { .rule = rule };
    rule->symbolizers = lists.symbolizers = apr_pcalloc(sld->build->pool, sizeof(*lists.symbolizers) * most);
    rule->texts = lists.texts = apr_pcalloc(sld->build->pool, sizeof(*lists.texts) * most);
    mc_sld_read_elements(&lists, sld, node, elements, NULL);
}

static void
read_legend(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    const mc_node *legend = mc_sld_child(node, "LegendGraphic");
    const mc_node *graphic = legend == NULL ? NULL : mc_sld_child(legend, "Graphic");
    static const mc_sld_element elements[] = { MC_SLD_SILENT("Graphic"), MC_SLD_END };
    mc_graphic *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    if (legend != NULL)
        mc_sld_check_elements(sld, legend, elements, "a legend");
    if (graphic != NULL && mc_sld_graphic(made, sld, graphic))
        rule->legend = made;
}

/* False where the rule cannot be drawn as it is meant. */
static bool
read_sld_rule(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    apr_pool_t *pool = sld->build->pool;
    const mc_node *filter = mc_sld_child(node, "Filter");
    *rule = (mc_rule_style){ .name = text_of_child(node, "Name", pool), .title = title_of(node, pool) };
    rule->is_else = mc_sld_child(node, "ElseFilter") != NULL;
    rule->min_scale = scale_of(sld, node, "MinScaleDenominator", 0);
    rule->max_scale = scale_of(sld, node, "MaxScaleDenominator", HUGE_VAL);
    read_legend(rule, sld, node);
    read_symbolizers(rule, sld, node);
    if (filter == NULL)
        return true;
    rule->filter = mc_sld_filter(sld, filter);
    return rule->filter != NULL;
}

/* GeoServer's way to say that the first rule that fits is the only one. */
static void
read_rule_evaluation(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const ways[] = { "all", "first", NULL };
    bool *first_only = member;
    int way = mc_sld_read_choice(sld, node, ways);
    if (way >= 0)
        *first_only = way == 1;
}

/* GeoServer's order of features: "name", "name D", several with commas between them (A: ascending, as without it). */
static void
read_sort(void *member, mc_sld *sld, const mc_node *node)
{
    apr_pool_t *pool = sld->build->pool;
    mc_style_pass *pass = member;
    mc_style_sort *sort = apr_pcalloc(pool, sizeof(*sort) * SORTS_MAX);
    char *rest = apr_pstrdup(pool, mc_sld_plain(sld, node)), *state;
    int count = 0;
    for (char *one = apr_strtok(rest, ",", &state); one != NULL; one = apr_strtok(NULL, ",", &state)) {
        one += strspn(one, " \t\r\n");
        for (size_t size = strlen(one); size > 0 && strchr(" \t\r\n", one[size - 1]) != NULL; size--)
            one[size - 1] = '\0';
        char *way = strrchr(one, ' ');
        bool down = way != NULL && strcasecmp(way, " D") == 0, up = way != NULL && strcasecmp(way, " A") == 0;
        if (down || up)
            *way = '\0';
        if (*one == '\0' || count == SORTS_MAX) {
            mc_sld_report_option(sld, node, "");
            return;
        }
        sort[count++] = (mc_style_sort){ mc_sld_property(sld, one), down };
    }
    pass->sort = sort;
    pass->sort_count = count;
}

static void
read_sort_group(void *member, mc_sld *sld, const mc_node *node)
{
    const char **group = member;
    *group = mc_sld_plain(sld, node);
}

/* A pass with its rules, as long as they grow. */
typedef struct pass_rules {
    mc_style_pass *pass;
    mc_rule_style *rules;
} pass_rules;

static void
add_rule(void *into, mc_sld *sld, const mc_node *node)
{
    pass_rules *to = into;
    to->pass->rule_count += read_sld_rule(&to->rules[to->pass->rule_count], sld, node);
}

static void
read_pass_option(void *into, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element options[] = {
        MC_SLD_ELEMENT("ruleEvaluation", read_rule_evaluation, offsetof(mc_style_pass, first_only)),
        MC_SLD_ELEMENT("sortBy", read_sort, 0),
        MC_SLD_ELEMENT("sortByGroup", read_sort_group, offsetof(mc_style_pass, sort_group)), MC_SLD_END
    };
    pass_rules *to = into;
    mc_sld_read_option(to->pass, sld, node, options);
}

static void
read_pass(mc_style_pass *pass, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element elements[] = { MC_SLD_ELEMENT("Rule", add_rule, 0),
                                               MC_SLD_ELEMENT("VendorOption", read_pass_option, 0),
                                               MC_SLD_SILENT("Name"),
                                               MC_SLD_SILENT("Title"),
                                               MC_SLD_SILENT("Abstract"),
                                               MC_SLD_SILENT("Description"),
                                               MC_SLD_SILENT("FeatureTypeName"),
                                               MC_SLD_SILENT("SemanticTypeIdentifier"),
                                               MC_SLD_END };
    pass_rules to = { .pass = pass };
    to.rules = apr_pcalloc(sld->build->pool, sizeof(*to.rules) * (count_children(node) + 1));
    pass->rules = to.rules;
    mc_sld_read_elements(&to, sld, node, elements, NULL);
}

/* Whether an element holds nothing that says anything, not in its children either. */
static bool
is_hollow(const mc_node *node)
{
    bool hollow = node->text[strspn(node->text, " \t\r\n")] == '\0';
    for (const mc_node *child = node->children; child != NULL && hollow; child = child->next)
        hollow = is_hollow(child);
    return hollow;
}

/* <LayerFeatureConstraints>: of all features, where nothing is in it but <FeatureTypeConstraint/>. */
static void
read_constraints(void *into, mc_sld *sld, const mc_node *node)
{
    (void)into;
    if (!is_hollow(node))
        mc_sld_lacking(sld, node, "<LayerFeatureConstraints> of a layer");
}

/* Elements beside the style and above the style would change the picture, too. */
static void
check_around(mc_sld *sld, const mc_node *style)
{
    static const mc_sld_element elements[] = { MC_SLD_SILENT("Name"),
                                               MC_SLD_SILENT("Title"),
                                               MC_SLD_SILENT("Abstract"),
                                               MC_SLD_SILENT("Description"),
                                               MC_SLD_SILENT("IsDefault"),
                                               MC_SLD_SILENT("NamedLayer"),
                                               MC_SLD_SILENT("UserLayer"),
                                               MC_SLD_SILENT("UserStyle"),
                                               MC_SLD_SILENT("FeatureTypeStyle"),
                                               MC_SLD_ELEMENT("LayerFeatureConstraints", read_constraints, 0),
                                               MC_SLD_END };
    for (const mc_node *at = style; at != NULL; at = at->parent)
        if (!mc_sld_is(at, "FeatureTypeStyle"))
            mc_sld_read_elements(sld, sld, at, elements, "a layer");
}

static const mc_style *
read_sld_style(mc_sld *sld, const mc_node *node)
{
    mc_style *style = apr_pcalloc(sld->build->pool, sizeof(*style));
    int count = mc_sld_is(node, "FeatureTypeStyle");
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count += mc_sld_is(child, "FeatureTypeStyle");
    if (count > MC_STYLE_PASSES_MAX) {
        mc_complain(sld->build->diagnostics, MC_REFUSED, node, "the style has %d feature type styles: at most %d",
                    count, MC_STYLE_PASSES_MAX);
        return NULL;
    }
    mc_style_pass *passes = apr_pcalloc(sld->build->pool, sizeof(*passes) * (size_t)(count + 1));
    style->name = text_of_child(node, "Name", sld->build->pool);
    style->name = style->name == NULL ? "default" : style->name;
    style->title = title_of(node, sld->build->pool);
    if (mc_sld_is(node, "FeatureTypeStyle"))
        read_pass(&passes[style->pass_count++], sld, node);
    else
        for (const mc_node *child = node->children; child != NULL; child = child->next)
            if (mc_sld_is(child, "FeatureTypeStyle"))
                read_pass(&passes[style->pass_count++], sld, child);
    style->passes = passes;
    style->attributes = (const char *const *)sld->attributes->elts;
    style->attribute_count = sld->attributes->nelts;
    style->ids = sld->ids || sld->labels > 0; /* labels of equal rank come in the order of the numbers */
    style->digest = mc_node_hash(node);
    return sld->failed ? NULL : style;
}

/* The user style of that name, the first one for NULL, anywhere in the document. */
static const mc_node *
find_style(const mc_node *node, const char *name, apr_pool_t *pool)
{
    if (mc_sld_is(node, "FeatureTypeStyle"))
        return node;
    if (mc_sld_is(node, "UserStyle")) {
        const char *called = text_of_child(node, "Name", pool);
        return name == NULL || (called != NULL && strcmp(called, name) == 0) ? node : NULL;
    }
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const mc_node *found = find_style(child, name, pool);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* QGIS leaves a comment where an expression or a symbol has no form in SLD: what it was to restrict is then drawn
 * without it, such as the rule for all the rest for all features. */
static void
name_what_was_lost(mc_sld *sld, const mc_node *node)
{
    static const char expression[] = "Expression was: ";
    for (const mc_node *comment = node->comments; comment != NULL; comment = comment->next) {
        const char *failed = strstr(comment->text, expression);
        if (strstr(comment->text, "Parser Error") == NULL && strstr(comment->text, "not implemented yet") == NULL)
            continue;
        if (strstr(comment->text, "nullSymbol") != NULL) /* "no symbols": nothing was to be drawn */
            continue;
        mc_complain(sld->build->diagnostics, MC_NOT_BUILT, comment,
                    "the export of this style has left out %s%s of <%s>", failed == NULL ? "" : "the condition ",
                    mc_config_quote(failed == NULL ? comment->text : failed + strlen(expression), sld->build->pool),
                    mc_sld_name(node));
    }
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        name_what_was_lost(sld, child);
}

const mc_style *
mc_style_read(const char *path, const char *name, const mc_node *at, mc_build *build)
{
    mc_node *root;
    mc_config_files_note(build->diagnostics->read, path);
    mc_error *error = mc_xml_parse_file(&root, path, build->pool);
    if (error != MC_OK) {
        mc_complain(build->diagnostics, MC_REFUSED, at, "the style cannot be read: %s", error->message);
        return NULL;
    }
    mc_sld sld = { .build = build, .attributes = apr_array_make(build->pool, 8, sizeof(const char *)) };
    char real[PATH_MAX];
    char *folder = apr_pstrdup(build->pool, realpath(path, real) == NULL ? path : real), *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    sld.folder = slash == NULL ? "." : folder;
    const mc_node *style = find_style(root, name, build->pool);
    if (style == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, at, "%s has no user style%s%s", path,
                    name == NULL ? "" : " called ", name == NULL ? "" : name);
        return NULL;
    }
    check_around(&sld, style);
    name_what_was_lost(&sld, style);
    return read_sld_style(&sld, style);
}
