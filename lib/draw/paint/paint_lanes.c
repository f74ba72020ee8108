/* See paint_lanes.h. */
#include "draw/paint/paint_lanes.h"

#include <apr_strings.h>
#include <stdlib.h>

#include "base/workers.h"
#include "draw/paint/painter_private.h"
#include "memory/scratch.h"

enum {
    BATCH_BYTES = 1 << 16,
    PLACE = 8,                                                 /* bytes: features lie at multiples */
    LANE_ROWS = 48,                                            /* at least, and four times the margin */
    FAR = MC_SHAPE_REACH - (mc_pixels_max + 1) * MC_SUBPIXELS, /* what can be moved by any map's height */
};

static int
count_lanes(const mc_paint_lanes *lanes, mc_painter *whole, int most)
{
    const int rows = lanes->margin * 4 > LANE_ROWS ? lanes->margin * 4 : LANE_ROWS;
    int count = most > MC_PAINT_LANES_MAX ? MC_PAINT_LANES_MAX : most;
    if (!mc_painter_can_part(whole))
        return 1;
    count = count > whole->canvas->height / rows ? whole->canvas->height / rows : count;
    return count < 1 ? 1 : count;
}

mc_error *
mc_paint_lanes_create(mc_paint_lanes *lanes, mc_painter *whole, int most, apr_pool_t *pool)
{
    const mc_feature_query *query = whole->query;
    const int height = whole->canvas->height;
    lanes->pool = pool;
    lanes->margin = (int)(mc_painter_margin(whole->style, query->scale) * mc_query_density(query)) + 2;
    lanes->leaves_bounds = mc_painter_leaves_bounds(whole);
    lanes->count = count_lanes(lanes, whole, most);
    lanes->rows = (height + lanes->count - 1) / lanes->count;
    lanes->count = (height + lanes->rows - 1) / lanes->rows;
    if (lanes->count == 1) {
        lanes->lanes[0] = (mc_paint_lane){ .painter = whole };
        return MC_OK;
    }
    for (int i = 0; i < lanes->count; i++) {
        mc_paint_lane *lane = &lanes->lanes[i];
        const int top = i * lanes->rows, rest = height - top;
        mc_feature_query *moved = apr_pmemdup(pool, query, sizeof(*moved));
        moved->pixel_grid.top += top;
        *lane = (mc_paint_lane){ .top = top, .root = mc_task_pool_acquire() };
        MC_TRY(mc_painter_create_lane(&lane->painter, whole, moved, top, rest < lanes->rows ? rest : lanes->rows,
                                      lane->root));
    }
    return MC_OK;
}

void
mc_paint_lanes_end(mc_paint_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++) {
        free(lanes->lanes[i].points);
        mc_task_pool_release(lanes->lanes[i].root);
    }
}

const mc_lane_world *
mc_paint_lanes_world(mc_paint_lanes *lanes, const mc_feature_query *query)
{
    for (int i = lanes->world_count - 1; i >= 0; i--) {
        const mc_lane_world *known = lanes->worlds[i];
        if (known->given == query && known->of_lanes[0].pixel_grid.x0 == query->pixel_grid.x0)
            return known;
    }
    if (lanes->world_count == MC_PAINT_WORLDS_MAX)
        return NULL;
    mc_lane_world *made = apr_palloc(lanes->pool, sizeof(*made) + sizeof(made->of_lanes[0]) * (size_t)lanes->count);
    made->given = query;
    for (int i = 0; i < lanes->count; i++) {
        made->of_lanes[i] = *query;
        made->of_lanes[i].pixel_grid.top += lanes->lanes[i].top;
    }
    return lanes->worlds[lanes->world_count++] = made;
}

/* ---- Batches ---- */

void
mc_paint_batch_clear(mc_paint_batch *batch, const mc_paint_lanes *lanes)
{
    batch->next = NULL;
    batch->count = 0;
    batch->features.used = 0;
    for (int i = 0; i < lanes->count; i++)
        batch->lists[i].count = 0;
}

