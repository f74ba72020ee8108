/* The classes of a layer of a map file as an SLD document (MapServer's documentation, "CLASS"; RFC 49 of lines with
 * outlines). See mapfile_parts.h. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

enum { STYLES_MAX = 64 }; /* of a class of lines: each is a pass over all features */

/* A class that can be chosen. */
typedef struct mapfile_class {
    mc_branch *block;
    const char *title, *condition;           /* NULL: none */
    double min_scale, max_scale;             /* denominators of SLD; 0: no limit */
    double label_min_scale, label_max_scale; /* the same of its label */
    apr_array_header_t *styles;              /* of mc_branch * */
    mc_branch *label;                        /* NULL: none */
} mapfile_class;

/* Both limits of a block in denominators of SLD, no wider than those that are there. */
static bool
read_scale_limits(double *least, double *most, mc_mapfile_reader *reader, mc_branch *block, const char *least_key,
                  const char *most_key)
{
    double low, high;
    if (!mc_mapfile_number(&low, reader, block, least_key, -1) ||
        !mc_mapfile_number(&high, reader, block, most_key, -1))
        return false;
    if (low > 0 && low * reader->scale_unit > *least)
        *least = low * reader->scale_unit;
    if (high > 0 && (*most <= 0 || high * reader->scale_unit < *most))
        *most = high * reader->scale_unit;
    return true;
}

/* The conditions of FILTER and EXPRESSION together; false: refused. */
static bool
read_class_condition(mapfile_class *made, mc_mapfile_reader *reader, const char *filter)
{
    const mc_branch *expression = mc_branch_get(made->block, "EXPRESSION");
    const char *own = NULL;
    if (expression != NULL) {
        own = mc_mapfile_condition(reader, expression, mc_branch_text(reader->layer, "CLASSITEM", NULL));
        if (own == NULL)
            return false;
    }
    made->condition = filter == NULL || own == NULL
                          ? (own == NULL ? filter : own)
                          : apr_pstrcat(reader->pool, "<ogc:And>", filter, own, "</ogc:And>", NULL);
    return true;
}

static bool
read_class_label(mapfile_class *made, mc_mapfile_reader *reader)
{
    int labels = 0;
    made->label_min_scale = made->min_scale;
    made->label_max_scale = made->max_scale;
    for (mc_branch *child = made->block->children; child != NULL; child = child->next)
        labels += strcmp(child->key, "LABEL") == 0;
    made->label = mc_branch_get(made->block, "LABEL");
    if (labels > 1)
        return mc_mapfile_refuse(reader, made->label, "several LABELs of a CLASS");
    return labels == 0 || (read_scale_limits(&made->label_min_scale, &made->label_max_scale, reader, reader->layer,
                                             "LABELMINSCALEDENOM", "LABELMAXSCALEDENOM") &&
                           read_scale_limits(&made->label_min_scale, &made->label_max_scale, reader, made->label,
                                             "MINSCALEDENOM", "MAXSCALEDENOM"));
}

static bool
read_mapfile_class(mapfile_class *made, mc_mapfile_reader *reader, mc_branch *block, const char *filter)
{
    static const char *const passed[] = { "NAME",  "TITLE",    "GROUP",      "STATUS",   "TEMPLATE",
                                          "DEBUG", "KEYIMAGE", "VALIDATION", "METADATA", NULL };
    *made = (mapfile_class){ .block = block, .styles = apr_array_make(reader->pool, 4, sizeof(mc_branch *)) };
    made->title = mc_branch_text(block, "TITLE", mc_branch_text(block, "NAME", NULL));
    mc_mapfile_pass(block, passed);
    if (!read_class_condition(made, reader, filter) ||
        !read_scale_limits(&made->min_scale, &made->max_scale, reader, block, "MINSCALEDENOM", "MAXSCALEDENOM") ||
        !read_class_label(made, reader))
        return false;
    for (mc_branch *child = block->children; child != NULL; child = child->next)
        if (strcmp(child->key, "STYLE") == 0 && child->kind == MC_BRANCH_MAP) {
            child->taken = true;
            APR_ARRAY_PUSH(made->styles, mc_branch *) = child;
        }
    if (made->styles->nelts > STYLES_MAX)
        return mc_mapfile_refuse(reader, block, "more than %d STYLEs of a CLASS", STYLES_MAX);
    (void)mc_branch_get(block, "TEXT"); /* which mc_mapfile_label reads */
    return mc_mapfile_is_read(reader, block);
}

