#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/admission.h"
#include "base/metrics.h"
#include "base/semaphore.h"

static mc_admissions *admissions;

static void
set_up(void)
{
    unit_setup();
    process.metrics = mc_metrics_create();
    admissions = mc_admissions_create();
}

static void
tear_down(void)
{
    mc_admissions_destroy(admissions);
    mc_metrics_destroy(process.metrics);
    unit_teardown();
}

static mc_error *
enter(mc_admission *admission)
{
    mc_ctx own = ctx;
    own.admission = admission;
    return mc_admission_enter(&own, pool);
}

START_TEST(no_more_are_inside_than_the_limit)
{
    mc_admission requests[3] = { { .admissions = admissions },
                                 { .admissions = admissions },
                                 { .admissions = admissions } };
    mc_admissions_limit(admissions, 2, 0);
    ck_ok(enter(&requests[0]));
    ck_ok(enter(&requests[1]));
    ck_ok(enter(&requests[0])); /* once more: it is inside */
    ck_fails(BUSY, enter(&requests[2]));
    ck_assert_int_eq(mc_counter_value(process.metrics, MC_COUNT_refused_total), 1);
    mc_admission_leave(&requests[2]); /* it never was inside */
    mc_admission_leave(&requests[0]);
    ck_ok(enter(&requests[2]));
    mc_admission_leave(&requests[2]);
    mc_admission_leave(&requests[1]);
    mc_admission_leave(&requests[1]);
}
END_TEST

START_TEST(without_a_limit_all_are_let_in)
{
    mc_admission request = { .admissions = admissions };
    mc_admission nobody = { .admissions = NULL };
    ck_ok(enter(&request));
    ck_ok(enter(&nobody));
    ck_ok(enter(NULL));
    mc_admission_leave(&request);
    mc_admission_leave(&nobody);
}
END_TEST

START_TEST(one_client_has_its_share)
{
    mc_admission a1 = { .admissions = admissions, .client = "192.0.2.1" };
    mc_admission a2 = { .admissions = admissions, .client = "192.0.2.1" };
    mc_admission b = { .admissions = admissions, .client = "192.0.2.2" };
    mc_admission unknown = { .admissions = admissions };
    mc_admissions_limit(admissions, 10, 1);
    ck_ok(enter(&a1));
    ck_fails(BUSY, enter(&a2));
    ck_ok(enter(&b));
    ck_ok(enter(&unknown));
    mc_admission_leave(&a1);
    ck_ok(enter(&a2));
    mc_admission_leave(&a2);
    mc_admission_leave(&b);
    mc_admission_leave(&unknown);
}
END_TEST

static atomic_bool enough;

/* Draws for 20 ms, again and again. */
static void *
draw_often(void *baton)
{
    mc_ctx own = { .deadline = 0 };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    mc_error *error = MC_OK;
    while (error == MC_OK && !atomic_load(&enough)) {
        error = mc_semaphore_acquire(baton, &own, own_pool);
        apr_sleep(20000);
        mc_semaphore_release(&own);
    }
    apr_pool_destroy(own_pool);
    return error == MC_OK ? baton : NULL;
}

START_TEST(a_line_that_is_too_long_is_not_joined)
{
    enum { WAITERS = 8 };
    mc_semaphore *semaphore = mc_semaphore_create(1);
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, draw_often, semaphore);
    /* Turns come every 20 ms, and 5 ms are left: refused at once as soon as there is a line and its pace is known. */
    mc_error *error = MC_OK;
    while (error == MC_OK || error->kind != MC_ERR_BUSY) {
        mc_ctx hurried = { .deadline = mc_clock_now() + 5000, .process = &process };
        error = mc_semaphore_acquire(semaphore, &hurried, pool);
        mc_semaphore_release(&hurried);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < WAITERS; i++) {
        void *passed;
        pthread_join(threads[i], &passed);
        ck_assert_ptr_nonnull(passed);
    }
    mc_ctx hurried = { .deadline = mc_clock_now() + 3600 * APR_USEC_PER_SEC, .process = &process };
    ck_ok(mc_semaphore_acquire(semaphore, &hurried, pool)); /* nobody waits */
    mc_semaphore_release(&hurried);
    mc_semaphore_destroy(semaphore);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { no_more_are_inside_than_the_limit, without_a_limit_all_are_let_in,
                                   one_client_has_its_share, a_line_that_is_too_long_is_not_joined };
    return unit_run_between("admission", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up, tear_down);
}
