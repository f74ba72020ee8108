/* Shapes of shapefiles: see shp.h. Coordinates are little-endian doubles, x before y. */
#include "feature/shp_private.h"
#include "feature/warp.h"

static mc_error *
broken(const mc_shp_record *record, apr_pool_t *pool)
{
    if (record->size == 0)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the file ends before shape %u", record->number + 1);
    return mc_error_create(pool, MC_ERR_CORRUPT, "shape %u does not fit its record", record->number + 1);
}

/* False where nothing is left of them. */
static bool
add_warped(mc_shape *shape, const uint8_t *bytes, size_t count, const mc_lattice *lattice)
{
    double *xy = mc_warp_vertices(lattice->warp, count);
    for (size_t i = 0; xy != NULL && i < 2 * count; i++)
        xy[i] = mc_little_double(bytes + 8 * i);
    shape->failed |= xy == NULL;
    return xy != NULL && mc_warp_add(shape, lattice, count);
}

static bool
add_points(mc_shape *shape, const uint8_t *bytes, size_t count, const mc_lattice *lattice)
{
    int begin = shape->point_count;
    if (lattice->warp != NULL)
        return add_warped(shape, bytes, count, lattice);
    for (size_t i = 0; i < count; i++, bytes += 16)
        if (!mc_shape_add_vertex(shape, lattice, mc_little_double(bytes), mc_little_double(bytes + 8))) {
            shape->point_count = begin;
            return false;
        }
    return true;
}

/* Outer rings run clockwise with y up; mc_shape_end_ring turns what runs the other way on purpose: a hole stays one. */
static bool
is_hole(const uint8_t *bytes, size_t count)
{
    double twice = 0, x0 = mc_little_double(bytes), y0 = mc_little_double(bytes + 8);
    for (size_t i = 1; i + 1 < count; i++) {
        const uint8_t *p = bytes + i * 16;
        twice += (mc_little_double(p) - x0) * (mc_little_double(p + 24) - y0) -
                 (mc_little_double(p + 16) - x0) * (mc_little_double(p + 8) - y0);
    }
    return twice > 0;
}

static mc_error *
read_parts(mc_shape *shape, const mc_shp_record *record, const mc_lattice *lattice, apr_pool_t *pool)
{
    if (record->size < PARTS_AT + 8)
        return broken(record, pool);
    uint64_t parts = mc_little32(record->content + PARTS_AT), points = mc_little32(record->content + PARTS_AT + 4);
    if (PARTS_AT + 8 + parts * 4 + points * 16 > record->size)
        return broken(record, pool);
    const uint8_t *begins = record->content + PARTS_AT + 8, *vertices = begins + parts * 4;
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t begin = mc_little32(begins + i * 4), end = i + 1 < parts ? mc_little32(begins + i * 4 + 4) : points;
        if (begin > end || end > points)
            return broken(record, pool);
        if (!add_points(shape, vertices + begin * 16, (size_t)(end - begin), lattice))
            continue;
        if (shape->kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(shape, end - begin > 2 && is_hole(vertices + begin * 16, (size_t)(end - begin)));
        else
            mc_shape_end_part(shape);
    }
    return MC_OK;
}

static mc_error *
read_points(mc_shape *shape, const mc_shp_record *record, const mc_lattice *lattice, apr_pool_t *pool)
{
    if (record->size < PARTS_AT + 4)
        return broken(record, pool);
    uint64_t count = mc_little32(record->content + PARTS_AT);
    if (PARTS_AT + 4 + count * 16 > record->size)
        return broken(record, pool);
    for (uint64_t i = 0; i < count; i++)
        if (add_points(shape, record->content + PARTS_AT + 4 + i * 16, 1, lattice))
            mc_shape_end_part(shape);
    return MC_OK;
}

mc_error *
mc_shp_geometry(mc_geometry *geometry, const mc_shp_record *record, const mc_lattice *lattice, apr_pool_t *pool)
{
    mc_geometry_clear(geometry);
    switch (kind_of(record)) {
    case SHP_NULL:
        return record->size == 0 ? broken(record, pool) : MC_OK;
    case SHP_POINT:
        if (record->size < 20)
            return broken(record, pool);
        if (add_points(&geometry->shapes[MC_SHAPE_POINTS], record->content + 4, 1, lattice))
            mc_shape_end_part(&geometry->shapes[MC_SHAPE_POINTS]);
        return MC_OK;
    case SHP_LINE:
        return read_parts(&geometry->shapes[MC_SHAPE_LINES], record, lattice, pool);
    case SHP_POLYGON:
        return read_parts(&geometry->shapes[MC_SHAPE_POLYGONS], record, lattice, pool);
    case SHP_MULTIPOINT:
        return read_points(&geometry->shapes[MC_SHAPE_POINTS], record, lattice, pool);
    default:
        return mc_error_create(pool, MC_ERR_NOT_BUILT, "shapes of type %u cannot be painted",
                               mc_little32(record->content));
    }
}
