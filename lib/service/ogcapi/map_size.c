/* How large a map is: pixels, scale, and how far a map around a point reaches (OGC 20-058, 11 to 13). */
#include <math.h>

#include "grid/earth.h"
#include "service/ogcapi/map.h"

/* Pixels: of the longer side where the client says nothing of the size. */
#define USUAL_SIDE 1024

/* How many metres a unit of the CRS is long in the middle of a box, from west to east and from south to north. */
static void
measure_unit(double *across, double *down, const mc_extent *box, const mc_grid *grid)
{
    mc_extent degrees;
    double unit = grid->metres_per_unit, shrink = 1;
    if (mc_grid_degrees(&degrees, grid, box))
        shrink = fmax(cos((degrees.miny + degrees.maxy) / 2 * 3.14159265358979323846 / 180), 1e-6);
    *across = unit * shrink;
    *down = unit * (mc_grid_is_mercator(grid) ? shrink : 1);
}

/* Metres of a pixel of the client's screen. */
static double
pixel_metres(const mc_ogcapi_map *map)
{
    return map->pixel > 0 ? map->pixel / 1000 : MC_PIXEL_METRES;
}

/* The pixels of a box, of which the request says one side, the scale or nothing. */
static void
fit_box(double *width, double *height, const mc_extent *box, const mc_ogcapi_ask *ask, int maxsize)
{
    double aspect = (box->maxy - box->miny) / (box->maxx - box->minx), across, down;
    *width = ask->map.width;
    *height = ask->map.height;
    if (ask->map.scale > 0) {
        measure_unit(&across, &down, box, ask->link->grid);
        *width = rint((box->maxx - box->minx) * across / (ask->map.scale * pixel_metres(&ask->map)));
        *height = rint((box->maxy - box->miny) * down / (ask->map.scale * pixel_metres(&ask->map)));
    } else if (ask->map.width == 0 && ask->map.height == 0) {
        double side = maxsize < USUAL_SIDE ? maxsize : USUAL_SIDE;
        *width = aspect > 1 ? rint(side / aspect) : side;
        *height = aspect > 1 ? side : rint(side * aspect);
    } else if (ask->map.width == 0) {
        *width = rint(*height / aspect);
    } else if (ask->map.height == 0) {
        *height = rint(*width * aspect);
    }
}

/* The box around a point. Without a scale it has that of a map of everything in the usual size; without a side, the map
 * is a square. */
static void
reach_around(mc_extent *box, double *width, double *height, const mc_ogcapi_place *place, const mc_ogcapi_ask *ask,
             int maxsize)
{
    const double x = place->center_x, y = place->center_y, half = 1e-6;
    const mc_extent point = { x - half, y - half, x + half, y + half };
    double side = maxsize < USUAL_SIDE ? maxsize : USUAL_SIDE, across, down, cell_x, cell_y;
    *width = ask->map.width > 0 ? ask->map.width : ask->map.height > 0 ? ask->map.height : side;
    *height = ask->map.height > 0 ? ask->map.height : *width;
    measure_unit(&across, &down, &point, ask->link->grid);
    if (ask->map.scale > 0) {
        cell_x = ask->map.scale * pixel_metres(&ask->map) / across;
        cell_y = ask->map.scale * pixel_metres(&ask->map) / down;
    } else {
        cell_x = fmax(place->box.maxx - place->box.minx, place->box.maxy - place->box.miny) / side;
        cell_y = cell_x;
    }
    *box = (mc_extent){ x - *width / 2 * cell_x, y - *height / 2 * cell_y, x + *width / 2 * cell_x,
                        y + *height / 2 * cell_y };
}

/* Whether the sides of a box are long enough for numbers of its size to tell them. */
static bool
is_measurable(const mc_extent *box)
{
    return mc_extent_valid(box) && box->maxx - box->minx > 1e-11 * (fabs(box->minx) + 1) &&
           box->maxy - box->miny > 1e-11 * (fabs(box->miny) + 1);
}

mc_error *
mc_ogcapi_map_size(mc_map_request *wanted, const mc_ogcapi_place *place, const mc_ogcapi_ask *ask, int maxsize)
{
    bool sized = ask->map.width > 0 || ask->map.height > 0;
    double width, height;
    wanted->box = place->box;
    if (place->given && ask->map.scale > 0 && sized)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "scale-denominator",
                                "of an area that is given, scale-denominator stands instead of width and height, not "
                                "beside them");
    if (place->centered || (!place->given && ask->map.scale > 0 && sized))
        reach_around(&wanted->box, &width, &height, place, ask, maxsize);
    else
        fit_box(&width, &height, &wanted->box, ask, maxsize);
    width = fmax(width, 1);
    height = fmax(height, 1);
    if (!(width <= maxsize) || !(height <= maxsize))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "width",
                                "a map of %.0f x %.0f pixels is over this server's limit of %d a side", width, height,
                                maxsize);
    if (!is_measurable(&wanted->box) || !isfinite(wanted->box.maxx - wanted->box.minx) ||
        !isfinite(wanted->box.maxy - wanted->box.miny))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "scale-denominator",
                                "a map of that size and scale is too large or too small");
    wanted->width = (int)width;
    wanted->height = (int)height;
    return MC_OK;
}
