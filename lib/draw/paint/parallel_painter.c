/*
 * See parallel_painter.h. A lane is a band of rows with a painter of its own, or the whole map; it is painted by one
 * thread at a time, batch after batch, so that features lie over each other in the order in which they came. Whoever
 * has nothing else to do takes a lane for one batch: helpers, and the caller where the queue is full. Helpers leave
 * when other requests need the processors.
 */
#include "draw/paint/parallel_painter.h"

#include <apr_strings.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/workers.h"
#include "draw/paint/feature_batch.h"
#include "draw/paint/painter_private.h"
#include "memory/scratch.h"

enum {
    ALONE_FEATURES = 2048, /* that are painted before others are asked for help, */
    ALONE_POINTS = 1 << 15,
    LOOK_EVERY = 256, /* features between two looks for a worker */
    BATCH_BYTES = 1 << 16,
    BATCH_FEATURES = 512,
    PLACE = 8, /* bytes: features lie at multiples */
    QUEUE = 8, /* batches */
    LANES_MAX = 16,
    LANE_ROWS = 48, /* at least, and four times the margin */
    HELPERS_MAX = LANES_MAX - 1,
    WORLDS_MAX = 16,
    FAR = MC_SHAPE_REACH - (mc_pixels_max + 1) * MC_SUBPIXELS, /* what can be moved by any map's height */
};

/* A helper waits so long for the next batch before it goes. */
#define LINGER 1000

/* The query of one world of the map, as each lane needs it. */
typedef struct lane_world {
    const mc_feature_query *given;
    mc_feature_query of_lanes[];
} lane_world;

/* Where the features lie that a lane paints of a batch. */
typedef struct lane_list {
    int count;
    uint16_t places[BATCH_FEATURES];
} lane_list;

typedef struct paint_batch {
    mc_feature_batch features;
    int count;
    lane_list *lists; /* of all lanes; behind the features, in one block */
} paint_batch;

typedef struct paint_lane {
    mc_painter *painter;
    int top;
    int64_t next; /* batch; under the lock, as the next one */
    bool taken;
    mc_shape_point *points; /* of the feature that is being painted, moved */
    int room;
    apr_pool_t *root; /* NULL: it is the whole map's */
} paint_lane;

typedef struct paint_helper {
    mc_parallel_painter *parallel;
    mc_errand *errand;
    bool sent;
    bool begun, ended; /* under the lock */
} paint_helper;

struct mc_parallel_painter {
    mc_painter *whole;
    mc_workers *workers;
    mc_ctx *ctx;
    apr_pool_t *pool;
    int64_t features, points; /* that have come, as long as they are painted alone */
    int margin;               /* rows that symbols reach over their features */
    bool leaves_bounds;       /* by any number of rows, those of lines and areas */
    lane_world *worlds[WORLDS_MAX];
    int world_count;
    bool filling; /* features go to a batch: to `queue[pushed % QUEUE]` */
    paint_helper helpers[HELPERS_MAX];
    int lane_count, lane_rows; /* 0: nothing has been parted so far */
    pthread_mutex_t lock;      /* of all below, and what is said to be under it */
    pthread_cond_t changed;
    paint_lane lanes[LANES_MAX];
    paint_batch queue[QUEUE];
    int64_t pushed; /* batches */
    bool closed;
    mc_error *error;    /* the first one, */
    apr_pool_t *errors; /* in a root pool; NULL: none */
};

mc_parallel_painter *
mc_parallel_painter_create(mc_painter *painter, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_parallel_painter *made = apr_pcalloc(pool, sizeof(*made));
    made->whole = painter;
    made->workers = ctx->process == NULL ? NULL : ctx->process->workers;
    made->ctx = ctx;
    made->pool = pool;
    pthread_mutex_init(&made->lock, NULL);
    mc_clock_condition(&made->changed);
    return made;
}

/* ---- Painting batches: any thread ---- */

static mc_feature
restore_for_lane(mc_geometry *geometry, paint_lane *lane, const mc_batch_feature *copy)
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

static mc_error *
paint_lane_batch(paint_lane *lane, int number, const paint_batch *batch, mc_ctx *ctx)
{
    mc_geometry geometry = { 0 };
    const lane_list *list = &batch->lists[number];
    for (int i = 0; i < list->count; i++) {
        const mc_batch_feature *copy = (const void *)(batch->features.block + (size_t)list->places[i] * PLACE);
        const int next = i + 1 < list->count ? i + 1 : i; /* another processor has written it */
        __builtin_prefetch(batch->features.block + (size_t)list->places[next] * PLACE);
        __builtin_prefetch(batch->features.block + (size_t)list->places[next] * PLACE + sizeof(*copy));
        mc_feature feature = restore_for_lane(&geometry, lane, copy);
        feature.query = &((const lane_world *)copy->note)->of_lanes[number];
        MC_TRY(mc_painter_visit(lane->painter, &feature, ctx));
    }
    return MC_OK;
}

