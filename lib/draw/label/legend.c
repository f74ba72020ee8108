/* See legend.h. */
#include "draw/label/legend.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/font/text.h"
#include "draw/label/label.h"
#include "draw/paint/painter.h"
#include "draw/style/expression.h"
#include "draw/style/label_style.h"
#include "grid/earth.h"
#include "text/text.h"

/* Lengths are pixels of a style. */
enum {
    EDGE = 4,           /* around the whole, and between rows */
    GAP = 8,            /* between a symbol and its title */
    TITLE_BYTES = 100,  /* of a title that are shown */
    TITLE_PIXELS = 600, /* at most so wide */
};

#define FONT_SIZE 13.0

static const mc_color ink = { 32, 32, 32, 255 };

typedef struct legend_row {
    const char *title;
    apr_array_header_t *rules; /* of const mc_rule_style *: drawn over each other */
    const mc_style *style;
    mc_text_line line;
} legend_row;

struct mc_legend {
    mc_legend_options options;
    int edge, gap;            /* pixels */
    float font_size;          /* pixels */
    apr_array_header_t *rows; /* of row */
    const mc_font *font;      /* NULL: no text */
    bool shaped;
    apr_pool_t *pool;
};

mc_legend *
mc_legend_create(const mc_legend_options *options, apr_pool_t *pool)
{
    mc_legend *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_legend){ .options = *options, .rows = apr_array_make(pool, 16, sizeof(legend_row)), .pool = pool };
    const double density = options->density > 0 ? options->density : 1;
    made->options.density = density;
    made->edge = (int)lrint(EDGE * density);
    made->gap = (int)lrint(GAP * density);
    made->font_size = (float)(FONT_SIZE * density);
    if (options->rule != NULL)
        made->options.rule = apr_pstrdup(pool, options->rule);
    return made;
}

bool
mc_legend_is_empty(const mc_legend *legend)
{
    return legend->rows->nelts == 0;
}

static bool
is_rule_requested(const mc_legend_options *options, const mc_rule_style *rule)
{
    if ((rule->symbolizer_count == 0 && rule->text_count == 0) || rule->inclusion == MC_INCLUSION_MAP_ONLY)
        return false;
    if (options->scale > 0 && (options->scale < rule->min_scale || options->scale >= rule->max_scale))
        return false;
    return options->rule == NULL || (rule->name != NULL && strcmp(rule->name, options->rule) == 0) ||
           (rule->title != NULL && strcmp(rule->title, options->rule) == 0);
}

/* The row of that title of the layer whose rows begin at `first`; or NULL. */
static legend_row *
find_legend_row(const mc_legend *legend, int first, const char *title)
{
    for (int i = first; title != NULL && i < legend->rows->nelts; i++) {
        legend_row *one = &APR_ARRAY_IDX(legend->rows, i, legend_row);
        if (one->title != NULL && strcmp(one->title, title) == 0)
            return one;
    }
    return NULL;
}

void
mc_legend_add(mc_legend *legend, const char *layer, const mc_style *style)
{
    int first = legend->rows->nelts;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++) {
            const mc_rule_style *rule = &style->passes[p].rules[r];
            if (!is_rule_requested(&legend->options, rule) || legend->rows->nelts == MC_LEGEND_ROWS_MAX)
                continue;
            const char *title = rule->title != NULL ? rule->title : rule->name;
            legend_row *into = find_legend_row(legend, first, title);
            if (into == NULL) {
                into = apr_array_push(legend->rows);
                *into = (legend_row){ .title = title,
                                      .style = style,
                                      .rules = apr_array_make(legend->pool, 1, sizeof(rule)) };
            }
            APR_ARRAY_PUSH(into->rules, const mc_rule_style *) = rule;
        }
    if (legend->rows->nelts == first + 1) { /* a style of one rule is the layer's */
        legend_row *only = &APR_ARRAY_IDX(legend->rows, first, legend_row);
        only->title = only->title != NULL ? only->title : layer;
    }
}

static mc_error *
shape_titles(mc_legend *legend)
{
    const mc_font_spec plain = { .weight = 400 };
    MC_TRY(mc_text_font(&legend->font, &plain, legend->pool));
    for (int i = 0; i < legend->rows->nelts; i++) {
        legend_row *one = &APR_ARRAY_IDX(legend->rows, i, legend_row);
        if (one->title == NULL)
            continue;
        const char *text = mc_message_text(one->title, TITLE_BYTES, legend->pool);
        MC_TRY(mc_text_shape(&one->line, legend->font, text, strlen(text), legend->pool));
    }
    return MC_OK;
}

