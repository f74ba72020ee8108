#include "unit.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/opening.h"

static void
find_much(mc_findings *findings, const void *data, apr_pool_t *scratch)
{
    mc_findings_warn(findings, apr_pstrcat(scratch, "it is \n", data, NULL));
    mc_findings_refuse(findings, "it cannot be drawn");
}

static void
find_too_much(mc_findings *findings, const void *data, apr_pool_t *scratch)
{
    char *text = apr_pcalloc(scratch, 10001);
    memset(text, 'x', 10000);
    for (int i = 0; i < 20; i++)
        mc_findings_warn(findings, text);
    (void)data;
}

static void
find_nothing(mc_findings *findings, const void *data, apr_pool_t *scratch)
{
    (void)findings;
    (void)data;
    (void)scratch;
}

static void
wait_for_ever(mc_findings *findings, const void *data, apr_pool_t *scratch)
{
    (void)findings;
    (void)data;
    (void)scratch;
    for (;;)
        pause();
}

static void
break_down(mc_findings *findings, const void *data, apr_pool_t *scratch)
{
    mc_findings_warn(findings, "it is strange");
    (void)data;
    (void)scratch;
    abort();
}

static mc_diagnostics *
look(mc_opening_look *how, apr_interval_time_t taken)
{
    const mc_opening opening = { how, "large", "source \"land\"", "the raster", MC_REFUSED };
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    diagnostics->opening = taken;
    mc_config_look(diagnostics, NULL, &opening, pool);
    return diagnostics;
}

static const mc_complaint *
complaint(const mc_diagnostics *diagnostics, int at)
{
    ck_assert_int_lt(at, diagnostics->complaints->nelts);
    return &APR_ARRAY_IDX(diagnostics->complaints, at, mc_complaint);
}

START_TEST(what_the_child_finds_is_said)
{
    const mc_diagnostics *found = look(find_much, 0);
    ck_assert_int_eq(found->complaints->nelts, 2);
    ck_assert_int_eq(complaint(found, 0)->severity, MC_WARNING);
    ck_assert_str_eq(complaint(found, 0)->text, "source \"land\": it is \nlarge");
    ck_assert_int_eq(complaint(found, 1)->severity, MC_REFUSED);
    ck_assert_str_eq(complaint(found, 1)->text, "source \"land\": it cannot be drawn");
    ck_assert_int_eq(look(find_nothing, 0)->complaints->nelts, 0);
    found = look(find_too_much, 0);
    ck_assert_int_ge(found->complaints->nelts, 1);
    ck_assert_uint_lt(strlen(complaint(found, 0)->text), 3000);
}
END_TEST

START_TEST(a_look_ends_in_time)
{
    apr_time_t began = mc_clock_now();
    const mc_diagnostics *found = look(wait_for_ever, apr_time_from_sec(59));
    ck_assert(mc_clock_now() - began >= apr_time_from_sec(1) && found->opening >= apr_time_from_sec(60));
    ck_assert_int_eq(found->complaints->nelts, 1);
    ck_assert_int_eq(complaint(found, 0)->severity, MC_WARNING);
    ck_assert_str_eq(complaint(found, 0)->text,
                     "source \"land\": the raster was not open after 1 seconds: nothing is known of it");
    found = look(wait_for_ever, apr_time_from_sec(60));
    ck_assert_ptr_nonnull(strstr(complaint(found, 0)->text, "others took all of the time"));
}
END_TEST

START_TEST(a_child_that_breaks_down_is_named)
{
    const mc_diagnostics *found = look(break_down, 0);
    ck_assert_int_eq(found->complaints->nelts, 1);
    ck_assert_int_eq(complaint(found, 0)->severity, MC_REFUSED);
    ck_assert_ptr_nonnull(
        strstr(complaint(found, 0)->text, "the process that opens the raster breaks down (signal 6)"));
}
END_TEST

UNIT_MAIN("opening", what_the_child_finds_is_said, a_look_ends_in_time, a_child_that_breaks_down_is_named)
