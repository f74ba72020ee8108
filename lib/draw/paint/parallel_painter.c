/*
 * See parallel_painter.h: the side of the thread that reads. Features wait in slots, in the order in which they came:
 * as batches, or as a packet that somebody has to decode into batches. A lane (paint_lanes.h) is painted by one thread
 * at a time, slot after slot, so that features lie over each other in their order. Whoever has nothing else to do takes
 * a lane for one batch, or decodes a packet: helpers, and the caller where the queue is full. Helpers leave when other
 * requests need the processors.
 */
#include "draw/paint/parallel_private.h"

#include <apr_strings.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/workers.h"
#include "draw/paint/painter_private.h"

enum {
    ALONE_FEATURES = 2048, /* that are painted before others are asked for help, */
    ALONE_POINTS = 1 << 15,
    LOOK_EVERY = 256, /* features between two looks for a worker */
};

/* A helper waits so long for something to do before it goes. */
#define LINGER 1000

/* An mc_task. */
static mc_error *
help_to_paint(void *baton, int index, mc_ctx *ctx)
{
    (void)index;
    mc_paint_helper *helper = baton;
    mc_parallel_painter *p = helper->parallel;
    pthread_mutex_lock(&p->lock);
    helper->begun = true;
    for (apr_time_t until = 0; !p->closed && p->error == MC_OK && !mc_workers_crowded(p->workers);) {
        if (mc_parallel_paint(p, ctx) || mc_parallel_decode(p, p->pushed, ctx)) {
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
static bool
all_lanes_are_free(const mc_parallel_painter *p)
{
    for (int i = 0; i < p->lanes.count; i++)
        if (p->progress[i].taken)
            return false;
    return true;
}

/* Does something of what is left to be done, or waits until somebody else has. The caller decodes first, and helpers
 * paint first: what is painted on stays with one processor. Under the lock. */
static void
work_or_wait(mc_parallel_painter *p)
{
    mc_parallel_report(p, mc_ctx_check(p->ctx, p->pool));
    if (!mc_parallel_decode(p, p->pushed, p->ctx) && !mc_parallel_paint(p, p->ctx) && p->error == MC_OK)
        pthread_cond_wait(&p->changed, &p->lock);
}

/* Works and waits until at most so many slots are in use, and nobody paints where there shall be none. Under the lock.
 */
static mc_error *
wait_for_lanes(mc_parallel_painter *p, int64_t most)
{
    while (p->error == MC_OK && (p->pushed - mc_parallel_oldest(p) > most || (most == 0 && !all_lanes_are_free(p))))
        work_or_wait(p);
    return mc_error_copy(p->error, p->pool);
}

/* One band of rows for each thread that may run. More of them cost more than they balance: a lane is of whoever comes,
 * and a large feature is painted on each of its lanes. */
static mc_error *
create_lanes(mc_parallel_painter *p)
{
    const int threads = mc_workers_count(p->workers) + 1, processors = mc_processors();
    return mc_paint_lanes_create(&p->lanes, p->whole, threads < processors ? threads : processors, p->pool);
}

static void
send_helper(mc_parallel_painter *p, mc_paint_helper *helper)
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
    const int alone = p->decodes ? 2 : 1; /* one paints, one decodes beside the caller */
    const int most = p->lanes.count > alone ? p->lanes.count - 1 : alone;
    int at_work = 0, on_way = 0;
    bool busy[MC_PAINT_HELPERS];
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

/* Hands the next slot over. Without any helper all is painted here, and what follows is painted alone. */
static mc_error *
push_slot(mc_parallel_painter *p)
{
    pthread_mutex_lock(&p->lock);
    p->pushed++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    p->filling = false;
    p->together = call_painters(p) > 0;
    pthread_mutex_lock(&p->lock);
    mc_error *error = wait_for_lanes(p, p->together ? MC_PAINT_QUEUE - 1 : 0);
    pthread_mutex_unlock(&p->lock);
    return error;
}

/* From here on features are painted by the whole map's painter again. */
static mc_error *
return_to_whole(mc_parallel_painter *p)
{
    pthread_mutex_lock(&p->lock);
    p->pushed += p->filling;
    pthread_cond_broadcast(&p->changed);
    p->filling = p->together = false;
    mc_error *error = wait_for_lanes(p, 0);
    pthread_mutex_unlock(&p->lock);
    return error;
}

static bool
is_large(const mc_parallel_painter *p)
{
    return p->features > ALONE_FEATURES || p->points > ALONE_POINTS;
}

/* Whether it is time to work together: the layer is large, and a worker has nothing to do. */
static bool
is_worth_helpers(mc_parallel_painter *p, const mc_geometry *geometry)
{
    p->points += geometry->shapes[0].point_count + geometry->shapes[1].point_count + geometry->shapes[2].point_count;
    if (++p->features % LOOK_EVERY != 0 && geometry->shapes[MC_SHAPE_POLYGONS].point_count < LOOK_EVERY)
        return false;
    return is_large(p) && mc_workers_spare(p->workers) > 0;
}

static mc_error *
begin_together(mc_parallel_painter *p)
{
    if (p->lanes.count == 0)
        MC_TRY(create_lanes(p));
    p->together = true;
    return MC_OK;
}

/* Adds a feature to the next slot. False: it has no room, or is no place for the feature. */
static bool
queue_feature(mc_parallel_painter *p, const mc_feature *feature)
{
    mc_paint_slot *slot = &p->queue[p->pushed % MC_PAINT_QUEUE];
    const mc_lane_world *world =
        mc_paint_lanes_world(&p->lanes, feature->query == NULL ? p->whole->query : feature->query);
    if (world == NULL)
        return false;
    if (!p->filling) {
        mc_paint_slot_clear(slot);
        slot->state = MC_SLOT_READY;
        p->filling = mc_paint_slot_add(slot, &p->lanes);
    }
    return p->filling && mc_paint_batch_add(slot->last, &p->lanes, world, feature) == MC_BATCH_ADDED;
}

mc_error *
mc_parallel_painter_visit(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_parallel_painter *p = baton;
    if (!p->together) {
        if (!is_worth_helpers(p, feature->geometry))
            return mc_painter_visit(p->whole, feature, ctx);
        MC_TRY(begin_together(p));
    }
    if (queue_feature(p, feature))
        return MC_OK;
    if (p->filling) { /* no room is left */
        MC_TRY(push_slot(p));
        if (p->together && queue_feature(p, feature))
            return MC_OK;
    }
    MC_TRY(return_to_whole(p));
    return mc_painter_visit(p->whole, feature, ctx);
}

/* Packets whose features are painted, or queued, at once. */
static mc_error *
visit_packet(mc_parallel_painter *p, const mc_feature_packet *packet, mc_ctx *ctx)
{
    return packet->ops->decode(packet, mc_parallel_painter_visit, p, ctx, p->pool);
}

/* mc_packet_taker's. */
static mc_error *
take_packet(mc_packet_taker *taker, const mc_feature_packet *packet, mc_ctx *ctx)
{
    mc_parallel_painter *p = (mc_parallel_painter *)taker;
    if (!p->together) {
        if (!is_large(p) || mc_workers_spare(p->workers) == 0)
            return visit_packet(p, packet, ctx);
        MC_TRY(begin_together(p));
    }
    const mc_lane_world *world = mc_paint_lanes_world(&p->lanes, packet->query);
    mc_feature_packet *kept = world == NULL ? NULL : packet->ops->keep(packet);
    if (kept == NULL) { /* a packet that waits may need what this one does */
        MC_TRY(return_to_whole(p));
        return visit_packet(p, packet, ctx);
    }
    p->decodes = true;
    mc_error *error = p->filling ? push_slot(p) : MC_OK;
    if (error != MC_OK) {
        kept->ops->release(kept);
        return error;
    }
    mc_paint_slot *slot = &p->queue[p->pushed % MC_PAINT_QUEUE];
    mc_paint_slot_clear(slot);
    slot->state = MC_SLOT_PACKED;
    slot->packet = kept;
    slot->world = world;
    return push_slot(p);
}

/* Under the lock. */
static bool
has_packets(const mc_parallel_painter *p)
{
    for (int i = 0; i < MC_PAINT_QUEUE; i++)
        if (p->queue[i].state != MC_SLOT_READY)
            return true;
    return false;
}

/* mc_packet_taker's. */
static mc_error *
settle_packets(mc_packet_taker *taker, mc_error *error)
{
    mc_parallel_painter *p = (mc_parallel_painter *)taker;
    pthread_mutex_lock(&p->lock);
    mc_parallel_report(p, error);
    while (p->error == MC_OK && has_packets(p))
        work_or_wait(p);
    for (int i = 0; i < MC_PAINT_QUEUE; i++) {
        mc_paint_slot *slot = &p->queue[i];
        while (slot->state == MC_SLOT_DECODING)
            pthread_cond_wait(&p->changed, &p->lock);
        if (slot->packet != NULL)
            slot->packet->ops->release(slot->packet);
        slot->packet = NULL;
        slot->state = MC_SLOT_READY;
    }
    if (error == MC_OK)
        error = mc_error_copy(p->error, p->pool);
    pthread_mutex_unlock(&p->lock);
    return error;
}

mc_parallel_painter *
mc_parallel_painter_create(mc_painter *painter, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_parallel_painter *made = apr_pcalloc(pool, sizeof(*made));
    made->taker = (mc_packet_taker){ take_packet, settle_packets };
    made->whole = painter;
    made->workers = ctx->process == NULL ? NULL : ctx->process->workers;
    made->ctx = ctx;
    made->pool = pool;
    pthread_mutex_init(&made->lock, NULL);
    mc_clock_condition(&made->changed);
    return made;
}

mc_packet_taker *
mc_parallel_painter_taker(mc_parallel_painter *parallel)
{
    return mc_workers_count(parallel->workers) == 0 ? NULL : &parallel->taker;
}

mc_error *
mc_parallel_painter_end(mc_parallel_painter *p, mc_error *error)
{
    if (error == MC_OK && p->lanes.count > 0)
        error = return_to_whole(p);
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < MC_PAINT_HELPERS; i++)
        if (p->helpers[i].sent)
            mc_error_ignore(mc_errand_join(p->helpers[i].errand, p->pool));
    for (int i = 0; i < MC_PAINT_QUEUE; i++)
        mc_paint_slot_free(&p->queue[i]);
    mc_paint_lanes_end(&p->lanes);
    mc_task_pool_release(p->errors);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    return error;
}
