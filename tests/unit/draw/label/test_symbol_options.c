/*
 * Every option of symbolizers, set in turn on a small style: is the option declared, does mc_painter_margin count the
 * option where paint reaches beyond the geometry, and does a legend show the option? A new row in the tables of
 * draw/sld fails here until the row has its effects and a sample below.
 */
#include "styles.h"

#include <math.h>
#include <string.h>

#include "draw/label/label.h"
#include "draw/label/legend.h"
#include "draw/paint/painter.h"
#include "draw/sld/sld_elements.h"

enum { MAP = 240, FIRST = 100, LAST = 140, SYMBOL = 60 }; /* pixels; the geometries lie between FIRST and LAST */

#define LINE(inner) "<Rule><LineSymbolizer>" inner "</LineSymbolizer></Rule>"
#define AREA(inner) "<Rule><PolygonSymbolizer>" inner "</PolygonSymbolizer></Rule>"
#define POINT(inner) "<Rule><PointSymbolizer>" inner "</PointSymbolizer></Rule>"
#define TEXT(inner) "<Rule><TextSymbolizer><Label>ABC</Label>" inner "</TextSymbolizer></Rule>"
#define CSS(name, value) "<CssParameter name='" name "'>" value "</CssParameter>"
#define OPTION(name, value) "<VendorOption name='" name "'>" value "</VendorOption>"
#define PAIR(name, x, y) "<" name "><" name "X>" x "</" name "X><" name "Y>" y "</" name "Y></" name ">"
#define PART(function) "<Geometry><Function name='" function "'><PropertyName>g</PropertyName></Function></Geometry>"
#define GRAPHIC(inner) "<Graphic><Mark><WellKnownName>triangle</WellKnownName></Mark>" inner "</Graphic>"
#define PATTERN "<GraphicFill>" GRAPHIC("<Size>4</Size>") "</GraphicFill>"
#define ROW "<GraphicStroke>" GRAPHIC("<Size>20</Size>") "</GraphicStroke>"
#define PLACED(inner) TEXT("<LabelPlacement>" inner "</LabelPlacement>")
#define SHIELDED(inner) TEXT(GRAPHIC("<Size>10</Size>") inner)

typedef struct list {
    const char *name;
    const mc_sld_element *rows;
    bool of_text;
} list;

#define LIST(name, of_text)                                                                                            \
    {                                                                                                                  \
#name, mc_sld_##name, of_text                                                                                  \
    }

static const list lists[] = { LIST(polygon_elements, false),
                              LIST(line_elements, false),
                              LIST(point_elements, false),
                              LIST(symbolizer_options, false),
                              LIST(fill_elements, false),
                              LIST(fill_parameters, false),
                              LIST(stroke_elements, false),
                              LIST(stroke_parameters, false),
                              LIST(graphic_stroke_elements, false),
                              LIST(graphic_elements, false),
                              LIST(graphic_options, false),
                              LIST(label_elements, true),
                              LIST(label_options, true),
                              LIST(font_parameters, true),
                              LIST(placement_elements, true),
                              LIST(point_placement_elements, true),
                              LIST(line_placement_elements, true),
                              LIST(halo_elements, true) };

/* A style with a gap (%s), and what sets the option there. */
typedef struct sample {
    const char *list, *option, *style, *set;
} sample;

