#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/semaphore.h"

static mc_semaphore *semaphore;
static atomic_int inside, most, passed;

static void *
go_through(void *unused)
{
    mc_ctx own = { .deadline = 0 };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    for (int i = 0; i < 200; i++) {
        mc_error *error = mc_semaphore_acquire(semaphore, &own, own_pool);
        if (error != MC_OK)
            break;
        int now = atomic_fetch_add(&inside, 1) + 1;
        int seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
            continue;
        atomic_fetch_add(&passed, 1);
        atomic_fetch_sub(&inside, 1);
        if (i % 3 == 0) {
            mc_semaphore *left = mc_semaphore_yield(&own);
            mc_semaphore_resume(left, &own);
        }
        mc_semaphore_release(&own);
    }
    apr_pool_destroy(own_pool);
    return unused;
}

START_TEST(never_more_inside_than_places)
{
    pthread_t threads[16];
    semaphore = mc_semaphore_create(3);
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, go_through, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&passed), 16 * 200);
    ck_assert_int_le(atomic_load(&most), 3);
    mc_semaphore_destroy(semaphore);
}
END_TEST

START_TEST(waits_no_longer_than_the_deadline)
{
    semaphore = mc_semaphore_create(1);
    ck_ok(mc_semaphore_acquire(semaphore, &ctx, pool));
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 50000;
    mc_ctx other = { .deadline = ctx.deadline };
    ck_fails(UNAVAILABLE, mc_semaphore_acquire(semaphore, &other, pool));
    ck_assert_ptr_null(other.inside);
    ck_assert_int_ge(mc_clock_now() - begin, 49000);
    mc_semaphore_release(&ctx);
    ck_ok(mc_semaphore_acquire(semaphore, &other, pool));
    mc_semaphore_release(&other);
    mc_semaphore_destroy(semaphore);
}
END_TEST

static int order[4];
static atomic_int ordered, began;

/* Number 3 is inside already and steps out; the others come to the semaphore one after the other. */
static void *
come(void *number)
{
    mc_ctx own = { .deadline = 0 };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    atomic_fetch_add(&began, 1);
    mc_error *error = mc_semaphore_acquire(semaphore, &own, own_pool);
    if (error == MC_OK)
        order[atomic_fetch_add(&ordered, 1)] = (int)(intptr_t)number;
    mc_semaphore_release(&own);
    apr_pool_destroy(own_pool);
    return NULL;
}

static void *
come_back(void *number)
{
    mc_ctx own = { .deadline = 0 };
    atomic_fetch_add(&began, 1);
    mc_semaphore_resume(semaphore, &own);
    order[atomic_fetch_add(&ordered, 1)] = (int)(intptr_t)number;
    mc_semaphore_release(&own);
    return NULL;
}

START_TEST(in_the_order_of_coming)
{
    pthread_t threads[4];
    semaphore = mc_semaphore_create(1);
    ck_ok(mc_semaphore_acquire(semaphore, &ctx, pool));
    for (intptr_t i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, i < 3 ? come : come_back, (void *)i);
        while (atomic_load(&began) <= i)
            apr_sleep(1000);
        apr_sleep(50000); /* it waits at the semaphore */
    }
    ck_assert_int_eq(atomic_load(&ordered), 0);
    mc_semaphore_release(&ctx);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    const int expected[4] = { 3, 0, 1, 2 };
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(order[i], expected[i]);
    mc_semaphore_destroy(semaphore);
}
END_TEST

static atomic_int refused;

/* One of many who come at once. */
static void *
come_in_time(void *deadline)
{
    mc_ctx own = { .deadline = *(const apr_time_t *)deadline };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    mc_error *error = mc_semaphore_acquire(semaphore, &own, own_pool);
    if (error != MC_OK)
        atomic_fetch_add(error->kind == MC_ERR_BUSY ? &refused : &inside, 1);
    else
        atomic_fetch_add(&passed, 1);
    mc_semaphore_release(&own);
    apr_pool_destroy(own_pool);
    return NULL;
}

/* Before any pace is known, too, no more wait than half of the time that is left is enough for. */
START_TEST(a_line_that_is_too_long_is_not_joined)
{
    enum { COMERS = 200 };
    pthread_t threads[COMERS];
    semaphore = mc_semaphore_create(1);
    ck_ok(mc_semaphore_acquire(semaphore, &ctx, pool));
    atomic_store(&passed, 0);
    atomic_store(&inside, 0);
    apr_time_t deadline = mc_clock_now() + 16 * APR_USEC_PER_SEC;
    mc_ctx late = { .deadline = deadline };
    ck_ok(mc_semaphore_expect(semaphore, &late, pool));
    for (int i = 0; i < COMERS; i++)
        pthread_create(&threads[i], NULL, come_in_time, &deadline);
    while (atomic_load(&refused) < COMERS - 160)
        apr_sleep(1000);
    ck_fails(BUSY, mc_semaphore_expect(semaphore, &late, pool));
    mc_semaphore_release(&ctx);
    for (int i = 0; i < COMERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&inside), 0);
    ck_assert_int_ge(atomic_load(&passed), 10);
    ck_ok(mc_semaphore_expect(semaphore, &late, pool));
    mc_semaphore_destroy(semaphore);
}
END_TEST

static void *
pass_once(void *unused)
{
    mc_ctx own = { .deadline = 0 };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    if (mc_semaphore_acquire(semaphore, &own, own_pool) == MC_OK)
        mc_semaphore_release(&own);
    apr_pool_destroy(own_pool);
    return unused;
}

/* What is said to somebody who has that many microseconds. */
static mc_error *
expect_within(apr_interval_time_t time)
{
    mc_ctx own = { .deadline = mc_clock_now() + time };
    return mc_semaphore_expect(semaphore, &own, pool);
}

/* One waits for the place for so long; returns what somebody with 400 ms is told meanwhile. */
static mc_error *
let_one_wait(apr_interval_time_t time)
{
    pthread_t thread;
    ck_ok(mc_semaphore_acquire(semaphore, &ctx, pool));
    pthread_create(&thread, NULL, pass_once, NULL);
    while (expect_within(0) == MC_OK) /* nobody is in line yet */
        apr_sleep(100);
    mc_error *told = expect_within(400000);
    apr_sleep(time);
    mc_semaphore_release(&ctx);
    pthread_join(thread, NULL);
    return told;
}

START_TEST(a_line_that_was_slow_may_get_fast_again)
{
    semaphore = mc_semaphore_create(1);
    for (int i = 0; i < 8; i++)
        (void)let_one_wait(400000);
    ck_fails(BUSY, let_one_wait(0));
    for (int i = 0; i < 100; i++)
        (void)let_one_wait(0);
    ck_ok(let_one_wait(0));
    mc_semaphore_destroy(semaphore);
}
END_TEST

START_TEST(no_gate_is_an_open_one)
{
    ck_ok(mc_semaphore_acquire(NULL, &ctx, pool));
    ck_assert_ptr_null(mc_semaphore_yield(&ctx));
    mc_semaphore_resume(NULL, &ctx);
    mc_semaphore_release(&ctx);
}
END_TEST

UNIT_MAIN("semaphore", never_more_inside_than_places, waits_no_longer_than_the_deadline, in_the_order_of_coming,
          a_line_that_is_too_long_is_not_joined, a_line_that_was_slow_may_get_fast_again, no_gate_is_an_open_one)
