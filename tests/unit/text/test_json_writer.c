/* JSON as it is written: separators, escapes, numbers, white space. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "text/json_writer.h"

START_TEST(objects_and_arrays)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "a", "text");
    mc_json_open_array(json, "list");
    mc_json_integer(json, NULL, INT64_MIN);
    mc_json_integer(json, NULL, INT64_MAX);
    mc_json_open_object(json, NULL);
    mc_json_close(json);
    mc_json_open_array(json, NULL);
    mc_json_close(json);
    mc_json_close(json);
    mc_json_boolean(json, "yes", true);
    mc_json_boolean(json, "no", false);
    mc_json_null(json, "nothing");
    mc_json_string(json, "none", NULL);
    mc_json_raw(json, "raw", "[1]");
    mc_json_close(json);
    ck_assert_str_eq(mc_json_finish_text(json),
                     "{\"a\":\"text\",\"list\":[-9223372036854775808,9223372036854775807,{},[]],\"yes\":true,"
                     "\"no\":false,\"nothing\":null,\"none\":null,\"raw\":[1]}");
}
END_TEST

static const char *
written_string(mc_json_style style, const char *text)
{
    mc_json_writer *json = mc_json_create(style, pool);
    mc_json_string(json, NULL, text);
    return mc_json_finish_text(json);
}

START_TEST(texts_are_escaped)
{
    ck_assert_str_eq(written_string(MC_JSON_DENSE, ""), "\"\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "\n\r\t\x01\x1f\x7f"), "\"\\n\\r\\t\\u0001\\u001f\\u007f\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "\xc3\xa9 \xf0\x9f\x98\x80"), "\"\xc3\xa9 \xf0\x9f\x98\x80\"");
    /* no UTF-8: a lone byte, an overlong form, a surrogate, an end in the middle of a character */
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "a\xff"), "\"a\xef\xbf\xbd\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "\xc3"), "\"\xef\xbf\xbd\"");
}
END_TEST

START_TEST(keys_are_escaped)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "a\"b", 1);
    mc_json_close(json);
    ck_assert_str_eq(mc_json_finish_text(json), "{\"a\\\"b\":1}");
}
END_TEST

START_TEST(texts_cannot_end_a_script)
{
    ck_assert_str_eq(written_string(MC_JSON_HTML, "</script>&amp;"), "\"\\u003c/script\\u003e\\u0026amp;\"");
    ck_assert_str_eq(written_string(MC_JSON_DENSE, "</a>&"), "\"</a>&\"");
}
END_TEST

START_TEST(numbers)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(json, NULL);
    mc_json_decimals(json, NULL, 1.0 / 3, 3);
    mc_json_decimals(json, NULL, -0.5, 0);
    mc_json_digits(json, NULL, 0.1, 12);
    mc_json_digits(json, NULL, 1e21, 15);
    mc_json_decimals(json, NULL, NAN, 2);
    mc_json_digits(json, NULL, -INFINITY, 2);
    mc_json_close(json);
    ck_assert_str_eq(mc_json_finish_text(json), "[0.333,-0,0.1,1e+21,null,null]");
    json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_decimals(json, NULL, -DBL_MAX, 20);
    ck_assert_uint_eq(strlen(mc_json_finish_text(json)), 1 + 309 + 1 + 20);
}
END_TEST

START_TEST(white_space_follows_the_comma)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_buf *document;
    mc_json_open_object(json, NULL);
    mc_json_open_array(json, "a");
    mc_json_integer(json, NULL, 1);
    mc_json_space(json, "\n");
    mc_json_integer(json, NULL, 2);
    mc_json_space(json, "\n");
    mc_json_close(json);
    mc_json_space(json, "\n");
    mc_json_open_array(json, "b");
    mc_json_close(json);
    mc_json_close(json);
    mc_json_space(json, "\n");
    static const char expected[] = "{\"a\":[1,\n2\n],\n\"b\":[]}\n";
    ck_ok(mc_json_finish(&document, json));
    ck_assert_uint_eq(document->size, sizeof(expected) - 1);
    ck_assert_mem_eq(document->data, expected, document->size);
}
END_TEST

START_TEST(members_on_lines_of_their_own)
{
    mc_json_writer *json = mc_json_create(MC_JSON_TABS, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "layer", "l");
    mc_json_open_array(json, "levels");
    for (int i = 0; i < 2; i++) {
        mc_json_open_object(json, NULL);
        mc_json_integer(json, "level", i);
        mc_json_close(json);
    }
    mc_json_close(json);
    mc_json_open_array(json, "box");
    mc_json_integer(json, NULL, 1);
    mc_json_integer(json, NULL, 2);
    mc_json_close(json);
    mc_json_close(json);
    ck_assert_str_eq(mc_json_finish_text(json),
                     "{\n\t\"layer\":\t\"l\",\n\t\"levels\":\t[{\n\t\t\t\"level\":\t0\n\t\t},"
                     " {\n\t\t\t\"level\":\t1\n\t\t}],\n\t\"box\":\t[1, 2]\n}");
}
END_TEST

/* Mistakes of the caller: each ends the program (SIGABRT). */
START_TEST(wrong_nesting_ends_the_program)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    switch (_i) {
    case 0: /* a member without a key */
        mc_json_integer(json, NULL, 1);
        break;
    case 1: /* an item with one */
        mc_json_open_array(json, "a");
        mc_json_integer(json, "b", 1);
        break;
    case 2: /* something is open */
        mc_json_finish_text(json);
        break;
    case 3: /* closed too often */
        mc_json_close(json);
        mc_json_close(json);
        break;
    case 4: /* a second root */
        mc_json_close(json);
        mc_json_integer(json, NULL, 1);
        break;
    default: /* text that is no white space */
        mc_json_space(json, ",");
        break;
    }
}
END_TEST

/* What is flushed in pieces is what would have been written at once. */
START_TEST(a_document_goes_out_in_pieces)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 3; i++) {
        mc_json_integer(json, NULL, i);
        ck_ok(mc_json_flush(json, out));
    }
    mc_json_close(json);
    mc_json_space(json, "\n");
    ck_ok(mc_json_flush(json, out));
    ck_ok(mc_json_flush(json, out));
    fclose(out);
    ck_assert_str_eq(text, "[0,1,2]\n");
    free(text);
}
END_TEST

START_TEST(a_document_that_nobody_takes_is_an_error)
{
    FILE *out = fopen("/dev/full", "w");
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    setvbuf(out, NULL, _IONBF, 0);
    mc_json_integer(json, NULL, 1);
    ck_fails(IO, mc_json_flush(json, out));
    fclose(out);
}
END_TEST

int
main(void)
{
    apr_initialize();
    Suite *suite = suite_create("json_writer");
    TCase *cases = tcase_create("json_writer");
    tcase_add_checked_fixture(cases, unit_setup, unit_teardown);
    tcase_add_test(cases, objects_and_arrays);
    tcase_add_test(cases, texts_are_escaped);
    tcase_add_test(cases, keys_are_escaped);
    tcase_add_test(cases, texts_cannot_end_a_script);
    tcase_add_test(cases, numbers);
    tcase_add_test(cases, white_space_follows_the_comma);
    tcase_add_test(cases, members_on_lines_of_their_own);
    tcase_add_test(cases, a_document_goes_out_in_pieces);
    tcase_add_test(cases, a_document_that_nobody_takes_is_an_error);
    tcase_add_loop_test_raise_signal(cases, wrong_nesting_ends_the_program, SIGABRT, 0, 6);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
