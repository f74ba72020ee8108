/* Feature info of several layers as one document: what is joined, what is refused, and odd answers of origins. */
#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "service/info_join.h"

#define PARTS_MAX 4

/* The joined document as text; NULL where it is refused with the kind in `refused`. */
static const char *
join(const char *mime, mc_error_kind *refused, const char *const *texts)
{
    mc_buf *parts[PARTS_MAX], *joined;
    int count = 0;
    for (; count < PARTS_MAX && texts[count] != NULL; count++)
        parts[count] = mc_buf_attach(mc_buf_copy(texts[count], strlen(texts[count])), pool);
    mc_error *error = mc_info_join(&joined, parts, count, mime, pool);
    if (error != MC_OK) {
        *refused = error->kind;
        return NULL;
    }
    return apr_pstrmemdup(pool, (const char *)joined->data, joined->size);
}

typedef struct join_row {
    const char *mime;
    const char *joined; /* NULL: refused */
    mc_error_kind refused;
    const char *texts[PARTS_MAX];
} join_row;

static void
check_joins(const join_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mc_error_kind refused = MC_ERR_IO;
        const char *found = join(rows[i].mime, &refused, rows[i].texts);
        if (rows[i].joined == NULL) {
            ck_assert_msg(found == NULL && refused == rows[i].refused, "row %d: %s", (int)i, found);
            continue;
        }
        ck_assert_msg(found != NULL && strcmp(found, rows[i].joined) == 0, "row %d: %s", (int)i, found);
    }
}

START_TEST(text)
{
    static const join_row rows[] = {
        { "text/plain", "a\nb\n", 0, { "a", "b\n" } },
        { "text/plain; charset=utf-8", "a\n\nb", 0, { "a\n\n", "b" } },
        { "text/csv", "1,2\n3,4\n", 0, { "1,2\n", "", "3,4\n" } },
        { "image/png", NULL, MC_ERR_INVALID_FORMAT, { "a", "b" } },
    };
    check_joins(rows, sizeof(rows) / sizeof(rows[0]));
    ck_assert(mc_info_joins("application/geo+json") && mc_info_joins("text/xml; subtype=gml/3.1.1"));
    ck_assert(!mc_info_joins("image/png; x=html") && !mc_info_joins(""));
}
END_TEST

#define SET(features) "{\"type\":\"FeatureCollection\",\"features\":[" features "]}"

START_TEST(json)
{
    static const char json[] = "application/json";
    static const join_row rows[] = {
        { json, SET("1,2,3") "\n", 0, { SET("1,2"), SET("3"), SET(" ") } },
        { json, SET("") "\n", 0, { SET(""), SET("") } },
        { json, SET("{\"type\":\"Feature\",\"id\":1.50}") "\n", 0, { "{\"type\":\"Feature\",\"id\":1.50}", SET("") } },
        { json,
          "{\"type\":\"FeatureCollection\",\"crs\":null,\"features\":[]}\n",
          0,
          { "{\"crs\":null,\"type\":\"FeatureCollection\",\"features\":[]}",
            "\xef\xbb\xbf {\"features\" : [ ] , \"type\" : \"FeatureCollection\" , \"crs\" : null } " } },
        /* of other coordinate systems, or no features: a list */
        { json,
          "[" SET("") ",{\"crs\":1,\"type\":\"FeatureCollection\",\"features\":[]}]\n",
          0,
          { SET(""), "{\"crs\":1,\"type\":\"FeatureCollection\",\"features\":[]}" } },
        { json, "[{\"a\":\"]}\\\"\"}," SET("1") "]\n", 0, { "{\"a\":\"]}\\\"\"}", SET("1") } },
        { json, "[1,\"a\",null]\n", 0, { "1", "\"a\"", " null " } },
        { json,
          "[{\"type\":\"FeatureCollection\",\"features\":1},[]]\n",
          0,
          { "{\"type\":\"FeatureCollection\",\"features\":1}", "[]" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "{\"type\":\"FeatureCollection\",\"features\":[" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "{\"type\":[}" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "feature at 1" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), SET("1") "x" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "\"a\\" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "{\"a\"" } },
        { json, NULL, MC_ERR_UPSTREAM, { SET("1"), "," } },
    };
    check_joins(rows, sizeof(rows) / sizeof(rows[0]));
    char deep[2001];
    memset(deep, '[', 1000);
    memset(deep + 1000, ']', 1000);
    deep[2000] = '\0';
    const join_row nested = { json, NULL, MC_ERR_UPSTREAM, { SET("1"), deep } };
    check_joins(&nested, 1);
}
END_TEST

