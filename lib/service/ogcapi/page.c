/*
 * A document of ours as a page: what the JSON says, in the same order, as lists, tables and links, so that no page can
 * say less or anything else (OGC 19-072, 9.2). The text is one that a mc_json_writer has written.
 */
#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "service/page_asset.h"
#include "text/text.h"

/* A walk through the text, and what becomes of it. */
typedef struct page_walk {
    const char *at;
    mc_buf *out;
    const char *base, *root; /* addresses that begin with the one are written from the other, seen from the page */
    apr_pool_t *pool;
    mc_error *error;
} page_walk;

static void write_value(page_walk *walk, const char *key);

static void
put_html(page_walk *walk, const char *html)
{
    if (walk->error == MC_OK)
        walk->error = mc_buf_append(walk->out, html, strlen(html), walk->pool);
}

static void
put_text(page_walk *walk, const char *text)
{
    put_html(walk, mc_xml_escape(text, walk->pool));
}

/* Four hexadecimal digits as UTF-8; the writer escapes control characters and a few others this way. */
static void
decode_code_point(char **to, const char *digits)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        char digit = digits[i];
        code = code * 16 + (unsigned)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    if (code < 0x80) {
        *(*to)++ = (char)code;
    } else if (code < 0x800) {
        *(*to)++ = (char)(0xc0 | code >> 6);
        *(*to)++ = (char)(0x80 | (code & 0x3f));
    } else {
        *(*to)++ = (char)(0xe0 | code >> 12);
        *(*to)++ = (char)(0x80 | (code >> 6 & 0x3f));
        *(*to)++ = (char)(0x80 | (code & 0x3f));
    }
}

/* The text in quotes at walk->at, without its escapes. */
static const char *
take_string(page_walk *walk)
{
    const char *from = walk->at + 1, *end = from;
    while (*end != '"')
        end += *end == '\\' ? 2 : 1;
    char *text = apr_palloc(walk->pool, (size_t)(end - from) + 1), *to = text;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        static const char names[] = "bfnrt", codes[] = "\b\f\n\r\t";
        const char *name = strchr(names, from[1]);
        if (from[1] == 'u') {
            decode_code_point(&to, from + 2);
            from += 6;
        } else {
            *to++ = name != NULL ? codes[name - names] : from[1];
            from += 2;
        }
    }
    *to = '\0';
    walk->at = end + 1;
    return text;
}

static void
skip_page_value(page_walk *walk)
{
    int depth = 0;
    do {
        char first = *walk->at;
        if (first == '"')
            (void)take_string(walk);
        else
            walk->at++;
        depth += first == '{' || first == '[' ? 1 : first == '}' || first == ']' ? -1 : 0;
    } while (depth > 0 || (*walk->at != '\0' && strchr(",]}", *walk->at) == NULL));
}

/* The text of a member of the object at walk->at, which stays; NULL where it is no text. */
static const char *
find_member(const page_walk *walk, const char *wanted)
{
    page_walk ahead = *walk;
    for (ahead.at++; *ahead.at == '"';) {
        const char *key = take_string(&ahead);
        ahead.at++;
        if (strcmp(key, wanted) == 0)
            return *ahead.at == '"' ? take_string(&ahead) : NULL;
        skip_page_value(&ahead);
        ahead.at += *ahead.at == ',';
    }
    return NULL;
}

/* An address as the page has it; one within the API leads to the page of what is there. */
static const char *
page_address(const page_walk *walk, const char *href)
{
    size_t size = strlen(walk->base);
    if (strncmp(href, walk->base, size) != 0)
        return strncmp(href, "http://", 7) == 0 || strncmp(href, "https://", 8) == 0 ? href : "#";
    return apr_pstrcat(walk->pool, walk->root, href + size, NULL);
}

/* A link object as a link. One with variables in its address is shown as it is. */
static void
write_link_object(page_walk *walk, const char *href)
{
    const char *title = find_member(walk, "title"), *rel = find_member(walk, "rel"), *type = find_member(walk, "type");
    bool open = strchr(href, '{') != NULL;
    put_html(walk, "<li>");
    put_html(walk, open ? "<code>" : "<a href=\"");
    put_text(walk, open ? href : page_address(walk, href));
    put_html(walk, open ? "</code> " : "\">");
    put_text(walk, title != NULL ? title : href);
    put_html(walk, open ? "" : "</a>");
    put_html(walk, " <small>");
    put_text(walk, apr_pstrcat(walk->pool, rel != NULL ? rel : "", " ", type != NULL ? type : "", NULL));
    put_html(walk, "</small></li>");
    skip_page_value(walk);
}

static bool
is_scalar(const page_walk *walk)
{
    return *walk->at != '{' && *walk->at != '[';
}