/* Under the lock. */
static void
report_paint_error(mc_parallel_painter *p, const mc_error *error)
{
    if (error == MC_OK || p->error != MC_OK)
        return;
    p->errors = mc_task_pool_acquire();
    p->error = mc_error_copy(error, p->errors);
}

/* Under the lock: the lane that is most behind; -1: nobody waits for a painter. */
static int
find_waiting_lane(const mc_parallel_painter *p)
{
    int found = -1;
    for (int i = 0; i < p->lane_count && p->error == MC_OK; i++)
        if (!p->lanes[i].taken && p->lanes[i].next < p->pushed &&
            (found < 0 || p->lanes[i].next < p->lanes[found].next))
            found = i;
    return found;
}

/* Paints one batch on one lane, if any waits. Under the lock, which is left meanwhile. */
static bool
paint_waiting_batch(mc_parallel_painter *p, mc_ctx *ctx)
{
    int number = find_waiting_lane(p);
    if (number < 0)
        return false;
    paint_lane *lane = &p->lanes[number];
    lane->taken = true;
    const paint_batch *batch = &p->queue[lane->next % QUEUE];
    pthread_mutex_unlock(&p->lock);
    mc_error *error = paint_lane_batch(lane, number, batch, ctx);
    pthread_mutex_lock(&p->lock);
    report_paint_error(p, error);
    lane->taken = false;
    lane->next++;
    pthread_cond_broadcast(&p->changed);
    return true;
}

/* An mc_task. */
static mc_error *
help_to_paint(void *baton, int index, mc_ctx *ctx)
{
    (void)index;
    paint_helper *helper = baton;
    mc_parallel_painter *p = helper->parallel;
    pthread_mutex_lock(&p->lock);
    helper->begun = true;
    for (apr_time_t until = 0; !p->closed && p->error == MC_OK && !mc_workers_crowded(p->workers);) {
        if (paint_waiting_batch(p, ctx)) {
            until = 0;
            continue;
        }
        if (until == 0)
            until = mc_clock_now() + LINGER;
        if (!mc_clock_wait(&p->changed, &p->lock, until))
            break;
    }
    helper->ended = true;
    pthread_mutex_unlock(&p->lock);
    return MC_OK;
}

/* ---- The caller's side ---- */

/* Under the lock. */
static int64_t
oldest_in_use(const mc_parallel_painter *p)
{
    int64_t oldest = p->pushed;
    for (int i = 0; i < p->lane_count; i++)
        oldest = p->lanes[i].next < oldest ? p->lanes[i].next : oldest;
    return oldest;
}

static bool
all_lanes_are_free(const mc_parallel_painter *p)
{
    for (int i = 0; i < p->lane_count; i++)
        if (p->lanes[i].taken)
            return false;
    return true;
}

/* Paints and waits until at most so many batches are in use, and nobody paints where there shall be none. Under the
 * lock. */
static mc_error *
wait_for_lanes(mc_parallel_painter *p, int64_t most)
{
    while (p->error == MC_OK && (p->pushed - oldest_in_use(p) > most || (most == 0 && !all_lanes_are_free(p)))) {
        report_paint_error(p, mc_ctx_check(p->ctx, p->pool));
        if (!paint_waiting_batch(p, p->ctx) && p->error == MC_OK)
            pthread_cond_wait(&p->changed, &p->lock);
    }
    return mc_error_copy(p->error, p->pool);
}

/* How many bands of rows are worth it: one for each thread that may run. More of them cost more than they balance:
 * a lane is of whoever comes, and a large feature is painted on each of its lanes. */
static int
count_lanes(const mc_parallel_painter *p)
{
    const int rows = p->margin * 4 > LANE_ROWS ? p->margin * 4 : LANE_ROWS;
    const int threads = mc_workers_count(p->workers) + 1, processors = mc_processors();
    int count = threads < processors ? threads : processors;
    if (!mc_painter_can_part(p->whole))
        return 1;
    count = count > LANES_MAX ? LANES_MAX : count;
    count = count > p->whole->canvas->height / rows ? p->whole->canvas->height / rows : count;
    return count < 1 ? 1 : count;
}

