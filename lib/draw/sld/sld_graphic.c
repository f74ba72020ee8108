/*
 * Graphics of SLD and SE documents: marks and files (OGC 05-077r4, 11.3); and fills and strokes (11.1.3, 11.2.2), which
 * may be made of graphics in their turn.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/raster/stroker.h"
#include "draw/sld/sld_elements.h"
#include "draw/symbol/mark.h"
#include "draw/symbol/picture_private.h"
#include "text/text.h"

enum {
    MARK_SIZE = 6,    /* pixels, where a style does not say */
    HATCH_SIZE = 8,   /* the same for a hatch */
    PATTERNS_MAX = 1, /* inside of each other */
};

static void
report_unsupported_name(mc_sld *sld, const mc_node *node, const char *what, const char *name)
{
    apr_pool_t *pool = sld->build->pool;
    mc_sld_lacking(sld, node, apr_psprintf(pool, "%s%s", what, mc_config_quote(name, pool)));
}

static const char *
href_of(const mc_node *node)
{
    for (const mc_attr *attr = node->attrs; attr != NULL; attr = attr->next) {
        const char *colon = strrchr(attr->name, ':');
        if (strcmp(colon == NULL ? attr->name : colon + 1, "href") == 0)
            return attr->value;
    }
    return NULL;
}

/* What a mark is called: its well-known name, or the address of a file (SE, 11.3.2; *of_file); NULL after a complaint.
 */
static const char *
name_of_mark(bool *of_file, mc_sld *sld, const mc_node *node)
{
    const mc_node *name = mc_sld_child(node, "WellKnownName"), *online = mc_sld_child(node, "OnlineResource");
    static const mc_sld_element by_name[] = { MC_SLD_SILENT("WellKnownName"), MC_SLD_SILENT("Fill"),
                                              MC_SLD_SILENT("Stroke"), MC_SLD_END };
    static const mc_sld_element by_file[] = { MC_SLD_SILENT("OnlineResource"), MC_SLD_SILENT("Format"),
                                              MC_SLD_SILENT("MarkIndex"),      MC_SLD_SILENT("Fill"),
                                              MC_SLD_SILENT("Stroke"),         MC_SLD_END };
    *of_file = name == NULL && online != NULL;
    if (!mc_sld_check_elements(sld, node, *of_file ? by_file : by_name, "a mark"))
        return NULL;
    const char *text = *of_file ? href_of(online) : name == NULL ? "square" : mc_sld_plain(sld, name);
    if (!*of_file && *text == '\0' && name->children != NULL)
        return NULL; /* it has been said why */
    return text == NULL ? "" : mc_sld_fill_constants(text, sld->build->pool);
}

/* A mark by its well-known name, or a character of a font; NULL after a complaint. */
static const mc_mark *
find_mark(mc_sld *sld, const mc_node *node, const char *text, bool of_file)
{
    const mc_mark *mark;
    if (of_file) {
        const mc_node *index = mc_sld_child(node, "MarkIndex");
        const char *code = index == NULL ? "" : mc_sld_plain(sld, index);
        mark = mc_mark_of_character(text, code, sld->build->pool);
    } else
        mark = mc_mark_find(text, mc_sld_child(node, "Fill") != NULL, sld->build->pool);
    if (mark == NULL)
        report_unsupported_name(sld, mc_sld_child(node, of_file ? "OnlineResource" : "WellKnownName"), "the mark ",
                                text);
    return mark;
}

/* A file that is drawn as a mark, in the colour of its fill, or of its stroke where it has none. */
static bool
read_file_mark(mc_graphic *graphic, mc_sld *sld, const mc_node *node, const char *href)
{
    const mc_node *fill = mc_sld_child(node, "Fill"), *stroke = mc_sld_child(node, "Stroke");
    const mc_node *online = mc_sld_child(node, "OnlineResource"), *name = mc_sld_child(node, "WellKnownName");
    const char *why = NULL;
    mc_paint paint = { .present = false };
    mc_stroke outline = { .width = 0 };
    if (fill != NULL)
        mc_sld_fill(&paint, sld, fill);
    else if (stroke != NULL) {
        mc_sld_stroke(&outline, sld, stroke);
        paint = outline.paint;
    }
    graphic->picture = mc_sld_picture_of_mark(sld, href, &paint, &why);
    if (graphic->picture == NULL)
        report_unsupported_name(sld, name != NULL ? name : online, why, href);
    return graphic->picture != NULL;
}

