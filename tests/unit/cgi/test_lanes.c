/* Whose turn it is among the threads of the event loop (cgi/lanes.c). */
#include "../../../cgi/lanes.c"

#include "unit.h"

enum { THREADS = 16, EVENTS = 2000 };

static int started;
static int may_start;

static bool
start(void *unused)
{
    (void)unused;
    if (started >= may_start)
        return false;
    started++;
    return true;
}

static void
begin(mc_lanes *lanes, int quick, int further)
{
    started = 0;
    may_start = further;
    mc_lanes_init(lanes, quick, start, NULL);
}

/* A thread that gets slow is replaced, and parks others once it is back. */
START_TEST(replaces_the_slow)
{
    mc_lanes lanes;
    begin(&lanes, 2, 5);
    mc_lane lane = { .lanes = &lanes };
    mc_lane_enter(&lane, mc_clock_now());
    ck_assert_int_eq(atomic_load(&lanes.running), 1);
    mc_lane_slow(&lane, true);
    mc_lane_slow(&lane, true);
    ck_assert_int_eq(started, 1);
    ck_assert_int_eq(lanes.awake, 2);
    ck_assert_int_eq(atomic_load(&lanes.running), 0);
    mc_lane_slow(&lane, false);
    ck_assert_int_eq(atomic_load(&lanes.running), 0); /* the outer scope has not ended */
    mc_lane_slow(&lane, false);
    ck_assert_int_eq(atomic_load(&lanes.running), 1);
    ck_assert_int_eq(lanes.awake, 3);
    ck_assert(atomic_load(&lanes.crowded));
    mc_lane_leave(&lane);
    ck_assert_int_eq(atomic_load(&lanes.running), 0);
    mc_lanes_destroy(&lanes);
}
END_TEST

/* Without threads to take its place, a slow thread is just slow. */
START_TEST(does_without_replacement)
{
    mc_lanes lanes;
    begin(&lanes, 1, 0);
    mc_lane lane = { .lanes = &lanes };
    mc_lane_enter(&lane, mc_clock_now());
    mc_lane_slow(&lane, true);
    ck_assert_int_eq(lanes.awake, 0);
    mc_lane_slow(&lane, false);
    mc_lane_leave(&lane);
    ck_assert_int_eq(lanes.awake, 1);
    ck_assert(mc_lane_ready(&lane));
    mc_lanes_destroy(&lanes);
}
END_TEST

/* The supervisor finds who is busy for long without having said so; what that thread says later changes nothing. */
START_TEST(rescues_the_stuck)
{
    mc_lanes lanes;
    begin(&lanes, 1, 5);
    mc_lane lane = { .lanes = &lanes };
    apr_time_t now = mc_clock_now();
    mc_lane_rescue(&lane, now, 0);
    ck_assert_int_eq(started, 0); /* it has no event */
    mc_lane_enter(&lane, now);
    mc_lane_rescue(&lane, now + 500, 1000);
    ck_assert_int_eq(started, 0); /* not that long */
    mc_lane_rescue(&lane, now + 2000, 1000);
    ck_assert_int_eq(started, 1);
    mc_lane_rescue(&lane, now + 4000, 1000);
    ck_assert_int_eq(started, 1); /* once */
    mc_lane_slow(&lane, true);
    mc_lane_slow(&lane, false);
    ck_assert_int_eq(atomic_load(&lanes.running), 0);
    mc_lane_leave(&lane);
    ck_assert_int_eq(lanes.awake, 2);
    mc_lanes_destroy(&lanes);
}
END_TEST

typedef struct thread {
    pthread_t id;
    mc_lane lane;
    _Atomic bool back;
} thread;

static void *
come_back_once(void *baton)
{
    thread *self = baton;
    mc_lane_slow(&self->lane, false);
    atomic_store(&self->back, true);
    return NULL;
}

/* Who comes back while others are at work gets the turn of the next one to leave, or goes on after a while. */
START_TEST(queues_for_a_turn)
{
    mc_lanes lanes;
    begin(&lanes, 1, 5);
    mc_lane busy = { .lanes = &lanes };
    thread waiting = { .lane = { .lanes = &lanes } };
    mc_lane_enter(&waiting.lane, mc_clock_now());
    mc_lane_slow(&waiting.lane, true);
    mc_lane_enter(&busy, mc_clock_now());
    ck_assert_int_eq(pthread_create(&waiting.id, NULL, come_back_once, &waiting), 0);
    mc_lane_leave(&busy); /* before or after it queues: either way it comes back */
    ck_assert_int_eq(pthread_join(waiting.id, NULL), 0);
    ck_assert(atomic_load(&waiting.back));
    mc_lane_leave(&waiting.lane);

    mc_lane_enter(&waiting.lane, mc_clock_now());
    mc_lane_slow(&waiting.lane, true);
    mc_lane_enter(&busy, mc_clock_now());
    mc_lane_slow(&waiting.lane, false); /* nobody leaves: not for ever */
    ck_assert_int_eq(atomic_load(&lanes.running), 2);
    mc_lane_leave(&waiting.lane);
    mc_lane_leave(&busy);
    ck_assert_int_eq(atomic_load(&lanes.running), 0);
    mc_lanes_destroy(&lanes);
}
END_TEST

static void *
serve_events(void *baton)
{
    thread *self = baton;
    for (int i = 0; i < EVENTS && mc_lane_ready(&self->lane); i++) {
        mc_lane_enter(&self->lane, mc_clock_now());
        if (i % 3 == 0) {
            mc_lane_slow(&self->lane, true);
            mc_lane_slow(&self->lane, false);
        }
        mc_lane_leave(&self->lane);
    }
    return NULL;
}

/* Whatever happens at the same time, the books are balanced in the end; parked threads end when they are told to. */
START_TEST(keeps_its_books)
{
    mc_lanes lanes;
    static thread threads[THREADS];
    begin(&lanes, 2, 0);
    lanes.awake = THREADS;
    atomic_store(&lanes.crowded, true);
    for (int i = 0; i < THREADS; i++) {
        threads[i].lane = (mc_lane){ .lanes = &lanes };
        ck_assert_int_eq(pthread_create(&threads[i].id, NULL, serve_events, &threads[i]), 0);
    }
    for (int i = 0; i < 200; i++)
        for (int k = 0; k < THREADS; k++)
            mc_lane_rescue(&threads[k].lane, mc_clock_now(), 0);
    mc_lanes_stop(&lanes);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i].id, NULL), 0);
    ck_assert_int_eq(atomic_load(&lanes.running), 0);
    ck_assert_int_eq(atomic_load(&lanes.queueing), 0);
    ck_assert_int_eq(lanes.turns, 0);
    ck_assert_int_eq(lanes.parked, 0);
    mc_lanes_destroy(&lanes);
}
END_TEST

UNIT_MAIN("lanes", replaces_the_slow, does_without_replacement, rescues_the_stuck, queues_for_a_turn, keeps_its_books)
