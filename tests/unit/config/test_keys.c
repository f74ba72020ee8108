#include "config_text.h"

#include <apr_strings.h>
#include <string.h>

#include "mapcache/config.h"

typedef struct thing {
    const char *name, *text, *own;
    int count, choice, choice_ci;
    double number;
    bool yes, strict, only, flag, present;
    apr_int64_t size;
    mc_number_list numbers;
    const mc_node *tree;
    apr_array_header_t *many;
} thing;

#define ROW(name_, kind_, flags_, min_, max_, choices_, fallback_, member)                                             \
    {                                                                                                                  \
        name_, kind_, flags_, min_, max_, choices_, fallback_, offsetof(thing, member), NULL, "What it is for."        \
    }

static const mc_key keys[] = {
    ROW("@name", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, name),
    ROW("text", MC_TEXT, 0, 0, 0, NULL, "dflt", text),
    ROW("count", MC_INT, 0, 1, 10, NULL, "5", count),
    ROW("number", MC_NUMBER, 0, 0, 0, NULL, "0.5", number),
    ROW("choice", MC_CHOICE, 0, 0, 0, "stack|none", "none", choice),
    ROW("choice-ci", MC_CHOICE_CI, 0, 0, 0, "m|dd|ft", "m", choice_ci),
    ROW("yes", MC_BOOL, 0, 0, 0, NULL, "false", yes),
    ROW("strict", MC_BOOL_CS, 0, 0, 0, NULL, "true", strict),
    ROW("only", MC_TRUE_ONLY, 0, 0, 0, NULL, "false", only),
    ROW("flag", MC_FLAG, 0, 0, 0, NULL, "false", flag),
    ROW("present", MC_PRESENT, 0, 0, 0, NULL, "false", present),
    ROW("size", MC_SIZE, 0, 0, 1048576, NULL, "1K", size),
    ROW("numbers", MC_NUMBERS, 0, 2, 3, NULL, "1 2", numbers),
    ROW("tree", MC_TREE, 0, 0, 0, NULL, NULL, tree),
    ROW("many", MC_INT, MC_KEY_REPEATABLE, 0, 9, NULL, NULL, many),
    MC_KEY_END,
};

static mc_diagnostics *diagnostics;

static bool
read_thing(thing *out, const char *inside)
{
    const mc_node *thing_element = config_elements(apr_psprintf(pool, "\n<thing name='n'>%s</thing>", inside));
    diagnostics = mc_diagnostics_create(pool);
    memset(out, 0, sizeof(*out));
    return mc_config_read(out, thing_element, keys, diagnostics);
}

static const char *
said(int i)
{
    ck_assert_int_lt(i, diagnostics->complaints->nelts);
    return mc_complaint_format(&APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint), pool);
}

START_TEST(defaults_hold_where_nothing_is_said)
{
    thing t;
    ck_assert(read_thing(&t, ""));
    ck_assert_int_eq(diagnostics->complaints->nelts, 0);
    ck_assert_str_eq(t.name, "n");
    ck_assert_str_eq(t.text, "dflt");
    ck_assert_int_eq(t.count, 5);
    ck_assert(t.number == 0.5);
    ck_assert_int_eq(t.choice, 1);
    ck_assert_int_eq(t.choice_ci, 0);
    ck_assert(!t.yes && t.strict && !t.only && !t.flag && !t.present);
    ck_assert_int_eq(t.size, 1024);
    ck_assert_int_eq(t.numbers.count, 2);
    ck_assert_ptr_null(t.tree);
    ck_assert_int_eq(t.many->nelts, 0);

    memset(&t, 0, sizeof(t));
    ck_assert(mc_config_read(&t, NULL, keys, diagnostics));
    ck_assert_int_eq(t.count, 5);
    ck_assert_ptr_nonnull(t.many);
}
END_TEST

