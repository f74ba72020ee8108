/* Drawing vector layers: see vector.h. */
#include "source/vector.h"

#include <apr_strings.h>
#include <math.h>

#include "base/metrics.h"
#include "mapcache/trace.h"

/* How far a map's resolution and corner may be from those of a level and still count as its own. */
#define SAME_RESOLUTION 1e-7
#define SAME_CORNER 1e-3 /* pixels */

/* The same pixel of the same level has the same geometry in whatever tile or map it is drawn. */
static bool
lattice_of_level(mc_lattice *lattice, const mc_render *wanted, double resolution)
{
    const mc_grid *grid = wanted->grid;
    for (int z = 0; z < grid->level_count; z++) {
        double own = grid->levels[z].resolution;
        if (fabs(own - resolution) > own * SAME_RESOLUTION)
            continue;
        mc_extent first = mc_grid_tile_extent(grid, z, 0, 0);
        double left = (wanted->box.minx - first.minx) / own, top = (first.maxy - wanted->box.maxy) / own;
        if (fabs(left - rint(left)) > SAME_CORNER || fabs(top - rint(top)) > SAME_CORNER)
            return false;
        *lattice = (mc_lattice){ first.minx, first.maxy, 1 / own, 1 / own, (int64_t)rint(left), (int64_t)rint(top), 0 };
        return true;
    }
    return false;
}

void
mc_vector_query(mc_feature_query *query, const mc_render *wanted, double margin)
{
    const mc_extent *box = &wanted->box;
    double x = (box->maxx - box->minx) / wanted->width, y = (box->maxy - box->miny) / wanted->height;
    if (fabs(x - y) > x * SAME_RESOLUTION || !lattice_of_level(&query->lattice, wanted, x))
        query->lattice = (mc_lattice){ box->minx, box->maxy, 1 / x, 1 / y, 0, 0, 0 };
    query->lattice.thinning = MC_SUBPIXELS / 4;
    query->srs = wanted->grid->srs;
    query->resolution = fmax(x, y);
    query->scale = query->resolution * wanted->grid->metres_per_unit / 0.00028;
    query->box =
        (mc_extent){ box->minx - margin * x, box->miny - margin * y, box->maxx + margin * x, box->maxy + margin * y };
    query->dimensions = wanted->dimensions;
    query->dimension_count = wanted->dimension_count;
}

static mc_error *
draw_layer(mc_pixels *canvas, const mc_vector_layer *layer, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_feature_query query = { .attributes = layer->style->attributes,
                               .attribute_count = layer->style->attribute_count };
    mc_painter *painter;
    int64_t skipped = 0;
    mc_vector_query(&query, wanted, 0);
    mc_vector_query(&query, wanted, mc_painter_margin(layer->style, query.scale));
    MC_TRY(mc_painter_create(&painter, layer->style, canvas, &query, false, pool));
    MC_TRY(layer->data->ops->read(layer->data, &query, mc_painter_take, painter, &skipped, ctx, pool));
    return mc_painter_finish(painter, ctx);
}

mc_error *
mc_vector_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_vector_render");
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_vector_maps_total, 1);
    mc_vector_source *vector = (mc_vector_source *)source;
    apr_pool_t *scratch;
    MC_TRY(mc_pixels_create(&map->pixels, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(map->pixels, pool);
    apr_pool_create(&scratch, pool);
    mc_error *error = MC_OK;
    for (int i = 0; i < vector->layer_count && error == MC_OK; i++) {
        apr_pool_clear(scratch);
        error = mc_error_copy(draw_layer(map->pixels, vector->layers[i], wanted, ctx, scratch), pool);
    }
    apr_pool_destroy(scratch);
    map->pixels->opacity = MC_OPACITY_UNKNOWN;
    return error;
}

/* Without a style file: grey areas and dark thin lines. */
static const mc_style *
plain_style(apr_pool_t *pool)
{
    const mc_ink dark = { .present = true, .color = { 64, 64, 64, 255 } };
    const mc_ink grey = { .present = true, .color = { 208, 208, 208, 255 } };
    mc_symbolizer *symbols = apr_pcalloc(pool, sizeof(*symbols) * 2);
    symbols[0] = (mc_symbolizer){ .kind = MC_SYMBOL_POLYGON, .fill = grey };
    symbols[1] = (mc_symbolizer){ .kind = MC_SYMBOL_LINE, .stroke = { .ink = dark, .width = 1 } };
    mc_rule_style *rules = apr_pcalloc(pool, sizeof(*rules));
    *rules = (mc_rule_style){ .name = "all", .max_scale = HUGE_VAL, .symbolizers = symbols, .symbolizer_count = 2 };
    mc_style_pass *pass = apr_pcalloc(pool, sizeof(*pass));
    *pass = (mc_style_pass){ rules, 1 };
    mc_style *style = apr_pcalloc(pool, sizeof(*style));
    *style = (mc_style){ .name = "plain", .passes = pass, .pass_count = 1 };
    return style;
}

bool
mc_vector_layer_finish(mc_vector_layer *layer, const mc_node *node, mc_build *build)
{
    const mc_node *at = mc_node_child(node, "style");
    layer->style = layer->style_file == NULL ? plain_style(build->pool)
                                             : mc_style_read(layer->style_file, layer->style_name, at, build);
    return layer->style != NULL;
}

bool
mc_vector_layers(mc_vector_source *source, mc_vector_layer *(*from_config)(const mc_node *node, mc_build *build),
                 mc_build *build)
{
    source->base.source.needs_format = true;
    source->base.source.info_formats = mc_vector_info_formats(build->pool);
    source->layers = apr_pcalloc(build->pool, sizeof(*source->layers) * (size_t)(source->nodes->nelts + 1));
    for (int i = 0; i < source->nodes->nelts; i++) {
        mc_vector_layer *layer = from_config(APR_ARRAY_IDX(source->nodes, i, const mc_node *), build);
        if (layer == NULL)
            return false;
        source->layers[source->layer_count++] = layer;
    }
    return true;
}
