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

enum { SEEN = 16 /* ranges of a level */ };

/* The visits of one link. */
typedef struct range_visiting {
    const mc_watch_link *link;
    double *reach;               /* of each level */
    mc_tile_range (*seen)[SEEN]; /* of each level, visited lately: neighbours lie in the same tiles */
    double turn;
    mc_range_visit *visit;
    void *baton;
} range_visiting;

static mc_error *
visit_everywhere(const range_visiting *visiting)
{
    const mc_grid_link *link = visiting->link->link;
    for (int z = 0; z < link->grid->level_count; z++)
        if (visiting->reach[z] >= 0)
            MC_TRY(visiting->visit(visiting->baton, visiting->link, z, &link->limits[z]));
    return MC_OK;
}

/* False: it was visited a moment ago. */
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
visit_box(const range_visiting *visiting, const mc_extent *box)
{
    const mc_grid_link *link = visiting->link->link;
    mc_tile_range ranges[3];
    for (int z = 0; z < link->grid->level_count; z++) {
        if (visiting->reach[z] < 0)
            continue;
        int count = mc_ranges_of_box(ranges, link, box, visiting->turn, visiting->reach[z], z);
        for (int i = 0; i < count; i++)
            if (note_range(visiting->seen[z], &ranges[i]))
                MC_TRY(visiting->visit(visiting->baton, visiting->link, z, &ranges[i]));
    }
    return MC_OK;
}

static mc_error *
visit_link(const range_visiting *visiting, int srid, const mc_box_set *boxes, apr_pool_t *pool)
{
    const mc_grid *grid = visiting->link->link->grid;
    mc_projection *projection = NULL;
    mc_error *unknown =
        srid == 0 ? MC_OK : mc_projection_open(&projection, apr_psprintf(pool, "EPSG:%d", srid), grid->srs, pool);
    bool whole = boxes->whole || unknown != MC_OK;
    for (int i = 0; i < boxes->count && !whole; i++) {
        mc_extent box = boxes->boxes[i];
        if (mc_place_box(&box, &whole, projection, grid) && !whole)
            MC_TRY(visit_box(visiting, &box));
    }
    return whole ? visit_everywhere(visiting) : MC_OK;
}

mc_error *
mc_visit_ranges(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes,
                mc_range_visit *visit, void *baton, apr_pool_t *pool)
{
    for (int i = 0; i < watch->link_count; i++) {
        const mc_grid *grid = watch->links[i].link->grid;
        range_visiting visiting = { .link = &watch->links[i],
                                    .reach = apr_palloc(pool, sizeof(double) * (size_t)grid->level_count),
                                    .seen = apr_pcalloc(pool, sizeof(mc_tile_range[SEEN]) * (size_t)grid->level_count),
                                    .turn = mc_projection_turn(grid->srs),
                                    .visit = visit,
                                    .baton = baton };
        for (int z = 0; z < grid->level_count; z++)
            visiting.reach[z] = mc_watch_reach(watch, table, grid, z);
        MC_TRY(visit_link(&visiting, table->srid != 0 ? table->srid : srid, boxes, pool));
    }
    return MC_OK;
}

typedef struct range_marking {
    apr_time_t time;
    int64_t ranges;
} range_marking;

static mc_error *
mark_range(void *baton, const mc_watch_link *link, int z, const mc_tile_range *range)
{
    range_marking *marking = baton;
    mc_mark_set *marks = atomic_load_explicit(&link->marks, memory_order_acquire);
    if (marks == NULL)
        return MC_OK;
    mc_marks_add(marks, z, range, marking->time);
    marking->ranges++;
    return MC_OK;
}

int64_t
mc_mark_boxes(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes, apr_time_t time,
              apr_pool_t *pool)
{
    range_marking marking = { time, 0 };
    mc_error *none = mc_visit_ranges(watch, table, srid, boxes, mark_range, &marking, pool);
    MC_ASSERT(none == MC_OK); /* marking does not fail */
    return marking.ranges;
}
