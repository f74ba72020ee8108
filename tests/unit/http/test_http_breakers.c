/* Servers that are left alone for a while, by their names (lib/http/http_breakers.h). */
#include "unit.h"

#include <apr_strings.h>

#include "base/clock.h"
#include "http/http_breakers.h"

static void
fail_times(mc_http_breakers *breakers, const char *server, int count)
{
    for (int i = 0; i < count; i++)
        mc_http_breakers_report(breakers, server, false);
}

static void
list_open_ones(void *baton, const char *name, bool works)
{
    if (!works)
        *(const char **)baton = apr_pstrcat(pool, *(const char **)baton, name, " ", NULL);
}

START_TEST(each_server_has_its_own)
{
    mc_http_breakers *breakers = mc_http_breakers_create(&mc_http_breaker_rules);
    fail_times(breakers, "http://a", mc_http_breaker_rules.failures - 1);
    ck_assert(mc_http_breakers_admit(breakers, "http://a"));
    mc_http_breakers_report(breakers, "http://a", true); /* the row ends */
    fail_times(breakers, "http://a", mc_http_breaker_rules.failures - 1);
    ck_assert(mc_http_breakers_admit(breakers, "http://a"));
    fail_times(breakers, "http://a", 1);
    ck_assert(!mc_http_breakers_admit(breakers, "http://a"));
    ck_assert(mc_http_breakers_admit(breakers, "http://b"));
    mc_http_breakers_destroy(breakers);
}
END_TEST

START_TEST(those_that_are_away_are_listed)
{
    const char *away = "";
    const apr_time_t begin = mc_clock_now();
    mc_http_breakers *breakers = mc_http_breakers_create(&mc_http_breaker_rules);
    mc_http_breakers_report(breakers, "http://works", true);
    fail_times(breakers, "http://once", 1);
    fail_times(breakers, "http://away", mc_http_breaker_rules.failures);
    mc_http_breakers_visit(breakers, begin, list_open_ones, &away);
    ck_assert_str_eq(away, "http://away ");
    mc_http_breakers_visit(breakers, mc_clock_now() + 1, list_open_ones, &away);
    ck_assert_str_eq(away, "http://away "); /* nobody asks for it any more */
    mc_http_breakers_report(breakers, "http://away", true);
    away = "";
    mc_http_breakers_visit(breakers, begin, list_open_ones, &away);
    ck_assert_str_eq(away, "");
    mc_http_breakers_destroy(breakers);
}
END_TEST

START_TEST(many_servers_have_bounded_room)
{
    mc_http_breakers *breakers = mc_http_breakers_create(&mc_http_breaker_rules);
    char name[1024];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    fail_times(breakers, name, mc_http_breaker_rules.failures);
    ck_assert(!mc_http_breakers_admit(breakers, name));
    for (int i = 0; i < 1000; i++)
        fail_times(breakers, apr_psprintf(pool, "http://%d", i), mc_http_breaker_rules.failures);
    ck_assert(mc_http_breakers_admit(breakers, name)); /* the one that was asked longest ago */
    ck_assert(!mc_http_breakers_admit(breakers, "http://999"));
    mc_http_breakers_destroy(breakers);
}
END_TEST

UNIT_MAIN("http_breakers", each_server_has_its_own, those_that_are_away_are_listed, many_servers_have_bounded_room)
