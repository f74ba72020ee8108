/*
 * Tiles for viewers that spread a picture evenly over latitudes (KML), with rows that are as far apart in degrees: of
 * the spherical Mercator the same place, of grids of degrees what lies between the poles. A row that stands for several
 * of the tile is their mean.
 */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "grid/earth.h"
#include "map/map_private.h"
#include "mapcache/trace.h"

enum { SAMPLES = 32 };

static double
latitude_of(double y)
{
    return atan(sinh(y / MC_EARTH_RADIUS));
}

/* How far below the upper edge of `box` that part of its latitudes ends, as a part of its height. */
static double
mercator_part(const mc_extent *box, double part)
{
    double top = latitude_of(box->maxy), latitude = top - part * (top - latitude_of(box->miny));
    return (box->maxy - MC_EARTH_RADIUS * asinh(tan(latitude))) / (box->maxy - box->miny);
}

/* The same of a box of degrees, of what lies between the poles. */
static double
degrees_part(const mc_extent *box, double part)
{
    double top = fmin(box->maxy, 90), latitude = top - part * (top - fmax(box->miny, -90));
    return (box->maxy - latitude) / (box->maxy - box->miny);
}

double
mc_map_latitude_shift(const mc_extent *box, int rows)
{
    double most = 0;
    for (int i = 1; i < SAMPLES; i++) {
        double part = (double)i / SAMPLES;
        most = fmax(most, fabs(mercator_part(box, part) - part));
    }
    return most * rows;
}

/* Adds a row of the source, weighed. */
static void
add_weighed_row(float *sums, const mc_pixels *source, int row, double weight)
{
    const uint8_t *from = source->data + (size_t)row * source->stride;
    for (int i = 0; i < source->width * 4; i++)
        sums[i] += (float)weight * from[i];
}

/* The mean of the rows from..to of the source, which may be parts of rows; of less than one row what lies between the
 * centres of the two next to it. */
static void
sum_latitude_rows(float *sums, const mc_pixels *source, double from, double to)
{
    int last = source->height - 1;
    memset(sums, 0, sizeof(*sums) * (size_t)source->width * 4);
    if (to - from <= 1) {
        double centre = fmin(fmax((from + to) / 2 - 0.5, 0), last);
        int row = (int)centre;
        add_weighed_row(sums, source, row, 1 - (centre - row));
        if (row < last)
            add_weighed_row(sums, source, row + 1, centre - row);
        return;
    }
    for (int row = (int)fmax(from, 0); row <= last && row < to; row++) {
        double share = fmin(to, row + 1.0) - fmax(from, row);
        add_weighed_row(sums, source, row, share / (to - from));
    }
}

static mc_error *
spread_by_latitude(mc_pixels **made, const mc_pixels *source, const mc_extent *box,
                   double (*part_of)(const mc_extent *box, double part), apr_pool_t *pool)
{
    int rows = source->height;
    float *sums = apr_palloc(pool, sizeof(*sums) * (size_t)source->width * 4);
    MC_TRY(mc_pixels_create(made, source->width, rows, false, pool));
    mc_pixels_attach(*made, pool);
    for (int i = 0; i < rows; i++) {
        uint8_t *out = (*made)->data + (size_t)i * (*made)->stride;
        sum_latitude_rows(sums, source, rows * part_of(box, (double)i / rows), rows * part_of(box, (i + 1.0) / rows));
        for (int j = 0; j < source->width * 4; j++)
            out[j] = (uint8_t)fminf(sums[j] + 0.5F, 255);
    }
    (*made)->opacity = source->opacity == MC_OPAQUE ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
    return MC_OK;
}

mc_error *
mc_map_by_latitude(mc_result *result, const mc_tile *tile, const mc_tile_stack *wanted, uint64_t if_tag, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    const mc_tile_request *place = &wanted->tiles[0];
    const mc_extent box = mc_grid_tile_extent(place->link->grid, place->z, place->x, place->y);
    mc_pixels *pixels, *made;
    const uint64_t parts[] = { result->tag, (uint64_t)place->z, (uint64_t)place->y };
    result->tag = mc_hash64(parts, sizeof(parts), mc_format_tag(wanted->format));
    result->data = NULL;
    result->unmodified = if_tag != 0 && if_tag == result->tag;
    if (result->unmodified)
        return MC_OK;
    MC_SPAN(ctx, "mapcache_image_resample");
    MC_TRY(mc_tileset_decode(&pixels, tile, place, ctx, pool));
    mc_pixels_attach(pixels, pool);
    MC_TRY(spread_by_latitude(&made, pixels, &box, wanted->within_poles ? degrees_part : mercator_part, pool));
    MC_TRY(mc_format_encode(&result->data, wanted->format, made, MC_ON_THE_FLY, ctx, pool));
    result->mime = wanted->format->mime;
    if (result->mime == NULL)
        result->mime = mc_coding_mime(mc_image_sniff(result->data->data, result->data->size));
    return MC_OK;
}