/* Says it where the font of a mark is not there. */
static void
look_for_font(const mc_mark *mark, mc_sld *sld, const mc_node *node)
{
    const mc_mark *outline;
    mc_error *error = mc_mark_outline(&outline, mark, sld->build->pool);
    if (error != MC_OK)
        mc_complain(sld->build->diagnostics, MC_WARNING, node, "a mark cannot be drawn here: %s",
                    mc_error_chain(error, sld->build->pool));
}

/* False after a complaint. */
static bool
read_mark(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    const mc_node *fill = mc_sld_child(node, "Fill"), *stroke = mc_sld_child(node, "Stroke");
    bool of_file;
    const char *name = name_of_mark(&of_file, sld, node);
    if (name == NULL)
        return false;
    if (strncasecmp(name, "file:", 5) == 0 || (of_file && *name != '\0' && mc_sld_child(node, "MarkIndex") == NULL))
        return read_file_mark(graphic, sld, node, name);
    graphic->mark = find_mark(sld, node, name, of_file);
    if (graphic->mark == NULL)
        return false;
    if (sld->build->diagnostics->thorough)
        look_for_font(graphic->mark, sld, node);
    if (fill != NULL)
        mc_sld_fill(&graphic->fill, sld, fill);
    if (stroke != NULL)
        mc_sld_stroke(&graphic->stroke, sld, stroke);
    if (fill == NULL && stroke == NULL) { /* 11.3.2: grey with a black outline */
        graphic->fill = (mc_paint){ .present = true, .color = { 128, 128, 128, 255 } };
        graphic->stroke = (mc_stroke){ .paint = { .present = true, .color = { 0, 0, 0, 255 } }, .width = 1 };
    }
    if (strcmp(graphic->mark->name, "shape://dot") == 0) /* as large as its stroke is wide */
        graphic->stroke.join = MC_JOIN_ROUND;
    return true;
}

/* False after a complaint. */
static bool
read_external(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element elements[] = { MC_SLD_SILENT("OnlineResource"), MC_SLD_SILENT("InlineContent"),
                                               MC_SLD_SILENT("Format"), MC_SLD_END };
    const mc_node *online = mc_sld_child(node, "OnlineResource"), *content = mc_sld_child(node, "InlineContent");
    const char *href = online == NULL ? NULL : href_of(online);
    if (!mc_sld_check_elements(sld, node, elements, "a graphic"))
        return false;
    if (href == NULL && content == NULL) {
        mc_sld_lacking(sld, node, "a graphic without a file");
        return false;
    }
    const char *why = NULL;
    graphic->picture =
        href != NULL ? mc_sld_picture_of_file(sld, href, &why) : mc_sld_picture_of_content(sld, content, &why);
    if (graphic->picture == NULL)
        report_unsupported_name(sld, online != NULL ? online : content, why, href != NULL ? href : "InlineContent");
    return graphic->picture != NULL;
}

/* Two numbers, in elements whose names end with X and Y. */
static void
read_graphic_pair(void *member, mc_sld *sld, const mc_node *node)
{
    mc_pair *pair = member;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child), last = name[strlen(name) - 1];
        if (last == 'X')
            mc_sld_number(&pair->x, &pair->x_value, sld, child);
        else if (last == 'Y')
            mc_sld_number(&pair->y, &pair->y_value, sld, child);
        else
            report_unsupported_name(sld, child, "an element ", name);
    }
}

void
mc_sld_displacement(mc_pair *pair, mc_sld *sld, const mc_node *node)
{
    read_graphic_pair(pair, sld, node);
}

