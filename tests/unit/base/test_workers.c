#include "unit.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/workers.h"

typedef struct tally {
    atomic_int done[1000];
    atomic_int total;
    pthread_t caller;
    atomic_int elsewhere;
    int fail_at;
    mc_workers *workers;
    atomic_bool failed;
} tally;

static mc_error *
job(void *baton, int index, mc_ctx *job_ctx)
{
    tally *t = baton;
    ck_assert_ptr_ne(job_ctx->pool, pool);
    ck_assert_ptr_eq(job_ctx->process, &process);
    ck_assert_str_eq(apr_psprintf(job_ctx->pool, "%d", 42), "42");
    t->done[index]++;
    t->total++;
    if (!pthread_equal(pthread_self(), t->caller)) {
        t->elsewhere++;
        usleep(100);
    }
    if (index == t->fail_at)
        return mc_error_create(job_ctx->pool, MC_ERR_CORRUPT, "job %d", index);
    return MC_OK;
}

START_TEST(each_job_runs_once)
{
    static const int sizes[] = { 0, 1, 4 };
    for (int s = 0; s < 3; s++) {
        mc_workers *workers;
        ck_ok(mc_workers_create(&workers, sizes[s], pool));
        ck_assert_int_eq(mc_workers_count(workers), sizes[s]);
        for (int count = 0; count <= 1000; count = count * 3 + 1) {
            tally t = { .caller = pthread_self(), .fail_at = -1 };
            ck_ok(mc_workers_run(workers, job, &t, count, 8, &ctx, pool));
            ck_assert_int_eq(t.total, count);
            for (int i = 0; i < count; i++)
                ck_assert_int_eq(t.done[i], 1);
        }
        mc_workers_destroy(workers);
    }
    tally t = { .caller = pthread_self(), .fail_at = -1 };
    ck_ok(mc_workers_run(NULL, job, &t, 10, 8, &ctx, pool));
    ck_assert_int_eq(t.total, 10);
    ck_assert_int_eq(t.elsewhere, 0);
}
END_TEST

static mc_error *
wait_for_another(void *baton, int index, mc_ctx *job_ctx)
{
    (void)index;
    (void)job_ctx;
    tally *t = baton;
    t->total++;
    for (int i = 0; i < 30000 && t->total < 3; i++)
        usleep(1000);
    return MC_OK;
}

START_TEST(helpers_work_at_the_same_time)
{
    mc_workers *workers;
    ck_ok(mc_workers_create(&workers, 2, pool));
    tally t = { .fail_at = -1 };
    ck_ok(mc_workers_run(workers, wait_for_another, &t, 3, 2, &ctx, pool));
    ck_assert_int_eq(t.total, 3);
    mc_workers_destroy(workers);
}
END_TEST

START_TEST(no_helper_means_in_order_on_the_caller)
{
    mc_workers *workers;
    ck_ok(mc_workers_create(&workers, 2, pool));
    tally t = { .caller = pthread_self(), .fail_at = 5 };
    ck_fails(CORRUPT, mc_workers_run(workers, job, &t, 100, 0, &ctx, pool));
    ck_assert_int_eq(t.total, 6);
    ck_assert_int_eq(t.elsewhere, 0);
    mc_workers_destroy(workers);
}
END_TEST

/* Jobs after the one that fails wait for it: none of them can run the batch to its end before it. */
static mc_error *
job_after_a_failure(void *baton, int index, mc_ctx *job_ctx)
{
    tally *t = baton;
    for (int i = 0; index > t->fail_at && !t->failed && i < 300000; i++)
        usleep(100);
    mc_error *error = job(baton, index, job_ctx);
    if (index == t->fail_at)
        t->failed = true;
    if (index > t->fail_at)
        usleep(1000);
    return error;
}

START_TEST(an_error_stops_the_batch_and_outlives_its_job)
{
    mc_workers *workers;
    ck_ok(mc_workers_create(&workers, 3, pool));
    for (int i = 0; i < 200; i++) {
        tally t = { .caller = pthread_self(), .fail_at = i % 5 };
        mc_error *error = mc_workers_run(workers, job_after_a_failure, &t, 1000, 3, &ctx, pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error->message, apr_psprintf(pool, "job %d", i % 5));
        ck_assert_int_lt(t.total, 1000);
    }
    mc_workers_destroy(workers);
}
END_TEST

static mc_error *
nested(void *baton, int index, mc_ctx *job_ctx)
{
    tally *t = baton;
    (void)index;
    tally inner = { .caller = pthread_self(), .fail_at = -1 };
    MC_TRY(mc_workers_run(t->workers, job, &inner, 20, 4, job_ctx, job_ctx->pool));
    t->total += inner.total;
    return MC_OK;
}

