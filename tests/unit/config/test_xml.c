#include "unit.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapcache/config.h"

static mc_error *
parse(mc_node **root, const char *text)
{
    return mc_config_parse_text(root, "test.xml", text, strlen(text), NULL, pool);
}

START_TEST(keeps_text_attributes_and_positions)
{
    mc_node *root;
    ck_ok(parse(&root, "<?xml version='1.0'?>\n<mapcache mode=\"normal\">\n  <a x='1' y='2'> one<!-- no --> t&amp;o "
                       "<b/><![CDATA[<&>]]></a><a>second</a>\n</mapcache>"));
    ck_assert_str_eq(root->name, "mapcache");
    ck_assert_int_eq(root->line, 2);
    ck_assert_int_eq(root->column, 1);
    ck_assert_str_eq(mc_node_attr(root, "mode"), "normal");
    ck_assert_ptr_null(mc_node_attr(root, "Mode"));
    const mc_node *a = mc_node_child(root, "a");
    ck_assert_str_eq(a->text, " one t&o <&>");
    ck_assert_int_eq(a->line, 3);
    ck_assert_int_eq(a->column, 3);
    ck_assert_str_eq(a->file, "test.xml");
    ck_assert_ptr_eq(a->parent, root);
    ck_assert_str_eq(mc_node_attr(a, "y"), "2");
    ck_assert_str_eq(mc_node_child(a, "b")->text, "");
    ck_assert_str_eq(mc_node_next(a)->text, "second");
    ck_assert_ptr_null(mc_node_next(mc_node_next(a)));
    ck_assert_ptr_null(mc_node_child(a, "c"));
    ck_assert_str_eq(a->comments->text, " no ");
    ck_assert_int_eq(a->comments->column, 22);
    ck_assert_ptr_null(a->comments->next);
    ck_assert_ptr_null(root->comments);
}
END_TEST

START_TEST(resolves_internal_entities_and_default_attributes)
{
    mc_node *root;
    ck_ok(parse(&root, "<!DOCTYPE mapcache [<!ENTITY base \"/data\"><!ENTITY sub \"&base;/sub\">"
                       "<!ATTLIST cache type CDATA 'disk'>]>"
                       "<mapcache><cache name='&sub;/x'>&sub;/y</cache></mapcache>"));
    const mc_node *cache = mc_node_child(root, "cache");
    ck_assert_str_eq(cache->text, "/data/sub/y");
    ck_assert_str_eq(mc_node_attr(cache, "name"), "/data/sub/x");
    ck_assert_str_eq(mc_node_attr(cache, "type"), "disk");
}
END_TEST

START_TEST(never_loads_external_entities)
{
    mc_node *root;
    ck_ok(parse(&root, "<!DOCTYPE mapcache SYSTEM \"file:///etc/hostname\" [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>"
                       "<mapcache><a>[&x;]</a></mapcache>"));
    ck_assert_str_eq(mc_node_child(root, "a")->text, "[]");
    ck_ok(parse(&root, "<!DOCTYPE mapcache [<!ENTITY % p SYSTEM \"file:///etc/passwd\"> %p;]><mapcache/>"));
}
END_TEST

START_TEST(reads_utf16)
{
    const char *text = "<mapcache><a>x</a></mapcache>";
    char wide[200];
    size_t size = 0;
    wide[size++] = (char)0xff;
    wide[size++] = (char)0xfe;
    for (const char *c = text; *c != '\0'; c++) {
        wide[size++] = *c;
        wide[size++] = *c == 'x' ? 1 : 0; /* U+0178 */
    }
    mc_node *root;
    ck_ok(mc_config_parse_text(&root, "wide", wide, size, NULL, pool));
    ck_assert_str_eq(mc_node_child(root, "a")->text, "\xc5\xb8");
}
END_TEST

static void
expect_error(const char *text, const char *expected)
{
    mc_node *root;
    mc_error *error = parse(&root, text);
    ck_assert_msg(error != MC_OK, "no error: %.80s", text);
    ck_assert_int_eq(error->kind, MC_ERR_CONFIG);
    ck_assert_msg(strstr(error->message, expected) != NULL, "%s", error->message);
}

START_TEST(refuses_what_is_not_well_formed_with_its_place)
{
    expect_error("<mapcache>\n  <a></b>\n</mapcache>", "test.xml:2:8: not well-formed XML");
    expect_error("", "test.xml:1:1");
    expect_error("<mapcache>", "not well-formed");
    expect_error("<mapcache/><mapcache/>", "test.xml:1:12");
    expect_error("<mapcache>&nope;</mapcache>", "undefined entity");
    expect_error("<config/>", "the first element is <config>, not <mapcache>");
}
END_TEST