#define PAGE(head, body) "<!DOCTYPE html><html><head>" head "</head><body class=\"a>b\">" body "</body></html>\n"

START_TEST(html)
{
    static const join_row rows[] = {
        { "text/html", PAGE("x", "1\n2\n3"), 0, { PAGE("x", "1"), PAGE("y", "2"), "3" } },
        { "text/html", PAGE("x", "1\n2"), 0, { "1", PAGE("x", "2") } },
        { "text/html", "<b>1\n2", 0, { "<b>1", "2" } },
        { "text/html", "1\n2", 0, { "<!doctype html><HTML><head>a</head>1</HTML>", "<html>2" } },
        { "text/html", "<BODY>1\n2", 0, { "<BODY>1", "2" } },
    };
    check_joins(rows, sizeof(rows) / sizeof(rows[0]));
    mc_error_kind refused;
    static const char *const odd[][PARTS_MAX] = {
        { "", "" }, { "<body", "<body" }, { "</body>", "<body>" }, { "</body><body>", "x" }, { "<html", "</html" }
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        ck_assert_ptr_nonnull(join("text/html", &refused, odd[i]));
}
END_TEST

#define ROOT "<a:set xmlns:a='urn:a' b=\"1>2\">"
#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

START_TEST(xml)
{
    static const char gml[] = "application/vnd.ogc.gml";
    static const join_row rows[] = {
        { gml, XML ROOT "\n<x/><y/></a:set>\n", 0, { XML ROOT "<x/></a:set>", ROOT "<y/></a:set> <!-- end -->\n" } },
        { "text/xml", ROOT "\n<y/></a:set>\n", 0, { "<a:set xmlns:a='urn:a' b=\"1>2\"/>", ROOT "<y/></a:set>" } },
        { gml,
          ROOT "\n<g:boundedBy>n</g:boundedBy>\n<x/><y/></a:set>\n",
          0,
          { ROOT "<g:boundedBy>n</g:boundedBy> <x/></a:set>", ROOT "\n<g:boundedBy>n</g:boundedBy><y/></a:set>" } },
        { gml,
          NULL,
          MC_ERR_INVALID_FORMAT,
          { ROOT "<g:boundedBy>n</g:boundedBy><x/></a:set>", ROOT "<g:boundedBy>m</g:boundedBy><y/></a:set>" } },
        { gml, NULL, MC_ERR_INVALID_FORMAT, { ROOT "</a:set>", "<a:set></a:set>" } },
        { gml,
          NULL,
          MC_ERR_INVALID_FORMAT,
          { "<?xml version='1.0' encoding='latin1'?><a></a>", "<?xml version='1.0'?><a></a>" } },
        { gml, NULL, MC_ERR_UPSTREAM, { ROOT "</a:set>", "<!DOCTYPE a><a:set/>" } },
        { gml, NULL, MC_ERR_UPSTREAM, { ROOT "</a:set>", "plain text" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "", "" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<", "<" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<a", "<a" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<a>", "<a>" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<a></b>", "<a></b>" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<a></a><b/>", "<a></a>" } },
        { gml, NULL, MC_ERR_UPSTREAM, { "<!-- a", "<?xml" } },
        { gml, "<a>\n</a>\n", 0, { "\xef\xbb\xbf<a></a>", "<a />" } },
        { gml, NULL, MC_ERR_INVALID_FORMAT, { "<a><boundedBy></a>", "<a><boundedBy/></a>" } },
    };
    check_joins(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

/* Whatever an origin cuts off: nothing is read beyond the end (under ASan), and nothing hangs. */
START_TEST(cut_answers)
{
    static const char *const mimes[] = { "text/html", "application/json", "text/xml" };
    static const char *const whole[] = { PAGE("x", "1"),
                                         "{\"type\":\"FeatureCollection\",\"crs\":{\"a\":[1,\"\\\"\"]},"
                                         "\"features\":[{}]}",
                                         XML "<!-- a -->" ROOT "<g:boundedBy a='b'>n</g:boundedBy><x/></a:set>\n" };
    for (int i = 0; i < 3; i++)
        for (size_t size = 0; size <= strlen(whole[i]); size++) {
            mc_buf *joined, *parts[2];
            parts[0] = mc_buf_attach(mc_buf_copy(whole[i] + strlen(whole[i]) - size, size), pool);
            parts[1] = mc_buf_attach(mc_buf_copy(whole[i], size), pool);
            mc_error *error = mc_info_join(&joined, parts, 2, mimes[i], pool);
            ck_assert(error == MC_OK || error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_INVALID_FORMAT);
        }
}
END_TEST

UNIT_MAIN("info_join", cut_answers, text, json, html, xml)