static void *
many_batches(void *baton)
{
    mc_workers *workers = baton;
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process };
    for (int i = 0; i < 50; i++) {
        tally t = { .fail_at = -1, .workers = workers };
        mc_error *error = mc_workers_run(workers, nested, &t, 5, 4, &own_ctx, own);
        ck_assert(error == MC_OK);
        ck_assert_int_eq(t.total, 100);
    }
    mc_task_pool_release(own);
    return NULL;
}

START_TEST(nested_batches_of_many_callers_never_stall)
{
    mc_workers *workers;
    ck_ok(mc_workers_create(&workers, 3, pool));
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, many_batches, workers);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    mc_workers_destroy(workers);
}
END_TEST

static mc_error *
note_errand(void *baton, int index, mc_ctx *job_ctx)
{
    tally *t = baton;
    ck_assert_int_eq(index, 0);
    ck_assert_ptr_null(job_ctx->inside);
    ck_assert(!pthread_equal(pthread_self(), t->caller));
    t->total++;
    if (t->failed)
        return mc_error_create(job_ctx->pool, MC_ERR_CORRUPT, "errand %d", t->total);
    return MC_OK;
}

START_TEST(errands_are_done_while_their_owner_goes_on)
{
    mc_workers *workers;
    tally t = { .caller = pthread_self() };
    ck_ok(mc_workers_create(&workers, 2, pool));
    mc_errand *errand = mc_errand_create(workers, note_errand, &t, pool);
    for (int i = 1; i <= 20; i++) {
        t.failed = i % 3 == 0;
        mc_errand_send(errand, &ctx);
        while (t.total < i)
            usleep(100);
        mc_error *error = mc_errand_join(errand, pool);
        ck_assert((error != MC_OK) == t.failed);
        if (error != MC_OK)
            ck_assert_str_eq(error->message, apr_psprintf(pool, "errand %d", i));
    }
    mc_workers_destroy(workers);
}
END_TEST

static mc_error *
wait_for_leave(void *baton, int index, mc_ctx *job_ctx)
{
    (void)index;
    (void)job_ctx;
    tally *t = baton;
    t->total++;
    while (!t->failed)
        usleep(100);
    return MC_OK;
}

/* With all workers busy, an errand that nobody has begun is taken back. */
START_TEST(errands_that_nobody_begins_are_taken_back)
{
    mc_workers *workers;
    tally busy = { .caller = pthread_self() }, t = { .caller = pthread_self() };
    ck_ok(mc_workers_create(&workers, 1, pool));
    mc_errand *first = mc_errand_create(workers, wait_for_leave, &busy, pool);
    mc_errand *second = mc_errand_create(workers, note_errand, &t, pool);
    mc_errand_send(first, &ctx);
    while (busy.total < 1)
        usleep(100);
    mc_errand_send(second, &ctx);
    ck_ok(mc_errand_join(second, pool));
    ck_assert_int_eq(t.total, 0);
    busy.failed = true;
    ck_ok(mc_errand_join(first, pool));
    mc_errand_send(second, &ctx);
    while (t.total < 1)
        usleep(100);
    ck_ok(mc_errand_join(second, pool));
    mc_workers_destroy(workers);
}
END_TEST

/* Two errands that waited in the queue one behind the other are sent again, each alone. */
START_TEST(errands_are_sent_again_in_another_order)
{
    mc_workers *workers;
    tally busy = { .caller = pthread_self() }, t = { .caller = pthread_self() };
    ck_ok(mc_workers_create(&workers, 1, pool));
    mc_errand *first = mc_errand_create(workers, wait_for_leave, &busy, pool);
    mc_errand *second = mc_errand_create(workers, note_errand, &t, pool);
    mc_errand *third = mc_errand_create(workers, note_errand, &t, pool);
    mc_errand_send(first, &ctx);
    while (busy.total < 1)
        usleep(100);
    mc_errand_send(second, &ctx);
    mc_errand_send(third, &ctx);
    busy.failed = true;
    while (t.total < 2)
        usleep(100);
    mc_errand *const all[] = { first, third, second };
    for (int i = 0; i < 3; i++)
        ck_ok(mc_errand_join(all[i], pool));
    mc_errand_send(second, &ctx);
    while (t.total < 3)
        usleep(100);
    ck_ok(mc_errand_join(second, pool));
    while (mc_workers_idle(workers) < 1) /* nothing is left in the queue */
        usleep(100);
    mc_workers_destroy(workers);
}
END_TEST

START_TEST(absurd_counts_are_refused)
{
    mc_workers *workers;
    ck_fails(LIMIT, mc_workers_create(&workers, -1, pool));
    ck_fails(LIMIT, mc_workers_create(&workers, 1 << 30, pool));
}
END_TEST

UNIT_MAIN("workers", each_job_runs_once, helpers_work_at_the_same_time, no_helper_means_in_order_on_the_caller,
          an_error_stops_the_batch_and_outlives_its_job, nested_batches_of_many_callers_never_stall,
          errands_are_done_while_their_owner_goes_on, errands_that_nobody_begins_are_taken_back,
          errands_are_sent_again_in_another_order, absurd_counts_are_refused)