/* The classes of CLASSGROUP, or all, but for those that are off: the next ones get their features. False: refused. */
static bool
read_mapfile_classes(apr_array_header_t *classes, mc_mapfile_reader *reader, const char *filter)
{
    const char *group = mc_branch_text(reader->layer, "CLASSGROUP", NULL);
    for (mc_branch *child = reader->layer->children; child != NULL; child = child->next) {
        if (strcmp(child->key, "CLASS") != 0 || child->kind != MC_BRANCH_MAP)
            continue;
        child->taken = true;
        const char *own = mc_branch_text(child, "GROUP", NULL);
        bool off = strcasecmp(mc_branch_text(child, "STATUS", "ON"), "OFF") == 0;
        if (off || (group != NULL && (own == NULL || strcasecmp(own, group) != 0)))
            mc_branch_pass(child);
        else if (!read_mapfile_class(&APR_ARRAY_PUSH(classes, mapfile_class), reader, child, filter))
            return false;
    }
    return classes->nelts > 0 || mc_mapfile_refuse(reader, reader->layer, "the lack of a CLASS");
}

static void
begin_rule(apr_array_header_t *out, const mapfile_class *class, double min_scale, double max_scale)
{
    mc_mapfile_put(out, "        <Rule>\n");
    if (class->title != NULL)
        mc_mapfile_put(out, "          <Title>%s</Title>\n", mc_xml_escape(class->title, out->pool));
    if (class->condition != NULL)
        mc_mapfile_put(out, "          <ogc:Filter>%s</ogc:Filter>\n", class->condition);
    if (min_scale > 0)
        mc_mapfile_put(out, "          <MinScaleDenominator>%s</MinScaleDenominator>\n",
                       mc_mapfile_digits(min_scale, out->pool));
    if (max_scale > 0)
        mc_mapfile_put(out, "          <MaxScaleDenominator>%s</MaxScaleDenominator>\n",
                       mc_mapfile_digits(max_scale, out->pool));
}

/* What a pass draws of a class. Of lines MapServer draws the first style of all features, then the second, and so on;
 * the first one's outline before its line. Of other layers all styles of a feature, and then the next feature. */
static bool
put_class_styles(apr_array_header_t *out, mc_mapfile_reader *reader, const mapfile_class *class, int pass)
{
    mc_branch **styles = (mc_branch **)class->styles->elts;
    int count = class->styles->nelts;
    if (reader->type != MC_MAPFILE_LINE) {
        for (int i = 0; i < count; i++)
            if (!(reader->type == MC_MAPFILE_POINT ? mc_mapfile_graphic(out, reader, styles[i])
                                                   : mc_mapfile_symbolizers(out, reader, styles[i], false)))
                return false;
        return true;
    }
    int number = pass < 2 ? 0 : pass - 1;
    if (number >= count)
        return true;
    bool outlined = mc_mapfile_has_outline(styles[number]);
    if (pass == 0)
        return mc_mapfile_symbolizers(out, reader, styles[0], outlined);
    if (outlined && pass > 1 && !mc_mapfile_symbolizers(out, reader, styles[number], true))
        return false;
    return (pass == 1 && !outlined) || mc_mapfile_symbolizers(out, reader, styles[number], false);
}

