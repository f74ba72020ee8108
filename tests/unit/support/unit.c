#include "unit.h"

#include "remote/remote.h"

apr_pool_t *pool;
mc_ctx ctx;
mc_process process;
const char *const unit_source_folder = MAPCACHE_SOURCE_DIR;

void
unit_setup(void)
{
    apr_pool_create(&pool, NULL);
    process = (mc_process){ 0 };
    process.remotes = mc_remotes_create();
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
}

void
unit_teardown(void)
{
    mc_remotes_destroy(process.remotes);
    apr_pool_destroy(pool);
}

int
unit_run_between(const char *name, const TTest *const *tests, int count, SFun before, SFun after)
{
    apr_initialize();
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, before, after);
    tcase_set_timeout(cases, 600);
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

int
unit_run(const char *name, const TTest *const *tests, int count)
{
    return unit_run_between(name, tests, count, unit_setup, unit_teardown);
}