static int
row_height(const mc_legend *legend)
{
    int text =
        legend->font == NULL ? 0 : (int)ceilf((legend->font->ascent + legend->font->descent) * legend->font_size);
    return text > legend->options.height ? text : legend->options.height;
}

void
mc_legend_measure(mc_legend *legend, int *width, int *height, mc_ctx *ctx)
{
    int count = legend->rows->nelts;
    *width = legend->options.width;
    *height = legend->options.height;
    if (legend->options.rule != NULL || count == 0)
        return;
    if (!legend->shaped) {
        mc_error *error = shape_titles(legend);
        if (error != MC_OK) {
            mc_log_error(ctx, MC_LOG_WARN, error);
            legend->font = NULL;
        }
        legend->shaped = true;
    }
    float widest = 0;
    for (int i = 0; legend->font != NULL && i < count; i++)
        widest = fmaxf(widest, APR_ARRAY_IDX(legend->rows, i, legend_row).line.width * legend->font_size);
    widest = fminf(widest, (float)(TITLE_PIXELS * legend->options.density));
    *width += 2 * legend->edge + (widest > 0 ? legend->gap + (int)ceilf(widest) : 0);
    *height = count * (row_height(legend) + legend->edge) + legend->edge;
}

/* What the rules of a row draw. */
typedef struct drawn {
    bool areas, lines, strokes;
} drawn;

static drawn
what_is_drawn(const legend_row *of)
{
    drawn what = { false, false, false };
    for (int r = 0; r < of->rules->nelts; r++) {
        const mc_rule_style *rule = APR_ARRAY_IDX(of->rules, r, const mc_rule_style *);
        for (int i = 0; i < rule->symbolizer_count; i++) {
            what.areas |= rule->symbolizers[i].kind == MC_SYMBOL_POLYGON;
            what.lines |= rule->symbolizers[i].kind == MC_SYMBOL_LINE;
            what.strokes |= rule->symbolizers[i].stroke.paint.present;
        }
    }
    return what;
}