mc_paint_batch *
mc_paint_batch_create(const mc_paint_lanes *lanes)
{
    const size_t head = sizeof(mc_paint_batch) + sizeof(mc_lane_list) * (size_t)lanes->count;
    const size_t begin = (head + PLACE - 1) / PLACE * PLACE;
    mc_paint_batch *made = mc_scratch_acquire(begin + BATCH_BYTES);
    if (made == NULL)
        return NULL;
    made->features = (mc_feature_batch){ .block = (uint8_t *)made + begin, .room = BATCH_BYTES };
    mc_paint_batch_clear(made, lanes);
    return made;
}

/* The lanes that a feature may be seen on. False: it is too far away to be moved. */
static bool
find_lanes(const mc_paint_lanes *lanes, int *first, int *last, const mc_geometry *geometry)
{
    int32_t minx, miny, maxx, maxy;
    *first = *last = 0;
    if (lanes->count == 1 || !mc_geometry_bounds(geometry, &minx, &miny, &maxx, &maxy))
        return true;
    if (miny < -FAR || maxy > FAR)
        return false;
    *last = lanes->count - 1;
    if (lanes->leaves_bounds &&
        (geometry->shapes[MC_SHAPE_LINES].part_count > 0 || geometry->shapes[MC_SHAPE_POLYGONS].part_count > 0))
        return true;
    int top = (miny / MC_SUBPIXELS - 1 - lanes->margin) / lanes->rows;
    int bottom = (maxy / MC_SUBPIXELS + 1 + lanes->margin) / lanes->rows;
    *first = top < 0 ? 0 : top < lanes->count ? top : lanes->count - 1;
    *last = bottom < 0 ? 0 : bottom < lanes->count ? bottom : lanes->count - 1;
    return true;
}

mc_batch_add
mc_paint_batch_add(mc_paint_batch *batch, const mc_paint_lanes *lanes, const mc_lane_world *world,
                   const mc_feature *feature)
{
    int first, last;
    if (batch->count == MC_BATCH_FEATURES)
        return MC_BATCH_FULL;
    if (!find_lanes(lanes, &first, &last, feature->geometry))
        return MC_BATCH_REFUSED;
    mc_feature known = *feature;
    known.query = world->given;
    const uint16_t place = (uint16_t)(batch->features.used / PLACE);
    mc_batch_feature *copy = mc_feature_batch_add(&batch->features, &known);
    if (copy == NULL)
        return batch->count > 0 ? MC_BATCH_FULL : MC_BATCH_REFUSED;
    copy->note = world;
    batch->count++;
    for (int i = first; i <= last; i++)
        batch->lists[i].places[batch->lists[i].count++] = place;
    return MC_BATCH_ADDED;
}

static mc_feature
restore_for_lane(mc_geometry *geometry, mc_paint_lane *lane, const mc_batch_feature *copy)
{
    const int count = mc_batch_feature_points(copy), down = lane->top * MC_SUBPIXELS;
    if (lane->top == 0)
        return mc_batch_feature_restore(geometry, copy, copy->points);
    if (count > lane->room) {
        lane->room = count * 2;
        free(lane->points);
        lane->points = malloc(sizeof(*lane->points) * (size_t)lane->room);
        MC_ASSERT(lane->points != NULL);
    }
    for (int i = 0; i < count; i++)
        lane->points[i] = (mc_shape_point){ copy->points[i].x, copy->points[i].y - down };
    return mc_batch_feature_restore(geometry, copy, lane->points);
}

mc_error *
mc_paint_lane_batch(mc_paint_lanes *lanes, int number, const mc_paint_batch *batch, mc_ctx *ctx)
{
    mc_geometry geometry = { 0 };
    mc_paint_lane *lane = &lanes->lanes[number];
    const mc_lane_list *list = &batch->lists[number];
    for (int i = 0; i < list->count; i++) {
        const mc_batch_feature *copy = (const void *)(batch->features.block + (size_t)list->places[i] * PLACE);
        const int next = i + 1 < list->count ? i + 1 : i; /* another processor has written it */
        __builtin_prefetch(batch->features.block + (size_t)list->places[next] * PLACE);
        __builtin_prefetch(batch->features.block + (size_t)list->places[next] * PLACE + sizeof(*copy));
        mc_feature feature = restore_for_lane(&geometry, lane, copy);
        feature.query = &((const mc_lane_world *)copy->note)->of_lanes[number];
        MC_TRY(mc_painter_visit(lane->painter, &feature, ctx));
    }
    return MC_OK;
}
