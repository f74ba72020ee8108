/* Shapefiles: see shp.h. Coordinates are little-endian doubles, x before y. */
#include "feature/shp.h"

#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

enum {
    FILE_HEADER = 100,
    RECORD_HEADER = 8,
    SHP_NULL = 0,
    SHP_POINT = 1,
    SHP_LINE = 3,
    SHP_POLYGON = 5,
    SHP_MULTIPOINT = 8,
    BOX_AT = 4,
    PARTS_AT = 36,
};

static mc_error *
open_beside(mc_mapped *file, const char *path, const char *small, const char *large, apr_pool_t *pool)
{
    const char *base = apr_pstrmemdup(pool, path, strlen(path) - 4);
    bool found;
    MC_TRY(mc_mapped_open(file, &found, apr_pstrcat(pool, base, small, NULL), pool));
    return found ? MC_OK : mc_mapped_open(file, &found, apr_pstrcat(pool, base, large, NULL), pool);
}

static mc_extent
box_at(const uint8_t *bytes)
{
    return (mc_extent){ mc_little_double(bytes), mc_little_double(bytes + 8), mc_little_double(bytes + 16),
                        mc_little_double(bytes + 24) };
}

/* The .cpg's first word. */
static const char *
codepage_of(const mc_shp *shp, apr_pool_t *pool)
{
    size_t size = 0;
    while (size < shp->codepage.size && size < 64 && !iscntrl(shp->codepage.bytes[size]))
        size++;
    return size == 0 ? NULL : apr_pstrmemdup(pool, (const char *)shp->codepage.bytes, size);
}

mc_error *
mc_shp_open(mc_shp **shp, const char *path, apr_pool_t *pool)
{
    mc_shp *made = apr_pcalloc(pool, sizeof(*made));
    bool found;
    size_t length = strlen(path);
    if (length < 5 || strcasecmp(path + length - 4, ".shp") != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s does not end in .shp", path);
    MC_TRY(mc_mapped_open(&made->main, &found, path, pool));
    if (!found)
        return mc_error_create(pool, MC_ERR_IO, "there is no %s", path);
    if (made->main.size < FILE_HEADER || mc_big32(made->main.bytes) != 9994)
        return mc_error_create(pool, MC_ERR_CORRUPT, "%s is no shapefile", path);
    made->type = (int)mc_little32(made->main.bytes + 32);
    made->box = box_at(made->main.bytes + 36);
    MC_TRY(open_beside(&made->table, path, ".dbf", ".DBF", pool));
    MC_TRY(open_beside(&made->codepage, path, ".cpg", ".CPG", pool));
    if (made->table.size > 0)
        MC_TRY(mc_dbf_open(&made->attributes, &made->table, codepage_of(made, pool), pool));
    *shp = made;
    return MC_OK;
}

static int
base_type(const mc_shp_record *record)
{
    return record->size < 4 ? SHP_NULL : (int)(mc_little32(record->content) % 10);
}

bool
mc_shp_next(const mc_shp *shp, size_t *at, mc_shp_record *record)
{
    if (*at < FILE_HEADER)
        *at = FILE_HEADER;
    if (shp->main.size < *at || shp->main.size - *at < RECORD_HEADER)
        return false;
    const uint8_t *header = shp->main.bytes + *at;
    uint64_t size = (uint64_t)mc_big32(header + 4) * 2;
    if (size > shp->main.size - *at - RECORD_HEADER)
        return false;
    *record = (mc_shp_record){ mc_big32(header) - 1, header + RECORD_HEADER, (size_t)size, { 0, 0, 0, 0 }, false };
    *at += RECORD_HEADER + (size_t)size;
    int type = base_type(record);
    if (type == SHP_POINT && record->size >= 20) {
        double x = mc_little_double(record->content + 4), y = mc_little_double(record->content + 12);
        record->box = (mc_extent){ x, y, x, y };
        record->has_box = true;
    } else if (type != SHP_NULL && record->size >= PARTS_AT) {
        record->box = box_at(record->content + BOX_AT);
        record->has_box = true;
    }
    return true;
}

static mc_error *
broken(const mc_shp_record *record, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "shape %u does not fit its record", record->number + 1);
}

static bool
add_points(mc_shape *shape, const uint8_t *bytes, size_t count, const mc_lattice *lattice)
{
    int begin = shape->point_count;
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
    switch (base_type(record)) {
    case SHP_NULL:
        return MC_OK;
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
