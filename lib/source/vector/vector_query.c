/* What is read of a layer for a map: the query, the fields that are shown. */
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "source/vector/vector.h"

/* How far a map's resolution and corner may be from those of a level and still count as its own. */
#define SAME_RESOLUTION 1e-7
#define SAME_CORNER 1e-3 /* pixels */

/* The same pixel of the same level has the same geometry in whatever tile or map it is drawn. */
static bool
pixel_grid_of_level(mc_pixel_grid *pixel_grid, const mc_render *wanted, double resolution)
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
        *pixel_grid = (mc_pixel_grid){ .x0 = first.minx,
                                       .y0 = first.maxy,
                                       .per_x = 1 / own,
                                       .per_y = 1 / own,
                                       .left = (int64_t)rint(left),
                                       .top = (int64_t)rint(top) };
        return true;
    }
    return false;
}

void
mc_vector_query(mc_feature_query *query, const mc_render *wanted, double margin)
{
    const mc_extent *box = &wanted->box;
    double x = (box->maxx - box->minx) / wanted->width, y = (box->maxy - box->miny) / wanted->height;
    if (fabs(x - y) > x * SAME_RESOLUTION || !pixel_grid_of_level(&query->pixel_grid, wanted, x))
        query->pixel_grid = (mc_pixel_grid){ .x0 = box->minx, .y0 = box->maxy, .per_x = 1 / x, .per_y = 1 / y };
    query->pixel_grid.thinning = MC_SUBPIXELS / 4;
    query->srs = wanted->grid->srs;
    query->resolution = fmax(x, y);
    query->density = wanted->density;
    query->scale = query->resolution * mc_query_density(query) * wanted->grid->metres_per_unit / MC_PIXEL_METRES;
    query->box =
        (mc_extent){ box->minx - margin * x, box->miny - margin * y, box->maxx + margin * x, box->maxy + margin * y };
    query->dimensions = wanted->dimensions;
    query->dimension_count = wanted->dimension_count;
}

bool
mc_vector_layer_shows(const mc_vector_layer *layer, double scale)
{
    return scale >= layer->min_scale && (layer->max_scale == 0 || scale < layer->max_scale) &&
           mc_painter_shows(layer->style, scale);
}

static bool
is_shown(const mc_vector_layer *layer, const char *name)
{
    if (layer->shown == NULL)
        return true;
    for (int i = 0; i < layer->shown->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(layer->shown, i, const char *), name) == 0)
            return true;
    return false;
}

mc_error *
mc_vector_fields(apr_array_header_t **fields, const char ***names, const mc_vector_layer *layer, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    apr_array_header_t *all = NULL;
    if (layer->shown == NULL || layer->shown->nelts > 0)
        MC_TRY(layer->data->ops->fields(&all, layer->data, ctx, pool));
    int count = all == NULL ? 0 : all->nelts;
    *fields = apr_array_make(pool, count + 1, sizeof(mc_field));
    *names = apr_palloc(pool, sizeof(**names) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        mc_field field = APR_ARRAY_IDX(all, i, mc_field);
        if (!is_shown(layer, field.name))
            continue;
        (*names)[(*fields)->nelts] = field.name;
        APR_ARRAY_PUSH(*fields, mc_field) = field;
    }
    return MC_OK;
}
