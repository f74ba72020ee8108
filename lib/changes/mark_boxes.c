/* See mark_boxes.h. */
#include "changes/mark_boxes.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

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
clip_changed_box(mc_extent *box, const mc_extent *by)
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
        if (!clip_changed_box(&made,
                              &wide)) /* a turn around the globe may bring it back: the whole world is no rare box */
            made = *box;
    }
    mc_extent narrow = made;
    if (mc_projection_box(&made, projection, false)) {
        *box = made;
        return mc_projection_turn(grid->srs) > 0 || clip_changed_box(box, &around);
    }
    *whole = !clip_changed_box(&narrow, &home) || !mc_projection_box(&narrow, projection, false);
    *box = narrow;
    return true;
}

int
mc_ranges_of_box(mc_tile_range ranges[3], const mc_grid_link *link, const mc_extent *box, double turn, double reach,
                 int z)
{
    const mc_grid *grid = link->grid;
    const double resolution = grid->levels[z].resolution, margin = fmax(reach, 1) * resolution;
    const mc_extent wide = widen_extent(box, margin, margin);
    const double tile = grid->tile_width * resolution; /* the last tile may stick out of the grid */
    int count = 0;
    for (int side = turn > 0 ? -1 : 0; side <= (turn > 0 ? 1 : 0); side++) {
        const mc_extent moved = { wide.minx + side * turn, wide.miny, wide.maxx + side * turn, wide.maxy };
        bool beside = moved.maxx < grid->extent.minx - tile || moved.minx > grid->extent.maxx + tile;
        if (!beside && mc_grid_link_tiles(link, &moved, z, &ranges[count]))
            count++;
    }
    return count;
}

enum {
    SEEN = 32,    /* ranges of a level that are remembered */
    VISITED = 64, /* ranges at once */
    SIDES = 3,    /* ranges of a box */
};

/* The visits of one link. */
typedef struct range_visiting {
    const mc_watch_link *link;
    const mc_extent *boxes; /* on the grid */
    int count;
    mc_extent around; /* all of them */
    double turn;
    mc_range_visit *visit;
    void *baton;
} range_visiting;

/* False: it was visited a moment ago, as neighbours lie in the same tiles. */
static bool
note_range(mc_tile_range *seen, const mc_tile_range *range)
{
    mc_tile_range *slot = &seen[(unsigned)(range->minx + 5 * range->miny) % SEEN];
    if (memcmp(slot, range, sizeof(*range)) == 0)
        return false;
    *slot = *range;
    return true;
}

static mc_error *
visit_each_box(const range_visiting *visiting, int z, double reach)
{
    mc_tile_range seen[SEEN] = { { 0, 0, 0, 0 } }, found[VISITED], ranges[SIDES];
    int count = 0;
    for (int i = 0; i < visiting->count; i++) {
        int sides = mc_ranges_of_box(ranges, visiting->link->link, &visiting->boxes[i], visiting->turn, reach, z);
        for (int j = 0; j < sides; j++)
            if (note_range(seen, &ranges[j]))
                found[count++] = ranges[j];
        if (count > VISITED - SIDES || (count > 0 && i + 1 == visiting->count)) {
            MC_TRY(visiting->visit(visiting->baton, visiting->link, z, found, count));
            count = 0;
        }
    }
    return MC_OK;
}

static bool
is_one_metatile(const mc_watch_link *link, const mc_tile_range *range)
{
    return range->minx / link->columns == (range->maxx - 1) / link->columns &&
           range->miny / link->rows == (range->maxy - 1) / link->rows;
}

/* What lies around all boxes has the tiles of each of them: at levels of large tiles that is one metatile, or none. */
static mc_error *
visit_level(const range_visiting *visiting, int z, double reach)
{
    mc_tile_range ranges[SIDES];
    int sides = mc_ranges_of_box(ranges, visiting->link->link, &visiting->around, visiting->turn, reach, z);
    if (sides == 0)
        return MC_OK;
    if (sides == 1 && is_one_metatile(visiting->link, &ranges[0]))
        return visiting->visit(visiting->baton, visiting->link, z, ranges, 1);
    return visit_each_box(visiting, z, reach);
}

