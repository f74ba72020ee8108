/* See warp.h. */
#include "feature/warp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEND 0.25 /* pixels that an edge may be off */
#define SHORT 4.0 /* pixels: no edge of this length bends by as much as that */
#define LONG 64.0

#define STEP 1e-5 /* of a box: so far apart are points that tell how large its pixels are */

enum { NET = 8, DEEPEST = 12, POINTS_MAX = MC_SHAPE_POINTS_MAX };

struct mc_warp {
    const mc_projection *projection;
    double *given, *moved; /* x and y in turn: of the data, of the map */
    size_t given_room, moved_room;
};

typedef struct vertex {
    double x, y;
} vertex;

/* A vertex before and after its transformation: in units of the data, in pixels of the lattice. */
typedef struct place {
    vertex given, moved;
} place;

static apr_status_t
free_warp(void *data)
{
    mc_warp *warp = data;
    free(warp->given);
    free(warp->moved);
    return APR_SUCCESS;
}

mc_warp *
mc_warp_create(const mc_projection *projection, apr_pool_t *pool)
{
    mc_warp *made = apr_pcalloc(pool, sizeof(*made));
    made->projection = projection;
    apr_pool_cleanup_register(pool, made, free_warp, apr_pool_cleanup_null);
    return made;
}

static double *
room_for(double **values, size_t *room, size_t count)
{
    if (count > POINTS_MAX)
        return NULL;
    if (*room < count) {
        free(*values);
        *values = malloc(sizeof(**values) * 2 * count);
        *room = *values == NULL ? 0 : count;
    }
    return *values;
}

double *
mc_warp_vertices(mc_warp *warp, size_t count)
{
    return room_for(&warp->given, &warp->given_room, count);
}

static vertex
to_pixels(const mc_lattice *lattice, const double *xy)
{
    return (vertex){ (xy[0] - lattice->x0) * lattice->per_x, (lattice->y0 - xy[1]) * lattice->per_y };
}

static void
add(mc_shape *shape, const mc_lattice *lattice, vertex moved)
{
    /* its pixels are the same as those of a vertex that needed no transformation */
    (void)mc_shape_add_vertex(shape, lattice, lattice->x0 + moved.x / lattice->per_x,
                              lattice->y0 - moved.y / lattice->per_y);
}

/* Where the point of an edge at `part` of its length comes to lie; false where it cannot be transformed. */
static bool
place_at(place *at, const mc_lattice *lattice, const place *a, const place *b, double part)
{
    double xy[2] = { a->given.x + (b->given.x - a->given.x) * part, a->given.y + (b->given.y - a->given.y) * part };
    at->given = (vertex){ xy[0], xy[1] };
    mc_projection_points(lattice->warp->projection, xy, 1);
    at->moved = to_pixels(lattice, xy);
    return isfinite(at->moved.x) && isfinite(at->moved.y);
}

/* How far a point is from a line between two others, squared. */
static double
distance2(vertex p, vertex a, vertex b)
{
    double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    double t = length2 > 0 ? fmin(1, fmax(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2)) : 0;
    double ex = p.x - a.x - t * dx, ey = p.y - a.y - t * dy;
    return ex * ex + ey * ey;
}

/* An edge may bend to both sides and pass through its own middle: long ones are looked at in their quarters too. */
static bool
is_bent(const mc_lattice *lattice, const place *a, const place *middle, const place *b, double length2)
{
    place quarter;
    if (distance2(middle->moved, a->moved, b->moved) > BEND * BEND)
        return true;
    for (int i = 1; length2 > LONG * LONG && i < 4; i += 2)
        if (!place_at(&quarter, lattice, a, b, i * 0.25) || distance2(quarter.moved, a->moved, b->moved) > BEND * BEND)
            return true;
    return false;
}

/* Adds what has to stand between the ends of an edge. */
static void
bend(mc_shape *shape, const mc_lattice *lattice, const place *a, const place *b, int depth)
{
    place middle;
    double dx = b->moved.x - a->moved.x, dy = b->moved.y - a->moved.y, length2 = dx * dx + dy * dy;
    if (length2 <= SHORT * SHORT || depth == DEEPEST || !place_at(&middle, lattice, a, b, 0.5) ||
        !is_bent(lattice, a, &middle, b, length2))
        return;
    bend(shape, lattice, a, &middle, depth + 1);
    add(shape, lattice, middle.moved);
    bend(shape, lattice, &middle, b, depth + 1);
}

bool
mc_warp_add(mc_shape *shape, const mc_lattice *lattice, size_t count)
{
    mc_warp *warp = lattice->warp;
    double *moved = room_for(&warp->moved, &warp->moved_room, count);
    place last = { { 0, 0 }, { 0, 0 } };
    bool any = false;
    if (moved == NULL) {
        shape->failed = true;
        return false;
    }
    memcpy(moved, warp->given, sizeof(*moved) * 2 * count);
    mc_projection_points(warp->projection, moved, count);
    for (size_t i = 0; i < count; i++) {
        place next = { { warp->given[2 * i], warp->given[2 * i + 1] }, to_pixels(lattice, moved + 2 * i) };
        if (!isfinite(next.moved.x) || !isfinite(next.moved.y))
            continue;
        if (any && shape->kind != MC_SHAPE_POINTS)
            bend(shape, lattice, &last, &next, 0);
        add(shape, lattice, next.moved);
        last = next;
        any = true;
    }
    return any;
}

/* The size of a pixel at a point, by how far a step to both sides goes on the map. */
static double
pixel_at(const mc_lattice *lattice, double x, double y, double step)
{
    double xy[6] = { x, y, x + step, y, x, y + step };
    mc_projection_points(lattice->warp->projection, xy, 3);
    vertex at = to_pixels(lattice, xy), right = to_pixels(lattice, xy + 2), up = to_pixels(lattice, xy + 4);
    double pixels = fmax(hypot(right.x - at.x, right.y - at.y), hypot(up.x - at.x, up.y - at.y));
    return isfinite(pixels) && pixels > 0 ? step / pixels : HUGE_VAL;
}

double
mc_lattice_pixel(const mc_lattice *lattice, const mc_extent *box)
{
    if (lattice->warp == NULL)
        return fmin(1 / lattice->per_x, 1 / lattice->per_y);
    double width = box->maxx - box->minx, height = box->maxy - box->miny, smallest = HUGE_VAL;
    if (!isfinite(width) || !isfinite(height))
        return 0;
    for (int i = 0; i <= NET; i++)
        for (int j = 0; j <= NET; j++)
            smallest = fmin(smallest, pixel_at(lattice, box->minx + width * i / NET, box->miny + height * j / NET,
                                               fmax(width, height) * STEP));
    return isfinite(smallest) ? smallest : 0;
}
