/* What a mark in the store makes of a tile, beside the rules of the tileset. */
#include "unit.h"

#include "cache/marked.h"
#include "changes/watch.h"
#include "text/expiry.h"
#include "tileset/freshness.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE };

static const mc_tile_key key;

static mc_freshness
freshness_of(const mc_tileset *tileset, apr_time_t mtime)
{
    const mc_ctx job = { .pool = pool };
    return mc_tileset_freshness(tileset, &key, mtime, &job);
}

/* The time of a tile that was made so many seconds ago, and was marked. */
static apr_time_t
marked_since(int seconds)
{
    return mc_marked_time(apr_time_now() - apr_time_from_sec(seconds));
}

START_TEST(a_marked_tile_goes_out_and_is_drawn_behind)
{
    const mc_tileset plain = { .stale_if_error = -1 };
    const mc_ctx fresh = { .pool = pool, .wants_fresh = true };
    ck_assert_int_eq(freshness_of(&plain, apr_time_now() - apr_time_from_sec(10 * HOUR)), MC_FRESH);
    ck_assert_int_eq(freshness_of(&plain, marked_since(10 * HOUR)), MC_STALE_BEHIND);
    ck_assert_int_eq(freshness_of(&plain, mc_marked_time(0)), MC_STALE_BEHIND);
    ck_assert_int_eq(mc_tileset_freshness(&plain, &key, marked_since(HOUR), &fresh), MC_STALE_MUST_WAIT);
}
END_TEST

START_TEST(clients_may_be_made_to_wait)
{
    mc_watch shown = { .waits = true };
    const mc_tileset waiting = { .shown = &shown, .stale_if_error = -1 };
    ck_assert_int_eq(freshness_of(&waiting, marked_since(HOUR)), MC_STALE_MUST_WAIT);
    ck_assert_int_eq(freshness_of(&waiting, apr_time_now()), MC_FRESH);
}
END_TEST

START_TEST(a_mark_makes_no_tile_fresher)
{
    static const char *const rules[] = { "3600", "PT1H", "2020-01-01T00:00Z" };
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        mc_tileset expiring = { .stale_if_error = -1 };
        ck_assert_ptr_null(mc_expiry_parse(&expiring.auto_expire, rules[i], pool));
        ck_assert_int_eq(freshness_of(&expiring, marked_since(0)), MC_STALE_BEHIND);
        ck_assert_int_eq(freshness_of(&expiring, marked_since(20 * 366 * 24 * HOUR)), MC_STALE_MAY_SERVE);
        expiring.stale_if_error = HOUR;
        ck_assert_int_eq(freshness_of(&expiring, marked_since(0)), MC_STALE_BEHIND);
        ck_assert_int_eq(freshness_of(&expiring, marked_since(20 * 366 * 24 * HOUR)), MC_STALE_MUST_WAIT);
    }
}
END_TEST

START_TEST(a_mark_has_no_time_that_stale_if_error_could_count_from)
{
    const mc_ctx job = { .pool = pool };
    const struct {
        double bound;
        int64_t grace_least, grace_most;
    } rows[] = { { -1, INT64_MAX, INT64_MAX }, { 0, -1, -1 }, { HOUR, HOUR - 1, HOUR } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        mc_tileset bounded = { .stale_if_error = rows[i].bound };
        int64_t grace = mc_tileset_error_grace(&bounded, &key, marked_since(10 * HOUR), &job);
        ck_assert(grace >= rows[i].grace_least && grace <= rows[i].grace_most);
        ck_assert_ptr_null(mc_expiry_parse(&bounded.auto_expire, "3600", pool)); /* nine hours ago */
        grace = mc_tileset_error_grace(&bounded, &key, marked_since(10 * HOUR), &job);
        ck_assert(rows[i].bound < 0 ? grace == INT64_MAX : grace == -1);
    }
}
END_TEST

START_TEST(the_age_is_that_of_the_tile)
{
    mc_tileset expiring = { .expires = 300, .stale_if_error = -1 };
    const apr_time_t now = apr_time_now();
    mc_tile tile = { .mtime = marked_since(HOUR) };
    mc_tileset_call_stale(&tile, &expiring, &key);
    ck_assert(tile.stale && tile.stale_since == 0);
    ck_assert_int_eq(mc_tileset_lifetime(&expiring, &tile, now), 0);
    const int64_t age = mc_tileset_expired_age(&expiring, &tile, now);
    ck_assert(age >= HOUR - 1 && age <= HOUR + MC_MARK_SHARE + 1);
    ck_assert_int_eq(mc_tileset_overdue(&expiring, &tile, now), 0);
    ck_assert_ptr_null(mc_expiry_parse(&expiring.auto_expire, "PT10M", pool));
    mc_tileset_call_stale(&tile, &expiring, &key);
    const int64_t overdue = mc_tileset_overdue(&expiring, &tile, now);
    ck_assert(overdue >= 50 * MINUTE - 1 && overdue <= 50 * MINUTE + MC_MARK_SHARE + 1);
}
END_TEST

UNIT_MAIN("marked_freshness", a_mark_has_no_time_that_stale_if_error_could_count_from, a_mark_makes_no_tile_fresher,
          a_marked_tile_goes_out_and_is_drawn_behind, clients_may_be_made_to_wait, the_age_is_that_of_the_tile)
