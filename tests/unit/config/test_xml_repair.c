#include "unit.h"

#include <string.h>

#include "mapcache/config.h"

static mc_diagnostics *diagnostics;

static mc_error *
parse_bytes(mc_node **root, const char *text, size_t size)
{
    diagnostics = mc_diagnostics_create(pool);
    return mc_config_parse_text(root, "test.xml", text, size, diagnostics, pool);
}

/* Reads a text that MapCache reads, too: one warning, at a place. */
static const mc_node *
parse_repaired(const char *text, int line, int column)
{
    mc_node *root;
    ck_ok(parse_bytes(&root, text, strlen(text)));
    ck_assert_int_eq(diagnostics->complaints->nelts, 1);
    const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, 0, mc_complaint);
    ck_assert_int_eq(complaint->severity, MC_WARNING);
    ck_assert_str_eq(complaint->file, "test.xml");
    ck_assert_int_eq(complaint->line, line);
    ck_assert_int_eq(complaint->column, column);
    return root;
}

static void
expect_text(const char *text, int line, int column, const char *expected)
{
    const mc_node *a = mc_node_child(parse_repaired(text, line, column), "a");
    ck_assert_ptr_nonnull(a);
    ck_assert_str_eq(a->text, expected);
}

START_TEST(reads_a_bare_ampersand_as_it_stands)
{
    expect_text("<mapcache>\n<a>?map=1&layers=b</a></mapcache>", 2, 10, "?map=1&layers=b");
    expect_text("<mapcache><a>Bed & Breakfast</a></mapcache>", 1, 18, "Bed & Breakfast");
    expect_text("<mapcache><a>x&nbsp;y</a></mapcache>", 1, 15, "x&nbsp;y");
    expect_text("<mapcache><a>x&</a></mapcache>", 1, 15, "x&");
    expect_text("<mapcache><a>&amp;&#38;&#x26;&lt;&</a></mapcache>", 1, 34, "&&&<&");
    expect_text("<mapcache><a>&#;</a></mapcache>", 1, 14, "&#;");
    expect_text("<!DOCTYPE mapcache [<!ENTITY base \"/data\">]>\n<mapcache><a>&base;&other;</a></mapcache>", 2, 20,
                "/data&other;");
    const mc_node *b = mc_node_child(parse_repaired("<mapcache><b x='1&y=2'/></mapcache>", 1, 18), "b");
    ck_assert_str_eq(mc_node_attr(b, "x"), "1&y=2");
}
END_TEST

START_TEST(keeps_places_behind_a_repair)
{
    const mc_node *root = parse_repaired("<mapcache><a>x&y</a><b/>\n <c/></mapcache>", 1, 15);
    ck_assert_int_eq(mc_node_child(root, "b")->column, 21);
    ck_assert_int_eq(mc_node_child(root, "c")->line, 2);
    ck_assert_int_eq(mc_node_child(root, "c")->column, 2);
}
END_TEST

START_TEST(leaves_alone_what_is_no_text)
{
    expect_text("<mapcache><!-- a & b --><a><![CDATA[&<]]>&</a></mapcache>", 1, 42, "&<&");
}
END_TEST

START_TEST(reads_what_stands_outside_of_the_root)
{
    expect_text("\n  <?xml version='1.0' encoding='UTF-8'?><mapcache><a>x</a></mapcache>", 2, 3, "x");
    expect_text("<!-- by hand --><?xml version='1.0'?><mapcache><a>x</a></mapcache>", 1, 17, "x");
    expect_text("<mapcache><a>x</a></mapcache>\n\nthat & is all", 3, 1, "x");
    expect_text("oh <mapcache><a>x</a></mapcache>", 1, 1, "x");
}
END_TEST

