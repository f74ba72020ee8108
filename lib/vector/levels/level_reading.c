/* See level_reading.h. */
#include "vector/levels/level_reading.h"

#include "text/text.h"

/* Features after which what was needed for them is given back. */
enum { LEVEL_BATCH = 64 };

static void
place_level_box(mc_level_reading *r)
{
    const mc_pixel_grid *grid = &r->base->map->pixel_grid;
    const mc_extent *box = &r->base->map->box;
    r->box[0] = ((box->minx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS;
    r->box[1] = ((grid->y0 - box->maxy) * grid->per_y - (double)grid->top) * MC_SUBPIXELS;
    r->box[2] = ((box->maxx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS;
    r->box[3] = ((grid->y0 - box->miny) * grid->per_y - (double)grid->top) * MC_SUBPIXELS;
}

/* Cells reach beyond the map, and so do the features in them. */
static bool
is_in_level_box(const mc_level_reading *r)
{
    int32_t bounds[4];
    return mc_geometry_bounds(&r->base->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]) &&
           bounds[0] <= r->box[2] && bounds[2] >= r->box[0] && bounds[1] <= r->box[3] && bounds[3] >= r->box[1];
}

/* A null is what the table gives for it (mc_postgis_whole). */
static int64_t
read_level_id(const mc_level_reading *r, const mc_level_feature *feature)
{
    int64_t id = 0;
    const char *text = r->ids ? feature->values[r->base->map->attribute_count] : NULL;
    return text != NULL && mc_parse_int64(&id, text, INT64_MIN, INT64_MAX) ? id : 0;
}

static mc_error *
visit_level_feature(mc_level_reading *r, const mc_level_feature *feature)
{
    mc_feature_reading *base = r->base;
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&base->geometry, feature->geometry, feature->size,
                                                                     &base->map->pixel_grid, r->scratch);
    if ((error == MC_OK && !is_in_level_box(r)) || !mc_reading_draws(base, error, r->scratch))
        return MC_OK;
    r->features++;
    return mc_reading_visit(base, read_level_id(r, feature), feature->values);
}

mc_error *
mc_level_reading_visit(mc_level_reading *r)
{
    mc_level_feature feature;
    for (int64_t i = 1; mc_level_window_next(&feature, r->window); i++) {
        MC_TRY(mc_error_copy(visit_level_feature(r, &feature), r->base->ctx->pool));
        if (i % LEVEL_BATCH == 0) {
            apr_pool_clear(r->scratch);
            MC_TRY(mc_ctx_check(r->base->ctx, r->base->ctx->pool));
        }
    }
    mc_level_window_clear(r->window);
    return MC_OK;
}

void
mc_level_reading_begin(mc_level_reading *r, mc_feature_reading *base, bool ids, apr_pool_t *pool)
{
    *r = (mc_level_reading){ .base = base,
                             .window = mc_level_window_create(base->map->attribute_count + ids, pool),
                             .ids = ids };
    place_level_box(r);
    apr_pool_create(&r->scratch, pool);
}

void
mc_level_reading_end(mc_level_reading *r)
{
    apr_pool_destroy(r->scratch);
}