/* What a symbol is shown on: an area, a line that turns, or a point. Outlines lie in the middle of their pixels. */
static void
make_legend_sample(mc_geometry *geometry, const legend_row *of, const mc_legend_options *options)
{
    const int width = options->width, height = options->height;
    const drawn what = what_is_drawn(of);
    mc_shape_kind kind = what.areas ? MC_SHAPE_POLYGONS : what.lines ? MC_SHAPE_LINES : MC_SHAPE_POINTS;
    int right = width * MC_SUBPIXELS, bottom = height * MC_SUBPIXELS,
        edge = what.strokes ? (int)(options->density * MC_SUBPIXELS / 2) : 0;
    const mc_shape_point corners[3][4] = {
        [MC_SHAPE_POINTS] = { { right / 2, bottom / 2 } },
        [MC_SHAPE_LINES] = { { right / 16, bottom * 15 / 16 },
                             { right * 3 / 8, bottom * 3 / 8 },
                             { right * 5 / 8, bottom * 5 / 8 },
                             { right * 15 / 16, bottom / 16 } },
        [MC_SHAPE_POLYGONS] = { { edge, edge },
                                { right - edge, edge },
                                { right - edge, bottom - edge },
                                { edge, bottom - edge } },
    };
    mc_geometry_clear(geometry);
    mc_shape *shape = &geometry->shapes[kind];
    for (int i = 0; i < (kind == MC_SHAPE_POINTS ? 1 : 4); i++)
        mc_shape_add(shape, corners[kind][i].x, corners[kind][i].y);
    if (kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(shape, false);
    else
        mc_shape_end_part(shape);
}

/* Makes a graphic behind letters as large as there is room for it, with all that labels keep free around one. */
static void
shrink_shield(mc_text_symbol *text, int side)
{
    const mc_stroke *stroke = &text->graphic.stroke;
    double room = fmax(4, side - 4 * (stroke->paint.present ? stroke->width : 0) - 5);
    text->graphic.size = fmin(text->graphic.size, room);
    for (int i = 0; i < 4; i++)
        text->graphic_margin[i] = fmin(text->graphic_margin[i], 0.5);
    if (text->shielded)
        text->size.constant = fmin(text->size.constant, room * 0.6);
}

/* How a rule writes: two letters in the middle, small enough for a symbol of that side, in pixels of a style. */
static const mc_text_symbol *
letters_of(const mc_rule_style *rule, int side, apr_pool_t *pool)
{
    static const mc_expression letters = { .kind = MC_LITERAL, .literal = "Aa", .number = NAN };
    mc_text_symbol *text = apr_pmemdup(pool, &rule->texts[0], sizeof(*text));
    text->label = &letters;
    text->placement = MC_LABEL_POINT;
    text->anchored = text->overlapping = true;
    text->anchor_x = text->anchor_y = (mc_label_number){ .constant = 0.5 };
    text->displacement_x = text->displacement_y = text->rotation = (mc_label_number){ 0 };
    text->uom = MC_UOM_PIXEL;
    text->size = (mc_label_number){ .constant = fmin(text->size.constant, side * 0.45) };
    text->halo.present = false;
    shrink_shield(text, side);
    return text;
}

/* The rules of a row without their filters and scales, one after the other: of one feature that is the same as pass
 * after pass. */
static const mc_style *
style_of(const legend_row *of, int side, apr_pool_t *pool)
{
    mc_style *style = apr_pmemdup(pool, of->style, sizeof(*style));
    mc_style_pass *pass = apr_pcalloc(pool, sizeof(*pass));
    mc_rule_style *rules = apr_pcalloc(pool, sizeof(*rules) * (size_t)of->rules->nelts);
    for (int i = 0; i < of->rules->nelts; i++) {
        mc_rule_style *rule = &rules[i];
        *rule = *APR_ARRAY_IDX(of->rules, i, const mc_rule_style *);
        rule->filter = NULL;
        rule->inclusion = MC_INCLUSION_NORMAL;
        rule->is_else = false;
        rule->min_scale = 0;
        rule->max_scale = HUGE_VAL;
        if (rule->legend != NULL) { /* LegendGraphic: instead of all that the rule draws */
            mc_symbolizer *instead = apr_pcalloc(pool, sizeof(*instead));
            *instead = (mc_symbolizer){ .kind = MC_SYMBOL_POINT, .graphic = *rule->legend };
            rule->symbolizers = instead;
            rule->symbolizer_count = 1;
            rule->text_count = 0;
        }
        if (rule->text_count > 0) {
            rule->texts = letters_of(rule, side, pool);
            rule->text_count = 1;
        }
    }
    *pass = (mc_style_pass){ .rules = rules, .rule_count = of->rules->nelts };
    style->passes = pass;
    style->pass_count = 1;
    return style;
}

/* Paints a symbol at its place: in pixels of its own, so that nothing of it reaches over its frame. */
static mc_error *
draw_symbol(mc_pixels *pixels, const mc_legend *legend, const legend_row *of, int x, int y, mc_ctx *ctx,
            apr_pool_t *pool)
{
    /* where the symbols' sizes are lengths on the ground: a scale at which they can be seen */
    double scale = legend->options.scale > 0 ? legend->options.scale : 25000;
    mc_geometry geometry = { 0 };
    mc_painter *painter;
    mc_pixels *frame;
    const double density = legend->options.density;
    const int side = (int)(fmin(legend->options.width, legend->options.height) / density);
    const mc_style *style = style_of(of, side, pool);
    mc_feature_query map = { .srs = "EPSG:3857",
                             .box = { 0, 0, legend->options.width, legend->options.height },
                             .pixel_grid = { .per_x = 1, .per_y = 1 },
                             .resolution = MC_PIXEL_METRES * scale / density,
                             .density = density,
                             .scale = scale,
                             .attributes = style->attributes,
                             .attribute_count = style->attribute_count };
    const char **values = apr_pcalloc(pool, sizeof(*values) * (size_t)(style->attribute_count + 1));
    const mc_feature feature = { .geometry = &geometry, .values = values, .query = &map };
    MC_TRY(mc_pixels_create(&frame, legend->options.width, legend->options.height, true, pool));
    mc_pixels_attach(frame, pool);
    mc_labels *labels = mc_labels_create(mc_canvas_of(frame, pool), pool);
    mc_labels_set_density(labels, density);
    MC_TRY(mc_painter_create(&painter, style, frame, &map, true, pool));
    mc_labels_next_layer(labels, scale);
    mc_painter_set_labels(painter, mc_labels_visit, labels);
    make_legend_sample(&geometry, of, &legend->options);
    mc_error *error = mc_painter_visit(painter, &feature, ctx);
    if (error == MC_OK)
        error = mc_painter_finish(painter, ctx);
    mc_geometry_free(&geometry);
    MC_TRY(error);
    if ((error = mc_labels_finish(labels, ctx)) != MC_OK) /* no font: a symbol without letters */
        mc_log_error(ctx, MC_LOG_WARN, error);
    frame->opacity = MC_OPACITY_UNKNOWN;
    mc_pixels_over(pixels, x, y, frame);
    return MC_OK;
}

static void
add_legend_glyph(mc_shape *shape, const mc_glyph_outline *outline, float x, float y)
{
    for (int ring = 0, i = 0; ring < outline->ring_count; ring++) {
        for (; i < outline->ends[ring]; i++)
            mc_shape_add(shape, (int32_t)lrintf((x + outline->points[i * 2]) * MC_SUBPIXELS),
                         (int32_t)lrintf((y + outline->points[i * 2 + 1]) * MC_SUBPIXELS));
        mc_shape_end_part(shape);
    }
}

/* A title, from its left end at the baseline. */
static mc_error *
draw_title(mc_pixels *pixels, mc_area *coverage, uint8_t *mask, const mc_text_line *line, float size, float x, float y,
           apr_pool_t *pool)
{
    mc_shape shape = { .kind = MC_SHAPE_POLYGONS };
    mc_error *error = MC_OK;
    for (int i = 0; i < line->count && error == MC_OK; i++) {
        const mc_glyph *glyph = &line->glyphs[i];
        mc_glyph_outline outline = { 0 };
        error = mc_text_outline(&outline, glyph->face, glyph->index, size, true, pool);
        if (error == MC_OK)
            add_legend_glyph(&shape, &outline, x + glyph->x * size, y - glyph->y * size);
    }
    mc_area_add(coverage, &shape, 0, 0);
    mc_brush_fill(pixels, coverage, MC_NON_ZERO, ink, mask);
    mc_shape_free(&shape);
    return error;
}

static mc_error *
draw_rows(mc_pixels *pixels, const mc_legend *legend, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_area *coverage;
    uint8_t *mask = apr_palloc(pool, (size_t)pixels->width + MC_MASK_MARGIN);
    int height = row_height(legend);
    MC_TRY(mc_area_create(&coverage, pixels->width, pixels->height, pool));
    for (int i = 0; i < legend->rows->nelts; i++) {
        const legend_row *one = &APR_ARRAY_IDX(legend->rows, i, legend_row);
        int top = legend->edge + i * (height + legend->edge);
        MC_TRY(draw_symbol(pixels, legend, one, legend->edge, top + (height - legend->options.height) / 2, ctx, pool));
        if (legend->font == NULL || one->line.count == 0)
            continue;
        float middle = (float)top + (float)height / 2;
        float baseline = roundf(middle + (legend->font->ascent - legend->font->descent) * legend->font_size / 2);
        const float left = (float)(legend->edge + legend->options.width + legend->gap);
        MC_TRY(draw_title(pixels, coverage, mask, &one->line, legend->font_size, left, baseline, pool));
    }
    return MC_OK;
}

mc_error *
mc_legend_draw(mc_pixels **pixels, mc_legend *legend, mc_ctx *ctx, apr_pool_t *pool)
{
    static const uint8_t white[4] = { 255, 255, 255, 255 };
    int width, height;
    mc_legend_measure(legend, &width, &height, ctx);
    MC_TRY(mc_pixels_create(pixels, width, height, true, pool));
    mc_pixels_attach(*pixels, pool);
    if (!legend->options.transparent)
        mc_pixels_fill(*pixels, white);
    if (legend->rows->nelts == 0)
        return MC_OK;
    mc_error *error = legend->options.rule == NULL
                          ? draw_rows(*pixels, legend, ctx, pool)
                          : draw_symbol(*pixels, legend, &APR_ARRAY_IDX(legend->rows, 0, legend_row), 0, 0, ctx, pool);
    (*pixels)->opacity = MC_OPACITY_UNKNOWN;
    return error;
}
