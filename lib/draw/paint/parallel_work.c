/* See parallel_private.h: painting batches and decoding packets, on any thread. */
#include <apr_strings.h>

#include "base/workers.h"
#include "draw/paint/painter_private.h"
#include "draw/paint/parallel_private.h"
#include "memory/scratch.h"

/* Batches of a packet; the rest of one that has more is painted without any. */
enum { BATCHES_MAX = 24 };

/* ---- Batches of a slot: of the thread that fills it ---- */

void
mc_paint_slot_clear(mc_paint_slot *slot)
{
    if (slot->last != NULL) {
        slot->last->next = slot->spare;
        slot->spare = slot->first;
    }
    slot->first = slot->last = NULL;
}

/* False where the process has no memory for one more batch. */
bool
mc_paint_slot_add(mc_paint_slot *slot, const mc_paint_lanes *lanes)
{
    mc_paint_batch *batch = slot->spare;
    if (batch == NULL)
        batch = mc_paint_batch_create(lanes);
    else
        slot->spare = batch->next;
    if (batch == NULL)
        return false;
    mc_paint_batch_clear(batch, lanes);
    *(slot->last == NULL ? &slot->first : &slot->last->next) = batch;
    slot->last = batch;
    return true;
}

void
mc_paint_slot_free(mc_paint_slot *slot)
{
    mc_paint_slot_clear(slot);
    for (mc_paint_batch *at = slot->spare, *next; at != NULL; at = next) {
        next = at->next;
        mc_scratch_release(at);
    }
    if (slot->packet != NULL)
        slot->packet->ops->release(slot->packet);
}

/* ---- Painting batches, decoding packets: any thread ---- */

/* Under the lock. */
void
mc_parallel_report(mc_parallel_painter *p, const mc_error *error)
{
    if (error == MC_OK || p->error != MC_OK)
        return;
    p->errors = mc_task_pool_acquire();
    p->error = mc_error_copy(error, p->errors);
    pthread_cond_broadcast(&p->changed);
}

/* Under the lock. */
int64_t
mc_parallel_oldest(const mc_parallel_painter *p)
{
    int64_t oldest = p->pushed;
    for (int i = 0; i < p->lanes.count; i++)
        oldest = p->progress[i].next < oldest ? p->progress[i].next : oldest;
    return oldest;
}

/* Under the lock: the lane that is most behind; -1: nobody waits for a painter. */
static int
find_waiting_lane(const mc_parallel_painter *p)
{
    int found = -1;
    for (int i = 0; i < p->lanes.count && p->error == MC_OK; i++) {
        const mc_lane_progress *lane = &p->progress[i];
        if (!lane->taken && lane->next < p->pushed && p->queue[lane->next % MC_PAINT_QUEUE].state == MC_SLOT_READY &&
            (found < 0 || lane->next < p->progress[found].next))
            found = i;
    }
    return found;
}

/* Paints one batch on one lane, if any waits. Under the lock, which is left meanwhile. */
bool
mc_parallel_paint(mc_parallel_painter *p, mc_ctx *ctx)
{
    int number = find_waiting_lane(p);
    if (number < 0)
        return false;
    mc_lane_progress *lane = &p->progress[number];
    lane->taken = true;
    mc_paint_batch *batch = lane->batch != NULL ? lane->batch : p->queue[lane->next % MC_PAINT_QUEUE].first;
    mc_error *error = MC_OK;
    pthread_mutex_unlock(&p->lock);
    if (batch != NULL)
        error = mc_paint_lane_batch(&p->lanes, number, batch, ctx);
    pthread_mutex_lock(&p->lock);
    mc_parallel_report(p, error);
    lane->taken = false;
    lane->batch = batch == NULL ? NULL : batch->next;
    lane->next += lane->batch == NULL;
    pthread_cond_broadcast(&p->changed);
    return true;
}

/* One packet that becomes batches. */
typedef struct slot_decoding {
    mc_parallel_painter *parallel;
    mc_paint_slot *slot;
    int64_t number; /* of the slot */
    int batches;
    bool direct; /* features are painted as they come: all before them has been painted */
} slot_decoding;

