/* The styles of layers without a style file: grey, or a colour of the layer's own. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "draw/symbol/mark.h"
#include "source/vector/vector.h"

/* Neither light nor dark, and apart from each other for most eyes: readable on light and dark maps. */
static const mc_color default_colors[] = {
    { 31, 119, 180, 255 }, { 209, 73, 91, 255 }, { 46, 158, 91, 255 },  { 199, 125, 10, 255 }, { 139, 92, 214, 255 },
    { 15, 154, 167, 255 }, { 166, 97, 42, 255 }, { 214, 64, 159, 255 }, { 124, 142, 30, 255 }, { 92, 112, 240, 255 },
};

enum { COLORS = sizeof(default_colors) / sizeof(default_colors[0]), FILL_ALPHA = 90 };

/* Seed of the digests of styles that have no file. */
enum { PLAIN_STYLE = 1 };

/* By the layer's name, or the next colour that no layer of the configuration has, as long as there is one. */
static mc_color
choose_default_color(const char *layer, mc_build *build)
{
    unsigned wanted = (unsigned)(mc_hash64(layer, strlen(layer), 0) % COLORS);
    if (build->colors_taken == (1U << COLORS) - 1)
        build->colors_taken = 0;
    while ((build->colors_taken & 1U << wanted) != 0)
        wanted = (wanted + 1) % COLORS;
    build->colors_taken |= 1U << wanted;
    return default_colors[wanted];
}

static void
set_point_symbol(mc_symbolizer *symbol, mc_color color, apr_pool_t *pool)
{
    const mc_paint fill = { .present = true, .color = color };
    const mc_paint white = { .present = true, .color = { 255, 255, 255, 255 } };
    *symbol = (mc_symbolizer){ .kind = MC_SYMBOL_POINT,
                               .part = MC_PART_POINTS,
                               .graphic = { .mark = mc_mark_find("circle", true, pool),
                                            .fill = fill,
                                            .stroke = { .paint = white, .width = 1 },
                                            .size = 8,
                                            .opacity = 1,
                                            .anchor = { .x = 0.5, .y = 0.5 } } };
}

static mc_style *
make_plain_style(const mc_symbolizer *symbols, int count, apr_pool_t *pool)
{
    mc_rule_style *rules = apr_pcalloc(pool, sizeof(*rules));
    *rules = (mc_rule_style){ .name = "all", .max_scale = HUGE_VAL, .symbolizers = symbols, .symbolizer_count = count };
    mc_style_pass *pass = apr_pcalloc(pool, sizeof(*pass));
    *pass = (mc_style_pass){ .rules = rules, .rule_count = 1 };
    mc_style *style = apr_pcalloc(pool, sizeof(*style));
    *style = (mc_style){ .name = "plain", .passes = pass, .pass_count = 1 };
    return style;
}

/* Grey areas and dark thin lines; points are not drawn. */
static mc_style *
make_grey_style(apr_pool_t *pool)
{
    const mc_paint dark = { .present = true, .color = { 64, 64, 64, 255 } };
    const mc_paint grey = { .present = true, .color = { 208, 208, 208, 255 } };
    mc_symbolizer *symbols = apr_pcalloc(pool, sizeof(*symbols) * 2);
    symbols[0] = (mc_symbolizer){ .kind = MC_SYMBOL_POLYGON, .fill = grey };
    symbols[1] = (mc_symbolizer){ .kind = MC_SYMBOL_LINE, .stroke = { .paint = dark, .width = 1 } };
    return make_plain_style(symbols, 2, pool);
}

/* Pale areas with an outline, lines, and round markers for points, all in one colour. */
static mc_style *
make_colored_style(const char *layer, mc_build *build)
{
    mc_color color = choose_default_color(layer, build), pale = color;
    pale.alpha = FILL_ALPHA;
    mc_symbolizer *symbols = apr_pcalloc(build->pool, sizeof(*symbols) * 3);
    symbols[0] = (mc_symbolizer){ .kind = MC_SYMBOL_POLYGON, .fill = { .present = true, .color = pale } };
    symbols[1] = (mc_symbolizer){ .kind = MC_SYMBOL_LINE,
                                  .stroke = { .paint = { .present = true, .color = color }, .width = 1.5 } };
    set_point_symbol(&symbols[2], color, build->pool);
    return make_plain_style(symbols, 3, build->pool);
}

const mc_style *
mc_vector_default_style(const mc_vector_layer *layer, mc_build *build)
{
    mc_style *style = layer->colored ? make_colored_style(layer->name, build) : make_grey_style(build->pool);
    style->digest = mc_hash64(&style->passes->rules->symbolizers[1].stroke.paint.color, sizeof(mc_color), PLAIN_STYLE);
    return style;
}
