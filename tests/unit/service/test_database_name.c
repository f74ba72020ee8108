/* What /ready tells of a database: where it is, and no secret. */
#include <apr_general.h>
#include <check.h>
#include <stdlib.h>

#include "service/operations/failing.h"

static const struct {
    const char *connection, *name;
} names[] = {
    { "host=db.example port=5433 dbname=gis user=me password=word", "host=db.example port=5433 dbname=gis" },
    { "  password = 'a host=no' \t host = '/run/my sql'\n port=1", "host='/run/my sql' port=1" },
    { "password='it\\'s host=no' dbname=gis passfile=/etc/pgpass sslkey=/etc/key options=-cx=y", "dbname=gis" },
    { "password=a\\ host=no dbname=gis", "dbname=gis" },
    { "password='no end host=secret", "PostgreSQL" },
    { "host=db password='no end dbname=secret", "host=db" },
    { "user=me password=word", "PostgreSQL" },
    { "hostage=secret host", "PostgreSQL" },
    { "port=1 host= password=word", "port=1" },
    { "", "PostgreSQL" },
    { "=", "PostgreSQL" },
    { "secret", "PostgreSQL" },
    { "postgresql://me:word@db:5432/gis?sslkey=/etc/key&password=no", "postgresql://db:5432/gis" },
    { "postgres://me:w@rd@db/gis", "postgresql://db/gis" },
    { "postgresql://db", "postgresql://db" },
    { "postgresql:///gis?host=/run&password=no", "postgresql:///gis" },
    { "postgresql://", "postgresql://" },
};

START_TEST(a_name_has_the_place_and_no_secret)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    ck_assert_str_eq(mc_database_name(names[_i].connection, pool), names[_i].name);
    apr_pool_destroy(pool);
}
END_TEST

int
main(void)
{
    apr_initialize();
    Suite *suite = suite_create("names of databases");
    TCase *tcase = tcase_create("all");
    tcase_add_loop_test(tcase, a_name_has_the_place_and_no_secret, 0, sizeof(names) / sizeof(names[0]));
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
