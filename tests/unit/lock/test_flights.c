/* Of the source itself, so that a test can see who is on board instead of waiting for a while. */
#include "../../../lib/lock/flights.c"

#include <stdatomic.h>
#include <unistd.h>

#include "unit.h"

enum { THREADS = 64 };

typedef struct crowd {
    mc_flights *flights;
    atomic_int arrived;
    atomic_int led;
    atomic_int followed;
    atomic_int failed;
    atomic_int flying;
    mc_error_kind failure; /* MC_ERR_NOT_FOUND: none */
} crowd;

static void
wait_until(atomic_int *value, int least)
{
    for (int i = 0; i < 30000 && *value < least; i++)
        usleep(1000);
    ck_assert_int_ge(*value, least);
}

/* Until so many hold the flight: the table, its leader, and those who wait. */
static void
wait_for_boarding(mc_flight *flight, unsigned references)
{
    unsigned seen = 0;
    for (int i = 0; i < 30000 && seen < references; i++) {
        usleep(1000);
        pthread_mutex_lock(&flight->flights->lock);
        seen = flight->references;
        pthread_mutex_unlock(&flight->flights->lock);
    }
    ck_assert_uint_eq(seen, references);
}

/* Moves the end of a failure's second. */
static void
forget_after(mc_flights *flights, apr_interval_time_t later)
{
    pthread_mutex_lock(&flights->lock);
    for (int i = 0; i < BUCKETS; i++)
        for (mc_flight *flight = flights->buckets[i]; flight != NULL; flight = flight->chain)
            flight->forget = mc_clock_now() + later;
    pthread_mutex_unlock(&flights->lock);
}

static void *
passenger(void *baton)
{
    crowd *c = baton;
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process, .log = &mc_log_stderr };
    mc_flight_role role;
    mc_flight *flight;
    mc_error *shared;
    c->arrived++;
    mc_error *error =
        mc_flight_board(&role, &flight, &shared, c->flights, "3-1-2-tiles", 20 * APR_USEC_PER_SEC, &own_ctx, own);
    ck_assert(error == MC_OK);
    if (role == MC_LEAD) {
        ck_assert_int_eq(++c->flying, 1);
        c->led++;
        wait_until(&c->arrived, THREADS);
        if (c->failure != MC_ERR_UNAVAILABLE)
            wait_for_boarding(flight, 2 + THREADS - 1);
        c->flying--;
        mc_error *failure =
            c->failure == MC_ERR_NOT_FOUND ? MC_OK : mc_error_create(own, c->failure, "the origin is down");
        mc_flight_land(flight, failure);
    } else if (role == MC_FAILED) {
        ck_assert_str_eq(shared->message, "the origin is down");
        c->failed++;
    } else {
        ck_assert_ptr_null(flight);
        c->followed++;
    }
    mc_task_pool_release(own);
    return NULL;
}

static void
fly(crowd *c)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, passenger, c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(one_of_many_leads)
{
    crowd c = { .flights = mc_flights_create(), .failure = MC_ERR_NOT_FOUND };
    fly(&c);
    ck_assert_int_eq(c.led, 1);
    ck_assert_int_eq(c.followed, THREADS - 1);
    mc_flights_destroy(c.flights);
}
END_TEST

