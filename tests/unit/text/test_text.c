#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

static const char *
decode(const char *text)
{
    return mc_url_decode(text, strlen(text), true, pool);
}

START_TEST(escapes_of_a_url)
{
    ck_assert_str_eq(decode("a%20b+c%2Fd%2fe"), "a b c/d/e");
    ck_assert_str_eq(decode("%zz%4"), "%zz%4");
    ck_assert_str_eq(decode("%"), "%");
    ck_assert_str_eq(decode("a%00b"), "a");
    ck_assert_str_eq(decode("%2541"), "%41");
    ck_assert_str_eq(mc_url_decode("a+b%41c", 4, false, pool), "a+b%");
    ck_assert_str_eq(mc_url_encode("a b/\xc3\xa9~", NULL, false, true, pool), "a+b%2f%c3%a9~");
    ck_assert_str_eq(mc_url_encode("a b/\xc3\xa9", "/", true, false, pool), "a%20b/%C3%A9");
}
END_TEST

START_TEST(every_byte_survives_url_escapes)
{
    char all[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    ck_assert_str_eq(decode(mc_url_encode(all, "", true, true, pool)), all);
}
END_TEST

START_TEST(query_strings)
{
    apr_table_t *q = mc_query_parse("SERVICE=WMS&service=x&&empty&a=b=c&%4Bey=v%26w&=lost&z=", 100, pool);
    ck_assert_str_eq(apr_table_get(q, "service"), "WMS");
    ck_assert_str_eq(apr_table_get(q, "EMPTY"), "");
    ck_assert_str_eq(apr_table_get(q, "a"), "b=c");
    ck_assert_str_eq(apr_table_get(q, "key"), "v&w");
    ck_assert_str_eq(apr_table_get(q, "z"), "");
    ck_assert_int_eq(apr_table_elts(q)->nelts, 5);
    ck_assert_int_eq(apr_table_elts(mc_query_parse("a=1&b=2&c=3", 2, pool))->nelts, 2);
    ck_assert_int_eq(apr_table_elts(mc_query_parse(NULL, 2, pool))->nelts, 0);
    ck_assert_int_eq(apr_table_elts(mc_query_parse("&&&", 2, pool))->nelts, 0);
}
END_TEST

START_TEST(xml_is_always_well_formed)
{
    const char *plain = "plain \t\n\xc3\xa9\xf0\x9f\x97\xba";
    ck_assert_ptr_eq(mc_xml_escape(plain, pool), plain);
    ck_assert_str_eq(mc_xml_escape("<a b=\"c\" d='e'>&", pool), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
    static const char *const bad[] = { "\x01",
                                       "\x1f",
                                       "\x80",
                                       "\xc3",
                                       "\xc0",
                                       "\xff",
                                       "\xf5",
                                       "\xef\xbf\xbe",
                                       "\xed\xa0\x80",
                                       "\xe0\x80\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xf0\x9f\x97" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *escaped = mc_xml_escape(apr_pstrcat(pool, "a", bad[i], "z", NULL), pool);
        ck_assert_msg(strncmp(escaped, "a\xef\xbf\xbd", 4) == 0, "case %d: %s", (int)i, escaped);
        ck_assert_int_eq(escaped[strlen(escaped) - 1], 'z');
    }
    ck_assert_str_eq(mc_xml_escape("\xc3<", pool), "\xef\xbf\xbd&lt;");
}
END_TEST

START_TEST(json_strings)
{
    ck_assert_str_eq(mc_json_escape("a\"b\\c\n\x01\x7f", pool), "a\\\"b\\\\c\\n\\u0001\\u007f");
    ck_assert_str_eq(mc_json_escape("\xff\xc3\xa9", pool), "\xef\xbf\xbd\xc3\xa9");
}
END_TEST

START_TEST(messages_are_short_lines_of_utf8)
{
    ck_assert_str_eq(mc_message_text("layer \"\xc3\xa9\" <b>", 100, pool), "layer \"\xc3\xa9\" <b>");
    ck_assert_str_eq(mc_message_text("a\r\nb\x1b\x7f", 100, pool), "a  b  ");
    ck_assert_str_eq(mc_message_text("a\xc2\x9b"
                                     "31m\xc2\x80\xc2\xa0\xc2\x9f",
                                     100, pool),
                     "a 31m \xc2\xa0 ");
    ck_assert_str_eq(mc_message_text("\xff\xc3", 100, pool), "\xef\xbf\xbd\xef\xbf\xbd");
    ck_assert_str_eq(mc_message_text("abcdef", 6, pool), "abcdef");
    ck_assert_str_eq(mc_message_text("abcdefg", 6, pool), "abcdef...");
    ck_assert_str_eq(mc_message_text("abcd\xe6\xbc\xa2", 6, pool), "abcd...");
    ck_assert_str_eq(mc_message_text("\x80\x80\x80", 2, pool), "...");
}
END_TEST

START_TEST(header_values_are_one_line)
{
    ck_assert_str_eq(mc_header_value("a\r\nSet-Cookie: b\x7f", pool), "a  Set-Cookie: b ");
}
END_TEST

START_TEST(replacements)
{
    const char *text = "/{z}/{x}/{x}";
    ck_assert_str_eq(mc_replace_all(text, "{x}", "", pool), "/{z}//");
    ck_assert_str_eq(mc_replace_all(text, "{x}", "{x}{x}", pool), "/{z}/{x}{x}/{x}{x}");
    ck_assert_ptr_eq(mc_replace_all(text, "{y}", "1", pool), text);
    ck_assert_ptr_eq(mc_replace_all(text, "", "1", pool), text);
}
END_TEST

START_TEST(names_of_sql)
{
    ck_assert_str_eq(mc_sql_name("a.\"b\"", pool), "\"a.\"\"b\"\"\"");
    ck_assert_str_eq(mc_sql_name("", pool), "\"\"");
    ck_assert_str_eq(mc_shell_word("/a/b-c_1.xml", pool), "/a/b-c_1.xml");
    ck_assert_str_eq(mc_shell_word("/a b's/$(c)", pool), "'/a b'\\''s/$(c)'");
    ck_assert_str_eq(mc_shell_word("", pool), "''");
    ck_assert_str_eq(mc_sql_table("roads", pool), "\"roads\"");
    ck_assert_str_eq(mc_sql_table("my\".roads.old", pool), "\"my\"\"\".\"roads.old\"");
}
END_TEST

START_TEST(distances)
{
    ck_assert_int_eq(mc_text_distance("", ""), 0);
    ck_assert_int_eq(mc_text_distance("abc", ""), 3);
    ck_assert_int_eq(mc_text_distance("kitten", "sitting"), 3);
    ck_assert_int_eq(mc_text_distance("metatile", "metatiel"), 1);
    ck_assert_int_eq(mc_text_distance("tileset", "tielset"), 1);
    ck_assert_int_eq(mc_text_distance("tileset", "itlesetx"), 2);
    ck_assert_int_eq(mc_text_distance("ab", "ba"), 1);
    ck_assert_int_eq(mc_text_distance("abc", "bca"), 2); /* a letter that has moved further */
    ck_assert_int_eq(mc_text_distance("abc", "cab"), 2);
    char *a = apr_pcalloc(pool, 5001);
    memset(a, 'a', 5000);
    ck_assert_int_ge(mc_text_distance(a, "b"), 4999);
}
END_TEST

START_TEST(http_dates)
{
    ck_assert_str_eq(mc_http_date(784111777, pool), "Sun, 06 Nov 1994 08:49:37 GMT");
    ck_assert_int_eq(mc_http_date_parse("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    ck_assert_int_eq(mc_http_date_parse("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
    ck_assert_int_eq(mc_http_date_parse("Sun Nov  6 08:49:37 1994"), 784111777);
    ck_assert_int_eq(mc_http_date_parse("yesterday"), 0);
    ck_assert_int_eq(mc_http_date_parse(""), 0);
    ck_assert_int_eq(mc_http_date_parse(NULL), 0);
    ck_assert_str_eq(mc_http_date(INT64_MAX, pool), "Fri, 31 Dec 9999 23:59:59 GMT");
    ck_assert_str_eq(mc_http_date(INT64_MIN, pool), "Thu, 01 Jan 1970 00:00:00 GMT");
}
END_TEST

START_TEST(configured_values_become_one_line)
{
    ck_assert_str_eq(mc_unwrap_text("\n   public,\r\n\t  immutable \n", pool), "public, immutable");
    ck_assert_str_eq(mc_unwrap_text("a  b", pool), "a  b");
    ck_assert_str_eq(mc_unwrap_text(" \n ", pool), "");
    ck_assert_str_eq(mc_unwrap_text("a\x01\x7f\r\nSet-Cookie: b", pool), "a Set-Cookie: b");
    ck_assert_str_eq(mc_unwrap_url("\n  http://host/?a=1&\n  b=2\n", pool), "http://host/?a=1&b=2");
    ck_assert_str_eq(mc_unwrap_url("http://host/a b", pool), "http://host/a%20b");
    ck_assert_str_eq(mc_unwrap_url("", pool), "");
}
END_TEST

START_TEST(tokens_are_names_of_headers)
{
    ck_assert(mc_is_token("X-My_Own.1", 10));
    ck_assert(!mc_is_token("", 0));
    ck_assert(!mc_is_token("a b", 3));
    ck_assert(!mc_is_token("a:b", 3));
    ck_assert(!mc_is_token("a\0b", 3));
    ck_assert(!mc_is_token("\xc3\xa9", 2));
}
END_TEST

UNIT_MAIN("text", configured_values_become_one_line, tokens_are_names_of_headers, escapes_of_a_url,
          every_byte_survives_url_escapes, query_strings, xml_is_always_well_formed, json_strings,
          messages_are_short_lines_of_utf8, header_values_are_one_line, replacements, names_of_sql, distances,
          http_dates)