/* QGIS' ellipses: how much wider than high a mark is; its size is then the width. */
static void
read_flatness(void *member, mc_sld *sld, const mc_node *node)
{
    enum { FLATTEST = 64 };
    mc_graphic *graphic = member;
    double flatness;
    if (graphic->mark != NULL && mc_parse_double(&flatness, mc_sld_plain(sld, node)) && flatness > 0)
        graphic->flatness = fmin(fmax(flatness, 1.0 / FLATTEST), FLATTEST);
    else
        mc_sld_report_option(sld, node, " of a graphic");
}

const mc_sld_element mc_sld_graphic_options[] = { MC_SLD_OPTION("widthHeightFactor", read_flatness, 0, BEYOND, SHOWS),
                                                  MC_SLD_END };

static void
read_graphic_option(void *graphic, mc_sld *sld, const mc_node *node)
{
    if (!mc_sld_read_named(graphic, sld, node, mc_sld_graphic_options, strcmp))
        mc_sld_report_option(sld, node, " of a graphic");
}

/* The first mark or file that can be drawn is (11.3.1); what stands behind it is for those who can not draw it. */
static bool
read_choice(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    static const struct choice {
        const char *name;
        bool (*read)(mc_graphic *graphic, mc_sld *sld, const mc_node *node);
    } choices[] = { { "Mark", read_mark }, { "ExternalGraphic", read_external } };
    bool any = false;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const struct choice *choice = MC_SLD_FIND(choices, mc_sld_name(child), strcmp);
        any |= choice != NULL;
        if (choice != NULL && choice->read(graphic, sld, child))
            return true;
    }
    if (any)
        return false;
    const mc_node none = { .name = "Mark", .text = "", .file = node->file, .line = node->line };
    return read_mark(graphic, sld, &none);
}

static void
read_graphic_size(void *member, mc_sld *sld, const mc_node *node)
{
    mc_graphic *graphic = member;
    mc_sld_number(&graphic->size, &graphic->size_value, sld, node);
}

static void
read_graphic_rotation(void *member, mc_sld *sld, const mc_node *node)
{
    mc_graphic *graphic = member;
    graphic->rotation = mc_sld_value(sld, node);
}

static void
read_graphic_opacity(void *member, mc_sld *sld, const mc_node *node)
{
    mc_graphic *graphic = member;
    mc_sld_number(&graphic->opacity, &graphic->opacity_value, sld, node);
}