/* A store in trouble would otherwise cost a render for each one who waits. */
START_TEST(what_is_not_stored_is_one_failure_for_all)
{
    mc_flight_role role;
    mc_flight *flight;
    mc_error *shared, *failure = mc_error_create(pool, MC_ERR_UNAVAILABLE, "the store is busy");
    mc_flights *flights = mc_flights_create();
    forget_after(flights, 100 * APR_USEC_PER_SEC);
    ck_ok(mc_flight_board(&role, &flight, &shared, flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    mc_flight_land(flight, failure); /* the leader's own trouble: the next one leads */
    ck_ok(mc_flight_board(&role, &flight, &shared, flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    mc_flight_land_shared(flight, failure);
    ck_ok(mc_flight_board(&role, &flight, &shared, flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_FAILED);
    ck_assert_str_eq(shared->message, "the store is busy");
    ck_assert(!failure->told && !shared->told);
    ck_ok(mc_flight_board(&role, &flight, &shared, flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert(shared->told); /* once is enough for the log */
    ck_assert(mc_error_wrap(pool, shared, MC_ERR_IO, "no tile")->told);
    mc_flights_destroy(flights);
}
END_TEST

START_TEST(a_failure_is_shared_for_a_second)
{
    crowd c = { .flights = mc_flights_create(), .failure = MC_ERR_UPSTREAM };
    fly(&c);
    ck_assert_int_eq(c.led, 1);
    ck_assert_int_eq(c.failed, THREADS - 1);
    mc_flight_role role;
    mc_flight *flight;
    mc_error *shared;
    forget_after(c.flights, 100 * APR_USEC_PER_SEC);
    ck_ok(mc_flight_board(&role, &flight, &shared, c.flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_FAILED);
    ck_assert_int_eq(shared->kind, MC_ERR_UPSTREAM);
    ck_ok(mc_flight_try(&role, &flight, c.flights, "3-1-2-tiles", &ctx, pool));
    ck_assert_int_eq(role, MC_FAILED);
    forget_after(c.flights, 0);
    ck_ok(mc_flight_board(&role, &flight, &shared, c.flights, "3-1-2-tiles", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    mc_flight_land(flight, MC_OK);
    mc_flights_destroy(c.flights);
}
END_TEST

START_TEST(who_gives_up_hands_over)
{
    crowd c = { .flights = mc_flights_create(), .failure = MC_ERR_UNAVAILABLE };
    fly(&c);
    ck_assert_int_eq(c.led, THREADS);
    ck_assert_int_eq(c.failed, 0);
    mc_flights_destroy(c.flights);
}
END_TEST

static void *
impatient(void *baton)
{
    crowd *c = baton;
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process, .deadline = mc_clock_now() + 100000 };
    mc_flight_role role;
    mc_flight *flight;
    mc_error *shared;
    mc_error *error = mc_flight_board(&role, &flight, &shared, c->flights, "x", 20 * APR_USEC_PER_SEC, &own_ctx, own);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE);
    own_ctx.deadline = 0;
    error = mc_flight_board(&role, &flight, &shared, c->flights, "x", 100000, &own_ctx, own);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE);
    ck_assert(mc_flight_try(&role, &flight, c->flights, "x", &own_ctx, own) == MC_OK);
    ck_assert(role == MC_FOLLOW && flight == NULL);
    c->failed++;
    mc_task_pool_release(own);
    return NULL;
}

START_TEST(waiting_ends_with_the_deadline_or_the_timeout)
{
    crowd c = { .flights = mc_flights_create() };
    mc_flight_role role;
    mc_flight *flight;
    ck_ok(mc_flight_try(&role, &flight, c.flights, "x", &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    pthread_t thread;
    apr_time_t begin = mc_clock_now();
    pthread_create(&thread, NULL, impatient, &c);
    pthread_join(thread, NULL);
    ck_assert_int_eq(c.failed, 1);
    ck_assert_int_lt(mc_clock_now() - begin, 15 * APR_USEC_PER_SEC);
    ck_assert_int_ge(mc_clock_now() - begin, 190000);
    mc_flight_land(flight, MC_OK);
    mc_flights_destroy(c.flights);
}
END_TEST

START_TEST(nobody_waits_for_himself_and_names_are_apart)
{
    mc_flights *flights = mc_flights_create();
    mc_flight_role role;
    mc_flight *first;
    mc_flight *second;
    mc_error *shared;
    ck_ok(mc_flight_board(&role, &first, &shared, flights, "a", APR_USEC_PER_SEC, &ctx, pool));
    ck_fails(LIMIT, mc_flight_board(&role, &second, &shared, flights, "a", APR_USEC_PER_SEC, &ctx, pool));
    ck_ok(mc_flight_try(&role, &second, flights, "b", &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    mc_flight_land(second, MC_OK);
    mc_flight_land(first, MC_OK);
    ck_ok(mc_flight_board(&role, &first, &shared, NULL, "a", APR_USEC_PER_SEC, &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    mc_flight_land(first, MC_OK);
    mc_flights_destroy(flights);
}
END_TEST

static atomic_int dropped;

static void
drop_gift(void *gift)
{
    ck_assert_ptr_eq(gift, &dropped);
    dropped++;
}

typedef struct receiver {
    crowd *crowd;
    mc_flight *flight;
    mc_flight_role role;
} receiver;

static void *
receive_gift(void *baton)
{
    receiver *r = baton;
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process };
    mc_error *shared;
    mc_error *error =
        mc_flight_board(&r->role, &r->flight, &shared, r->crowd->flights, "x", 20 * APR_USEC_PER_SEC, &own_ctx, own);
    ck_assert(error == MC_OK);
    mc_task_pool_release(own);
    return NULL;
}

/* What a leader leaves behind with such a landing, for two who wait. */
static void
give_to_two(crowd *c, receiver receivers[2], void (*land)(mc_flight *flight, const mc_error *failure),
            const mc_error *failure)
{
    mc_flight_role role;
    mc_flight *flight;
    pthread_t threads[2];
    dropped = 0;
    ck_ok(mc_flight_try(&role, &flight, c->flights, "x", &ctx, pool));
    ck_assert_int_eq(role, MC_LEAD);
    for (int i = 0; i < 2; i++) {
        receivers[i] = (receiver){ .crowd = c };
        pthread_create(&threads[i], NULL, receive_gift, &receivers[i]);
    }
    wait_for_boarding(flight, 4);
    mc_flight_give(flight, &dropped, drop_gift);
    land(flight, failure);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(what_a_leader_has_made_goes_to_those_who_wait)
{
    crowd c = { .flights = mc_flights_create() };
    receiver two[2];
    const mc_error *failure = mc_error_create(pool, MC_ERR_IO, "the disk is full");
    mc_flight_role role;
    mc_flight *flight;
    for (int failed = 0; failed < 2; failed++) {
        give_to_two(&c, two, mc_flight_land_shared, failed ? failure : MC_OK);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(two[i].role, failed ? MC_FAILED : MC_FOLLOW);
            ck_assert_ptr_eq(mc_flight_gift(two[i].flight), &dropped);
            ck_assert_int_eq(dropped, 0);
            mc_flight_leave(two[i].flight);
        }
        ck_assert_int_eq(dropped, 1);
        forget_after(c.flights, 0);
    }
    dropped = 0;
    ck_ok(mc_flight_try(&role, &flight, c.flights, "x", &ctx, pool));
    mc_flight_give(flight, &dropped, drop_gift);
    mc_flight_land(flight, MC_OK); /* nobody waits */
    ck_assert_int_eq(dropped, 1);
    mc_flight_give(NULL, &dropped, drop_gift);
    ck_assert_int_eq(dropped, 2);
    mc_flights_destroy(c.flights);
}
END_TEST

UNIT_MAIN("flights", one_of_many_leads, what_is_not_stored_is_one_failure_for_all, a_failure_is_shared_for_a_second,
          who_gives_up_hands_over, waiting_ends_with_the_deadline_or_the_timeout,
          nobody_waits_for_himself_and_names_are_apart, what_a_leader_has_made_goes_to_those_who_wait)
