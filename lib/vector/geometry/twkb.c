/*
 * Tiny well-known binary (the specification of its authors, 0.23, as PostGIS writes it): whole numbers, each the
 * difference to the one before, zig-zag encoded in 7 bits a byte.
 */
#include <math.h>

#include "vector/geometry/geometry.h"
#include "vector/geometry/warp.h"
#include "vector/geometry/wkb_bytes.h"

enum { TWKB_POINT = 1, TWKB_LINE, TWKB_POLYGON, TWKB_MULTIPOINT, TWKB_MULTILINE, TWKB_MULTIPOLYGON, TWKB_COLLECTION };

enum {
    HAS_BOX = 1,
    HAS_SIZE = 2,
    HAS_IDS = 4,
    HAS_MORE_DIMENSIONS = 8,
    IS_EMPTY = 16,
    MOST_DEPTH = 16,
    VERTICES_AT_ONCE = 64
};

typedef struct twkb_reader {
    const uint8_t *at, *end;
    mc_geometry *geometry;
    const mc_pixel_grid *pixel_grid;
    apr_pool_t *pool;
    double scale;    /* what a whole number of x or y is divided by */
    int values;      /* of a vertex: 2, 3 or 4 */
    int64_t last[4]; /* the vertex before */
} twkb_reader;

static bool
read_number(uint64_t *number, twkb_reader *r)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = value;
            return true;
        }
    }
    return false;
}

static bool
read_signed(int64_t *number, twkb_reader *r)
{
    uint64_t value;
    if (!read_number(&value, r))
        return false;
    *number = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    return true;
}

/* A count of things of which each takes a byte at least. */
static bool
read_count(uint64_t *count, twkb_reader *r)
{
    return read_number(count, r) && *count <= (uint64_t)(r->end - r->at);
}

/* What ST_AsTWKB makes of a coordinate that is no number or infinite is far beyond all that it makes of others. */
static bool
is_finite(int64_t value)
{
    return value < INT64_C(1) << 62 && value > -(INT64_C(1) << 62);
}

/* A number of one byte or two, as most are; false: it has more. */
static inline bool
read_short(int64_t *number, twkb_reader *r)
{
    if (r->end - r->at < 2)
        return false;
    const uint32_t low = r->at[0], high = r->at[1], two = low >> 7;
    if ((two & high >> 7) != 0)
        return false;
    const uint32_t value = (low & 0x7F) | (two * high) << 7;
    r->at += 1 + two;
    *number = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    return true;
}

static bool
read_some_vertices(double *xy, uint64_t count, twkb_reader *r)
{
    for (uint64_t i = 0; i < count; i++) {
        for (int v = 0; v < r->values; v++) {
            int64_t step;
            if (!read_short(&step, r) && !read_signed(&step, r))
                return false;
            r->last[v] = (int64_t)((uint64_t)r->last[v] + (uint64_t)step);
        }
        const bool finite = is_finite(r->last[0]) && is_finite(r->last[1]);
        xy[2 * i] = finite ? (double)r->last[0] / r->scale : NAN;
        xy[2 * i + 1] = finite ? (double)r->last[1] / r->scale : NAN;
    }
    return true;
}

static mc_error *
read_twkb_vertices(twkb_reader *r, mc_shape *shape, uint64_t count, bool hole)
{
    if (count > (uint64_t)(r->end - r->at) / (uint64_t)r->values)
        return mc_wkb_truncated(r->pool);
    bool warped = r->pixel_grid->warp != NULL, finite = true;
    double *xy = warped ? mc_warp_vertices(r->pixel_grid->warp, (size_t)count) : NULL;
    int begin = shape->point_count;
    r->geometry->vertex_count += (int64_t)count;
    shape->failed |= warped && xy == NULL;
    for (uint64_t i = 0; i < count && !shape->failed; i += VERTICES_AT_ONCE) {
        const uint64_t some = count - i < VERTICES_AT_ONCE ? count - i : VERTICES_AT_ONCE;
        double some_xy[2 * VERTICES_AT_ONCE], *to = warped ? xy + 2 * i : some_xy;
        if (!read_some_vertices(to, some, r))
            return mc_wkb_truncated(r->pool);
        finite &= warped || mc_shape_add_vertices(shape, r->pixel_grid, (const uint8_t *)some_xy, 2 * sizeof(double),
                                                  (size_t)some, false);
    }
    if (warped && !shape->failed)
        (void)mc_warp_add(shape, r->pixel_grid, (size_t)count, hole ? MC_WARP_HOLE : MC_WARP_OUTER);
    return mc_geometry_end_part(shape, begin, finite, hole, r->pool);
}

static mc_error *
read_simple(twkb_reader *r, int type)
{
    static const mc_shape_kind kinds[] = {
        [TWKB_POINT] = MC_SHAPE_POINTS, [TWKB_LINE] = MC_SHAPE_LINES, [TWKB_POLYGON] = MC_SHAPE_POLYGONS
    };
    mc_shape *shape = &r->geometry->shapes[kinds[type]];
    uint64_t parts = 1, count = 1;
    if (type == TWKB_POLYGON && !read_count(&parts, r))
        return mc_wkb_truncated(r->pool);
    for (uint64_t i = 0; i < parts; i++) {
        if (type != TWKB_POINT && !read_count(&count, r))
            return mc_wkb_truncated(r->pool);
        MC_TRY(read_twkb_vertices(r, shape, count, i > 0));
    }
    return MC_OK;
}

