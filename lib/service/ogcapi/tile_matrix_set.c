/* See tile_matrix_set.h. */
#include "service/ogcapi/tile_matrix_set.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "grid/earth.h"

#define REGISTER "http://www.opengis.net/def/tilematrixset/OGC/1.0/"
#define EPSG "http://www.opengis.net/def/crs/EPSG/0/"
#define CRS84 "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
#define EDGE MC_WEB_MERCATOR_HALF
#define OWN_SUFFIX "-grid" /* of a name that is registered for another set */

static const mc_tile_matrix_set registered[] = {
    { "WebMercatorQuad",
      "Google Maps Compatible for the World",
      EPSG "3857",
      { "X", "Y" },
      "GoogleMapsCompatible",
      3857,
      false,
      -EDGE,
      EDGE,
      2 * EDGE / 256,
      1,
      1,
      1,
      25 },
    { "WorldCRS84Quad",
      "CRS84 for the World",
      CRS84,
      { "Lon", "Lat" },
      "GoogleCRS84Quad",
      4326,
      false,
      -180,
      90,
      180.0 / 256,
      MC_METRES_PER_DEGREE,
      2,
      1,
      24 },
    { "WorldMercatorWGS84Quad",
      "World Mercator WGS84 (ellipsoid)",
      EPSG "3395",
      { "E", "N" },
      "WorldMercatorWGS84",
      3395,
      false,
      -EDGE,
      EDGE,
      2 * EDGE / 256,
      1,
      1,
      1,
      25 },
    { "EuropeanETRS89_LAEAQuad",
      "Lambert Azimuthal Equal Area ETRS89 for Europe",
      EPSG "3035",
      { "Y", "X" },
      NULL,
      3035,
      true,
      2000000,
      5500000,
      4500000.0 / 256,
      1,
      1,
      1,
      16 },
};

enum { REGISTERED = sizeof(registered) / sizeof(registered[0]) };

static bool
is_from_right(const mc_grid *grid)
{
    return grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
}

/* The upper left corner of a level. */
static void
find_matrix_corner(double *left, double *top, const mc_grid *grid, int z)
{
    const mc_level *level = &grid->levels[z];
    bool from_top = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    *left = is_from_right(grid) ? grid->extent.maxx - level->columns * level->resolution * grid->tile_width
                                : grid->extent.minx;
    *top = from_top ? grid->extent.maxy : grid->extent.miny + level->rows * level->resolution * grid->tile_height;
}

/* All levels of the grid are those of the set: corners to a tenth of a pixel, far edges to half a pixel. */
static bool
grid_fits_set(const mc_grid *grid, const mc_tile_matrix_set *set)
{
    bool mercator = set->epsg == 3857 && mc_grid_is_mercator(grid);
    if ((grid->epsg != set->epsg && !mercator) || grid->level_count > set->levels || grid->tile_width != 256 ||
        grid->tile_height != 256)
        return false;
    for (int z = 0; z < grid->level_count; z++) {
        const mc_level *level = &grid->levels[z];
        double left, top, cell = ldexp(set->cell, -z);
        find_matrix_corner(&left, &top, grid, z);
        if (level->columns != set->columns << z || level->rows != set->rows << z ||
            fabs(level->resolution - cell) * 256 * level->columns > 0.5 * cell || fabs(left - set->left) > 0.1 * cell ||
            fabs(top - set->top) > 0.1 * cell)
            return false;
    }
    return true;
}

const mc_tile_matrix_set *
mc_tile_matrix_set_of(const mc_grid *grid)
{
    for (int i = 0; i < REGISTERED; i++)
        if (grid_fits_set(grid, &registered[i]))
            return &registered[i];
    return NULL;
}

static bool
is_registered_name(const char *name)
{
    for (int i = 0; i < REGISTERED; i++)
        if (strcmp(name, registered[i].id) == 0)
            return true;
    return false;
}

const char *
mc_tile_matrix_set_id(const mc_grid *grid, apr_pool_t *pool)
{
    const mc_tile_matrix_set *set = mc_tile_matrix_set_of(grid);
    if (set != NULL)
        return set->id;
    return is_registered_name(grid->name) ? apr_pstrcat(pool, grid->name, OWN_SUFFIX, NULL) : grid->name;
}

bool
mc_tile_matrix_set_is(const mc_grid *grid, const char *id)
{
    for (int i = 0; i < REGISTERED; i++)
        if (strcmp(id, registered[i].id) == 0)
            return grid_fits_set(grid, &registered[i]);
    size_t size = strlen(grid->name);
    if (strncmp(id, grid->name, size) != 0 || mc_tile_matrix_set_of(grid) != NULL)
        return false;
    return strcmp(id + size, is_registered_name(grid->name) ? OWN_SUFFIX : "") == 0;
}

mc_grid_link *
mc_tile_matrix_set_link(const mc_tileset *tileset, const char *id)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (mc_tile_matrix_set_is(tileset->links[i]->grid, id))
            return tileset->links[i];
    return NULL;
}

const char *
mc_tile_matrix_set_uri(const mc_tile_matrix_set *set, apr_pool_t *pool)
{
    return apr_pstrcat(pool, REGISTER, set->id, NULL);
}

const char *
mc_grid_crs_uri(const mc_grid *grid, apr_pool_t *pool)
{
    if (mc_grid_is_mercator(grid))
        return EPSG "3857";
    if (grid->epsg == 4326)
        return CRS84;
    return grid->epsg > 0 ? apr_psprintf(pool, EPSG "%d", grid->epsg) : grid->srs;
}

