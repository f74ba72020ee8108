/* Turns of the event loop's threads: see lanes.h. */
#include "lanes.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/slices.h"

/* How a thread stands. STUCK: the supervisor has given its turn away. */
enum { IDLE, QUICK, SLOW, STUCK };

/* The longest wait for a turn: whoever has it may in turn wait for what this thread holds. */
enum { TURN_MS = 10 };

void
mc_lanes_init(mc_lanes *lanes, int quick, bool (*start)(void *baton), void *baton)
{
    *lanes = (mc_lanes){ .quick = quick, .start = start, .baton = baton };
    pthread_mutex_init(&lanes->lock, NULL);
    pthread_cond_init(&lanes->unparked, NULL);
    mc_clock_condition(&lanes->turn);
    lanes->awake = quick; /* the threads that the caller starts */
}

void
mc_lanes_destroy(mc_lanes *lanes)
{
    pthread_cond_destroy(&lanes->turn);
    pthread_cond_destroy(&lanes->unparked);
    pthread_mutex_destroy(&lanes->lock);
}

void
mc_lanes_stop(mc_lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    lanes->stopping = true;
    pthread_cond_broadcast(&lanes->unparked);
    pthread_mutex_unlock(&lanes->lock);
}

/* Under the lock, as the next two. */
static void
set_awake(mc_lanes *lanes, int awake)
{
    lanes->awake = awake;
    atomic_store_explicit(&lanes->crowded, awake > lanes->quick, memory_order_relaxed);
}

/* A thread is no longer awake: another one takes its place. */
static void
wake_replacement_thread(mc_lanes *lanes)
{
    set_awake(lanes, lanes->awake - 1);
    if (lanes->awake >= lanes->quick || lanes->stopping)
        return;
    if (lanes->parked > lanes->recalled) {
        lanes->recalled++;
        set_awake(lanes, lanes->awake + 1);
        pthread_cond_signal(&lanes->unparked);
    } else if (lanes->start(lanes->baton)) {
        set_awake(lanes, lanes->awake + 1);
    }
}

/* A turn at quick work has ended, and `running` says so: who queues longest has it. */
static void
offer_turn(mc_lanes *lanes)
{
    if (atomic_load(&lanes->queueing) <= lanes->turns || atomic_load(&lanes->running) >= lanes->quick)
        return;
    atomic_fetch_add(&lanes->running, 1);
    lanes->turns++;
    pthread_cond_signal(&lanes->turn);
}

bool
mc_lane_ready(mc_lane *lane)
{
    mc_lanes *lanes = lane->lanes;
    if (!atomic_load_explicit(&lanes->crowded, memory_order_relaxed))
        return true;
    pthread_mutex_lock(&lanes->lock);
    if (lanes->awake > lanes->quick && !lanes->stopping) {
        set_awake(lanes, lanes->awake - 1);
        lanes->parked++;
        while (lanes->recalled == 0 && !lanes->stopping)
            pthread_cond_wait(&lanes->unparked, &lanes->lock);
        lanes->parked--;
        if (lanes->recalled > 0)
            lanes->recalled--;
    }
    bool go_on = !lanes->stopping;
    pthread_mutex_unlock(&lanes->lock);
    return go_on;
}

void
mc_lane_enter(mc_lane *lane, apr_time_t now)
{
    atomic_store_explicit(&lane->since, now, memory_order_relaxed);
    atomic_fetch_add(&lane->lanes->running, 1);
    atomic_store(&lane->state, QUICK);
}

void
mc_lane_leave(mc_lane *lane)
{
    mc_lanes *lanes = lane->lanes;
    bool quick = atomic_exchange(&lane->state, IDLE) == QUICK;
    if (quick) {
        atomic_fetch_sub(&lanes->running, 1);
        if (atomic_load(&lanes->queueing) == 0)
            return;
    }
    pthread_mutex_lock(&lanes->lock);
    if (!quick)
        set_awake(lanes, lanes->awake + 1);
    offer_turn(lanes);
    pthread_mutex_unlock(&lanes->lock);
}

/* The turn of a thread in state QUICK is given away; it is in state `state` then. */
static void
give_way(mc_lane *lane, int state)
{
    mc_lanes *lanes = lane->lanes;
    int quick = QUICK;
    if (!atomic_compare_exchange_strong(&lane->state, &quick, state))
        return;
    atomic_fetch_sub(&lanes->running, 1);
    pthread_mutex_lock(&lanes->lock);
    offer_turn(lanes);
    wake_replacement_thread(lanes);
    pthread_mutex_unlock(&lanes->lock);
}

/* Waits for a turn; under the lock. */
static void
queue_up(mc_lanes *lanes)
{
    apr_time_t until = mc_clock_now() + TURN_MS * 1000;
    bool early = true;
    atomic_fetch_add(&lanes->queueing, 1);
    offer_turn(lanes); /* who has left just now may not have seen the queue */
    while (lanes->turns == 0 && early)
        early = mc_clock_wait(&lanes->turn, &lanes->lock, until);
    atomic_fetch_sub(&lanes->queueing, 1);
    if (lanes->turns > 0)
        lanes->turns--;
    else
        atomic_fetch_add(&lanes->running, 1);
}

static void
come_back(mc_lane *lane)
{
    mc_lanes *lanes = lane->lanes;
    if (atomic_load(&lane->state) != SLOW)
        return;
    pthread_mutex_lock(&lanes->lock);
    if (atomic_load(&lanes->running) < lanes->quick)
        atomic_fetch_add(&lanes->running, 1);
    else
        queue_up(lanes);
    set_awake(lanes, lanes->awake + 1);
    pthread_mutex_unlock(&lanes->lock);
    atomic_store_explicit(&lane->since, mc_clock_now(), memory_order_relaxed);
    atomic_store(&lane->state, QUICK);
}

void
mc_lane_slow(void *baton, bool begins)
{
    mc_lane *lane = baton;
    if (begins && lane->depth++ == 0) {
        give_way(lane, SLOW);
        mc_slices_restore();
    } else if (!begins && --lane->depth == 0) {
        mc_slices_shorten();
        come_back(lane);
    }
}

void
mc_lane_rescue(mc_lane *lane, apr_time_t now, apr_interval_time_t patience)
{
    if (atomic_load(&lane->state) == QUICK && now - atomic_load_explicit(&lane->since, memory_order_relaxed) > patience)
        give_way(lane, STUCK);
}
