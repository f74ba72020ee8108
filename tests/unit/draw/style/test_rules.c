/* Rules that are looked up by a value are those that the filters say. */
#include "styles.h"

#include <math.h>
#include <string.h>

#include "draw/style/rules.h"

#define EQUAL(name, value)                                                                                             \
    "<ogc:PropertyIsEqualTo><ogc:PropertyName>" name "</ogc:PropertyName><ogc:Literal>" value                          \
    "</ogc:Literal></ogc:PropertyIsEqualTo>"
#define RULE(filter) "<Rule><ogc:Filter>" filter "</ogc:Filter><LineSymbolizer><Stroke/></LineSymbolizer></Rule>"
#define ELSE "<Rule><ElseFilter/><LineSymbolizer><Stroke/></LineSymbolizer></Rule>"

/* The rules that draw a feature, as "0 2 " */
static const char *
drawn_by(mc_rules *rules, const char *a, const char *b)
{
    const char *const values[] = { a, b };
    const mc_feature feature = { .id = 1, .values = values };
    const char *all = "";
    mc_rules_find(rules, &feature, pool);
    for (int i = 0; (i = mc_rules_next(rules, i)) >= 0; i++)
        all = apr_psprintf(pool, "%s%d ", all, i);
    return all;
}

static mc_rules *
rules_of(const char *text)
{
    const mc_style *style = style_of(text);
    ck_assert_msg(style != NULL, "%s", all_complaints());
    return mc_rules_create(&style->passes[0], 1000, pool);
}

START_TEST(one_value_tells)
{
    mc_rules *rules = rules_of(RULE(EQUAL("A", "1")) RULE("<Or>" EQUAL("A", "2") EQUAL("A", "1") "</Or>")
                                   RULE("<PropertyIsNull><PropertyName>A</PropertyName></PropertyIsNull>")
                                       ELSE RULE(EQUAL("A", "a value of more than sixteen bytes")));
    for (int round = 0; round < 3; round++) {
        ck_assert_str_eq(drawn_by(rules, "1", NULL), "0 1 ");
        ck_assert_str_eq(drawn_by(rules, "2", NULL), "1 ");
        ck_assert_str_eq(drawn_by(rules, "1.0", NULL), "0 1 ");
        ck_assert_str_eq(drawn_by(rules, NULL, NULL), "2 ");
        ck_assert_str_eq(drawn_by(rules, "", NULL), "3 ");
        ck_assert_str_eq(drawn_by(rules, "3", NULL), "3 ");
        ck_assert_str_eq(drawn_by(rules, "a value of more", NULL), "3 ");
        ck_assert_str_eq(drawn_by(rules, "a value of more ", NULL), "3 ");
        ck_assert_str_eq(drawn_by(rules, "a value of more than sixteen bytes", NULL), "4 ");
    }
}
END_TEST

/* More values than places in the table. */
START_TEST(many_values)
{
    mc_rules *rules = rules_of(RULE("<PropertyIsLessThan><PropertyName>A</PropertyName><Literal>1000</Literal>"
                                    "</PropertyIsLessThan>")
                                   RULE("<PropertyIsGreaterThan><PropertyName>A</PropertyName><Literal>500</Literal>"
                                        "</PropertyIsGreaterThan>"));
    for (int i = 0; i < 6000; i++) {
        int value = i * 7919 % 1500;
        const char *wanted = value < 1000 ? value > 500 ? "0 1 " : "0 " : "1 ";
        ck_assert_str_eq(drawn_by(rules, apr_itoa(pool, value), NULL), wanted);
    }
}
END_TEST

START_TEST(what_one_value_does_not_tell)
{
    mc_rules *two = rules_of(RULE(EQUAL("A", "1")) RULE(EQUAL("B", "1")));
    mc_rules *function =
        rules_of(RULE("<PropertyIsEqualTo><ogc:Function name='strConcat'><PropertyName>A</PropertyName><PropertyName>B"
                      "</PropertyName></ogc:Function><Literal>12</Literal></PropertyIsEqualTo>") RULE(EQUAL("A", "1")));
    mc_rules *none = rules_of("<Rule><LineSymbolizer><Stroke/></LineSymbolizer></Rule>" ELSE);
    for (int round = 0; round < 2; round++) {
        ck_assert_str_eq(drawn_by(two, "1", "1"), "0 1 ");
        ck_assert_str_eq(drawn_by(two, "1", "2"), "0 ");
        ck_assert_str_eq(drawn_by(two, "2", "1"), "1 ");
        ck_assert_str_eq(drawn_by(two, "2", "2"), "");
        ck_assert_str_eq(drawn_by(function, "1", "2"), "0 1 ");
        ck_assert_str_eq(drawn_by(function, "1", "3"), "1 ");
        ck_assert_str_eq(drawn_by(none, "1", "3"), "0 ");
    }
}
END_TEST

/* More rules than bits of a word, and some of them for other scales. */
START_TEST(many_rules)
{
    const char *text = "<Rule><MinScaleDenominator>5000</MinScaleDenominator><LineSymbolizer><Stroke/>"
                       "</LineSymbolizer></Rule>";
    for (int i = 1; i < 150; i++)
        text = apr_psprintf(pool,
                            "%s<Rule><ogc:Filter>" EQUAL("A", "%d") "</ogc:Filter><LineSymbolizer><Stroke/>"
                                                                    "</LineSymbolizer></Rule>",
                            text, i % 70);
    mc_rules *rules = rules_of(text);
    ck_assert_str_eq(drawn_by(rules, "3", NULL), "3 73 143 ");
    ck_assert_str_eq(drawn_by(rules, "63", NULL), "63 133 ");
    ck_assert_str_eq(drawn_by(rules, "64", NULL), "64 134 ");
    ck_assert_str_eq(drawn_by(rules, "71", NULL), "");
}
END_TEST

UNIT_MAIN("rules", one_value_tells, many_values, what_one_value_does_not_tell, many_rules)