START_TEST(good_values_are_read)
{
    thing t;
    ck_assert(
        read_thing(&t, "<text> as it stands </text><count> 10</count><number>-1.5e3</number><choice>stack</choice>"
                       "<choice-ci>DD</choice-ci><yes>TRUE</yes><strict>false</strict><only>true</only><flag/>"
                       "<present>false</present><size>64K</size><numbers>-1,2.5\n\t 3</numbers><tree a='b'><x/></tree>"
                       "<many>1</many><many>2</many>"));
    ck_assert_int_eq(diagnostics->complaints->nelts, 0);
    ck_assert_str_eq(t.text, " as it stands ");
    ck_assert_int_eq(t.count, 10);
    ck_assert(t.number == -1500);
    ck_assert_int_eq(t.choice, 0);
    ck_assert_int_eq(t.choice_ci, 1);
    ck_assert(t.yes && !t.strict && t.only && t.flag && t.present);
    ck_assert_int_eq(t.size, 65536);
    ck_assert_int_eq(t.numbers.count, 3);
    ck_assert(t.numbers.values[0] == -1 && t.numbers.values[1] == 2.5 && t.numbers.values[2] == 3);
    ck_assert_str_eq(t.tree->name, "tree");
    ck_assert_int_eq(t.many->nelts, 2);
    ck_assert_str_eq(APR_ARRAY_IDX(t.many, 1, const mc_node *)->text, "2");
    ck_assert(read_thing(&t, "<flag>FALSE</flag>"));
    ck_assert(!t.flag);
}
END_TEST