static mc_error *read_twkb_geometry(twkb_reader *r, int depth);

/* Members of a multi-geometry have no heads of their own, those of a collection have. */
static mc_error *
read_twkb_members(twkb_reader *r, int type, int flags, int depth)
{
    uint64_t count;
    int64_t id;
    if (!read_count(&count, r))
        return mc_wkb_truncated(r->pool);
    for (uint64_t i = 0; (flags & HAS_IDS) != 0 && i < count; i++)
        if (!read_signed(&id, r))
            return mc_wkb_truncated(r->pool);
    for (uint64_t i = 0; i < count; i++)
        MC_TRY(type == TWKB_COLLECTION ? read_twkb_geometry(r, depth + 1)
                                       : read_simple(r, type - TWKB_MULTIPOINT + TWKB_POINT));
    return MC_OK;
}

/* What pow gives, for each geometry at less cost. */
static double
power_of_ten(int precision)
{
    static const double powers[] = { 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1,
                                     1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7 };
    return powers[precision + 8];
}

/* Scale and number of values of the vertices; passes over size and box. */
static mc_error *
read_twkb_head(twkb_reader *r, int *type, int *flags)
{
    uint64_t size;
    int64_t bound;
    if (r->end - r->at < 2)
        return mc_wkb_truncated(r->pool);
    int precision = (*r->at >> 5) ^ -((*r->at >> 4) & 1);
    *type = *r->at++ & 0x0F;
    *flags = *r->at++;
    r->scale = power_of_ten(precision);
    r->values = 2;
    for (int v = 0; v < 4; v++)
        r->last[v] = 0;
    if ((*flags & HAS_MORE_DIMENSIONS) != 0) {
        if (r->at >= r->end)
            return mc_wkb_truncated(r->pool);
        r->values += (*r->at & 1) + (*r->at >> 1 & 1);
        r->at++;
    }
    if ((*flags & HAS_SIZE) != 0 && !read_number(&size, r))
        return mc_wkb_truncated(r->pool);
    for (int v = 0; (*flags & HAS_BOX) != 0 && v < r->values * 2; v++)
        if (!read_signed(&bound, r))
            return mc_wkb_truncated(r->pool);
    return MC_OK;
}

static mc_error *
read_twkb_geometry(twkb_reader *r, int depth)
{
    int type = 0, flags = 0;
    if (depth > MOST_DEPTH)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a geometry is nested more than %d deep", MOST_DEPTH);
    MC_TRY(read_twkb_head(r, &type, &flags));
    if (type < TWKB_POINT || type > TWKB_COLLECTION)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a geometry is no tiny well-known binary: type %d", type);
    if ((flags & IS_EMPTY) != 0)
        return MC_OK;
    return type <= TWKB_POLYGON ? read_simple(r, type) : read_twkb_members(r, type, flags, depth);
}

mc_error *
mc_twkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    const uint8_t *begin = bytes;
    twkb_reader r = { .at = begin, .end = begin + size, .geometry = geometry, .pixel_grid = pixel_grid, .pool = pool };
    mc_geometry_clear(geometry);
    return read_twkb_geometry(&r, 0);
}

/* Makes the bounds hold all vertices of a part. */
static bool
bound_part(mc_extent *bounds, twkb_reader *r, uint64_t count)
{
    double xy[2 * VERTICES_AT_ONCE];
    for (uint64_t i = 0; i < count; i += VERTICES_AT_ONCE) {
        const uint64_t some = count - i < VERTICES_AT_ONCE ? count - i : VERTICES_AT_ONCE;
        if (!read_some_vertices(xy, some, r))
            return false;
        for (uint64_t k = 0; k < some; k++) {
            bounds->minx = fmin(bounds->minx, xy[2 * k]);
            bounds->miny = fmin(bounds->miny, xy[2 * k + 1]);
            bounds->maxx = fmax(bounds->maxx, xy[2 * k]);
            bounds->maxy = fmax(bounds->maxy, xy[2 * k + 1]);
        }
    }
    return true;
}

bool
mc_twkb_bounds(mc_extent *bounds, const void *bytes, size_t size)
{
    const uint8_t *begin = bytes;
    twkb_reader r = { .at = begin, .end = begin + size };
    uint64_t parts = 1, count = 1;
    *bounds = (mc_extent){ INFINITY, INFINITY, -INFINITY, -INFINITY };
    if (size < 2 || (begin[0] & 0x0F) < TWKB_POINT || (begin[0] & 0x0F) > TWKB_POLYGON || begin[1] != 0)
        return false;
    const int type = begin[0] & 0x0F, precision = (begin[0] >> 5) ^ -((begin[0] >> 4) & 1);
    r.at += 2;
    r.scale = power_of_ten(precision);
    r.values = 2;
    if (type == TWKB_POLYGON && !read_count(&parts, &r))
        return false;
    for (uint64_t i = 0; i < parts; i++)
        if ((type != TWKB_POINT && !read_count(&count, &r)) || !bound_part(bounds, &r, count))
            return false;
    return bounds->minx <= bounds->maxx && bounds->miny <= bounds->maxy;
}

int
mc_twkb_digits(double pixel)
{
    double digits = ceil(-log10(pixel / 10));
    return digits > MC_TWKB_DIGITS ? MC_TWKB_DIGITS + 1 : digits < -MC_TWKB_DIGITS ? -MC_TWKB_DIGITS : (int)digits;
}
