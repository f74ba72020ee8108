/* Fills and strokes of SLD and SE documents (OGC 05-077r4, 11.1.3 and 11.2.2). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/raster/stroker.h"
#include "draw/sld/sld.h"
#include "draw/symbol/mark.h"
#include "text/text.h"

enum { DASHES_MAX = 32, PATTERNS_MAX = 1 /* inside of each other */ };

void
mc_sld_number(double *constant, const mc_expression **value, mc_sld *sld, const mc_node *node)
{
    const mc_expression *expression = mc_sld_value(sld, node);
    *value = NULL;
    if (expression == NULL)
        return;
    if (expression->kind != MC_LITERAL)
        *value = expression;
    else if (isfinite(expression->number))
        *constant = expression->number;
    else
        mc_sld_lacking(
            sld, node,
            apr_psprintf(sld->build->pool, "the number %s", mc_config_quote(expression->literal, sld->build->pool)));
}

void
mc_sld_constant(double *constant, mc_sld *sld, const mc_node *node)
{
    const mc_expression *value;
    mc_sld_number(constant, &value, sld, node);
    if (value != NULL)
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
}

static void
read_opacity(mc_paint *paint, mc_sld *sld, const mc_node *node)
{
    double opacity = 1;
    mc_sld_number(&opacity, &paint->opacity, sld, node);
    paint->color.alpha = (uint8_t)lrint(255 * fmin(1, fmax(0, opacity)));
}

static void
read_color(mc_paint *paint, mc_sld *sld, const mc_node *node)
{
    const mc_expression *expression = mc_sld_value(sld, node);
    if (expression == NULL)
        return;
    if (expression->kind != MC_LITERAL)
        paint->color_value = expression;
    else if (!mc_color_parse(&paint->color, expression->literal))
        mc_sld_lacking(
            sld, node,
            apr_psprintf(sld->build->pool, "the colour %s", mc_config_quote(expression->literal, sld->build->pool)));
}

static int
read_listed_choice(mc_sld *sld, const mc_node *node, const char *const *names)
{
    const char *text = mc_sld_plain(sld, node);
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    if (*text != '\0' || node->children == NULL) /* else it has been said */
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
    return 0;
}

/* Lengths of dashes and gaps; an odd number of them is repeated once (as SVG does). */
static void
read_dashes(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    double *dashes = apr_pcalloc(sld->build->pool, sizeof(double) * DASHES_MAX * 2);
    int count = 0;
    double sum = 0;
    const char *text = mc_sld_plain(sld, node);
    if (!mc_parse_doubles(dashes, DASHES_MAX, &count, text, " ,") || count == 0) {
        if (*text != '\0' || node->children == NULL) /* else it has been said */
            mc_sld_lacking(sld, node, "these dashes");
        return;
    }
    for (int i = 0; i < count; i++) {
        if (dashes[i] < 0) {
            mc_sld_lacking(sld, node, "dashes below 0");
            return;
        }
        sum += dashes[i];
        dashes[count + i] = dashes[i];
    }
    if (sum <= 0)
        return;
    stroke->dashes = dashes;
    stroke->dash_count = count % 2 == 0 ? count : count * 2;
}

static void
read_stroke_parameter(mc_stroke *stroke, mc_sld *sld, const mc_node *node, const char *name)
{
    static const char *const joins[] = { "mitre", "round", "bevel", "miter", NULL };
    static const char *const caps[] = { "butt", "round", "square", NULL };
    if (strcmp(name, "stroke") == 0)
        read_color(&stroke->paint, sld, node);
    else if (strcmp(name, "stroke-opacity") == 0)
        read_opacity(&stroke->paint, sld, node);
    else if (strcmp(name, "stroke-width") == 0)
        mc_sld_number(&stroke->width, &stroke->width_value, sld, node);
    else if (strcmp(name, "stroke-linejoin") == 0)
        stroke->join = (mc_line_join)(read_listed_choice(sld, node, joins) % 3);
    else if (strcmp(name, "stroke-linecap") == 0)
        stroke->cap = (mc_line_cap)read_listed_choice(sld, node, caps);
    else if (strcmp(name, "stroke-dasharray") == 0)
        read_dashes(stroke, sld, node);
    else if (strcmp(name, "stroke-dashoffset") == 0)
        mc_sld_constant(&stroke->dash_offset, sld, node);
    else
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "the parameter %s", mc_config_quote(name, sld->build->pool)));
}

const char *
mc_sld_parameter(const mc_node *node)
{
    if (strcmp(mc_sld_name(node), "CssParameter") != 0 && strcmp(mc_sld_name(node), "SvgParameter") != 0)
        return NULL;
    const char *name = mc_node_attr(node, "name");
    return name == NULL ? "" : name;
}

/* The graphic inside of a <GraphicFill> or <GraphicStroke>; NULL after a complaint. */
static mc_graphic *
read_ink_pattern(mc_sld *sld, const mc_node *node)
{
    static const char *const known[] = { "Graphic", "Gap", "InitialGap", NULL };
    const mc_node *graphic = mc_sld_child(node, "Graphic");
    mc_graphic *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    bool drawn = false;
    if (mc_sld_only(sld, node, known, "a pattern") && graphic == NULL)
        mc_sld_lacking(sld, node, "a pattern without a graphic");
    else if (graphic != NULL && sld->patterns > PATTERNS_MAX)
        mc_sld_lacking(sld, node, "patterns inside of patterns of patterns");
    else if (graphic != NULL) {
        sld->patterns++;
        drawn = mc_sld_graphic(made, sld, graphic);
        sld->patterns--;
    }
    memcpy(made->margin, sld->margin, sizeof(made->margin));
    made->cell_x = sld->cell_x;
    made->cell_y = sld->cell_y;
    return drawn ? made : NULL;
}

static void
read_graphic_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    stroke->graphic = read_ink_pattern(sld, node);
    stroke->paint.present = stroke->graphic != NULL;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (strcmp(mc_sld_name(child), "Gap") == 0)
            mc_sld_constant(&stroke->gap, sld, child);
        else if (strcmp(mc_sld_name(child), "InitialGap") == 0)
            mc_sld_constant(&stroke->initial_gap, sld, child);
    }
}

void
mc_sld_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    *stroke = (mc_stroke){ .paint = { .present = true, .color = { 0, 0, 0, 255 } }, .width = 1 };
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        if (name != NULL)
            read_stroke_parameter(stroke, sld, child, name);
        else if (strcmp(mc_sld_name(child), "GraphicFill") == 0)
            stroke->paint.pattern = read_ink_pattern(sld, child);
        else if (strcmp(mc_sld_name(child), "GraphicStroke") == 0)
            read_graphic_stroke(stroke, sld, child);
        else
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a stroke", mc_sld_name(child)));
    }
    stroke->width = fmin(stroke->width, MC_STROKE_WIDTH_MAX);
}

void
mc_sld_fill(mc_paint *paint, mc_sld *sld, const mc_node *node)
{
    *paint = (mc_paint){ .present = true, .color = { 128, 128, 128, 255 } };
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        name = name == NULL ? "" : name;
        if (strcmp(name, "fill") == 0)
            read_color(paint, sld, child);
        else if (strcmp(name, "fill-opacity") == 0)
            read_opacity(paint, sld, child);
        else if (strcmp(mc_sld_name(child), "GraphicFill") == 0) {
            paint->pattern = read_ink_pattern(sld, child);
            paint->present = paint->pattern != NULL;
        } else
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a fill", mc_sld_name(child)));
    }
}