bool
mc_grid_is_yx(const mc_grid *grid)
{
    return grid->axes_swapped && grid->epsg != 4326;
}

static void
write_set_point(mc_json_writer *json, const char *key, double first, double second)
{
    mc_json_open_array(json, key);
    mc_json_digits(json, NULL, first, 15);
    mc_json_digits(json, NULL, second, 15);
    mc_json_close(json);
}

/* "identifier", "supportedCRS" and "topLeftCorner" are the names of the standard's first version (OGC 17-083r2), which
 * GDAL before 3.7 reads: a reader of the second version passes over them. */
static void
write_tile_matrix(mc_json_writer *json, int z, double cell, double metres, const double corner[2], int tile_width,
                  int tile_height, int columns, int rows, apr_pool_t *pool)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", apr_itoa(pool, z));
    mc_json_string(json, "identifier", apr_itoa(pool, z));
    mc_json_digits(json, "scaleDenominator", cell * metres / MC_PIXEL_METRES, 15);
    mc_json_digits(json, "cellSize", cell, 15);
    mc_json_string(json, "cornerOfOrigin", "topLeft");
    write_set_point(json, "pointOfOrigin", corner[0], corner[1]);
    write_set_point(json, "topLeftCorner", corner[0], corner[1]);
    mc_json_integer(json, "tileWidth", tile_width);
    mc_json_integer(json, "tileHeight", tile_height);
    mc_json_integer(json, "matrixWidth", columns);
    mc_json_integer(json, "matrixHeight", rows);
    mc_json_close(json);
}

static void
write_set_box(mc_json_writer *json, const char *crs, bool yx, const mc_extent *box)
{
    mc_json_open_object(json, "boundingBox");
    write_set_point(json, "lowerLeft", yx ? box->miny : box->minx, yx ? box->minx : box->miny);
    write_set_point(json, "upperRight", yx ? box->maxy : box->maxx, yx ? box->maxx : box->maxy);
    mc_json_string(json, "crs", crs);
    mc_json_close(json);
}

static void
write_crs(mc_json_writer *json, const char *crs, const char *first, const char *second)
{
    mc_json_string(json, "crs", crs);
    mc_json_string(json, "supportedCRS", crs);
    mc_json_open_array(json, "orderedAxes");
    mc_json_string(json, NULL, first);
    mc_json_string(json, NULL, second);
    mc_json_close(json);
}

/* All levels of the register, also those that no grid here has: a tileset says by its limits which ones there are. */
static void
write_registered_set(mc_json_writer *json, const mc_tile_matrix_set *set, apr_pool_t *pool)
{
    const double corner[2] = { set->yx ? set->top : set->left, set->yx ? set->left : set->top };
    mc_json_string(json, "title", set->title);
    mc_json_string(json, "uri", mc_tile_matrix_set_uri(set, pool));
    write_crs(json, set->crs, set->axes[0], set->axes[1]);
    write_set_box(json, set->crs, set->yx,
                  &(mc_extent){ set->left, set->top - set->rows * set->cell * 256,
                                set->left + set->columns * set->cell * 256, set->top });
    if (set->scale_set != NULL)
        mc_json_string(json, "wellKnownScaleSet",
                       apr_pstrcat(pool, "http://www.opengis.net/def/wkss/OGC/1.0/", set->scale_set, NULL));
    mc_json_open_array(json, "tileMatrices");
    for (int z = 0; z < set->levels; z++)
        write_tile_matrix(json, z, ldexp(set->cell, -z), set->metres, corner, 256, 256, set->columns << z,
                          set->rows << z, pool);
    mc_json_close(json);
}

static void
write_own_set(mc_json_writer *json, const mc_grid *grid, apr_pool_t *pool)
{
    bool yx = mc_grid_is_yx(grid), degrees = fabs(grid->metres_per_unit / MC_METRES_PER_DEGREE - 1) < 1e-6;
    const char *x = degrees ? "Lon" : "E", *y = degrees ? "Lat" : "N", *title = mc_meta(grid->metadata, "title");
    mc_json_string(json, "title", title != NULL ? title : grid->name);
    write_crs(json, mc_grid_crs_uri(grid, pool), yx ? y : x, yx ? x : y);
    write_set_box(json, mc_grid_crs_uri(grid, pool), yx, &grid->extent);
    mc_json_open_array(json, "tileMatrices");
    for (int z = 0; z < grid->level_count; z++) {
        const mc_level *level = &grid->levels[z];
        double left, top;
        find_matrix_corner(&left, &top, grid, z);
        const double corner[2] = { yx ? top : left, yx ? left : top };
        write_tile_matrix(json, z, level->resolution, grid->metres_per_unit, corner, grid->tile_width,
                          grid->tile_height, level->columns, level->rows, pool);
    }
    mc_json_close(json);
}

void
mc_tile_matrix_set_write(mc_json_writer *json, const mc_grid *grid, apr_pool_t *pool)
{
    const mc_tile_matrix_set *set = mc_tile_matrix_set_of(grid);
    mc_json_string(json, "id", mc_tile_matrix_set_id(grid, pool));
    mc_json_string(json, "identifier", mc_tile_matrix_set_id(grid, pool));
    if (set != NULL)
        write_registered_set(json, set, pool);
    else
        write_own_set(json, grid, pool);
}
