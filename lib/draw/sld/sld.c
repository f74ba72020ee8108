/* Styled Layer Descriptor 1.0 (OGC 02-070) and Symbology Encoding 1.1 (OGC 05-077r4) documents. */
#include "draw/sld/sld.h"
#include "draw/style/label_style.h"

#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

const char *
mc_sld_name(const mc_node *node)
{
    const char *colon = strchr(node->name, ':');
    return colon == NULL ? node->name : colon + 1;
}

const mc_node *
mc_sld_child(const mc_node *node, const char *name)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        if (strcmp(mc_sld_name(child), name) == 0)
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

bool
mc_sld_is_one_of(const mc_node *node, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(mc_sld_name(node), *names) == 0)
            return true;
    return false;
}

bool
mc_sld_only(mc_sld *sld, const mc_node *node, const char *const *names, const char *what)
{
    bool fits = true;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (mc_sld_is_one_of(child, names))
            continue;
        mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of %s", mc_sld_name(child), what));
        fits = false;
    }
    return fits;
}

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

static bool
is_symbolizer(const mc_node *node)
{
    const char *name = mc_sld_name(node);
    size_t size = strlen(name), tail = strlen("Symbolizer");
    return size > tail && strcmp(name + size - tail, "Symbolizer") == 0;
}

/* GeoServer's way to say that a rule is one of the map or of the legend only. */
static void
read_rule_option(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    static const char *const ways[] = {
        [MC_INCLUSION_NORMAL] = "normal", [MC_INCLUSION_MAP_ONLY] = "mapOnly", [MC_INCLUSION_LEGEND_ONLY] = "legendOnly"
    };
    const char *name = mc_node_attr(node, "name"), *text = mc_sld_plain(sld, node);
    name = name == NULL ? "" : name;
    for (int i = 0; strcmp(name, "inclusion") == 0 && i < 3; i++)
        if (strcmp(text, ways[i]) == 0) {
            rule->inclusion = (mc_inclusion)i;
            return;
        }
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "the option %s", mc_config_quote(name, sld->build->pool)));
}

static void
read_symbolizers(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    static const char *const known[] = { "Name",
                                         "Title",
                                         "Abstract",
                                         "Description",
                                         "LegendGraphic",
                                         "Filter",
                                         "ElseFilter",
                                         "MinScaleDenominator",
                                         "MaxScaleDenominator",
                                         NULL };
    int count = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count += is_symbolizer(child);
    mc_symbolizer *list = apr_pcalloc(sld->build->pool, sizeof(*list) * (size_t)(count + 1));
    mc_text_symbol *texts = apr_pcalloc(sld->build->pool, sizeof(*texts) * (size_t)(count + 1));
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (strcmp(mc_sld_name(child), "TextSymbolizer") == 0)
            rule->text_count += mc_sld_text_symbol(&texts[rule->text_count], sld, child);
        else if (strcmp(mc_sld_name(child), "VendorOption") == 0)
            read_rule_option(rule, sld, child);
        else if (is_symbolizer(child))
            rule->symbolizer_count += mc_sld_symbolizer(&list[rule->symbolizer_count], sld, child);
        else if (!mc_sld_is_one_of(child, known))
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(child)));
    }
    rule->symbolizers = list;
    rule->texts = texts;
}

static void
read_legend(mc_rule_style *rule, mc_sld *sld, const mc_node *node)
{
    const mc_node *legend = mc_sld_child(node, "LegendGraphic");
    const mc_node *graphic = legend == NULL ? NULL : mc_sld_child(legend, "Graphic");
    static const char *const known[] = { "Graphic", NULL };
    mc_graphic *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    if (legend != NULL)
        mc_sld_only(sld, legend, known, "a legend");
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
read_pass_option(mc_style_pass *pass, mc_sld *sld, const mc_node *node)
{
    const char *name = mc_node_attr(node, "name"), *text = mc_sld_plain(sld, node);
    name = name == NULL ? "" : name;
    if (strcmp(name, "ruleEvaluation") == 0 && (strcmp(text, "first") == 0 || strcmp(text, "all") == 0))
        pass->first_only = strcmp(text, "first") == 0;
    else
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "the option %s", mc_config_quote(name, sld->build->pool)));
}

static void
read_pass(mc_style_pass *pass, mc_sld *sld, const mc_node *node)
{
    static const char *const known[] = { "Name",        "Title",           "Abstract",
                                         "Description", "FeatureTypeName", "SemanticTypeIdentifier",
                                         NULL };
    int count = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count += strcmp(mc_sld_name(child), "Rule") == 0;
    mc_rule_style *rules = apr_pcalloc(sld->build->pool, sizeof(*rules) * (size_t)(count + 1));
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (strcmp(mc_sld_name(child), "Rule") == 0)
            pass->rule_count += read_sld_rule(&rules[pass->rule_count], sld, child);
        else if (strcmp(mc_sld_name(child), "VendorOption") == 0)
            read_pass_option(pass, sld, child);
        else if (!mc_sld_is_one_of(child, known))
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(child)));
    }
    pass->rules = rules;
}

/* What stands beside the style and above would change the picture, too. */
static void
check_around(mc_sld *sld, const mc_node *style)
{
    static const char *const known[] = { "Name",       "Title",     "Abstract",  "Description",      "IsDefault",
                                         "NamedLayer", "UserLayer", "UserStyle", "FeatureTypeStyle", NULL };
    for (const mc_node *at = style; at != NULL; at = at->parent)
        if (strcmp(mc_sld_name(at), "FeatureTypeStyle") != 0)
            mc_sld_only(sld, at, known, "a layer");
}

static const mc_style *
read_sld_style(mc_sld *sld, const mc_node *node)
{
    mc_style *style = apr_pcalloc(sld->build->pool, sizeof(*style));
    int count = strcmp(mc_sld_name(node), "FeatureTypeStyle") == 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        count += strcmp(mc_sld_name(child), "FeatureTypeStyle") == 0;
    mc_style_pass *passes = apr_pcalloc(sld->build->pool, sizeof(*passes) * (size_t)(count + 1));
    style->name = text_of_child(node, "Name", sld->build->pool);
    style->name = style->name == NULL ? "default" : style->name;
    style->title = title_of(node, sld->build->pool);
    if (strcmp(mc_sld_name(node), "FeatureTypeStyle") == 0)
        read_pass(&passes[style->pass_count++], sld, node);
    else
        for (const mc_node *child = node->children; child != NULL; child = child->next)
            if (strcmp(mc_sld_name(child), "FeatureTypeStyle") == 0)
                read_pass(&passes[style->pass_count++], sld, child);
    style->passes = passes;
    style->attributes = (const char *const *)sld->attributes->elts;
    style->attribute_count = sld->attributes->nelts;
    style->ids = sld->ids || sld->labels > 0; /* labels of equal rank come in the order of the numbers */
    return sld->failed ? NULL : style;
}

/* The user style of that name, the first one for NULL, anywhere in the document. */
static const mc_node *
find_style(const mc_node *node, const char *name, apr_pool_t *pool)
{
    const char *own = mc_sld_name(node);
    if (strcmp(own, "FeatureTypeStyle") == 0)
        return node;
    if (strcmp(own, "UserStyle") == 0) {
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
