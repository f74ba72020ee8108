/* Well-known binary: see geometry.h. No number that it names is believed before the bytes are there. */
#include <string.h>

#include "vector/geometry/geometry.h"
#include "vector/geometry/path.h"
#include "vector/geometry/warp.h"
#include "vector/geometry/wkb_bytes.h"

enum {
    WKB_POINT = 1,
    WKB_LINE = 2,
    WKB_POLYGON = 3,
    WKB_MULTIPOINT = 4,
    WKB_COLLECTION = 7,
    WKB_CIRCULAR = 8,
    WKB_COMPOUND = 9,
    WKB_CURVE_POLYGON = 10,
    WKB_MULTICURVE = 11,
    WKB_MULTISURFACE = 12,
    WKB_POLYHEDRAL = 15,
    WKB_TIN = 16,
    WKB_TRIANGLE = 17,
    MOST_DEPTH = 16,
};

typedef struct wkb_reader {
    const uint8_t *at, *end;
    bool swapped; /* the bytes are of the other order than this machine's */
    int values;   /* of a vertex: 2, 3 or 4 */
    mc_geometry *geometry;
    const mc_pixel_grid *pixel_grid;
    mc_path path; /* a curve that is being read */
    apr_pool_t *pool;
} wkb_reader;

static bool
read_wkb_word(uint32_t *word, wkb_reader *r)
{
    return mc_wkb_word(word, &r->at, r->end, r->swapped);
}