START_TEST(bad_values_are_refused_with_what_would_be_right)
{
    static const struct {
        const char *inside, *complaint;
    } cases[] = {
        { "<count>11</count>", "test.xml:2:17: <count>: \"11\" is not a whole number from 1 to 10" },
        { "<count>0</count>", "is not a whole number from 1 to 10" },
        { "<count>5 </count>", "\"5 \" is right but for the blanks around it" },
        { "<count>5x</count>", "\"5x\" is not a whole number" },
        { "<count></count>", "\"\" is not a whole number" },
        { "<count>99999999999999999999</count>", "is not a whole number" },
        { "<number>nan</number>", "\"nan\" is not a number" },
        { "<number>1e999</number>", "is not a number" },
        { "<number>1,5</number>", "is not a number" },
        { "<choice>Stack</choice>", "is not one of stack, none; did you mean \"stack\"?" },
        { "<choice> stack</choice>", "remove them" },
        { "<choice>stack|none</choice>", "is not one of" },
        { "<choice></choice>", "is not one of" },
        { "<choice-ci>km</choice-ci>", "is not one of m, dd, ft (in any case)" },
        { "<yes>1</yes>", "\"1\" is not true or false" },
        { "<strict>True</strict>", "is not true or false, in lower case" },
        { "<size>1T</size>", "is not a size" },
        { "<size>2M</size>", "from 0 to 1048576" },
        { "<size>-1</size>", "is not a size" },
        { "<size>99999999999999999999G</size>", "is not a size" },
        { "<numbers>1</numbers>", "holds 1 number; expected: 2 to 3 numbers" },
        { "<numbers>1 2 3 4</numbers>", "holds 4 numbers" },
        { "<numbers>1 two</numbers>", "holds \"two\", which is no finite number" },
        { "<numbers>1 inf</numbers>", "which is no finite number" },
        { "<many>1</many><many>12</many>", "<many>: \"12\" is not a whole number from 0 to 9" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        thing t;
        ck_assert_msg(!read_thing(&t, cases[i].inside), "%s", cases[i].inside);
        ck_assert_int_eq(diagnostics->refused, 1);
        ck_assert_msg(strstr(said(0), cases[i].complaint) != NULL, "%s: %s", cases[i].inside, said(0));
        ck_fails(CONFIG, mc_diagnostics_error(diagnostics, pool));
    }
}
END_TEST

START_TEST(what_is_unknown_is_a_warning_with_a_hint)
{
    thing t;
    ck_assert(
        read_thing(&t, "<tezt/><zzzzzz/><name>x</name><count a='1'>2<b/></count><yes>true</yes>\n<yes>false</yes>txt"));
    ck_assert_int_eq(diagnostics->refused, 0);
    ck_assert_int_eq(diagnostics->complaints->nelts, 7);
    ck_assert_ptr_nonnull(strstr(said(0), "unknown element \"tezt\" is ignored; did you mean \"text\"?"));
    ck_assert_ptr_nonnull(strstr(said(1), "unknown element \"zzzzzz\" is ignored"));
    ck_assert_ptr_null(strstr(said(1), "mean"));
    ck_assert_ptr_nonnull(strstr(said(2), "it must be written as an attribute"));
    ck_assert_ptr_nonnull(strstr(said(3), "unknown attribute \"a\""));
    ck_assert_ptr_nonnull(strstr(said(4), "unknown element \"b\""));
    ck_assert_ptr_nonnull(strstr(said(5), "test.xml:3:1: <yes>: is ignored: the one on line 2 counts"));
    ck_assert_ptr_nonnull(strstr(said(6), "<thing name=\"n\">: its text"));
    ck_assert(t.yes);
    ck_assert_int_eq(t.count, 2);
    ck_ok(mc_diagnostics_error(diagnostics, pool));
}
END_TEST

START_TEST(a_flood_of_unknown_things_is_cut_short)
{
    char text[5000] = "";
    for (int i = 0; i < 500; i++)
        strcat(text, "<qqqqq/>");
    thing t;
    ck_assert(read_thing(&t, text));
    ck_assert_int_eq(diagnostics->complaints->nelts, 21);
}
END_TEST

START_TEST(missing_and_empty_required_values_are_refused)
{
    static const mc_key required[] = {
        ROW("@name", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, name),
        ROW("text", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, text),
        ROW("", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, own),
        ROW("many", MC_TEXT, MC_KEY_REQUIRED | MC_KEY_REPEATABLE, 0, 0, NULL, NULL, many),
        MC_KEY_END,
    };
    mc_node *root;
    const char *text = "<mapcache name=''><text/></mapcache>";
    ck_ok(mc_config_parse_text(&root, "f.xml", text, strlen(text), NULL, pool));
    diagnostics = mc_diagnostics_create(pool);
    thing t = { 0 };
    ck_assert(!mc_config_read(&t, root, required, diagnostics));
    ck_assert_int_eq(diagnostics->refused, 4);
    ck_assert_ptr_nonnull(strstr(said(0), "<text>: it is empty"));
    ck_assert_ptr_nonnull(strstr(said(1), "attribute \"name\" is empty. What it is for."));
    ck_assert_ptr_nonnull(strstr(said(2), "it is empty"));
    ck_assert_ptr_nonnull(strstr(said(3), "<many> is missing"));
    mc_error *error = mc_diagnostics_error(diagnostics, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strchr(error->message, '\n'));
}
END_TEST

START_TEST(names_are_found_as_they_stand)
{
    apr_hash_t *things = apr_hash_make(pool);
    int value = 7;
    apr_hash_set(things, "roads", APR_HASH_KEY_STRING, &value);
    const mc_node *root = config_root("");
    diagnostics = mc_diagnostics_create(pool);
    ck_assert_ptr_eq(mc_config_find(things, "source", "roads", root, diagnostics), &value);
    ck_assert_int_eq(diagnostics->refused, 0);
    ck_assert_ptr_null(mc_config_find(things, "source", " roads\n", root, diagnostics));
    ck_assert_ptr_nonnull(strstr(said(0), "there is no source \" roads \", but there is \"roads\": remove the blanks"));
    ck_assert_ptr_null(mc_config_find(things, "source", "raods", root, diagnostics));
    ck_assert_ptr_nonnull(strstr(said(1), "did you mean \"roads\"?"));
    ck_assert_ptr_null(mc_config_find(things, "source", "x", root, diagnostics));
    ck_assert_ptr_null(strstr(said(2), "mean"));
}
END_TEST

START_TEST(quoted_values_are_short_and_harmless)
{
    ck_assert_str_eq(mc_config_quote("a\nb\x1b", pool), "\"a b \"");
    char text[200];
    memset(text, 'a', sizeof(text));
    strcpy(text + 59, "\xc3\xa4\xc3\xa4");
    const char *quoted = mc_config_quote(text, pool);
    ck_assert_uint_eq(strlen(quoted), 59 + 5); /* the character that would be cut is left out */
}
END_TEST

UNIT_MAIN("keys", defaults_hold_where_nothing_is_said, good_values_are_read,
          bad_values_are_refused_with_what_would_be_right, what_is_unknown_is_a_warning_with_a_hint,
          a_flood_of_unknown_things_is_cut_short, missing_and_empty_required_values_are_refused,
          names_are_found_as_they_stand, quoted_values_are_short_and_harmless)