/* The items of the array at walk->at: scalars in one line, objects below each other. */
static void
write_items(page_walk *walk, const char *key)
{
    bool links = key != NULL && strcmp(key, "links") == 0;
    walk->at++;
    bool flat = is_scalar(walk);
    put_html(walk, flat ? "<span class=\"items\">" : links ? "<ul class=\"links\">" : "<ol>");
    while (*walk->at != ']') {
        const char *href = links && *walk->at == '{' ? find_member(walk, "href") : NULL;
        if (href != NULL) {
            write_link_object(walk, href);
        } else {
            put_html(walk, flat ? "<span>" : "<li>");
            write_value(walk, NULL);
            put_html(walk, flat ? "</span> " : "</li>");
        }
        walk->at += *walk->at == ',';
    }
    walk->at++;
    put_html(walk, flat ? "</span>" : links ? "</ul>" : "</ol>");
}

/* The dimensions of an extent have identifiers, which their definitions name (extent.c). */
static void
write_members(page_walk *walk, const char *of)
{
    bool named = of != NULL && strcmp(of, "extent") == 0;
    put_html(walk, "<dl>");
    walk->at++;
    while (*walk->at == '"') {
        const char *key = take_string(walk);
        walk->at++;
        put_html(walk, named ? "<div><dt id=\"" : "<div><dt>");
        if (named) {
            put_text(walk, key);
            put_html(walk, "\">");
        }
        put_text(walk, key);
        put_html(walk, "</dt><dd>");
        write_value(walk, key);
        put_html(walk, "</dd></div>");
        walk->at += *walk->at == ',';
    }
    walk->at++;
    put_html(walk, "</dl>");
}

static void
write_scalar(page_walk *walk)
{
    if (*walk->at != '"') {
        size_t size = strcspn(walk->at, ",]}");
        put_text(walk, apr_pstrmemdup(walk->pool, walk->at, size));
        walk->at += size;
        return;
    }
    const char *text = take_string(walk);
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        put_text(walk, text);
        return;
    }
    put_html(walk, "<a href=\"");
    put_text(walk, page_address(walk, text));
    put_html(walk, "\">");
    put_text(walk, text);
    put_html(walk, "</a>");
}

static void
write_value(page_walk *walk, const char *key)
{
    if (*walk->at == '{')
        write_members(walk, key);
    else if (*walk->at == '[')
        write_items(walk, key);
    else
        write_scalar(walk);
}

/* The way from the page to the root of the alias: a step up for each slash of its path. */
static const char *
root_of_page(const char *path, apr_pool_t *pool)
{
    const char *root = "";
    for (const char *at = path; *at != '\0'; at++)
        if (*at == '/')
            root = apr_pstrcat(pool, root, "../", NULL);
    return *root == '\0' ? "./" : root;
}

mc_error *
mc_ogcapi_page(mc_ogcapi_ask *ask, const mc_buf *json)
{
    page_walk walk = {
        .at = apr_pstrmemdup(ask->pool, (const char *)json->data, json->size),
        .out = mc_buf_attach(mc_buf_create(json->size * 4, (size_t)64 << 20), ask->pool),
        .base = ask->call->base,
        .root = root_of_page(ask->call->full_path, ask->pool),
        .pool = ask->pool,
    };
    const char *title = mc_xml_escape(ask->title, ask->pool), *root = mc_xml_escape(walk.root, ask->pool);
    const char *site = mc_meta(ask->call->config->metadata, "title");
    put_html(&walk, apr_psprintf(ask->pool,
                                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                                 "<meta name=\"color-scheme\" content=\"light dark\"><title>%s</title>"
                                 "<link rel=\"icon\" href=\"data:,\">"
                                 "<link rel=\"stylesheet\" href=\"%sogcapi/static/base.css\">"
                                 "<link rel=\"stylesheet\" href=\"%sogcapi/static/ogcapi.css\"></head>\n"
                                 "<body><header><h1><a href=\"%sogcapi?f=html\">%s</a></h1><nav aria-label=\"Pages\">"
                                 "<a href=\"%sogcapi/collections?f=html\">Collections</a>"
                                 "<a href=\"%sogcapi/tileMatrixSets?f=html\">Tile matrix sets</a>"
                                 "<a href=\"%sogcapi/styles?f=html\">Styles</a>"
                                 "<a href=\"%sogcapi/conformance?f=html\">Conformance</a>%s</nav></header>\n"
                                 "<main class=\"ogcapi\"><h2>%s</h2>",
                                 title, root, root, root, mc_xml_escape(site != NULL ? site : "mapcache", ask->pool),
                                 root, root, root, root,
                                 mc_call_service(ask->call, "demo") == NULL
                                     ? ""
                                     : apr_pstrcat(ask->pool, "<a href=\"", root, "demo/\">Maps</a>", NULL),
                                 title));
    if (ask->picture != NULL)
        put_html(&walk,
                 apr_psprintf(ask->pool, "<img class=\"preview\" src=\"%sogcapi%s\" alt=\"A map of the collection\">",
                              root, mc_xml_escape(ask->picture, ask->pool)));
    write_value(&walk, NULL);
    put_html(&walk, "</main></body></html>\n");
    MC_TRY(walk.error);
    mc_request_page(ask->request, walk.out);
    return MC_OK;
}