mc_error *
mc_geometry_end_part(mc_shape *shape, int begin, bool finite, bool hole, apr_pool_t *pool)
{
    if (!finite)
        shape->point_count = begin;
    if (shape->kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(shape, hole);
    else
        mc_shape_end_part(shape);
    if (shape->failed)
        return mc_error_create(pool, MC_ERR_LIMIT, "a geometry has more than %d vertices", MC_SHAPE_POINTS_MAX);
    return MC_OK;
}

static bool
add_warped_wkb_points(wkb_reader *r, mc_shape *shape, uint32_t count, size_t stride, bool hole)
{
    double *xy = mc_warp_vertices(r->pixel_grid->warp, count);
    for (uint32_t i = 0; i < count; i++, r->at += stride) {
        if (xy == NULL)
            continue;
        xy[2 * (size_t)i] = mc_wkb_number(r->at, r->swapped);
        xy[2 * (size_t)i + 1] = mc_wkb_number(r->at + 8, r->swapped);
    }
    shape->failed |= xy == NULL;
    return xy != NULL && mc_warp_add(shape, r->pixel_grid, count, hole ? MC_WARP_HOLE : MC_WARP_OUTER);
}

static mc_error *
read_wkb_vertices(wkb_reader *r, mc_shape *shape, uint32_t count, bool hole)
{
    size_t stride = (size_t)r->values * 8;
    if (count > (size_t)(r->end - r->at) / stride)
        return mc_wkb_truncated(r->pool);
    bool finite = true;
    int begin = shape->point_count;
    r->geometry->vertex_count += count;
    if (r->pixel_grid->warp != NULL)
        finite = add_warped_wkb_points(r, shape, count, stride, hole);
    else {
        finite = mc_shape_add_vertices(shape, r->pixel_grid, r->at, stride, count, r->swapped);
        r->at += stride * count;
    }
    return mc_geometry_end_part(shape, begin, finite, hole, r->pool);
}

static mc_error *
read_rings(wkb_reader *r)
{
    uint32_t rings, count;
    if (!read_wkb_word(&rings, r))
        return mc_wkb_truncated(r->pool);
    for (uint32_t i = 0; i < rings; i++) {
        if (!read_wkb_word(&count, r))
            return mc_wkb_truncated(r->pool);
        MC_TRY(read_wkb_vertices(r, &r->geometry->shapes[MC_SHAPE_POLYGONS], count, i > 0));
    }
    return MC_OK;
}

/* Byte order, type, and the number of values that it says a vertex has. */
static mc_error *
read_wkb_head(wkb_reader *r, uint32_t *type)
{
    mc_wkb_head head;
    if (r->at<r->end && * r->at> 1)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a geometry is no well-known binary: byte order %d", *r->at);
    if (!mc_wkb_take_head(&head, &r->at, r->end))
        return mc_wkb_truncated(r->pool);
    if (r->geometry->srid == 0)
        r->geometry->srid = (int)head.srid;
    r->swapped = head.swapped;
    r->values = head.values;
    *type = head.type;
    return MC_OK;
}

static void
take_vertex(double at[2], wkb_reader *r)
{
    at[0] = mc_wkb_number(r->at, r->swapped);
    at[1] = mc_wkb_number(r->at + 8, r->swapped);
    r->at += (size_t)r->values * 8;
}

/* The vertices of a line, straight or of arcs. */
static mc_error *
read_curve(wkb_reader *r, bool arcs)
{
    uint32_t count;
    double begin[2], middle[2], end[2];
    if (!read_wkb_word(&count, r) || count > (size_t)(r->end - r->at) / ((size_t)r->values * 8))
        return mc_wkb_truncated(r->pool);
    if (arcs && count > 0 && count % 2 == 0)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a line of arcs has %u vertices", count);
    r->geometry->vertex_count += count;
    for (uint32_t i = 0; i < count; i++) {
        take_vertex(i % 2 == 1 && arcs ? middle : end, r);
        if (i == 0 || !arcs)
            mc_path_add(&r->path, end[0], end[1]);
        else if (i % 2 == 0)
            mc_path_arc(&r->path, r->pixel_grid, begin, middle, end);
        if (i % 2 == 0)
            memcpy(begin, end, sizeof(begin));
    }
    return MC_OK;
}

/* As many members as the next word says. */
static mc_error *
read_wkb_members(wkb_reader *r, mc_error *(*read)(wkb_reader *r, int depth), int depth)
{
    uint32_t count;
    if (!read_wkb_word(&count, r))
        return mc_wkb_truncated(r->pool);
    for (uint32_t i = 0; i < count; i++)
        MC_TRY(read(r, depth));
    return MC_OK;
}

/* A line, a line of arcs, or several of both one after the other. */
static mc_error *
read_wkb_path(wkb_reader *r, int depth)
{
    uint32_t type;
    MC_TRY(read_wkb_head(r, &type));
    if (type == WKB_LINE || type == WKB_CIRCULAR)
        return read_curve(r, type == WKB_CIRCULAR);
    if (type != WKB_COMPOUND || depth > 1)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a curve is made of geometries of type %u", type);
    return read_wkb_members(r, read_wkb_path, depth + 1);
}

/* `count` paths, each a part of its own. */
static mc_error *
read_paths(wkb_reader *r, mc_shape *shape, uint32_t count, int depth)
{
    for (uint32_t i = 0; i < count; i++) {
        int begin = shape->point_count;
        MC_TRY(read_wkb_path(r, depth));
        bool finite = mc_path_move(&r->path, shape, r->pixel_grid, i > 0);
        MC_TRY(mc_geometry_end_part(shape, begin, finite, i > 0, r->pool));
    }
    return MC_OK;
}

/* Of the type that has just been read: the head is read again by who reads the path. */
static mc_error *
read_curved(wkb_reader *r, const uint8_t *head, uint32_t type)
{
    uint32_t count = 1;
    bool line = type == WKB_CIRCULAR || type == WKB_COMPOUND;
    if (line)
        r->at = head;
    else if (!read_wkb_word(&count, r))
        return mc_wkb_truncated(r->pool);
    return read_paths(r, &r->geometry->shapes[line ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS], count, line ? 0 : 1);
}

static mc_error *
read_wkb_geometry(wkb_reader *r, int depth)
{
    uint32_t type = 0, count;
    const uint8_t *head = r->at;
    if (depth > MOST_DEPTH)
        return mc_error_create(r->pool, MC_ERR_CORRUPT, "a geometry is nested more than %d deep", MOST_DEPTH);
    MC_TRY(read_wkb_head(r, &type));
    if (type == WKB_POINT)
        return read_wkb_vertices(r, &r->geometry->shapes[MC_SHAPE_POINTS], 1, false);
    if (type == WKB_LINE) {
        if (!read_wkb_word(&count, r))
            return mc_wkb_truncated(r->pool);
        return read_wkb_vertices(r, &r->geometry->shapes[MC_SHAPE_LINES], count, false);
    }
    if (type == WKB_POLYGON || type == WKB_TRIANGLE)
        return read_rings(r);
    if (type == WKB_CIRCULAR || type == WKB_COMPOUND || type == WKB_CURVE_POLYGON)
        return read_curved(r, head, type);
    if ((type >= WKB_MULTIPOINT && type <= WKB_COLLECTION) || type == WKB_MULTICURVE || type == WKB_MULTISURFACE ||
        type == WKB_POLYHEDRAL || type == WKB_TIN)
        return read_wkb_members(r, read_wkb_geometry, depth + 1);
    return mc_error_create(r->pool, MC_ERR_NOT_BUILT, "geometries of type %u cannot be painted", type);
}

mc_error *
mc_wkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_pixel_grid *pixel_grid, apr_pool_t *pool)
{
    const uint8_t *begin = bytes;
    wkb_reader r = { .at = begin, .end = begin + size, .geometry = geometry, .pixel_grid = pixel_grid, .pool = pool };
    mc_geometry_clear(geometry);
    mc_error *error = read_wkb_geometry(&r, 0);
    mc_path_free(&r.path);
    return error;
}

void
mc_geometry_clear(mc_geometry *geometry)
{
    for (int kind = 0; kind < 3; kind++)
        mc_shape_clear(&geometry->shapes[kind], (mc_shape_kind)kind);
    geometry->srid = 0;
    geometry->vertex_count = 0;
}

void
mc_geometry_free(mc_geometry *geometry)
{
    for (int kind = 0; kind < 3; kind++)
        mc_shape_free(&geometry->shapes[kind]);
}

bool
mc_geometry_is_empty(const mc_geometry *geometry)
{
    for (int kind = 0; kind < 3; kind++)
        if (geometry->shapes[kind].part_count > 0)
            return false;
    return true;
}

bool
mc_geometry_bounds(const mc_geometry *geometry, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy)
{
    bool any = false;
    for (int kind = 0; kind < 3; kind++) {
        int32_t x0, y0, x1, y1;
        if (!mc_shape_bounds(&geometry->shapes[kind], &x0, &y0, &x1, &y1))
            continue;
        *minx = !any || x0 < *minx ? x0 : *minx;
        *miny = !any || y0 < *miny ? y0 : *miny;
        *maxx = !any || x1 > *maxx ? x1 : *maxx;
        *maxy = !any || y1 > *maxy ? y1 : *maxy;
        any = true;
    }
    return any;
}
