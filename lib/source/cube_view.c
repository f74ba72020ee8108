/* What is asked of a cube: dates and pixels. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "source/cube.h"

mc_error *
mc_cube_source_times(apr_array_header_t **spans, const mc_cube_source *source, const mc_render *wanted,
                     apr_pool_t *pool)
{
    *spans = NULL;
    for (int i = 0; i < wanted->dimension_count; i++) {
        const mc_dimension_value *value = &wanted->dimensions[i];
        if (strcasecmp(value->name, source->dimension) != 0 || value->value == NULL)
            continue;
        /* The revision that a dimension of type cube adds tells tiles apart, not pixels: there is only the latest. */
        const char *text = apr_pstrmemdup(pool, value->value, strcspn(value->value, (char[]){ MC_CUBE_REVISION, 0 }));
        return mc_time_parse_list(spans, source->dimension, text, apr_time_now(), pool);
    }
    return MC_OK;
}

mc_error *
mc_cube_source_view(mc_cube_view *view, const mc_cube_source *source, const mc_render *wanted, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &source->cube->shape;
    if (!mc_grid_has_srs(wanted->grid, shape->srs))
        return mc_error_create(pool, MC_ERR_CONFIG, "cube \"%s\" is in %s and cannot be drawn in %s",
                               source->cube->name, shape->srs, wanted->grid->srs);
    const mc_extent *box = &wanted->box;
    *view = (mc_cube_view){ (box->minx - shape->extent.minx) / shape->resolution,
                            (shape->extent.maxy - box->maxy) / shape->resolution,
                            (box->maxx - box->minx) / shape->resolution / wanted->width,
                            (box->maxy - box->miny) / shape->resolution / wanted->height };
    return MC_OK;
}
