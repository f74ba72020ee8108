/* Level and tiles of a map, and drawing their images in one CRS: see mosaic.h. */
#include "source/tiles/mosaic.h"

#include <math.h>

#include "source/tiles/mosaic_cover.h"

/* How far from the pixels of the tiles a map may lie and still be copied (docs/reference/design.md 3.1). */
#define EXACT_SCALE 1e-4
#define EXACT_OFFSET 0.02
/* A map is beyond the last level where it shows so many times as much. */
#define BEYOND 1.5 /* and coarser than the first one where it shows so many times as little */

double
mc_mosaic_resolution(const mc_mosaic_supply *supply, int z)
{
    return supply->grid->levels[z].resolution * supply->grid->tile_width / supply->tile_width;
}

static double
vertical_resolution(const mc_mosaic_supply *supply, int z)
{
    return supply->grid->levels[z].resolution * supply->grid->tile_height / supply->tile_height;
}

bool
mc_mosaic_tiles_of(mc_tile_range *range, const mc_mosaic_supply *supply, const mc_extent *box, int z, apr_pool_t *pool)
{
    const mc_grid *grid = supply->grid;
    mc_tile_range *limits = apr_pcalloc(pool, sizeof(*limits) * (size_t)grid->level_count);
    limits[z] = (mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    mc_grid_link link = { .grid = grid, .extent = grid->extent, .limits = limits };
    mc_extent part = *box;
    if (supply->limit != NULL)
        part = mc_extent_intersection(box, supply->limit);
    return mc_extent_valid(&part) && mc_grid_link_tiles(&link, &part, z, range);
}

/* The level whose resolution is nearest by its ratio, so that nothing is made much larger or smaller. */
static int
choose_mosaic_level(const mc_mosaic_supply *supply, double resolution)
{
    int chosen = supply->first;
    double least = HUGE_VAL;
    for (int z = supply->first; z <= supply->last; z++) {
        double distance = fabs(log(mc_mosaic_resolution(supply, z) / resolution));
        if (distance < least) {
            least = distance;
            chosen = z;
        }
    }
    return chosen;
}

static bool
is_near_whole(double value)
{
    return fabs(value - round(value)) < EXACT_OFFSET;
}

static void
place_in_mosaic(mc_mosaic *mosaic, const mc_render *wanted)
{
    const mc_extent *box = &wanted->box;
    double x = (box->minx - mosaic->extent.minx) / mosaic->scale_x;
    double y = (mosaic->extent.maxy - box->maxy) / mosaic->scale_y;
    double width = (box->maxx - box->minx) / mosaic->scale_x, height = (box->maxy - box->miny) / mosaic->scale_y;
    mosaic->exact = mosaic->projection == NULL && fabs(width / wanted->width - 1) < EXACT_SCALE &&
                    fabs(height / wanted->height - 1) < EXACT_SCALE && is_near_whole(x) && is_near_whole(y) &&
                    is_near_whole(x + width) && is_near_whole(y + height);
    if (mosaic->exact) { /* the map overlaps the mosaic, so that both are small numbers */
        mosaic->left = (int)lround(x);
        mosaic->top = (int)lround(y);
    }
}

static mc_error *
open_mosaic_projection(mc_mosaic *mosaic, const mc_render *wanted, apr_pool_t *pool)
{
    const mc_grid *grid = mosaic->supply->grid;
    if (grid == wanted->grid || mc_grid_has_srs(grid, wanted->grid->srs) || mc_grid_has_srs(wanted->grid, grid->srs))
        return MC_OK;
    return mc_projection_open(&mosaic->projection, wanted->grid->srs, grid->srs, pool);
}

/* What the map covers of the grid; *found is false where that is nothing. Between the CRSs of most web maps, degrees
 * and Mercator, edges go to edges. */
static mc_error *
cover_of_map(mc_mosaic_cover *cover, bool *found, mc_mosaic *mosaic, const mc_render *wanted, apr_pool_t *pool)
{
    const mc_extent *box = &wanted->box;
    const mc_grid *grid = mosaic->supply->grid;
    *found = true;
    cover->box = *box;
    if (mosaic->projection != NULL && !mc_projection_is_formula(wanted->grid->srs, grid->srs)) {
        mosaic->turn = mc_projection_turn(grid->srs);
        return mc_mosaic_cover_map(cover, found, mosaic->projection, grid, mosaic->turn, wanted, pool);
    }
    double width = (box->maxx - box->minx) / wanted->width, height = (box->maxy - box->miny) / wanted->height;
    cover->resolution = fmax(width, height);
    if (mosaic->projection == NULL)
        return MC_OK;
    double x = (box->minx + box->maxx) / 2, y = (box->miny + box->maxy) / 2;
    double points[] = { x, y, x + width, y + height };
    mc_projection_points(mosaic->projection, points, 2);
    double area = fabs((points[2] - points[0]) * (points[3] - points[1]));
    cover->resolution = isfinite(area) ? sqrt(area) : 0;
    *found = mc_projection_box(&cover->box, mosaic->projection, false);
    return MC_OK;
}

/* Whether the tiles of a level close around the globe: the first column is the neighbour of the last one. */
static bool
closes_around(const mc_mosaic *mosaic)
{
    const mc_grid *grid = mosaic->supply->grid;
    const mc_level *level = &grid->levels[mosaic->z];
    return fabs(level->columns * level->resolution * grid->tile_width / mosaic->turn - 1) < EXACT_SCALE;
}

/* The tiles of a box: those on both sides of the antimeridian, where the box lies over it. */
static bool
find_mosaic_range(mc_mosaic *mosaic, const mc_extent *box, apr_pool_t *pool)
{
    const mc_mosaic_supply *supply = mosaic->supply;
    int columns = supply->grid->levels[mosaic->z].columns;
    double edge = supply->grid->extent.minx + mosaic->turn;
    mc_tile_range *range = &mosaic->range, far = { 0 };
    if (mosaic->turn <= 0 || box->maxx <= edge)
        return mc_mosaic_tiles_of(range, supply, box, mosaic->z, pool);
    mc_extent east = { box->minx, box->miny, edge, box->maxy };
    mc_extent west = { supply->grid->extent.minx, box->miny, box->maxx - mosaic->turn, box->maxy };
    bool near_side = mc_mosaic_tiles_of(range, supply, &east, mosaic->z, pool);
    bool far_side = mc_mosaic_tiles_of(&far, supply, &west, mosaic->z, pool);
    if (!near_side || !far_side) {
        *range = far_side ? far : *range;
        return near_side || far_side;
    }
    const mc_tile_range *last = range->maxx == columns ? range : &far; /* x of some grids counts from the right */
    const mc_tile_range *first = last == range ? &far : range;
    if (closes_around(mosaic) && last->maxx == columns && first->minx == 0 && first->maxx < last->minx)
        *range = (mc_tile_range){ last->minx, last->miny, columns + first->maxx, last->maxy };
    else
        *range = mc_tile_range_union(range, &far);
    return true;
}

/* The tiles of a level, and how many these are: 0: none, -1: more than a map may need. */
static apr_int64_t
lay_out_level(mc_mosaic *mosaic, const mc_extent *box, int z, apr_pool_t *pool)
{
    const mc_mosaic_supply *supply = mosaic->supply;
    mosaic->z = z;
    mosaic->scale_x = mc_mosaic_resolution(supply, z);
    mosaic->scale_y = vertical_resolution(supply, z);
    mc_extent part = *box;
    if (mosaic->projection != NULL) /* what interpolation reads beside the map */
        part = (mc_extent){ box->minx - mosaic->scale_x, box->miny - mosaic->scale_y, box->maxx + mosaic->scale_x,
                            box->maxy + mosaic->scale_y };
    if (!mc_extent_valid(&part) || !find_mosaic_range(mosaic, &part, pool)) {
        mosaic->range = (mc_tile_range){ 0 };
        return 0;
    }
    apr_int64_t columns = mosaic->range.maxx - mosaic->range.minx, rows = mosaic->range.maxy - mosaic->range.miny;
    if (columns > MC_MOSAIC_TILES || rows > MC_MOSAIC_TILES || columns * rows > MC_MOSAIC_TILES ||
        columns * rows * supply->tile_width * supply->tile_height > MC_MOSAIC_PIXELS)
        return -1;
    return columns * rows;
}

mc_error *
mc_mosaic_plan(mc_mosaic *mosaic, const mc_mosaic_supply *supply, const mc_render *wanted, apr_pool_t *pool)
{
    bool found;
    mc_mosaic_cover cover = { 0 };
    *mosaic = (mc_mosaic){ .supply = supply };
    MC_TRY(open_mosaic_projection(mosaic, wanted, pool));
    MC_TRY(cover_of_map(&cover, &found, mosaic, wanted, pool));
    int z = choose_mosaic_level(supply, cover.resolution);
    mosaic->beyond =
        cover.resolution > 0 && z == supply->last && mc_mosaic_resolution(supply, z) > BEYOND * cover.resolution;
    mosaic->coarser = z == supply->first && cover.resolution > BEYOND * mc_mosaic_resolution(supply, z);
    apr_int64_t count = found ? lay_out_level(mosaic, &cover.box, z, pool) : 0;
    while (count < 0 && z > supply->first && mosaic->projection != NULL) /* around a pole most show a few pixels only */
        count = lay_out_level(mosaic, &cover.box, --z, pool);
    if (count < 0)
        return mc_error_create(pool, MC_ERR_LIMIT,
                               "source \"%s\" has no level coarse enough: the map would need more than %d tiles",
                               supply->source, MC_MOSAIC_TILES);
    if (count == 0)
        return MC_OK;
    mosaic->extent = mc_grid_range_extent(supply->grid, z, &mosaic->range);
    mosaic->width = (mosaic->range.maxx - mosaic->range.minx) * supply->tile_width;
    mosaic->height = (mosaic->range.maxy - mosaic->range.miny) * supply->tile_height;
    place_in_mosaic(mosaic, wanted);
    return MC_OK;
}

int
mc_mosaic_column(const mc_mosaic *mosaic, int x)
{
    return x % mosaic->supply->grid->levels[mosaic->z].columns;
}

double
mc_mosaic_shift(const mc_mosaic *mosaic, int x, int y)
{
    if (x >= mosaic->range.minx)
        return 0;
    const mc_grid *grid = mosaic->supply->grid;
    mc_extent own = mc_grid_tile_extent(grid, mosaic->z, x, y);
    mc_extent drawn = mc_grid_tile_extent(grid, mosaic->z, x + grid->levels[mosaic->z].columns, y);
    return drawn.minx - own.minx;
}

bool
mc_mosaic_is_one_tile(const mc_mosaic *mosaic, const mc_render *wanted)
{
    return mosaic->exact && mosaic->range.maxx - mosaic->range.minx == 1 &&
           mosaic->range.maxy - mosaic->range.miny == 1 && mosaic->left == 0 && mosaic->top == 0 &&
           wanted->width == mosaic->width && wanted->height == mosaic->height;
}

void
mc_mosaic_slot(int *left, int *top, const mc_mosaic *mosaic, int x, int y)
{
    mc_extent extent = mc_grid_tile_extent(mosaic->supply->grid, mosaic->z, x, y);
    *left = (int)lround((extent.minx + mc_mosaic_shift(mosaic, x, y) - mosaic->extent.minx) / mosaic->scale_x);
    *top = (int)lround((mosaic->extent.maxy - extent.maxy) / mosaic->scale_y);
}

/* The part of the mosaic's pixels that is `clip`, as an image of its own. False: none. */
static bool
clip_mosaic(mc_pixels *part, int *left, int *top, const mc_pixels *pixels, const mc_mosaic *mosaic,
            const mc_extent *clip)
{
    mc_extent inside = mc_extent_intersection(clip, &mosaic->extent);
    if (!mc_extent_valid(&inside))
        return false;
    int x0 = (int)lround((inside.minx - mosaic->extent.minx) / mosaic->scale_x);
    int y0 = (int)lround((mosaic->extent.maxy - inside.maxy) / mosaic->scale_y);
    int x1 = (int)lround((inside.maxx - mosaic->extent.minx) / mosaic->scale_x);
    int y1 = (int)lround((mosaic->extent.maxy - inside.miny) / mosaic->scale_y);
    x1 = x1 < pixels->width ? x1 : pixels->width;
    y1 = y1 < pixels->height ? y1 : pixels->height;
    if (x0 >= x1 || y0 >= y1)
        return false;
    *left = x0;
    *top = y0;
    *part = (mc_pixels){ .width = x1 - x0,
                         .height = y1 - y0,
                         .stride = pixels->stride,
                         .data = pixels->data + (size_t)y0 * pixels->stride + (size_t)x0 * 4,
                         .opacity = MC_OPACITY_UNKNOWN };
    return true;
}

/* What is wrong with an image is wrong with the server that sent it. */
static mc_error *
upstream_image_error(mc_error *error, const mc_mosaic *mosaic, apr_pool_t *pool)
{
    if (error == MC_OK || error->kind != MC_ERR_CORRUPT)
        return error;
    return mc_error_wrap(pool, error, MC_ERR_UPSTREAM, "source \"%s\": a tile is no image that can be read",
                         mosaic->supply->source);
}

static mc_error *
draw_scaled(mc_pixels *part, int left, int top, const mc_mosaic *mosaic, const mc_buf *image, const mc_extent *extent,
            mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *tile;
    MC_TRY(upstream_image_error(mc_image_decode(&tile, image->data, image->size, ctx, pool), mosaic, pool));
    double step_x = (extent->maxx - extent->minx) / tile->width, step_y = (extent->maxy - extent->miny) / tile->height;
    double west = mosaic->extent.minx + left * mosaic->scale_x, north = mosaic->extent.maxy - top * mosaic->scale_y;
    mc_pixels_resample(part, tile, (west - extent->minx) / step_x, (extent->maxy - north) / step_y,
                       mosaic->scale_x / step_x, mosaic->scale_y / step_y, MC_BILINEAR);
    mc_pixels_unref(tile);
    return MC_OK;
}

mc_error *
mc_mosaic_draw(mc_pixels *pixels, const mc_mosaic *mosaic, const mc_buf *image, const mc_extent *extent,
               const mc_extent *clip, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_mosaic_supply *supply = mosaic->supply;
    int width, height, left, top;
    mc_pixels part;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(upstream_image_error(mc_image_size(&width, &height, image->data, image->size, pool), mosaic, pool));
    if (width > mc_tile_oversize * supply->tile_width || height > mc_tile_oversize * supply->tile_height)
        return mc_error_create(pool, MC_ERR_UPSTREAM,
                               "source \"%s\" sent a tile of %dx%d pixels instead of %dx%d: <tile_size> says what it "
                               "sends",
                               supply->source, width, height, supply->tile_width, supply->tile_height);
    if (!clip_mosaic(&part, &left, &top, pixels, mosaic, clip))
        return MC_OK;
    pixels->opacity = MC_OPACITY_UNKNOWN;
    if (part.width == width && part.height == height &&
        fabs((extent->maxx - extent->minx) / mosaic->scale_x - width) < 0.5)
        return upstream_image_error(mc_image_draw(&part, 0, 0, image->data, image->size, ctx, pool), mosaic, pool);
    return draw_scaled(&part, left, top, mosaic, image, extent, ctx, pool);
}

mc_error *
mc_mosaic_finish(mc_pixels **map, mc_pixels *pixels, const mc_mosaic *mosaic, const mc_render *wanted, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    if (pixels != NULL && mosaic->exact && mosaic->left == 0 && mosaic->top == 0 && pixels->width == wanted->width &&
        pixels->height == wanted->height) {
        *map = pixels;
        return MC_OK;
    }
    MC_TRY(mc_pixels_create(map, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(*map, pool);
    if (pixels == NULL)
        return MC_OK;
    if (mosaic->projection != NULL)
        return mc_mosaic_warp(*map, pixels, mosaic, wanted, ctx);
    if (mosaic->exact) {
        mc_pixels_copy(*map, -mosaic->left, -mosaic->top, pixels);
        (*map)->opacity = MC_OPACITY_UNKNOWN;
        return MC_OK;
    }
    double step_x = (wanted->box.maxx - wanted->box.minx) / wanted->width;
    double step_y = (wanted->box.maxy - wanted->box.miny) / wanted->height;
    mc_pixels_resample(*map, pixels, (wanted->box.minx - mosaic->extent.minx) / mosaic->scale_x,
                       (mosaic->extent.maxy - wanted->box.maxy) / mosaic->scale_y, step_x / mosaic->scale_x,
                       step_y / mosaic->scale_y, MC_BILINEAR);
    (*map)->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}