const mc_sld_element mc_sld_graphic_elements[] = {
    MC_SLD_SILENT("Mark"), /* read before the others: sizes depend on the mark */
    MC_SLD_SILENT("ExternalGraphic"),
    MC_SLD_OPTION("Size", read_graphic_size, 0, BEYOND, SHOWS),
    MC_SLD_OPTION("Rotation", read_graphic_rotation, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("Opacity", read_graphic_opacity, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("AnchorPoint", read_graphic_pair, offsetof(mc_graphic, anchor), BEYOND, SHOWS),
    MC_SLD_OPTION("Displacement", read_graphic_pair, offsetof(mc_graphic, displacement), BEYOND, SHOWS),
    MC_SLD_ELEMENT("VendorOption", read_graphic_option, 0),
    MC_SLD_END
};

bool
mc_sld_graphic(mc_graphic *graphic, mc_sld *sld, const mc_node *node)
{
    *graphic = (mc_graphic){ .opacity = 1, .anchor = { .x = 0.5, .y = 0.5 } };
    bool drawn = read_choice(graphic, sld, node);
    if (graphic->mark != NULL)
        graphic->size = graphic->mark->hatch != 0 ? HATCH_SIZE : MARK_SIZE;
    else if (graphic->picture != NULL && graphic->picture->tint != NULL)
        graphic->size = MARK_SIZE;
    mc_sld_read_elements(graphic, sld, node, mc_sld_graphic_elements, "a graphic");
    graphic->size = fmin(fmax(graphic->size, 0), MC_STROKE_WIDTH_MAX);
    return drawn;
}

/* ---- Fills and strokes ---- */

/* Of a <GraphicFill>, too, which has no use for gaps. */
const mc_sld_element mc_sld_graphic_stroke_elements[] = {
    MC_SLD_SILENT("Graphic"), MC_SLD_OPTION("Gap", mc_sld_read_length, offsetof(mc_stroke, gap), INSIDE, SHOWS),
    MC_SLD_OPTION("InitialGap", mc_sld_read_length, offsetof(mc_stroke, initial_gap), INSIDE, SHOWS), MC_SLD_END
};

/* The graphic inside of a <GraphicFill> or <GraphicStroke>; NULL after a complaint. */
static mc_graphic *
read_ink_pattern(mc_sld *sld, const mc_node *node)
{
    const mc_node *graphic = mc_sld_child(node, "Graphic");
    mc_graphic *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    bool drawn = false;
    if (mc_sld_check_elements(sld, node, mc_sld_graphic_stroke_elements, "a pattern") && graphic == NULL)
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
read_graphic_stroke(void *member, mc_sld *sld, const mc_node *node)
{
    mc_stroke *stroke = member;
    stroke->graphic = read_ink_pattern(sld, node);
    stroke->paint.present = stroke->graphic != NULL;
    mc_sld_read_known(stroke, sld, node, mc_sld_graphic_stroke_elements);
}

static void
read_stroke_pattern(void *member, mc_sld *sld, const mc_node *node)
{
    mc_paint *paint = member;
    paint->pattern = read_ink_pattern(sld, node);
}

static void
read_fill_pattern(void *member, mc_sld *sld, const mc_node *node)
{
    mc_paint *paint = member;
    paint->pattern = read_ink_pattern(sld, node);
    paint->present = paint->pattern != NULL;
}

static void
read_stroke_parameter(void *stroke, mc_sld *sld, const mc_node *node)
{
    if (mc_sld_read_named(stroke, sld, node, mc_sld_stroke_parameters, strcmp))
        return;
    mc_sld_lacking(
        sld, node,
        apr_psprintf(sld->build->pool, "the parameter %s", mc_config_quote(mc_sld_parameter(node), sld->build->pool)));
}

static void
read_fill_parameter(void *paint, mc_sld *sld, const mc_node *node)
{
    if (!mc_sld_read_named(paint, sld, node, mc_sld_fill_parameters, strcmp))
        mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s> of a fill", mc_sld_name(node)));
}

const mc_sld_element mc_sld_stroke_elements[] = {
    MC_SLD_ELEMENT("CssParameter", read_stroke_parameter, 0), MC_SLD_ELEMENT("SvgParameter", read_stroke_parameter, 0),
    MC_SLD_OPTION("GraphicFill", read_stroke_pattern, offsetof(mc_stroke, paint), INSIDE, SHOWS),
    MC_SLD_OPTION("GraphicStroke", read_graphic_stroke, 0, BEYOND, SHOWS), MC_SLD_END
};

const mc_sld_element mc_sld_fill_elements[] = { MC_SLD_ELEMENT("CssParameter", read_fill_parameter, 0),
                                                MC_SLD_ELEMENT("SvgParameter", read_fill_parameter, 0),
                                                MC_SLD_OPTION("GraphicFill", read_fill_pattern, 0, INSIDE, SHOWS),
                                                MC_SLD_END };

void
mc_sld_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    *stroke = (mc_stroke){ .paint = { .present = true, .color = { 0, 0, 0, 255 } }, .width = 1 };
    mc_sld_read_elements(stroke, sld, node, mc_sld_stroke_elements, "a stroke");
    stroke->width = fmin(stroke->width, MC_STROKE_WIDTH_MAX);
}

void
mc_sld_fill(mc_paint *paint, mc_sld *sld, const mc_node *node)
{
    *paint = (mc_paint){ .present = true, .color = { 128, 128, 128, 255 } };
    mc_sld_read_elements(paint, sld, node, mc_sld_fill_elements, "a fill");
}
