/* See image_placement.h. */
#include "ingest/pyramid/image_placement.h"

#include <math.h>

enum { NET = 4, MARGIN = 2 };

static void
invert_geotransform(double out[6], const double a[6])
{
    double determinant = a[1] * a[5] - a[2] * a[4];
    out[1] = a[5] / determinant;
    out[2] = -a[2] / determinant;
    out[4] = -a[4] / determinant;
    out[5] = a[1] / determinant;
    out[0] = -(out[1] * a[0] + out[2] * a[3]);
    out[3] = -(out[4] * a[0] + out[5] * a[3]);
}

mc_error *
mc_image_placement_create(mc_image_placement *placement, const mc_raster_info *image, const mc_grid *grid,
                          apr_pool_t *pool)
{
    *placement = (mc_image_placement){ .image = image, .grid = grid, .box = image->extent };
    mc_projection *projection = NULL;
    if (image->srs != NULL && !mc_grid_has_srs(grid, image->srs))
        MC_TRY(mc_projection_open(&projection, image->srs, grid->srs, pool));
    invert_geotransform(placement->inverse, image->affine);
    placement->upright = projection == NULL && image->upright;
    if (projection != NULL && !mc_projection_box(&placement->box, projection, false))
        return mc_error_create(pool, MC_ERR_CORRUPT, "its place cannot be transformed to %s", grid->srs);
    return mc_extent_valid(&placement->box) ? MC_OK
                                            : mc_error_create(pool, MC_ERR_CORRUPT, "it lies nowhere in %s", grid->srs);
}

/* What rounding has left of a whole number. */
static double
snap_near_integer(double value)
{
    double nearest = nearbyint(value);
    return fabs(value - nearest) < 1e-6 ? nearest : value;
}

mc_image_placement_scale
mc_image_placement_tile(const mc_image_placement *placement, int z, int x, int y)
{
    const double *a = placement->image->affine;
    mc_extent tile = mc_grid_tile_extent(placement->grid, z, x, y);
    double resolution = placement->grid->levels[z].resolution;
    mc_image_placement_scale scale = { snap_near_integer((tile.minx - a[0]) / a[1]),
                                       snap_near_integer((tile.maxy - a[3]) / a[5]), resolution / a[1],
                                       resolution / -a[5] };
    if (fabs(scale.scale_x - 1) < 1e-9)
        scale.scale_x = 1;
    if (fabs(scale.scale_y - 1) < 1e-9)
        scale.scale_y = 1;
    return scale;
}

void
mc_image_placement_points(const mc_image_placement *placement, const mc_projection *projection, double *xy,
                          size_t count)
{
    const double *inverse = placement->inverse;
    if (projection != NULL)
        mc_projection_points(projection, xy, count);
    for (size_t i = 0; i < count; i++, xy += 2) {
        double x = xy[0], y = xy[1];
        if (!isfinite(x) || !isfinite(y)) {
            xy[0] = xy[1] = HUGE_VAL;
            continue;
        }
        xy[0] = inverse[0] + inverse[1] * x + inverse[2] * y;
        xy[1] = inverse[3] + inverse[4] * x + inverse[5] * y;
    }
}

double
mc_image_placement_shrink(const mc_image_placement *placement, const mc_projection *projection, int z)
{
    double step = placement->grid->levels[z].resolution;
    double x = (placement->box.minx + placement->box.maxx) / 2, y = (placement->box.miny + placement->box.maxy) / 2;
    double xy[6] = { x, y, x + step, y, x, y + step };
    mc_image_placement_points(placement, projection, xy, 3);
    double across = hypot(xy[2] - xy[0], xy[3] - xy[1]), down = hypot(xy[4] - xy[0], xy[5] - xy[1]);
    double shrink = sqrt(across * down);
    return isfinite(shrink) && shrink > 0 ? shrink : 1;
}

static int
clip_to_height(double value, int height)
{
    return value < 0 ? 0 : value > height ? height : (int)value;
}

static void
rows_between(int *first, int *end, double top, double bottom, int height)
{
    *first = clip_to_height(floor(top) - MARGIN, height);
    *end = clip_to_height(ceil(bottom) + MARGIN, height);
    if (bottom < 0 || top > height)
        *first = *end = 0;
}

void
mc_image_placement_rows(int *first, int *end, const mc_image_placement *placement, const mc_projection *projection,
                        int z, int x, int y)
{
    int height = placement->image->height;
    if (placement->upright) {
        mc_image_placement_scale scale = mc_image_placement_tile(placement, z, x, y);
        rows_between(first, end, scale.y0, scale.y0 + scale.scale_y * placement->grid->tile_height, height);
        return;
    }
    mc_extent tile = mc_grid_tile_extent(placement->grid, z, x, y);
    double top = HUGE_VAL, bottom = -HUGE_VAL;
    double net[2 * (NET + 1) * (NET + 1)];
    for (int i = 0; i < (NET + 1) * (NET + 1); i++) {
        net[2 * i] = tile.minx + (tile.maxx - tile.minx) * (i % (NET + 1)) / NET;
        net[2 * i + 1] = tile.maxy - (tile.maxy - tile.miny) * (i / (NET + 1)) / NET;
    }
    mc_image_placement_points(placement, projection, net, (NET + 1) * (NET + 1));
    for (int i = 0; i < (NET + 1) * (NET + 1); i++) {
        if (!isfinite(net[2 * i + 1])) { /* somewhere between valid ones: whichever rows those are */
            *first = 0;
            *end = height;
            return;
        }
        top = fmin(top, net[2 * i + 1]);
        bottom = fmax(bottom, net[2 * i + 1]);
    }
    /* Between the points of the net the rows may reach further. */
    double reach = (bottom - top) / NET;
    rows_between(first, end, top - reach, bottom + reach, height);
}
