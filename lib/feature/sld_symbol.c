/* Symbolizers of SLD and SE documents (OGC 05-077r4, 11). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "feature/sld.h"
#include "feature/stroker.h"

enum { DASHES_MAX = 32 };

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

/* A number that has to be the same for all features. */
static void
read_constant(double *constant, mc_sld *sld, const mc_node *node)
{
    const mc_expression *value;
    mc_sld_number(constant, &value, sld, node);
    if (value != NULL)
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
}

static void
read_opacity(mc_ink *ink, mc_sld *sld, const mc_node *node)
{
    double opacity = 1;
    mc_sld_number(&opacity, &ink->opacity, sld, node);
    ink->color.alpha = (uint8_t)lrint(255 * fmin(1, fmax(0, opacity)));
}

static void
read_color(mc_ink *ink, mc_sld *sld, const mc_node *node)
{
    const mc_expression *expression = mc_sld_value(sld, node);
    if (expression == NULL)
        return;
    if (expression->kind != MC_LITERAL)
        ink->color_value = expression;
    else if (!mc_color_parse(&ink->color, expression->literal))
        mc_sld_lacking(
            sld, node,
            apr_psprintf(sld->build->pool, "the colour %s", mc_config_quote(expression->literal, sld->build->pool)));
}

static int
choice(mc_sld *sld, const mc_node *node, const char *const *names)
{
    const char *text = mc_sld_text(node, sld->build->pool);
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
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
    if (!mc_parse_doubles(dashes, DASHES_MAX, &count, mc_sld_text(node, sld->build->pool), " ,") || count == 0) {
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
        read_color(&stroke->ink, sld, node);
    else if (strcmp(name, "stroke-opacity") == 0)
        read_opacity(&stroke->ink, sld, node);
    else if (strcmp(name, "stroke-width") == 0)
        mc_sld_number(&stroke->width, &stroke->width_value, sld, node);
    else if (strcmp(name, "stroke-linejoin") == 0)
        stroke->join = (mc_line_join)(choice(sld, node, joins) % 3);
    else if (strcmp(name, "stroke-linecap") == 0)
        stroke->cap = (mc_line_cap)choice(sld, node, caps);
    else if (strcmp(name, "stroke-dasharray") == 0)
        read_dashes(stroke, sld, node);
    else if (strcmp(name, "stroke-dashoffset") == 0)
        read_constant(&stroke->dash_offset, sld, node);
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

static void
read_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    *stroke = (mc_stroke){ .ink = { .present = true, .color = { 0, 0, 0, 255 } }, .width = 1 };
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        if (name != NULL)
            read_stroke_parameter(stroke, sld, child, name);
        else
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a stroke", mc_sld_name(child)));
    }
    stroke->width = fmin(stroke->width, MC_STROKE_WIDTH_MAX);
}

void
mc_sld_fill(mc_ink *ink, mc_sld *sld, const mc_node *node)
{
    *ink = (mc_ink){ .present = true, .color = { 128, 128, 128, 255 } };
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        name = name == NULL ? "" : name;
        if (strcmp(name, "fill") == 0)
            read_color(ink, sld, child);
        else if (strcmp(name, "fill-opacity") == 0)
            read_opacity(ink, sld, child);
        else
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a fill", mc_sld_name(child)));
    }
}

static void
read_mark(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    static const char *const names[] = { "square", "circle",   "triangle", "star", "cross",
                                         "x",      "pentagon", "diamond",  "line", NULL };
    const mc_node *name = mc_sld_child(node, "WellKnownName"), *fill = mc_sld_child(node, "Fill");
    const mc_node *stroke = mc_sld_child(node, "Stroke");
    graphic->mark = name == NULL ? MC_MARK_SQUARE : (mc_mark_shape)choice(sld, name, names);
    if (fill != NULL)
        mc_sld_fill(&graphic->fill, sld, fill);
    if (stroke != NULL)
        read_stroke(&graphic->stroke, sld, stroke);
    if (fill == NULL && stroke == NULL) { /* OGC 05-077r4, 11.3.2: grey with a black outline */
        graphic->fill = (mc_ink){ .present = true, .color = { 128, 128, 128, 255 } };
        graphic->stroke = (mc_stroke){ .ink = { .present = true, .color = { 0, 0, 0, 255 } }, .width = 1 };
    }
}

static void
read_graphic(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    double opacity = 1;
    *graphic = (mc_graphic){ .size = 6 };
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        if (strcmp(name, "Mark") == 0)
            read_mark(graphic, sld, child);
        else if (strcmp(name, "Size") == 0)
            mc_sld_number(&graphic->size, &graphic->size_value, sld, child);
        else if (strcmp(name, "Rotation") == 0)
            graphic->rotation = mc_sld_value(sld, child);
        else if (strcmp(name, "Opacity") == 0)
            read_constant(&opacity, sld, child);
        else
            mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a graphic", name));
    }
    graphic->size = fmin(fmax(graphic->size, 0), MC_STROKE_WIDTH_MAX);
    mc_ink *const inks[] = { &graphic->fill, &graphic->stroke.ink };
    for (int i = 0; i < 2; i++)
        inks[i]->color.alpha = (uint8_t)lrint(inks[i]->color.alpha * fmin(1, fmax(0, opacity)));
}

mc_uom
mc_sld_uom(mc_sld *sld, const mc_node *node)
{
    const char *uom = mc_node_attr(node, "uom");
    if (uom == NULL || strstr(uom, "pixel") != NULL)
        return MC_UOM_PIXEL;
    if (strstr(uom, "metre") != NULL || strstr(uom, "meter") != NULL)
        return MC_UOM_METRE;
    if (strstr(uom, "foot") != NULL)
        return MC_UOM_FOOT;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "the unit %s", mc_config_quote(uom, sld->build->pool)));
    return MC_UOM_PIXEL;
}

static void
read_part(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *child)
{
    static const char *const silent[] = { "Name", "Description", "Geometry", "BaseSymbolizer", NULL };
    const char *name = mc_sld_name(child);
    if (strcmp(name, "Fill") == 0 && symbolizer->kind == MC_SYMBOL_POLYGON)
        mc_sld_fill(&symbolizer->fill, sld, child);
    else if (strcmp(name, "Stroke") == 0 && symbolizer->kind != MC_SYMBOL_POINT)
        read_stroke(&symbolizer->stroke, sld, child);
    else if (strcmp(name, "Graphic") == 0 && symbolizer->kind == MC_SYMBOL_POINT)
        read_graphic(&symbolizer->graphic, sld, child);
    else if (strcmp(name, "PerpendicularOffset") == 0 && symbolizer->kind == MC_SYMBOL_LINE)
        read_constant(&symbolizer->offset, sld, child);
    else
        for (int i = 0;; i++) {
            if (silent[i] == NULL) {
                mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a symbolizer", name));
                return;
            }
            if (strcmp(name, silent[i]) == 0)
                return;
        }
}

bool
mc_sld_symbolizer(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    static const struct {
        const char *name;
        mc_symbolizer_kind kind;
    } kinds[] = { { "PolygonSymbolizer", MC_SYMBOL_POLYGON },
                  { "LineSymbolizer", MC_SYMBOL_LINE },
                  { "PointSymbolizer", MC_SYMBOL_POINT } };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(mc_sld_name(node), kinds[i].name) != 0)
            continue;
        *symbolizer = (mc_symbolizer){ .kind = kinds[i].kind, .uom = mc_sld_uom(sld, node) };
        for (const mc_node *child = node->children; child != NULL; child = child->next)
            read_part(symbolizer, sld, child);
        return true;
    }
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(node)));
    return false;
}
