#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "text/json.h"

static mc_error *
take(void *baton, const char *text, size_t size)
{
    const char **taken = baton;
    ck_assert_uint_eq(strlen(text), size);
    if (strcmp(text, "stop") == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "enough");
    *taken = apr_pstrcat(pool, *taken, **taken == '\0' ? "" : ",", text, NULL);
    return MC_OK;
}

static mc_error *
walk(const char **taken, const char *path_text, const char *answer)
{
    mc_json_path path;
    ck_ok(mc_json_path_parse(&path, path_text, pool));
    *taken = "";
    return mc_json_walk(answer, strlen(answer), &path, take, taken, pool);
}

static const char *
found(const char *path, const char *answer)
{
    const char *taken;
    ck_ok(walk(&taken, path, answer));
    return taken;
}

START_TEST(a_path_leads_through_objects_and_lists)
{
    static const char hits[] = "{\"took\": 3, \"hits\": {\"total\": 2, \"hits\": ["
                               "{\"_id\": \"a\", \"fields\": {\"name\": [\"x\", \"y\"]}},"
                               "{\"_id\": \"b\", \"fields\": {\"name\": [\"z\"]}}]}}";
    ck_assert_str_eq(found("[\"hits\", \"hits\", \"_id\"]", hits), "a,b");
    ck_assert_str_eq(found("[\"hits\", \"hits\", \"fields\", \"name\", 0]", hits), "x,z");
    ck_assert_str_eq(found("[\"hits\", \"hits\", \"fields\", \"name\", 1]", hits), "y");
    ck_assert_str_eq(found("[\"hits\", \"total\"]", hits), "2");
    ck_assert_str_eq(found("[\"a\", 1, \"b\"]", "{\"a\": [{\"b\": 1}, {\"b\": [7, 8]}]}"), "7,8");
    ck_assert_str_eq(found("[1]", "[[1, 2], [3, 4]]"), "2,4");
    ck_assert_str_eq(found("[1]", "[5, 6]"), "6");
}
END_TEST

START_TEST(values_are_texts_in_their_order)
{
    ck_assert_str_eq(found("[\"v\"]", " {\"v\": [\"b\", \"a\", 1, 2.50, 1e3, true, null, \"\", \"\\u00e9\"]}\n"),
                     "b,a,1,2.50,1e3,true,,\xc3\xa9");
    ck_assert_str_eq(found("[\"v\"]", "{\"v\": []}"), "");
    ck_assert_str_eq(found("[\"v\", \"w\"]", "{\"v\": []}"), "");
    ck_assert_str_eq(found("[\"v\", \"w\"]", "{\"v\": [{\"w\": 1}, {}, null, {\"w\": null}, {\"w\": 2}]}"), "1,2");
}
END_TEST

START_TEST(another_shape_is_an_error)
{
    static const char *const pairs[][2] = {
        { "[\"a\"]", "{\"b\": 1}" },
        { "[\"a\", \"b\"]", "{\"a\": 1}" },
        { "[\"a\", 0]", "{\"a\": {\"b\": 1}}" },
        { "[\"a\", 2]", "{\"a\": [1, 2]}" },
        { "[\"a\"]", "{\"a\": {\"b\": 1}}" },
        { "[\"a\"]", "{\"a\": [[1]]}" },
        { "[\"a\", \"b\"]", "{\"a\": [1]}" },
        { "[\"a\", 0]", "{\"a\": [[1], 2]}" },
        { "[\"a\"]", "{\"a\": \"x\\u0000y\"}" },
        { "[\"a\"]", "" },
        { "[\"a\"]", "{\"a\": 1" },
        { "[\"a\"]", "{\"a\": 1} x" },
        { "[\"a\"]", "{\"a\": '1'}" },
        { "[\"a\"]", "<html>" },
        { "[\"a\"]", "{\"a\": \"\xff\"}" },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *taken;
        mc_error *error = walk(&taken, pairs[i][0], pairs[i][1]);
        ck_assert_msg(error != MC_OK, "%s of %s: %s", pairs[i][0], pairs[i][1], taken);
        ck_assert_int_eq(error->kind, MC_ERR_UPSTREAM);
    }
}
END_TEST

START_TEST(nesting_is_bounded)
{
    char deep[20001];
    const char *taken;
    memset(deep, '[', 20000);
    deep[20000] = '\0';
    ck_fails(UPSTREAM, walk(&taken, "[0]", deep));
    memset(deep + 10000, ']', 10000);
    ck_fails(UPSTREAM, walk(&taken, "[0]", deep));
}
END_TEST

