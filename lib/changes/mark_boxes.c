/* See mark_boxes.h. */
#include "changes/mark_boxes.h"

#include <apr_strings.h>
#include <math.h>

#include "changes/marks.h"
#include "vector/crs/projection.h"

/* Share of a grid's size by which boxes may stick out before they are cut off: features beside it reach into it. */
#define BESIDE 0.05

static mc_extent
widen_extent(const mc_extent *extent, double x, double y)
{
    return (mc_extent){ extent->minx - x, extent->miny - y, extent->maxx + x, extent->maxy + y };
}

/* Part of the box that may touch the other one. A box of no size stays one. False: there is none. */
static bool
cut_box(mc_extent *box, const mc_extent *by)
{
    const mc_extent part = { fmax(box->minx, by->minx), fmax(box->miny, by->miny), fmin(box->maxx, by->maxx),
                             fmin(box->maxy, by->maxy) };
    bool meets = part.minx <= part.maxx && part.miny <= part.maxy;
    if (meets)
        *box = part;
    return meets;
}

bool
mc_place_box(mc_extent *box, bool *whole, const mc_projection *projection, const mc_grid *grid)
{
    double width = grid->extent.maxx - grid->extent.minx, height = grid->extent.maxy - grid->extent.miny;
    mc_extent around = widen_extent(&grid->extent, BESIDE * width, BESIDE * height);
    *whole = false;
    if (projection == NULL)
        return true;
    mc_extent home = grid->extent, made = *box;
    if (mc_projection_box(&home, projection, true)) {
        const mc_extent wide = widen_extent(&home, BESIDE * (home.maxx - home.minx), BESIDE * (home.maxy - home.miny));
        if (!cut_box(&made, &wide)) /* a turn around the globe may bring it back: the whole world is no rare box */
            made = *box;
    }
    mc_extent narrow = made;
    if (mc_projection_box(&made, projection, false)) {
        *box = made;
        return mc_projection_turn(grid->srs) > 0 || cut_box(box, &around);
    }
    *whole = !cut_box(&narrow, &home) || !mc_projection_box(&narrow, projection, false);
    *box = narrow;
    return true;
}

int
mc_ranges_of_box(mc_tile_range ranges[3], const mc_grid_link *link, const mc_extent *box, double turn, double reach,
                 int z)
{
    const double margin = fmax(reach, 1) * link->grid->levels[z].resolution;
    const mc_extent wide = widen_extent(box, margin, margin);
    int count = 0;
    for (int side = -1; side <= 1; side++) {
        const mc_extent moved = { wide.minx + side * turn, wide.miny, wide.maxx + side * turn, wide.maxy };
        if ((side == 0 || turn > 0) && mc_grid_link_tiles(link, &moved, z, &ranges[count]))
            count++;
    }
    return count;
}

typedef struct box_marking {
    const mc_grid_link *link;
    mc_mark_set *marks;
    double *reach; /* of each level */
    double turn;
    apr_time_t time;
    int64_t ranges;
} box_marking;

static void
mark_everywhere(box_marking *marking)
{
    const mc_grid_link *link = marking->link;
    for (int z = 0; z < link->grid->level_count; z++)
        if (marking->reach[z] >= 0) {
            mc_marks_add(marking->marks, z, &link->limits[z], marking->time);
            marking->ranges++;
        }
}

static void
mark_box(box_marking *marking, const mc_extent *box)
{
    mc_tile_range ranges[3];
    for (int z = 0; z < marking->link->grid->level_count; z++) {
        if (marking->reach[z] < 0)
            continue;
        int count = mc_ranges_of_box(ranges, marking->link, box, marking->turn, marking->reach[z], z);
        for (int i = 0; i < count; i++)
            mc_marks_add(marking->marks, z, &ranges[i], marking->time);
        marking->ranges += count;
    }
}

static void
mark_boxes_on_link(box_marking *marking, int srid, const mc_box_set *boxes, apr_pool_t *pool)
{
    const mc_grid *grid = marking->link->grid;
    mc_projection *projection = NULL;
    mc_error *error =
        srid == 0 ? MC_OK : mc_projection_open(&projection, apr_psprintf(pool, "EPSG:%d", srid), grid->srs, pool);
    bool whole = boxes->whole || error != MC_OK;
    for (int i = 0; i < boxes->count && !whole; i++) {
        mc_extent box = boxes->boxes[i];
        if (mc_place_box(&box, &whole, projection, grid) && !whole)
            mark_box(marking, &box);
    }
    if (whole)
        mark_everywhere(marking);
}

int64_t
mc_mark_boxes(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes, apr_time_t time,
              apr_pool_t *pool)
{
    int64_t ranges = 0;
    for (int i = 0; i < watch->link_count; i++) {
        const mc_grid_link *link = watch->links[i].link;
        box_marking marking = { .link = link,
                                .marks = atomic_load_explicit(&watch->links[i].marks, memory_order_acquire),
                                .reach = apr_palloc(pool, sizeof(double) * (size_t)link->grid->level_count),
                                .turn = mc_projection_turn(link->grid->srs),
                                .time = time };
        if (marking.marks == NULL)
            continue;
        for (int z = 0; z < link->grid->level_count; z++)
            marking.reach[z] = mc_watch_reach(watch, table, link->grid, z);
        mark_boxes_on_link(&marking, table->srid != 0 ? table->srid : srid, boxes, pool);
        ranges += marking.ranges;
    }
    return ranges;
}