static mc_error *
create_lanes(mc_parallel_painter *p)
{
    const mc_feature_query *query = p->whole->query;
    const int height = p->whole->canvas->height;
    p->margin = (int)(mc_painter_margin(p->whole->style, query->scale) * mc_query_density(query)) + 2;
    p->leaves_bounds = mc_painter_leaves_bounds(p->whole);
    p->lane_count = count_lanes(p);
    p->lane_rows = (height + p->lane_count - 1) / p->lane_count;
    p->lane_count = (height + p->lane_rows - 1) / p->lane_rows;
    if (p->lane_count == 1) {
        p->lanes[0] = (paint_lane){ .painter = p->whole };
        return MC_OK;
    }
    for (int i = 0; i < p->lane_count; i++) {
        paint_lane *lane = &p->lanes[i];
        const int top = i * p->lane_rows, rest = height - top;
        mc_feature_query *moved = apr_pmemdup(p->pool, query, sizeof(*moved));
        moved->pixel_grid.top += top;
        *lane = (paint_lane){ .top = top, .root = mc_task_pool_acquire() };
        MC_TRY(mc_painter_create_lane(&lane->painter, p->whole, moved, top, rest < p->lane_rows ? rest : p->lane_rows,
                                      lane->root));
    }
    return MC_OK;
}

/* NULL: one world too many. */
static const lane_world *
find_lane_world(mc_parallel_painter *p, const mc_feature_query *query)
{
    for (int i = p->world_count - 1; i >= 0; i--) {
        const lane_world *known = p->worlds[i];
        if (known->given == query && known->of_lanes[0].pixel_grid.x0 == query->pixel_grid.x0)
            return known;
    }
    if (p->world_count == WORLDS_MAX)
        return NULL;
    lane_world *made = apr_palloc(p->pool, sizeof(*made) + sizeof(made->of_lanes[0]) * (size_t)p->lane_count);
    made->given = query;
    for (int i = 0; i < p->lane_count; i++) {
        made->of_lanes[i] = *query;
        made->of_lanes[i].pixel_grid.top += p->lanes[i].top;
    }
    return p->worlds[p->world_count++] = made;
}

/* The lanes that a feature may be seen on. False: it is too far away to be moved. */
static bool
find_lanes(const mc_parallel_painter *p, int *first, int *last, const mc_geometry *geometry)
{
    int32_t minx, miny, maxx, maxy;
    *first = *last = 0;
    if (p->lane_count == 1 || !mc_geometry_bounds(geometry, &minx, &miny, &maxx, &maxy))
        return true;
    if (miny < -FAR || maxy > FAR)
        return false;
    *last = p->lane_count - 1;
    if (p->leaves_bounds &&
        (geometry->shapes[MC_SHAPE_LINES].part_count > 0 || geometry->shapes[MC_SHAPE_POLYGONS].part_count > 0))
        return true;
    int top = (miny / MC_SUBPIXELS - 1 - p->margin) / p->lane_rows;
    int bottom = (maxy / MC_SUBPIXELS + 1 + p->margin) / p->lane_rows;
    *first = top < 0 ? 0 : top < p->lane_count ? top : p->lane_count - 1;
    *last = bottom < 0 ? 0 : bottom < p->lane_count ? bottom : p->lane_count - 1;
    return true;
}

static bool
add_to_batch(mc_parallel_painter *p, const mc_feature *feature)
{
    int first, last;
    paint_batch *batch = &p->queue[p->pushed % QUEUE];
    mc_feature known = *feature;
    known.query = feature->query == NULL ? p->whole->query : feature->query;
    const lane_world *world = find_lane_world(p, known.query);
    if (world == NULL || batch->count == BATCH_FEATURES || !find_lanes(p, &first, &last, feature->geometry))
        return false;
    const uint16_t place = (uint16_t)(batch->features.used / PLACE);
    mc_batch_feature *copy = mc_feature_batch_add(&batch->features, &known);
    if (copy == NULL)
        return false;
    copy->note = world;
    batch->count++;
    for (int i = first; i <= last; i++)
        batch->lists[i].places[batch->lists[i].count++] = place;
    return true;
}

/* A place for the next batch. False where the process has no memory for it. */
static bool
begin_batch(mc_parallel_painter *p)
{
    paint_batch *batch = &p->queue[p->pushed % QUEUE];
    mc_feature_batch *features = &batch->features;
    if (features->block == NULL)
        features->block = mc_scratch_acquire(BATCH_BYTES + sizeof(*batch->lists) * (size_t)p->lane_count);
    if (features->block == NULL)
        return false;
    features->room = BATCH_BYTES;
    features->used = 0;
    batch->count = 0;
    batch->lists = (void *)(features->block + BATCH_BYTES);
    for (int i = 0; i < p->lane_count; i++)
        batch->lists[i].count = 0;
    return true;
}