START_TEST(the_taker_ends_the_walk)
{
    const char *taken;
    ck_fails(LIMIT, walk(&taken, "[\"v\"]", "{\"v\": [1, 2, \"stop\", 3]}"));
    ck_assert_str_eq(taken, "1,2");
}
END_TEST

START_TEST(wrong_paths_are_refused)
{
    static const char *const wrong[] = { "",          "hits",          "[]",    "{}",
                                         "[\"a\"",    "[-1]",          "[1.5]", "[null]",
                                         "[[\"a\"]]", "[99999999999]", "\"a\"" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        mc_json_path path;
        mc_error *error = mc_json_path_parse(&path, wrong[i], pool);
        ck_assert_msg(error != MC_OK, "%s", wrong[i]);
        ck_assert_int_eq(error->kind, MC_ERR_CONFIG);
    }
}
END_TEST

static mc_error *
take_field(void *baton, const char *name, const char *text)
{
    const char **fields = baton;
    *fields = apr_pstrcat(pool, *fields, name, "=", text, ";", NULL);
    return strcmp(text, "stop") == 0 ? mc_error_create(pool, MC_ERR_LIMIT, "enough") : MC_OK;
}

static mc_error *
read_fields(const char **fields, const char *text)
{
    *fields = "";
    return mc_json_fields(text, strlen(text), take_field, fields, pool);
}

START_TEST(fields_of_an_object_come_as_texts)
{
    const char *fields;
    ck_ok(read_fields(&fields, "{\"a\": \"x\\u00e9\", \"b\": 1.50, \"c\": true, \"n\": null, \"l\": [1, \"two\", 3.0],"
                               " \"e\": [], \"o\": {\"p\": -7, \"q\": \"r\"}}"));
    ck_assert_str_eq(fields, "a=x\xc3\xa9;b=1.50;c=true;l=1,two,3.0;e=;o.p=-7;o.q=r;");
    ck_fails(LIMIT, read_fields(&fields, "{\"a\": 1, \"b\": \"stop\", \"c\": 2}"));
    ck_assert_str_eq(fields, "a=1;b=stop;");
    static const char *const wrong[] = { "",
                                         "7",
                                         "null",
                                         "[]",
                                         "{",
                                         "{} {}",
                                         "{\"a\": [[1]]}",
                                         "{\"a\": [null]}",
                                         "{\"a\": [{}]}",
                                         "{\"a\": {\"b\": {\"c\": 1}}}",
                                         "{\"a\": \"x\\u0000y\"}",
                                         "{\"a\": \"\xff\"}" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_fails(BAD_REQUEST, read_fields(&fields, wrong[i]));
}
END_TEST

static mc_error *
take_item_field(void *baton, const char *name, const char *text)
{
    const char **fields = baton;
    *fields =
        name == NULL ? apr_pstrcat(pool, *fields, "|", NULL) : apr_pstrcat(pool, *fields, name, "=", text, ";", NULL);
    return MC_OK;
}

static mc_error *
read_items(const char **fields, const char *text)
{
    *fields = "";
    return mc_json_items(text, strlen(text), "list", take_item_field, fields, pool);
}

START_TEST(items_of_a_list_come_one_after_the_other)
{
    const char *fields;
    ck_ok(read_items(&fields,
                     "{\"a\": [[{}]], \"list\": [{\"id\": \"x\", \"f\": {\"n\": \"Number\"}}, {}, {\"id\": 7}]}"));
    ck_assert_str_eq(fields, "|id=x;f.n=Number;||id=7;");
    static const char *const empty[] = { "{}", "[]", "{\"list\": {}}", "{\"list\": null}", "{\"list\": []}" };
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        ck_ok(read_items(&fields, empty[i]));
        ck_assert_str_eq(fields, "");
    }
    static const char *const wrong[] = { "",
                                         "{",
                                         "{\"list\": [1]}",
                                         "{\"list\": [null]}",
                                         "{\"list\": [{\"a\": {\"b\": {}}}]}",
                                         "{\"list\": [{\"a\": \"x\\u0000y\"}]}" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_fails(BAD_REQUEST, read_items(&fields, wrong[i]));
}
END_TEST

UNIT_MAIN("json", a_path_leads_through_objects_and_lists, values_are_texts_in_their_order, another_shape_is_an_error,
          nesting_is_bounded, the_taker_ends_the_walk, wrong_paths_are_refused, fields_of_an_object_come_as_texts,
          items_of_a_list_come_one_after_the_other)
