#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "text/accept.h"

START_TEST(the_most_exact_item_counts)
{
    static const struct {
        const char *list, *name;
        int weight;
        mc_accept_match match;
    } rows[] = {
        { "image/webp", "image/webp", 1000, MC_NAMED },
        { "IMAGE/WebP", "image/webp", 1000, MC_NAMED },
        { "image/*;q=0.5, */*;q=0.25", "image/webp", 500, MC_NAMED_BY_KIND },
        { "*/*;q=0.25, image/*;q=0.5", "image/webp", 500, MC_NAMED_BY_KIND },
        { "*/*;q=0.25, image/*;q=0.5, image/webp;q=0", "image/webp", 0, MC_NAMED },
        { "text/*", "image/webp", 0, MC_NOT_NAMED },
        { "image/webp2, image/web, image/", "image/webp", 0, MC_NOT_NAMED },
        { "image/webp;q=0.1, image/webp;q=0.9", "image/webp", 100, MC_NAMED },
        { "gzip, *;q=0", "br", 0, MC_NAMED_BY_ALL },
        { "*", "br", 1000, MC_NAMED_BY_ALL },
        { "gzip/*", "gzip", 0, MC_NOT_NAMED },
        { "", "gzip", 0, MC_NOT_NAMED },
        { " , ,\t,;;", "gzip", 0, MC_NOT_NAMED },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mc_accept_match match;
        int weight = mc_accept_share(&match, rows[i].list, rows[i].name);
        ck_assert_msg(weight == rows[i].weight && match == rows[i].match, "%s: %d %d", rows[i].list, weight, match);
    }
}
END_TEST

START_TEST(weights_are_read_and_bounded)
{
    static const struct {
        const char *text;
        int weight;
    } rows[] = {
        { "q=1", 1000 },         { "q=0", 0 },          { "q=0.", 0 },
        { "q=0.5", 500 },        { "q=.5", 500 },       { "q=0.001", 1 },
        { "q=0.0009", 0 },       { "q=0.9999", 999 },   { "q=1.000", 1000 },
        { "q=00.25", 250 },      { "q=7", 1000 },       { "q=10", 1000 },
        { "q=-1", 0 },           { "q=-0", 0 },         { "q=", 1000 },
        { "q=none", 1000 },      { "q=.", 1000 },       { "q", 1000 },
        { "Q = 0.25 ", 250 },    { "a=1;q=0.5", 500 },  { "q=0.5;q=1", 500 },
        { "a=\";q=1\";q=0", 0 }, { "quality=0", 1000 }, { "q=1e9", 1000 },
        { "q=\"0\"", 1000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mc_accept_match match;
        const char *list = apr_pstrcat(pool, "x, gzip ; ", rows[i].text, " , y;q=0.75", NULL);
        int weight = mc_accept_share(&match, list, "gzip");
        ck_assert_msg(weight == rows[i].weight && match == MC_NAMED, "%s: %d", list, weight);
        ck_assert_int_eq(mc_accept_share(&match, list, "y"), 750);
    }
}
END_TEST

START_TEST(quoted_commas_part_nothing)
{
    mc_accept_match match;
    ck_assert_int_eq(mc_accept_share(&match, "a;b=\"x,gzip\\\",gzip\";q=0.5,br", "gzip"), 0);
    ck_assert_int_eq(match, MC_NOT_NAMED);
    ck_assert_int_eq(mc_accept_share(&match, "a;b=\"x,gzip\\\",gzip\";q=0.5,br", "a"), 500);
    ck_assert_int_eq(mc_accept_share(&match, "a;b=\"x,gzip\\\",gzip\";q=0.5,br", "br"), 1000);
    ck_assert_int_eq(mc_accept_share(&match, "a;b=\"never closed,br", "br"), 0);
}
END_TEST

START_TEST(long_lists_are_read_to_their_end)
{
    mc_accept_match match;
    char *list = apr_palloc(pool, 65536);
    memset(list, ',', 65000);
    memcpy(list + 65000, "br;q=0.125", 11);
    ck_assert_int_eq(mc_accept_share(&match, list, "br"), 125);
    memset(list, 'x', 65000);
    ck_assert_int_eq(mc_accept_share(&match, list, "br"), 0);
}
END_TEST

START_TEST(types_are_chosen)
{
    static const char *const types[] = { "application/vnd.x+json;version=3.0", "text/html", "image/png" };
    static const struct {
        const char *accept;
        int chosen;
    } rows[] = {
        { NULL, 0 },
        { "", 0 },
        { " ,\t, ", 0 },
        { ";", -1 },
        { "*/*", 0 },
        { "*", 0 },
        { "text/html, image/png", 1 },
        { "text/html;q=0.3, image/*;q=0.4", 2 },
        { "application/vnd.x+json", 0 },
        { "application/vnd.x+json;version=2.0;q=0.5, image/png;q=0.4", 0 },
        { "text/html;q=0", -1 },
        { "*/*;q=0.1, text/html;q=0, image/png;q=0.2", 2 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(mc_accept_choose(rows[i].accept, types, 3), rows[i].chosen);
    ck_assert_int_eq(mc_accept_weight(NULL, "image/png"), MC_WEIGHT_MAX);
    ck_assert_int_eq(mc_accept_weight("image/png;q=0.25", "image/png"), 250);
    ck_assert_int_eq(mc_accept_weight("text/*", "image/png"), 0);
}
END_TEST

UNIT_MAIN("accept", the_most_exact_item_counts, weights_are_read_and_bounded, quoted_commas_part_nothing,
          long_lists_are_read_to_their_end, types_are_chosen)
