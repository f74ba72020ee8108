/* See wkb_thin.h. Types: OGC 06-103r4, 8.2.8; the flag of the SRID is PostGIS' own. */
#include "vector/geometry/wkb_thin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector/geometry/shape.h"
#include "vector/geometry/wkb_bytes.h"

enum {
    WITH_SRID = 0x20000000,
    RING_LEAST = 4,
    LINE_LEAST = 16, /* vertices of a line from which on some may be left out: fewer would spare next to nothing */
    FIRST_ROOM = 4096,
};

enum { POINT = 1, LINE, POLYGON, POINTS, LINES, POLYGONS };

typedef struct wkb_thinning {
    mc_wkb_buffer *out;
    const mc_wkb_cells *cells;       /* NULL: vertices are snapped */
    const mc_pixel_grid *pixel_grid; /* that they are snapped for */
    const uint8_t *at, *end;
    bool swapped;
    int values; /* of a vertex */
} wkb_thinning;

typedef struct thin_vertex {
    double x, y;
} thin_vertex;

void
mc_wkb_append(mc_wkb_buffer *buffer, const void *data, size_t size)
{
    size_t room = buffer->room == 0 ? FIRST_ROOM : buffer->room;
    while (room - buffer->size < size && !buffer->failed)
        buffer->failed = __builtin_mul_overflow(room, 2, &room);
    uint8_t *grown = buffer->failed || room == buffer->room ? buffer->data : realloc(buffer->data, room);
    buffer->failed |= grown == NULL;
    if (buffer->failed)
        return;
    buffer->data = grown;
    buffer->room = room;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

static void
put_number(uint8_t little[4], uint32_t number)
{
    for (int i = 0; i < 4; i++)
        little[i] = (uint8_t)(number >> 8 * i);
}

static void
append_wkb_number(mc_wkb_buffer *buffer, uint32_t number)
{
    uint8_t little[4];
    put_number(little, number);
    mc_wkb_append(buffer, little, sizeof(little));
}

static void
append_vertex(mc_wkb_buffer *buffer, thin_vertex vertex)
{
    const double both[2] = { vertex.x, vertex.y };
    uint64_t bits[2];
    memcpy(bits, both, sizeof(bits));
    for (int i = 0; i < 2; i++) {
        append_wkb_number(buffer, (uint32_t)bits[i]);
        append_wkb_number(buffer, (uint32_t)(bits[i] >> 32));
    }
}

static void
append_head(mc_wkb_buffer *buffer, uint32_t type, int srid)
{
    static const uint8_t little_endian = 1;
    mc_wkb_append(buffer, &little_endian, 1);
    append_wkb_number(buffer, type | (srid != 0 ? WITH_SRID : 0));
    if (srid != 0)
        append_wkb_number(buffer, (uint32_t)srid);
}

/* From a corner, in steps: into the middle of that half of its step in which it is. The step is found by the arithmetic
 * of mc_shape_add_vertex. */
static double
snap_distance(double distance, double steps)
{
    const double at = distance * steps, step = rint(at);
    return (at >= step ? step + 0.25 : step - 0.25) / steps;
}

static thin_vertex
vertex_at(const wkb_thinning *t, size_t index)
{
    const uint8_t *at = t->at + index * (size_t)t->values * 8;
    const thin_vertex vertex = { mc_wkb_number(at, t->swapped), mc_wkb_number(at + 8, t->swapped) };
    const mc_pixel_grid *grid = t->pixel_grid;
    if (grid == NULL)
        return vertex;
    return (thin_vertex){ grid->x0 + snap_distance(vertex.x - grid->x0, grid->per_x * MC_SUBPIXELS),
                          grid->y0 - snap_distance(grid->y0 - vertex.y, grid->per_y * MC_SUBPIXELS) };
}

static bool
is_snapped_alike(thin_vertex a, thin_vertex b)
{
    return a.x == b.x && a.y == b.y;
}

static bool
is_same_cell(const wkb_thinning *t, thin_vertex a, thin_vertex b)
{
    const mc_wkb_cells *c = t->cells;
    if (c == NULL)
        return is_snapped_alike(a, b);
    return floor((a.x - c->x0) / c->side) == floor((b.x - c->x0) / c->side) &&
           floor((a.y - c->y0) / c->side) == floor((b.y - c->y0) / c->side);
}

/* Of each run of vertices in one cell the first and the last, which are one place where they are snapped; of a short
 * line all. */
static uint32_t
append_ends_of_runs(wkb_thinning *t, uint32_t count, bool all)
{
    uint32_t kept = 0;
    for (uint32_t i = 0, last; i < count; i = last + 1) {
        const thin_vertex first = vertex_at(t, i);
        last = i;
        while (!all && last + 1 < count && is_same_cell(t, first, vertex_at(t, last + 1)))
            last++;
        const bool both = last > i && t->cells != NULL;
        append_vertex(t->out, first);
        if (both)
            append_vertex(t->out, vertex_at(t, last));
        kept += 1 + both;
    }
    return kept;
}

/* A ring or line of too few vertices begins again with some of its own. */
static uint32_t
append_few(wkb_thinning *t, uint32_t count, uint32_t least)
{
    for (uint32_t i = 0; i < least - 1; i++)
        append_vertex(t->out, vertex_at(t, i < count ? (size_t)i * count / least : 0));
    append_vertex(t->out, vertex_at(t, count - 1));
    return least;
}

static bool
take_count(uint32_t *count, wkb_thinning *t)
{
    return mc_wkb_word(count, &t->at, t->end, t->swapped);
}

/* A line, or a ring. */
static bool
thin_vertices(wkb_thinning *t, bool ring)
{
    uint32_t count;
    const size_t each = (size_t)t->values * 8;
    if (!take_count(&count, t) || count > (size_t)(t->end - t->at) / each)
        return false;
    size_t begin = t->out->size;
    append_wkb_number(t->out, 0);
    uint32_t kept = append_ends_of_runs(t, count, !ring && count < LINE_LEAST && t->cells != NULL);
    const uint32_t least = ring ? RING_LEAST : 2;
    if (kept < least && count >= least) {
        t->out->size = begin + 4;
        kept = append_few(t, count, least);
    }
    if (!t->out->failed)
        put_number(t->out->data + begin, kept);
    t->at += count * each;
    return true;
}

static bool
thin_single(wkb_thinning *t, uint32_t type)
{
    uint32_t rings;
    if (type == LINE)
        return thin_vertices(t, false);
    if (type == POINT) {
        if ((size_t)(t->end - t->at) < (size_t)t->values * 8)
            return false;
        append_vertex(t->out, vertex_at(t, 0));
        t->at += (size_t)t->values * 8;
        return true;
    }
    if (!take_count(&rings, t))
        return false;
    append_wkb_number(t->out, rings);
    for (uint32_t i = 0; i < rings; i++)
        if (!thin_vertices(t, true))
            return false;
    return true;
}

/* Byte order, type and values of a vertex. */
static bool
take_thinned_head(uint32_t *type, wkb_thinning *t)
{
    mc_wkb_head head;
    if (t->at == t->end || *t->at > 1 || !mc_wkb_take_head(&head, &t->at, t->end))
        return false;
    t->swapped = head.swapped;
    t->values = head.values;
    *type = head.type;
    return true;
}

static bool
thin_geometry(wkb_thinning *t, int srid)
{
    uint32_t type, member, count;
    if (!take_thinned_head(&type, t) || type < POINT || type > POLYGONS)
        return false;
    append_head(t->out, type, srid);
    if (type <= POLYGON)
        return thin_single(t, type);
    if (!take_count(&count, t) || count == 0)
        return false;
    append_wkb_number(t->out, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!take_thinned_head(&member, t) || member != type - POLYGON)
            return false;
        append_head(t->out, member, 0);
        if (!thin_single(t, member))
            return false;
    }
    return true;
}

static bool
thin_whole(wkb_thinning *t, int srid)
{
    const size_t begin = t->out->size;
    bool thinned = thin_geometry(t, srid);
    if (!thinned)
        t->out->size = begin;
    return thinned;
}

bool
mc_wkb_thin(mc_wkb_buffer *buffer, const void *wkb, size_t size, int srid, const mc_wkb_cells *cells)
{
    return thin_whole(&(wkb_thinning){ .out = buffer, .cells = cells, .at = wkb, .end = (const uint8_t *)wkb + size },
                      srid);
}

bool
mc_wkb_snap(mc_wkb_buffer *buffer, const void *wkb, size_t size, const mc_pixel_grid *pixel_grid)
{
    return thin_whole(
        &(wkb_thinning){ .out = buffer, .pixel_grid = pixel_grid, .at = wkb, .end = (const uint8_t *)wkb + size }, 0);
}