static const sample samples[] = {
    { "polygon_elements", "PerpendicularOffset", AREA("<Fill/>%s"), "<PerpendicularOffset>7</PerpendicularOffset>" },
    { "polygon_elements", "Displacement", AREA("<Fill/>%s"), PAIR("Displacement", "9", "5") },
    { "polygon_elements", "Geometry", AREA("<Fill/>%s"), PART("boundary") },
    { "line_elements", "PerpendicularOffset", LINE("<Stroke/>%s"), "<PerpendicularOffset>7</PerpendicularOffset>" },
    { "line_elements", "Displacement", LINE("<Stroke/>%s"), PAIR("Displacement", "9", "5") },
    { "line_elements", "Geometry", LINE("<Stroke/>%s"), PART("boundary") },
    { "point_elements", "Geometry", POINT(GRAPHIC("") "%s"), PART("vertices") },
    { "symbolizer_options", "graphic-margin", AREA("%s<Fill>" PATTERN "</Fill>"), OPTION("graphic-margin", "3") },
    { "symbolizer_options", "distance", AREA("%s<Fill>" PATTERN "</Fill>"), OPTION("distance", "9,9") },
    { "symbolizer_options", "rotateMarker", LINE("%s<Stroke>" ROW "</Stroke>"), OPTION("rotateMarker", "0") },
    { "symbolizer_options", "labelObstacle", AREA("<Fill/>%s"), OPTION("labelObstacle", "true") },
    { "symbolizer_options", "placement", LINE("%s<Stroke>" ROW "</Stroke>"), OPTION("placement", "firstPoint") },
    { "fill_elements", "GraphicFill", AREA("<Fill>%s</Fill>"), PATTERN },
    { "fill_parameters", "fill", AREA("<Fill>%s</Fill>"), CSS("fill", "#ff0000") },
    { "fill_parameters", "fill-opacity", AREA("<Fill>%s</Fill>"), CSS("fill-opacity", "0.5") },
    { "stroke_elements", "GraphicFill", LINE("<Stroke>" CSS("stroke-width", "9") "%s</Stroke>"), PATTERN },
    { "stroke_elements", "GraphicStroke", LINE("<Stroke>%s</Stroke>"), ROW },
    { "stroke_parameters", "stroke", LINE("<Stroke>%s</Stroke>"), CSS("stroke", "#ff0000") },
    { "stroke_parameters", "stroke-opacity", LINE("<Stroke>%s</Stroke>"), CSS("stroke-opacity", "0.5") },
    { "stroke_parameters", "stroke-width", LINE("<Stroke>%s</Stroke>"), CSS("stroke-width", "9") },
    { "stroke_parameters", "stroke-linejoin", LINE("<Stroke>" CSS("stroke-width", "9") "%s</Stroke>"),
      CSS("stroke-linejoin", "round") },
    { "stroke_parameters", "stroke-linecap", LINE("<Stroke>" CSS("stroke-width", "9") "%s</Stroke>"),
      CSS("stroke-linecap", "square") },
    { "stroke_parameters", "stroke-dasharray", LINE("<Stroke>%s</Stroke>"), CSS("stroke-dasharray", "6 6") },
    { "stroke_parameters", "stroke-dashoffset", LINE("<Stroke>" CSS("stroke-dasharray", "6 6") "%s</Stroke>"),
      CSS("stroke-dashoffset", "3") },
    { "graphic_stroke_elements", "Gap", LINE("<Stroke><GraphicStroke>" GRAPHIC("") "%s</GraphicStroke></Stroke>"),
      "<Gap>5</Gap>" },
    { "graphic_stroke_elements", "InitialGap",
      LINE("<Stroke><GraphicStroke>" GRAPHIC("") "%s</GraphicStroke></Stroke>"), "<InitialGap>4</InitialGap>" },
    { "graphic_elements", "Size", POINT(GRAPHIC("%s")), "<Size>20</Size>" },
    { "graphic_elements", "Rotation", POINT(GRAPHIC("%s")), "<Rotation>45</Rotation>" },
    { "graphic_elements", "Opacity", POINT(GRAPHIC("%s")), "<Opacity>0.5</Opacity>" },
    { "graphic_elements", "AnchorPoint", POINT(GRAPHIC("%s")), PAIR("AnchorPoint", "2", "2") },
    { "graphic_elements", "Displacement", POINT(GRAPHIC("%s")), PAIR("Displacement", "9", "5") },
    { "graphic_options", "widthHeightFactor", POINT(GRAPHIC("%s")), OPTION("widthHeightFactor", "0.5") },
    { "label_elements", "Label", TEXT("%s"), "<Label>Other</Label>" },
    { "label_elements", "Fill", TEXT("%s"), "<Fill>" CSS("fill", "#ff0000") "</Fill>" },
    { "label_elements", "Graphic", TEXT("%s"), GRAPHIC("<Size>20</Size>") },
    { "label_elements", "Priority", TEXT("%s"), "<Priority>3</Priority>" },
    { "label_elements", "Geometry", TEXT("%s"), PART("centroid") },
    { "label_options", "graphic-margin", SHIELDED(OPTION("graphic-resize", "stretch") "%s"),
      OPTION("graphic-margin", "5") },
    { "label_options", "graphic-resize", SHIELDED("%s"), OPTION("graphic-resize", "stretch") },
    { "label_options", "repeat", TEXT("%s"), OPTION("repeat", "50") },
    { "label_options", "maxDisplacement", TEXT("%s"), OPTION("maxDisplacement", "20") },
    { "label_options", "spaceAround", TEXT("%s"), OPTION("spaceAround", "9") },
    { "label_options", "autoWrap", TEXT("%s"), OPTION("autoWrap", "5") },
    { "label_options", "maxAngleDelta", TEXT("%s"), OPTION("maxAngleDelta", "9") },
    { "label_options", "group", TEXT("%s"), OPTION("group", "yes") },
    { "label_options", "labelAllGroup", TEXT("%s"), OPTION("labelAllGroup", "yes") },
    { "label_options", "followLine", TEXT("%s"), OPTION("followLine", "no") },
    { "label_options", "forceLeftToRight", TEXT("%s"), OPTION("forceLeftToRight", "no") },
    { "label_options", "conflictResolution", TEXT("%s"), OPTION("conflictResolution", "no") },
    { "label_options", "partials", TEXT("%s"), OPTION("partials", "true") },
    { "label_options", "underlineText", TEXT("%s"), OPTION("underlineText", "true") },
    { "font_parameters", "font-family", TEXT("<Font>%s</Font>"), CSS("font-family", "DejaVu Serif") },
    { "font_parameters", "font-size", TEXT("<Font>%s</Font>"), CSS("font-size", "20") },
    { "font_parameters", "font-weight", TEXT("<Font>" CSS("font-family", "DejaVu Sans") "%s</Font>"),
      CSS("font-weight", "bold") },
    { "font_parameters", "font-style", TEXT("<Font>" CSS("font-family", "DejaVu Sans") "%s</Font>"),
      CSS("font-style", "italic") },
    { "point_placement_elements", "AnchorPoint", PLACED("<PointPlacement>%s</PointPlacement>"),
      PAIR("AnchorPoint", "1", "1") },
    { "point_placement_elements", "Displacement", PLACED("<PointPlacement>%s</PointPlacement>"),
      PAIR("Displacement", "9", "5") },
    { "point_placement_elements", "Rotation", PLACED("<PointPlacement>%s</PointPlacement>"),
      "<Rotation>45</Rotation>" },
    { "line_placement_elements", "PerpendicularOffset", PLACED("<LinePlacement>%s</LinePlacement>"),
      "<PerpendicularOffset>9</PerpendicularOffset>" },
    { "line_placement_elements", "IsRepeated", PLACED("<LinePlacement>%s</LinePlacement>"),
      "<IsRepeated>true</IsRepeated>" },
    { "line_placement_elements", "Repeat", PLACED("<LinePlacement>%s</LinePlacement>"), "<Repeat>true</Repeat>" },
    { "line_placement_elements", "InitialGap", PLACED("<LinePlacement><Repeat>true</Repeat>%s</LinePlacement>"),
      "<InitialGap>9</InitialGap>" },
    { "line_placement_elements", "Gap", PLACED("<LinePlacement><Repeat>true</Repeat>%s</LinePlacement>"),
      "<Gap>9</Gap>" },
    { "line_placement_elements", "IsAligned", PLACED("<LinePlacement>%s</LinePlacement>"),
      "<IsAligned>false</IsAligned>" },
    { "line_placement_elements", "GeneralizeLine", PLACED("<LinePlacement>%s</LinePlacement>"),
      "<GeneralizeLine>true</GeneralizeLine>" },
    { "halo_elements", "Radius", TEXT("<Halo>%s</Halo>"), "<Radius>4</Radius>" },
    { "halo_elements", "Fill", TEXT("<Halo>%s</Halo>"), "<Fill>" CSS("fill", "#ff0000") "</Fill>" },
};

