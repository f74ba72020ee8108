/* See cog_fit.h. An image may end with a part of a pixel of its own, as each one has half of the pixels of the one
 * before, rounded up. */
#include "cache/blocks/cog_fit.h"

#include "cache/blocks/blocks.h"

#include <apr_strings.h>
#include <math.h>

enum { COMPRESSIONS = 11 };
/* Pixels of the image. */
#define DRIFT_ALLOWED 1.0   /* at the far end of an image */
#define CORNER_ALLOWED 0.25 /* at the corner of a tile */

static const char *
name_compression(int tag, apr_pool_t *pool)
{
    static const struct {
        int tag;
        const char *name;
    } names[COMPRESSIONS] = { { 1, "not compressed" },
                              { 5, "compressed as LZW" },
                              { 6, "compressed as JPEG of old" },
                              { 8, "compressed by Deflate" },
                              { 32946, "compressed by Deflate" },
                              { 32773, "compressed as PackBits" },
                              { 34712, "JPEG 2000" },
                              { 34887, "compressed by LERC" },
                              { 34925, "compressed by LZMA" },
                              { 50000, "compressed by Zstandard" },
                              { 50002, "JPEG XL" } };
    for (int i = 0; i < COMPRESSIONS; i++)
        if (names[i].tag == tag)
            return names[i].name;
    return apr_psprintf(pool, "compressed by method %d", tag);
}

/* Size of a pixel of an image. */
static void
measure_pixel(double *x, double *y, const mc_tiff_levels *levels, int image)
{
    const mc_tiff_index *whole = &levels->indexes[0], *index = &levels->indexes[image];
    *x = levels->place.width * whole->width / index->width;
    *y = levels->place.height * whole->height / index->height;
}

/* The image whose scale is that of the resolution; -1: there is none. */
static int
find_scale(const mc_tiff_levels *levels, double resolution)
{
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < levels->count; i++) {
        const mc_tiff_index *index = &levels->indexes[i];
        double x, y;
        measure_pixel(&x, &y, levels, i);
        double off = fmax(fabs(x / resolution - 1), fabs(y / resolution - 1));
        double drift = fmax(fabs(x / resolution - 1) * index->width, fabs(y / resolution - 1) * index->height);
        if (index->part == MC_TIFF_MASK || drift >= DRIFT_ALLOWED || off >= least)
            continue;
        least = off;
        best = i;
    }
    return best;
}

static bool
fits_any_level(const mc_tiff_levels *levels, const mc_grid *grid)
{
    for (int z = 0; z < grid->level_count; z++)
        if (find_scale(levels, grid->levels[z].resolution) >= 0)
            return true;
    return false;
}

/* *finest, *coarsest: sizes of pixels of all images; returns the size next to the resolution. */
static double
measure_scales(double *finest, double *coarsest, const mc_tiff_levels *levels, double resolution)
{
    double next = levels->place.width;
    *finest = *coarsest = next;
    for (int i = 0; i < levels->count; i++) {
        double x, y;
        measure_pixel(&x, &y, levels, i);
        if (levels->indexes[i].part == MC_TIFF_MASK)
            continue;
        *finest = fmin(*finest, x);
        *coarsest = fmax(*coarsest, x);
        if (fabs(log(x / resolution)) < fabs(log(next / resolution)))
            next = x;
    }
    return next;
}

static mc_error *
check_cog_place(const mc_tiff_levels *levels, const mc_grid *grid, const char *name, apr_pool_t *pool)
{
    const mc_tiff_place *place = &levels->place;
    if (!place->known)
        return mc_error_create(
            pool, MC_ERR_CONFIG,
            "the file of cache \"%s\" does not say where it lies, with north above and without a turn", name);
    if (place->epsg != 0 && grid->epsg != 0 && place->epsg != grid->epsg &&
        !mc_grid_has_srs(grid, apr_psprintf(pool, "EPSG:%d", place->epsg)))
        return mc_error_create(pool, MC_ERR_CONFIG, "the file of cache \"%s\" is in EPSG:%d, grid \"%s\" in %s", name,
                               place->epsg, grid->name, grid->srs);
    return MC_OK;
}

/* Whether the tiles of an image can be handed on, and have the size of the grid's. */
static mc_error *
check_cog_image(const mc_tiff_levels *levels, int image, const mc_grid *grid, int z, const char *name, apr_pool_t *pool)
{
    const mc_tiff_index *index = &levels->indexes[image];
    bool webp = index->compression == MC_TIFF_WEBP;
    if (index->compression != MC_TIFF_JPEG && !webp)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "the tiles of cache \"%s\" at level %d are %s; only JPEG and WebP tiles are handed on as"
                               " they are (a <source> of type gdal draws the others)",
                               name, z, name_compression(index->compression, pool));
    bool bands = webp ? index->samples == 3 || index->samples == 4 : index->samples == 1 || index->samples == 3;
    if (!bands || (index->planes != 1 && index->samples != 1))
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "the tiles of cache \"%s\" at level %d have %d bands%s; only pictures of one band,"
                               " three together, and of WebP four, are handed on",
                               name, z, index->samples, index->planes == 1 ? "" : ", each apart");
    if ((int64_t)index->tile_width != grid->tile_width || (int64_t)index->tile_height != grid->tile_height)
        return mc_error_create(
            pool, MC_ERR_CONFIG,
            "the tiles of cache \"%s\" at level %d have %u x %u pixels, those of grid \"%s\" %d x %d", name, z,
            index->tile_width, index->tile_height, grid->name, grid->tile_width, grid->tile_height);
    return MC_OK;
}

