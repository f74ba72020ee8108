/* Servers that are left alone for a while, by their names (lib/http/http_breakers.h). */
#include "unit.h"

#include <apr_strings.h>

#include "base/clock.h"
#include "http/http_breakers.h"

static void
report_sign(mc_http_breakers *breakers, const char *server, mc_http_sign sign)
{
    const mc_http_finding finding = { .sign = sign };
    mc_http_breakers_report(breakers, server, &finding);
}

static void
fail_times(mc_http_breakers *breakers, const char *server, int count)
{
    for (int i = 0; i < count; i++)
        report_sign(breakers, server, MC_HTTP_TROUBLE);
}

static void
list_open_ones(void *baton, const char *name, bool works)
{
    if (!works)
        *(const char **)baton = apr_pstrcat(pool, *(const char **)baton, name, " ", NULL);
}

START_TEST(each_server_has_its_own)
{
    mc_http_breakers *breakers = mc_http_breakers_create();
    fail_times(breakers, "http://a", MC_BREAKER_FAILURES - 1);
    ck_assert(mc_http_breakers_admit(breakers, "http://a"));
    report_sign(breakers, "http://a", MC_HTTP_LIFE); /* the row ends */
    fail_times(breakers, "http://a", MC_BREAKER_FAILURES - 1);
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
    mc_http_breakers *breakers = mc_http_breakers_create();
    report_sign(breakers, "http://works", MC_HTTP_LIFE);
    fail_times(breakers, "http://once", 1);
    fail_times(breakers, "http://away", MC_BREAKER_FAILURES);
    mc_http_breakers_visit(breakers, begin, list_open_ones, &away);
    ck_assert_str_eq(away, "http://once http://away ");
    report_sign(breakers, "http://once", MC_HTTP_NO_SIGN);
    report_sign(breakers, "http://once", MC_HTTP_LIFE);
    away = "";
    mc_http_breakers_visit(breakers, begin, list_open_ones, &away);
    ck_assert_str_eq(away, "http://away ");
    mc_http_breakers_visit(breakers, mc_clock_now() + 1, list_open_ones, &away);
    ck_assert_str_eq(away, "http://away "); /* nobody asks for it any more */
    report_sign(breakers, "http://away", MC_HTTP_LIFE);
    away = "";
    mc_http_breakers_visit(breakers, begin, list_open_ones, &away);
    ck_assert_str_eq(away, "");
    mc_http_breakers_destroy(breakers);
}
END_TEST

START_TEST(many_servers_have_bounded_room)
{
    mc_http_breakers *breakers = mc_http_breakers_create();
    char name[1024];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    fail_times(breakers, name, MC_BREAKER_FAILURES);
    ck_assert(!mc_http_breakers_admit(breakers, name));
    for (int i = 0; i < 1000; i++)
        fail_times(breakers, apr_psprintf(pool, "http://%d", i), MC_BREAKER_FAILURES);
    ck_assert(mc_http_breakers_admit(breakers, name)); /* the one that was asked longest ago */
    ck_assert(!mc_http_breakers_admit(breakers, "http://999"));
    mc_http_breakers_destroy(breakers);
}
END_TEST

static mc_http_finding
finding_of(const mc_http_exchange *exchanges, int count, apr_interval_time_t waited)
{
    mc_http_finding finding = { .sign = MC_HTTP_NO_SIGN };
    mc_http_add_signs(&finding, exchanges, count, mc_clock_now() - waited, &ctx);
    return finding;
}

static mc_http_sign
sign_of_status(int status, bool store)
{
    mc_http_exchange exchange = { .reply.status = status, .call.store = store };
    return finding_of(&exchange, 1, 0).sign;
}

static mc_http_finding
finding_of_failure(mc_error_kind kind, bool store, apr_interval_time_t waited)
{
    mc_http_exchange exchange = { .error = mc_error_create(pool, kind, "failed"), .call.store = store };
    return finding_of(&exchange, 1, waited);
}

START_TEST(answers_tell_of_life_and_of_trouble)
{
    static const int lives[] = { 200, 204, 301, 400, 403, 404, 501 }, troubles[] = { 429, 502, 503, 504 };
    for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++)
        ck_assert_int_eq(sign_of_status(lives[i], true), MC_HTTP_LIFE);
    for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++)
        ck_assert_int_eq(sign_of_status(troubles[i], i % 2 == 0), MC_HTTP_TROUBLE);
    ck_assert_int_eq(sign_of_status(500, true), MC_HTTP_TROUBLE);
    ck_assert_int_eq(sign_of_status(500, false), MC_HTTP_LIFE); /* a bad layer beside good ones */
    ck_assert_int_eq(finding_of_failure(MC_ERR_UPSTREAM, true, 0).sign, MC_HTTP_TROUBLE);
    ck_assert_int_eq(finding_of_failure(MC_ERR_UNAVAILABLE, true, 0).sign, MC_HTTP_NO_SIGN);
    mc_http_exchange large = { .error = mc_error_create(pool, MC_ERR_UPSTREAM, "large"), .reply.too_large = true };
    ck_assert_int_eq(finding_of(&large, 1, 0).sign, MC_HTTP_LIFE);
}
END_TEST

START_TEST(the_hurry_of_a_request_is_no_fault_of_its_server)
{
    const apr_interval_time_t second = APR_USEC_PER_SEC;
    mc_http_finding finding = finding_of_failure(MC_ERR_TIMEOUT, false, second / 2); /* by <timeout> */
    ck_assert(finding.sign == MC_HTTP_TROUBLE && finding.waited >= second / 2);
    ctx.deadline = mc_clock_now() - 1; /* from here on the request's own time is over */
    ck_assert_int_eq(finding_of_failure(MC_ERR_TIMEOUT, true, second / 2).sign, MC_HTTP_NO_SIGN);
    ck_assert_int_eq(finding_of_failure(MC_ERR_TIMEOUT, false, 2 * second).sign, MC_HTTP_NO_SIGN);
    ck_assert_int_eq(finding_of_failure(MC_ERR_TIMEOUT, false, 20 * second).sign, MC_HTTP_TROUBLE);
    finding = finding_of_failure(MC_ERR_TIMEOUT, true, 2 * second);
    ck_assert(finding.sign == MC_HTTP_TROUBLE && finding.waited == 0); /* three in a row */
}
END_TEST

START_TEST(one_answer_outweighs_the_trouble_beside_it)
{
    mc_http_exchange exchanges[] = { { .reply.status = 503 }, { .reply.status = 200 }, { .reply.status = 429 } };
    ck_assert_int_eq(finding_of(exchanges, 3, 0).sign, MC_HTTP_LIFE);
    ck_assert_int_eq(finding_of(exchanges, 1, 0).sign, MC_HTTP_TROUBLE);
    ck_assert_int_eq(finding_of(exchanges, 0, 0).sign, MC_HTTP_NO_SIGN);
}
END_TEST

UNIT_MAIN("http_breakers", each_server_has_its_own, those_that_are_away_are_listed, many_servers_have_bounded_room,
          answers_tell_of_life_and_of_trouble, the_hurry_of_a_request_is_no_fault_of_its_server,
          one_answer_outweighs_the_trouble_beside_it)