/* Elements that are no options: tables of their own say what is inside. */
static const char *const containers[] = { "Fill",           "Stroke",        "Graphic", "CssParameter",
                                          "SvgParameter",   "VendorOption",  "Font",    "LabelPlacement",
                                          "PointPlacement", "LinePlacement", "Halo",    NULL };

static const sample *
find_sample(const list *of, const mc_sld_element *row)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        if (strcmp(samples[i].list, of->name) == 0 && strcmp(samples[i].option, row->name) == 0)
            return &samples[i];
    return NULL;
}

static const mc_style *
sample_style(const sample *of, bool set)
{
    const char *gap = strstr(of->style, "%s"), *begin = apr_pstrmemdup(pool, of->style, (size_t)(gap - of->style));
    const mc_style *style = style_of(apr_pstrcat(pool, begin, set ? of->set : "", gap + 2, NULL));
    ck_assert_msg(style != NULL && style_build.diagnostics->complaints->nelts == 0, "%s/%s: %s", of->list, of->option,
                  all_complaints());
    return style;
}

static void
add_geometry(mc_geometry *geometry, mc_shape_kind kind)
{
    static const int corners[4][2] = { { FIRST, FIRST }, { LAST, FIRST + 9 }, { LAST, LAST }, { FIRST, LAST - 9 } };
    mc_geometry_clear(geometry);
    for (int i = 0; i < (kind == MC_SHAPE_POINTS ? 1 : 4); i++)
        mc_shape_add(&geometry->shapes[kind], corners[i][0] * MC_SUBPIXELS, corners[i][1] * MC_SUBPIXELS);
    if (kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(&geometry->shapes[kind], false);
    else
        mc_shape_end_part(&geometry->shapes[kind]);
}

/* A map with one feature of each kind in its middle; by_feature as of mc_painter_create. */
static const mc_pixels *
painted_map(const mc_style *style, bool by_feature)
{
    const double scale = 1000;
    const mc_feature_query query = {
        .srs = "EPSG:3857", .scale = scale, .resolution = 0.00028 * scale, .pixel_grid = { .per_x = 1, .per_y = 1 }
    };
    mc_geometry geometry = { 0 };
    mc_pixels *pixels;
    mc_painter *painter;
    ck_ok(mc_pixels_create(&pixels, MAP, MAP, true, pool));
    mc_pixels_attach(pixels, pool);
    ck_ok(mc_painter_create(&painter, style, pixels, &query, by_feature, pool));
    for (int kind = 0; kind < 3; kind++) {
        const char *const values[] = { "" };
        const mc_feature feature = { .id = kind, .geometry = &geometry, .values = values };
        add_geometry(&geometry, (mc_shape_kind)kind);
        ck_ok(mc_painter_visit(painter, &feature, &ctx));
    }
    ck_ok(mc_painter_finish(painter, &ctx));
    mc_geometry_free(&geometry);
    return pixels;
}

/* How far beside the geometries a pixel of the map is painted. */
static int
painted_reach(const mc_pixels *map)
{
    int reach = 0;
    for (int y = 0; y < map->height; y++)
        for (int x = 0; x < map->width; x++) {
            int beside = (int)fmax(fmax(FIRST - x, x - LAST), fmax(FIRST - y, y - LAST));
            if (beside > reach && map->data[(size_t)y * map->stride + (size_t)x * 4 + 3] > 0)
                reach = beside;
        }
    return reach;
}

static const mc_pixels *
drawn_legend(const mc_style *style)
{
    const mc_legend_options options = { .width = SYMBOL, .height = SYMBOL };
    mc_legend *legend = mc_legend_create(&options, pool);
    mc_pixels *pixels;
    mc_legend_add(legend, "a", style);
    ck_ok(mc_legend_draw(&pixels, legend, &ctx, pool));
    return pixels;
}

static bool
is_same_picture(const mc_pixels *a, const mc_pixels *b)
{
    return a->stride == b->stride && a->height == b->height &&
           memcmp(a->data, b->data, a->stride * (size_t)a->height) == 0;
}

/* What is wrong with the option; NULL: nothing. */
static const char *
fault_of(const list *of, const mc_sld_element *row)
{
    const sample *found = find_sample(of, row);
    if (found == NULL)
        return "has no sample in this test";
    const mc_style *plain = sample_style(found, false), *set = sample_style(found, true);
    double margin = mc_painter_margin(set, 1000);
    bool grown = margin != mc_painter_margin(plain, 1000);
    bool seen = !is_same_picture(drawn_legend(plain), drawn_legend(set));
    if (grown != (row->reach == MC_REACH_BEYOND))
        return grown ? "changes mc_painter_margin: the row is one of BEYOND"
                     : "is declared BEYOND: painter_reach.c has to count the option";
    if (seen != (row->legend == MC_LEGEND_SHOWS))
        return seen ? "changes the legend: the row is one of SHOWS, or the legend has to leave the option out"
                    : "is declared as one that the legend SHOWS, and does not change the legend";
    if (of->of_text)
        return NULL; /* labels are drawn for many tiles at once: margins do not count them */
    for (int by_feature = 0; by_feature < 2; by_feature++) {
        const mc_pixels *map = painted_map(set, by_feature);
        if (painted_reach(map) > margin)
            return "paints farther from the geometry than mc_painter_margin says";
        if (seen && is_same_picture(map, painted_map(plain, by_feature)))
            return by_feature ? "does not change the map" : "does not change a layer that is painted whole";
    }
    return NULL;
}

START_TEST(options_reach_and_show_as_declared)
{
    const char *faults = "";
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (const mc_sld_element *row = lists[l].rows; row->name != NULL; row++) {
            if (row->reach == MC_REACH_UNDECLARED)
                continue;
            const char *fault = fault_of(&lists[l], row);
            if (fault != NULL)
                faults = apr_pstrcat(pool, faults, lists[l].name, "/", row->name, " ", fault, "\n", NULL);
        }
    ck_assert_msg(*faults == '\0', "%s", faults);
}
END_TEST

START_TEST(each_row_is_declared)
{
    int options = 0;
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (const mc_sld_element *row = lists[l].rows; row->name != NULL; row++) {
            bool declared = row->reach != MC_REACH_UNDECLARED && row->legend != MC_LEGEND_UNDECLARED;
            bool contains = mc_sld_choice(row->name, containers, strcmp) >= 0;
            ck_assert_msg(declared || contains || row->read == NULL,
                          "%s/%s is an option: its row is one of MC_SLD_OPTION, with its effects", lists[l].name,
                          row->name);
            options += declared;
        }
    ck_assert_int_eq(options, (int)(sizeof(samples) / sizeof(samples[0]))); /* no sample of what is not there */
}
END_TEST

UNIT_MAIN("symbol options", each_row_is_declared, options_reach_and_show_as_declared)