/* All classes have a rule in each pass, so that the first one that fits is the same in all. */
static bool
put_class_pass(apr_array_header_t *out, mc_mapfile_reader *reader, const apr_array_header_t *classes, int pass)
{
    mc_mapfile_put(out, "      <FeatureTypeStyle>\n");
    for (int i = 0; i < classes->nelts; i++) {
        const mapfile_class *class = &APR_ARRAY_IDX(classes, i, mapfile_class);
        begin_rule(out, class, class->min_scale, class->max_scale);
        if (!put_class_styles(out, reader, class, pass))
            return false;
        mc_mapfile_put(out, "        </Rule>\n");
    }
    mc_mapfile_put(out,
                   "        <VendorOption name=\"ruleEvaluation\">first</VendorOption>\n      </FeatureTypeStyle>\n");
    return true;
}

static bool
put_class_labels(apr_array_header_t *out, mc_mapfile_reader *reader, const apr_array_header_t *classes)
{
    mc_mapfile_put(out, "      <FeatureTypeStyle>\n");
    for (int i = 0; i < classes->nelts; i++) {
        const mapfile_class *class = &APR_ARRAY_IDX(classes, i, mapfile_class);
        if (class->label != NULL) {
            begin_rule(out, class, class->label_min_scale, class->label_max_scale);
            if (!mc_mapfile_label(out, reader, class->block, class->label))
                return false;
            mc_mapfile_put(out, "        </Rule>\n");
        }
        begin_rule(out, class, class->min_scale,
                   class->max_scale); /* beyond the label's scales it is still this class */
        mc_mapfile_put(out, "        </Rule>\n");
    }
    mc_mapfile_put(out,
                   "        <VendorOption name=\"ruleEvaluation\">first</VendorOption>\n      </FeatureTypeStyle>\n");
    return true;
}

/* How many passes there are; `*labels`: there is a label. */
static int
count_passes(const mc_mapfile_reader *reader, const apr_array_header_t *classes, bool *labels)
{
    int passes = 1;
    *labels = false;
    for (int i = 0; i < classes->nelts; i++) {
        const mapfile_class *class = &APR_ARRAY_IDX(classes, i, mapfile_class);
        int count = class->styles->nelts;
        *labels |= class->label != NULL;
        if (reader->type != MC_MAPFILE_LINE || count == 0)
            continue;
        int own = count > 1 ? count + 1 : mc_mapfile_has_outline(APR_ARRAY_IDX(class->styles, 0, mc_branch *)) ? 2 : 1;
        passes = own > passes ? own : passes;
    }
    return passes;
}

/* FILTER, with FILTERITEM for what does not name an attribute. False: refused. */
static bool
read_layer_filter(const char **filter, mc_mapfile_reader *reader)
{
    const mc_branch *found = mc_branch_get(reader->layer, "FILTER");
    *filter = NULL;
    const char *item = mc_branch_text(reader->layer, "FILTERITEM", NULL);
    if (found == NULL)
        return true;
    *filter = mc_mapfile_condition(reader, found, item);
    return *filter != NULL;
}

const char *
mc_mapfile_style(mc_mapfile_reader *reader)
{
    apr_array_header_t *classes = apr_array_make(reader->pool, 8, sizeof(mapfile_class));
    apr_array_header_t *out = apr_array_make(reader->pool, 64, sizeof(const char *));
    const char *filter;
    bool labels;
    if (!read_layer_filter(&filter, reader) || !read_mapfile_classes(classes, reader, filter))
        return NULL;
    mc_mapfile_put(out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<StyledLayerDescriptor version=\"1.0.0\" "
                   "xmlns=\"http://www.opengis.net/sld\" xmlns:ogc=\"http://www.opengis.net/ogc\">\n"
                   "  <NamedLayer>\n    <Name>%s</Name>\n    <UserStyle>\n",
                   mc_xml_escape(mc_branch_text(reader->layer, "NAME", ""), reader->pool));
    int passes = count_passes(reader, classes, &labels);
    for (int pass = 0; pass < passes; pass++)
        if (!put_class_pass(out, reader, classes, pass))
            return NULL;
    if (labels && !put_class_labels(out, reader, classes))
        return NULL;
    mc_mapfile_put(out, "    </UserStyle>\n  </NamedLayer>\n</StyledLayerDescriptor>\n");
    return apr_array_pstrcat(reader->pool, out, '\0');
}