static void
send_helper(mc_parallel_painter *p, paint_helper *helper)
{
    if (helper->sent)
        mc_error_ignore(mc_errand_join(helper->errand, p->pool));
    if (helper->errand == NULL)
        helper->errand = mc_errand_create(p->workers, help_to_paint, helper, p->pool);
    helper->parallel = p;
    helper->sent = true;
    helper->begun = helper->ended = false;
    mc_errand_send(helper->errand, p->ctx);
}

/* Sends as many helpers as would find a processor. How many are on their way or at work. */
static int
call_painters(mc_parallel_painter *p)
{
    const int most = p->lane_count > 1 ? p->lane_count - 1 : 1;
    int at_work = 0, on_way = 0;
    bool busy[HELPERS_MAX];
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < most; i++) {
        busy[i] = p->helpers[i].sent && !p->helpers[i].ended;
        at_work += busy[i];
        on_way += busy[i] && !p->helpers[i].begun;
    }
    pthread_mutex_unlock(&p->lock);
    int spare = mc_workers_spare(p->workers) - on_way; /* they are still counted as idle */
    for (int i = 0; i < most && spare > 0; i++)
        if (!busy[i]) {
            send_helper(p, &p->helpers[i]);
            at_work++;
            spare--;
        }
    return at_work;
}

/* Hands the batch over. Without any helper all is painted here, and what follows is painted alone. */
static mc_error *
push_batch(mc_parallel_painter *p)
{
    pthread_mutex_lock(&p->lock);
    p->pushed += p->queue[p->pushed % QUEUE].count > 0;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    p->filling = call_painters(p) > 0;
    pthread_mutex_lock(&p->lock);
    mc_error *error = wait_for_lanes(p, p->filling ? QUEUE - 1 : 0);
    pthread_mutex_unlock(&p->lock);
    return error;
}

/* From here on features are painted by the whole map's painter again. */
static mc_error *
return_to_whole(mc_parallel_painter *p)
{
    pthread_mutex_lock(&p->lock);
    p->pushed += p->filling && p->queue[p->pushed % QUEUE].count > 0;
    pthread_cond_broadcast(&p->changed);
    p->filling = false;
    mc_error *error = wait_for_lanes(p, 0);
    pthread_mutex_unlock(&p->lock);
    return error;
}

/* Whether it is time to work together: the layer is large, and a worker has nothing to do. */
static bool
is_worth_helpers(mc_parallel_painter *p, const mc_geometry *geometry)
{
    p->points += geometry->shapes[0].point_count + geometry->shapes[1].point_count + geometry->shapes[2].point_count;
    if (++p->features % LOOK_EVERY != 0 && geometry->shapes[MC_SHAPE_POLYGONS].point_count < LOOK_EVERY)
        return false;
    return (p->features > ALONE_FEATURES || p->points > ALONE_POINTS) && mc_workers_spare(p->workers) > 0;
}

mc_error *
mc_parallel_painter_visit(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_parallel_painter *p = baton;
    if (!p->filling) {
        if (!is_worth_helpers(p, feature->geometry))
            return mc_painter_visit(p->whole, feature, ctx);
        if (p->lane_count == 0)
            MC_TRY(create_lanes(p));
        p->filling = begin_batch(p);
    }
    if (p->filling && add_to_batch(p, feature))
        return MC_OK;
    if (p->filling) { /* no room is left */
        MC_TRY(push_batch(p));
        p->filling = p->filling && begin_batch(p);
    }
    if (p->filling && add_to_batch(p, feature))
        return MC_OK;
    MC_TRY(return_to_whole(p));
    return mc_painter_visit(p->whole, feature, ctx);
}

mc_error *
mc_parallel_painter_end(mc_parallel_painter *p, mc_error *error)
{
    if (error == MC_OK && p->lane_count > 0)
        error = return_to_whole(p);
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < HELPERS_MAX; i++)
        if (p->helpers[i].sent)
            mc_error_ignore(mc_errand_join(p->helpers[i].errand, p->pool));
    for (int i = 0; i < QUEUE; i++)
        mc_scratch_release(p->queue[i].features.block);
    for (int i = 0; i < p->lane_count; i++) {
        free(p->lanes[i].points);
        mc_task_pool_release(p->lanes[i].root);
    }
    mc_task_pool_release(p->errors);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    return error;
}