/* Under the lock. */
static bool
is_turn_of(const mc_parallel_painter *p, int64_t number)
{
    for (int i = 0; i < p->lanes.count; i++)
        if (p->progress[i].next != number)
            return false;
    return true;
}

/* Works and waits until all before the packet, and then its own batches, have been painted. Who waits does all of the
 * work before that nobody else does: some thread always goes on. */
static mc_error *
take_turn(slot_decoding *d, mc_ctx *ctx)
{
    mc_parallel_painter *p = d->parallel;
    pthread_mutex_lock(&p->lock);
    while (p->error == MC_OK && !is_turn_of(p, d->number))
        if (!mc_parallel_paint(p, ctx) && !mc_parallel_decode(p, d->number, ctx) && p->error == MC_OK)
            pthread_cond_wait(&p->changed, &p->lock);
    mc_error *error = mc_error_copy(p->error, ctx->pool);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->lanes.count; i++)
        for (mc_paint_batch *batch = d->slot->first; batch != NULL && error == MC_OK; batch = batch->next)
            error = mc_paint_lane_batch(&p->lanes, i, batch, ctx);
    mc_paint_slot_clear(d->slot);
    d->direct = true;
    return error;
}

/* Adds a feature to the last batch of a slot, or to one more. */
static bool
keep_in_batches(slot_decoding *d, const mc_feature *feature)
{
    mc_paint_slot *slot = d->slot;
    const mc_paint_lanes *lanes = &d->parallel->lanes;
    mc_batch_add added = MC_BATCH_FULL;
    if (slot->last != NULL)
        added = mc_paint_batch_add(slot->last, lanes, slot->world, feature);
    if (added == MC_BATCH_FULL && d->batches++ < BATCHES_MAX && mc_paint_slot_add(slot, lanes))
        added = mc_paint_batch_add(slot->last, lanes, slot->world, feature);
    return added == MC_BATCH_ADDED;
}

/* An mc_feature_visitor. */
static mc_error *
visit_decoded_feature(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    slot_decoding *d = baton;
    if (!d->direct && keep_in_batches(d, feature))
        return MC_OK;
    if (!d->direct)
        MC_TRY(take_turn(d, ctx));
    return mc_painter_visit(d->parallel->whole, feature, ctx);
}

/* Under the lock: the oldest packet that somebody can decode, and that comes before slot `before`; -1: none. */
static int64_t
find_waiting_packet(const mc_parallel_painter *p, int64_t before)
{
    for (int64_t i = mc_parallel_oldest(p); i < before && p->error == MC_OK; i++) {
        const mc_paint_slot *slot = &p->queue[i % MC_PAINT_QUEUE];
        if (slot->state == MC_SLOT_PACKED &&
            (slot->packet->ops->is_free == NULL || slot->packet->ops->is_free(slot->packet)))
            return i;
    }
    return -1;
}

/* Decodes one packet, if any waits before slot `before`. Under the lock, which is left meanwhile. */
bool
mc_parallel_decode(mc_parallel_painter *p, int64_t before, mc_ctx *ctx)
{
    const int64_t number = find_waiting_packet(p, before);
    if (number < 0)
        return false;
    mc_paint_slot *slot = &p->queue[number % MC_PAINT_QUEUE];
    slot->state = MC_SLOT_DECODING;
    pthread_mutex_unlock(&p->lock);
    apr_pool_t *pool;
    apr_pool_create(&pool, ctx->pool);
    slot_decoding d = { .parallel = p, .slot = slot, .number = number };
    mc_error *error = slot->packet->ops->decode(slot->packet, visit_decoded_feature, &d, ctx, pool);
    slot->packet->ops->release(slot->packet);
    slot->packet = NULL;
    pthread_mutex_lock(&p->lock);
    mc_parallel_report(p, error);
    slot->state = MC_SLOT_READY;
    pthread_cond_broadcast(&p->changed);
    apr_pool_destroy(pool);
    return true;
}