START_TEST(bounds_depth)
{
    char text[3000] = "<mapcache>";
    for (int i = 0; i < 100; i++)
        strcat(text, "<a>");
    expect_error(text, "nested more than 100 deep");
}
END_TEST

START_TEST(bounds_entity_expansion)
{
    char *text = apr_palloc(pool, 200000);
    strcpy(text, "<!DOCTYPE mapcache [<!ENTITY a \"");
    memset(text + strlen(text) + 100000, 0, 1);
    size_t start = strlen(text);
    memset(text + start, 'x', 100000);
    strcpy(text + start + 100000, "\">]><mapcache><t>");
    for (int i = 0; i < 180; i++)
        strcat(text, "&a;");
    strcat(text, "</t></mapcache>");
    expect_error(text, "test.xml:");

    char laughs[3000] = "<!DOCTYPE mapcache [<!ENTITY l0 \"ha\">";
    for (int i = 1; i < 20; i++) {
        char line[200];
        snprintf(line, sizeof(line), "<!ENTITY l%d \"&l%d;&l%d;&l%d;&l%d;&l%d;&l%d;&l%d;&l%d;\">", i, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(laughs, line);
    }
    strcat(laughs, "]><mapcache>&l19;</mapcache>");
    expect_error(laughs, "test.xml:");
}
END_TEST

START_TEST(bounds_the_number_of_elements)
{
    size_t size = 0;
    char *text = apr_palloc(pool, 5 * 1000 * 1000);
    memcpy(text, "<mapcache>", 10);
    for (size = 10; size < 4500000; size += 4)
        memcpy(text + size, "<a/>", 4);
    memcpy(text + size, "</mapcache>", 12);
    expect_error(text, "more than a million");
}
END_TEST

START_TEST(files_that_cannot_be_read_are_errors)
{
    mc_node *root;
    char folder[] = "/tmp/mapcache-xml-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_fails(CONFIG, mc_config_parse_file(&root, apr_pstrcat(pool, folder, "/mapcache.xml", NULL), NULL, pool));
    ck_assert_int_eq(rmdir(folder), 0);
    ck_fails(CONFIG, mc_config_parse_file(&root, "/", NULL, pool));
    ck_fails(CONFIG, mc_config_parse_file(&root, "/dev/null", NULL, pool));
}
END_TEST

START_TEST(metadata_knows_many_values_without_case_and_one_nested_level)
{
    mc_node *root;
    ck_ok(parse(&root, "<mapcache><metadata><title>T</title><Keyword>a</Keyword><keyword>b</keyword>"
                       "<keywords><keyword>c</keyword><keyword>d</keyword></keywords></metadata></mapcache>"));
    mc_metadata *metadata = mc_metadata_create(pool);
    mc_metadata_add(metadata, mc_node_child(root, "metadata"));
    ck_assert_str_eq(mc_metadata_get(metadata, "TITLE"), "T");
    ck_assert_ptr_null(mc_metadata_get(metadata, "titl"));
    ck_assert_ptr_null(mc_metadata_get(metadata, "keywords"));
    const apr_array_header_t *all = mc_metadata_all(metadata, "keyword");
    ck_assert_int_eq(all->nelts, 2);
    ck_assert_str_eq(APR_ARRAY_IDX(all, 1, const char *), "b");
    ck_assert_int_eq(mc_metadata_all(metadata, "none")->nelts, 0);
    const mc_metadata *nested = mc_metadata_nested(metadata, "KEYWORDS");
    ck_assert_int_eq(mc_metadata_all(nested, "keyword")->nelts, 2);
    ck_assert_ptr_null(mc_metadata_nested(metadata, "title"));
    ck_assert_ptr_null(mc_metadata_get(NULL, "title"));
    mc_metadata_set(metadata, "url", "u");
    ck_assert_str_eq(mc_metadata_get(metadata, "URL"), "u");
}
END_TEST

UNIT_MAIN("xml", keeps_text_attributes_and_positions, resolves_internal_entities_and_default_attributes,
          never_loads_external_entities, reads_utf16, refuses_what_is_not_well_formed_with_its_place, bounds_depth,
          bounds_entity_expansion, bounds_the_number_of_elements, files_that_cannot_be_read_are_errors,
          metadata_knows_many_values_without_case_and_one_nested_level)