START_TEST(takes_the_first_attribute_of_a_name)
{
    const char *text = "<mapcache><b name='one' type=\"t\"\n name = 'two'/></mapcache>";
    const mc_node *b = mc_node_child(parse_repaired(text, 2, 2), "b");
    ck_assert_str_eq(mc_node_attr(b, "name"), "one");
    ck_assert_str_eq(mc_node_attr(b, "type"), "t");
    ck_assert_ptr_null(b->attrs->next->next);
}
END_TEST

START_TEST(reads_bytes_of_other_encodings)
{
    expect_text("<mapcache><!-- \xe9t\xe9 --><a>G\xf6\xdf \x80</a></mapcache>", 1, 16,
                "G\xc3\xb6\xc3\x9f \xe2\x82\xac");
    mc_node *root;
    const char *declared = "<?xml version='1.0' encoding='windows-1252'?><mapcache><a>\x80uro</a></mapcache>";
    ck_ok(parse_bytes(&root, declared, strlen(declared)));
    ck_assert_int_eq(diagnostics->complaints->nelts, 0);
    ck_assert_str_eq(mc_node_child(root, "a")->text, "\xe2\x82\xacuro");
    expect_text("<?xml version='1.0' encoding='x-none'?><mapcache><a>x</a></mapcache>", 1, 1, "x");
}
END_TEST

START_TEST(says_the_first_of_many_repairs_and_their_number)
{
    mc_node *root;
    char text[2000] = "<mapcache><a>";
    for (int i = 0; i < 100; i++)
        strcat(text, "&\n");
    strcat(text, "</a></mapcache>");
    ck_ok(parse_bytes(&root, text, strlen(text)));
    ck_assert_int_eq(diagnostics->complaints->nelts, 21);
    ck_assert_ptr_nonnull(strstr(APR_ARRAY_IDX(diagnostics->complaints, 20, mc_complaint).text, "80 more"));
}
END_TEST

/* Structure is never guessed: the error stands where the file is wrong, also behind a repair. */
START_TEST(refuses_what_has_no_structure)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        { "<mapcache><a>x&y</b></mapcache>", "test.xml:1:19: not well-formed XML" },
        { "<mapcache><a>1 < 2</a></mapcache>", "test.xml:1:17: not well-formed XML" },
        { "<mapcache/><mapcache/>", "test.xml:1:12: not well-formed XML" },
        { "<mapcache>", "not well-formed" },
        { "<mapcache", "not well-formed" },
        { "<", "not well-formed" },
        { "&", "not well-formed" },
        { "", "not well-formed" },
        { "<mapcache a='", "not well-formed" },
        { "<mapcache a='1' a=", "not well-formed" },
        { "<!DOCTYPE mapcache [", "not well-formed" },
        { "<!--", "not well-formed" },
        { "<?xml version=\"1.0\" encoding=\"UCS-4\"?>\n<mapcache/>", "not well-formed" },
        { "<?xml version=\"1.0\" encoding=\"UCS-4LE\"?>\n<mapcache><a>&</a></mapcache>", "not well-formed" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mc_node *root;
        mc_error *error = parse_bytes(&root, cases[i].text, strlen(cases[i].text));
        ck_assert_msg(error != MC_OK, "no error: %s", cases[i].text);
        ck_assert_msg(strstr(error->message, cases[i].expected) != NULL, "%s: %s", cases[i].text, error->message);
    }
}
END_TEST

START_TEST(loads_nothing_from_outside)
{
    expect_text("<!DOCTYPE mapcache [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>\n<mapcache><a>[&x;]&</a></mapcache>",
                2, 19, "[]&");
}
END_TEST

UNIT_MAIN("xml repair", reads_a_bare_ampersand_as_it_stands, keeps_places_behind_a_repair, leaves_alone_what_is_no_text,
          reads_what_stands_outside_of_the_root, takes_the_first_attribute_of_a_name, reads_bytes_of_other_encodings,
          says_the_first_of_many_repairs_and_their_number, refuses_what_has_no_structure, loads_nothing_from_outside)
