/* What every unit test needs: Check, APR set up once, a pool for each test, and errors printed when they are not
 * expected. */
#ifndef MC_UNIT_H
#define MC_UNIT_H

#include <apr_general.h>
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"
#include "mapcache/ctx.h"

static apr_pool_t *pool;
static mc_ctx ctx;
static mc_process process;

__attribute__((unused)) static void
unit_setup(void)
{
    apr_pool_create(&pool, NULL);
    process = (mc_process){ 0 };
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
}

__attribute__((unused)) static void
unit_teardown(void)
{
    apr_pool_destroy(pool);
}

#define ck_ok(expr)                                                                                                    \
    do {                                                                                                               \
        mc_error *ck_error_ = (expr);                                                                                  \
        ck_assert_msg(ck_error_ == MC_OK, "%s: %s", #expr, mc_error_chain(ck_error_, pool));                           \
    } while (0)

#define ck_fails(expected_kind, expr)                                                                                  \
    do {                                                                                                               \
        mc_error *ck_error_ = (expr);                                                                                  \
        ck_assert_msg(ck_error_ != MC_OK, "%s did not fail", #expr);                                                   \
        ck_assert_msg(ck_error_->kind == MC_ERR_##expected_kind, "%s: %s (%s)", #expr,                                 \
                      mc_error_chain(ck_error_, pool), mc_error_name(ck_error_->kind));                                \
    } while (0)

/* Runs a suite made of one test case and returns main()'s value. */
__attribute__((unused)) static int
unit_run(const char *name, const TTest *const *tests, int count)
{
    apr_initialize();
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, unit_setup, unit_teardown);
    tcase_set_timeout(cases, 300);
    for (int i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define UNIT_MAIN(name, ...)                                                                                           \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return unit_run(name, tests, (int)(sizeof(tests) / sizeof(tests[0])));                                         \
    }

#endif
