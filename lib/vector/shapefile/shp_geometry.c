/* Shapes of shapefiles: see shp.h. Coordinates are little-endian doubles, x before y. */
#include <string.h>

#include "vector/geometry/warp.h"
#include "vector/shapefile/shp_private.h"

static mc_error *
broken_shape_error(const mc_shp_record *record, apr_pool_t *pool)
{
    if (record->size == 0)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the file ends before shape %u", record->number + 1);
    return mc_error_create(pool, MC_ERR_CORRUPT, "shape %u does not fit its record", record->number + 1);
}

static bool
machine_is_big(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* False where nothing is left of them. */
static bool
add_warped_shp_points(mc_shape *shape, const uint8_t *bytes, size_t count, const mc_pixel_grid *pixel_grid)
{
    double *xy = mc_warp_vertices(pixel_grid->warp, count);
    for (size_t i = 0; xy != NULL && i < 2 * count; i++)
        xy[i] = mc_little_double(bytes + 8 * i);
    shape->failed |= xy == NULL;
    return xy != NULL && mc_warp_add(shape, pixel_grid, count, MC_WARP_AS_IS);
}

static bool
add_points(mc_shape *shape, const uint8_t *bytes, size_t count, const mc_pixel_grid *pixel_grid)
{
    int begin = shape->point_count;
    if (pixel_grid->warp != NULL)
        return add_warped_shp_points(shape, bytes, count, pixel_grid);
    if (mc_shape_add_vertices(shape, pixel_grid, bytes, 16, count, machine_is_big()))
        return true;
    shape->point_count = begin;
    return false;
}

static mc_error *
read_parts(mc_shape *shape, const mc_shp_record *record, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    if (record->size < PARTS_AT + 8)
        return broken_shape_error(record, pool);
    uint64_t parts = mc_little32(record->content + PARTS_AT), points = mc_little32(record->content + PARTS_AT + 4);
    if (PARTS_AT + 8 + parts * 4 + points * 16 > record->size)
        return broken_shape_error(record, pool);
    const uint8_t *begins = record->content + PARTS_AT + 8, *vertices = begins + parts * 4;
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t begin = mc_little32(begins + i * 4), end = i + 1 < parts ? mc_little32(begins + i * 4 + 4) : points;
        if (begin > end || end > points)
            return broken_shape_error(record, pool);
        if (!add_points(shape, vertices + begin * 16, (size_t)(end - begin), pixel_grid))
            continue;
        mc_shape_end_part(shape); /* outer rings and holes run against each other already */
    }
    return MC_OK;
}

static mc_error *
read_points(mc_shape *shape, const mc_shp_record *record, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    if (record->size < PARTS_AT + 4)
        return broken_shape_error(record, pool);
    uint64_t count = mc_little32(record->content + PARTS_AT);
    if (PARTS_AT + 4 + count * 16 > record->size)
        return broken_shape_error(record, pool);
    for (uint64_t i = 0; i < count; i++)
        if (add_points(shape, record->content + PARTS_AT + 4 + i * 16, 1, pixel_grid))
            mc_shape_end_part(shape);
    return MC_OK;
}

static mc_error *
read_shp_shape(mc_geometry *geometry, const mc_shp_record *record, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    switch (shp_record_kind(record)) {
    case SHP_NULL:
        return record->size == 0 ? broken_shape_error(record, pool) : MC_OK;
    case SHP_POINT:
        if (record->size < 20)
            return broken_shape_error(record, pool);
        if (add_points(&geometry->shapes[MC_SHAPE_POINTS], record->content + 4, 1, pixel_grid))
            mc_shape_end_part(&geometry->shapes[MC_SHAPE_POINTS]);
        return MC_OK;
    case SHP_LINE:
        return read_parts(&geometry->shapes[MC_SHAPE_LINES], record, pixel_grid, pool);
    case SHP_POLYGON:
        return read_parts(&geometry->shapes[MC_SHAPE_POLYGONS], record, pixel_grid, pool);
    case SHP_MULTIPOINT:
        return read_points(&geometry->shapes[MC_SHAPE_POINTS], record, pixel_grid, pool);
    default:
        return mc_error_create(pool, MC_ERR_NOT_BUILT, "shapes of type %u cannot be painted",
                               mc_little32(record->content));
    }
}

mc_error *
mc_shp_geometry(mc_geometry *geometry, const mc_shp_record *record, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    mc_geometry_clear(geometry);
    MC_TRY(read_shp_shape(geometry, record, pixel_grid, pool));
    for (int kind = 0; kind < 3; kind++)
        if (geometry->shapes[kind].failed)
            return mc_error_create(pool, MC_ERR_LIMIT, "shape %u has more than %d vertices", record->number + 1,
                                   MC_SHAPE_POINTS_MAX);
    return MC_OK;
}