/* The boxes of a set on a grid, and what is around all of them. False: all of the grid counts. */
static bool
place_boxes_on_grid(range_visiting *visiting, int srid, const mc_box_set *boxes, apr_pool_t *pool)
{
    const mc_grid *grid = visiting->link->link->grid;
    mc_projection *projection = NULL;
    mc_extent *placed = apr_palloc(pool, sizeof(*placed) * (size_t)(boxes->count + 1));
    bool whole = boxes->whole || (srid != 0 && mc_projection_open(&projection, apr_psprintf(pool, "EPSG:%d", srid),
                                                                  grid->srs, pool) != MC_OK);
    visiting->boxes = placed;
    for (int i = 0; i < boxes->count && !whole; i++) {
        mc_extent box = boxes->boxes[i];
        if (!mc_place_box(&box, &whole, projection, grid))
            continue;
        whole = whole || !isfinite(box.minx) || !isfinite(box.miny) || !isfinite(box.maxx) || !isfinite(box.maxy);
        visiting->around = visiting->count == 0 ? box : mc_extent_union(&visiting->around, &box);
        placed[visiting->count++] = box;
    }
    return !whole;
}

static mc_error *
visit_link(range_visiting *visiting, const mc_watch *watch, const mc_watch_table *table, int srid,
           const mc_box_set *boxes, apr_pool_t *pool)
{
    const mc_grid_link *link = visiting->link->link;
    bool placed = place_boxes_on_grid(visiting, table->srid != 0 ? table->srid : srid, boxes, pool);
    for (int z = 0; z < link->grid->level_count; z++) {
        double reach = mc_watch_reach(watch, table, link->grid, z);
        if (reach >= 0 && !placed)
            MC_TRY(visiting->visit(visiting->baton, visiting->link, z, &link->limits[z], 1));
        else if (reach >= 0 && visiting->count > 0)
            MC_TRY(visit_level(visiting, z, reach));
    }
    return MC_OK;
}

mc_error *
mc_visit_ranges(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes,
                mc_range_visit *visit, void *baton, apr_pool_t *pool)
{
    for (int i = 0; i < watch->link_count; i++) {
        const mc_watch_link *link = &watch->links[i];
        range_visiting visiting = {
            .link = link, .turn = mc_projection_turn(link->link->grid->srs), .visit = visit, .baton = baton
        };
        MC_TRY(visit_link(&visiting, watch, table, srid, boxes, pool));
    }
    return MC_OK;
}

typedef struct range_marking {
    mc_mark_set *marks;
    apr_time_t time;
    int64_t ranges;
} range_marking;

static mc_error *
mark_ranges(void *baton, const mc_watch_link *link, int z, const mc_tile_range *ranges, int count)
{
    range_marking *marking = baton;
    (void)link;
    mc_marks_add(marking->marks, z, ranges, count, marking->time);
    marking->ranges += count;
    return MC_OK;
}

int64_t
mc_mark_boxes(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes, apr_time_t time,
              apr_pool_t *pool)
{
    range_marking marking = { NULL, time, 0 };
    for (int i = 0; i < watch->link_count; i++) {
        const mc_watch_link *link = &watch->links[i];
        range_visiting visiting = {
            .link = link, .turn = mc_projection_turn(link->link->grid->srs), .visit = mark_ranges, .baton = &marking
        };
        marking.marks = atomic_load_explicit(&link->marks, memory_order_acquire);
        if (marking.marks == NULL || !mc_marks_kept_apart(marking.marks))
            continue;
        mc_error *none = visit_link(&visiting, watch, table, srid, boxes, pool);
        MC_ASSERT(none == MC_OK); /* marking does not fail */
    }
    return marking.ranges;
}