mc_error *
mc_cog_find_image(int *image, const mc_tiff_levels *levels, const mc_grid *grid, int z, const char *name,
                  apr_pool_t *pool)
{
    double resolution = grid->levels[z].resolution, finest, coarsest;
    *image = -1;
    MC_TRY(check_cog_place(levels, grid, name, pool));
    *image = find_scale(levels, resolution);
    if (*image >= 0)
        return check_cog_image(levels, *image, grid, z, name, pool);
    double next = measure_scales(&finest, &coarsest, levels, resolution);
    bool outside = resolution < finest * 0.999 || resolution > coarsest * 1.001;
    if (outside && fits_any_level(levels, grid))
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "the file of cache \"%s\" has no image of level %d of grid \"%s\": a pixel of the level is"
                           " %.10g wide, one of the nearest image %.10g (%+.4g %%)",
                           name, z, grid->name, resolution, next, 100 * (next / resolution - 1));
}

/* How many tiles lie between two edges; *off: pixels by which that is no whole number. */
static double
count_tiles(double *off, double distance, double resolution, int pixels)
{
    double tiles = distance / resolution / pixels, whole = round(tiles);
    *off = (tiles - whole) * pixels;
    return whole;
}

/* Column and row, in the image, of a tile. */
static mc_error *
find_tile_corner(double *column, double *row, const mc_tiff_levels *levels, const mc_tile_key *key, const char *name,
                 apr_pool_t *pool)
{
    const mc_grid *grid = key->grid;
    const mc_extent box = mc_grid_tile_extent(grid, key->z, key->x, key->y);
    double resolution = grid->levels[key->z].resolution, right, down;
    *column = count_tiles(&right, box.minx - levels->place.x, resolution, grid->tile_width);
    *row = count_tiles(&down, levels->place.y - box.maxy, resolution, grid->tile_height);
    if (fabs(right) <= CORNER_ALLOWED && fabs(down) <= CORNER_ALLOWED)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "the file of cache \"%s\" does not begin at the corner of a tile of level %d of grid"
                           " \"%s\": the corners lie %.2f pixels to the right of those of the file and %.2f below"
                           " (GDAL's COG driver: ALIGNED_LEVELS)",
                           name, key->z, grid->name, right, down);
}

mc_error *
mc_cog_number_tile(int64_t *number, const mc_tiff_levels *levels, int image, const mc_tile_key *key, const char *name,
                   apr_pool_t *pool)
{
    const mc_tiff_index *index = &levels->indexes[image];
    double column, row;
    *number = -1;
    MC_TRY(find_tile_corner(&column, &row, levels, key, name, pool));
    if (column >= 0 && row >= 0 && column < index->columns && row < index->rows)
        *number = (int64_t)row * index->columns + (int64_t)column;
    return MC_OK;
}

mc_error *
mc_cog_cover(mc_tile_range *range, const mc_tiff_levels *levels, const mc_tile_key *key, const char *name,
             apr_pool_t *pool)
{
    const mc_grid *grid = key->grid;
    const mc_level *level = &grid->levels[key->z];
    mc_tile_key corner = *key;
    double column, row;
    int image;
    *range = (mc_tile_range){ 0, 0, 0, 0 };
    MC_TRY(mc_cog_find_image(&image, levels, grid, key->z, name, pool));
    if (image < 0)
        return MC_OK;
    corner.x = mc_grid_from_west(grid, key->z, 0);
    corner.y = mc_grid_flip_y(grid, key->z, 0);
    MC_TRY(find_tile_corner(&column, &row, levels, &corner, name, pool));
    double west = fmax(-column, 0), north = fmax(-row, 0);
    double east = fmin(levels->indexes[image].columns - column, level->columns);
    double south = fmin(levels->indexes[image].rows - row, level->rows);
    if (west < east && north < south)
        *range = mc_block_range(key, (int)west, (int)north, (int)(east - west), (int)(south - north));
    return MC_OK;
}

mc_error *
mc_cog_check(const mc_tiff_levels *levels, const mc_grid *grid, const char *name, apr_pool_t *pool)
{
    int64_t number;
    for (int z = 0; z < grid->level_count; z++) {
        const mc_tile_key key = { .grid = grid, .z = z };
        int image;
        MC_TRY(mc_cog_find_image(&image, levels, grid, z, name, pool));
        if (image == 0)
            MC_TRY(mc_cog_number_tile(&number, levels, image, &key, name, pool));
    }
    return MC_OK;
}
