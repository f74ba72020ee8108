/*
 * Demo pages (docs/reference/services.md 6.6): an index, and for each enabled protocol a map that uses it. They load
 * nothing from other hosts.
 */
#include "service/pages/demo.h"

#include <apr_strings.h>
#include <string.h>

#include "service/param.h"
#include "text/text.h"

typedef struct demo_page {
    const char *service;
    const char *title;
    const char *capabilities; /* below the base URL, or NULL */
} demo_page;

/* A page's name is that of its service. */
#define DEMO_PAGES(X)                                                                                                  \
    X("wms", "WMS", "?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities")                                              \
    X("wmts", "WMTS", "wmts/1.0.0/WMTSCapabilities.xml")                                                               \
    X("tms", "TMS", "tms/1.0.0/")                                                                                      \
    X("gmaps", "XYZ", NULL)                                                                                            \
    X("kml", "KML", NULL)                                                                                              \
    X("ve", "Virtual Earth", NULL)                                                                                     \
    X("mapguide", "MapGuide", NULL)

static const demo_page pages[] = {
#define X(service, title, capabilities) { service, title, capabilities },
    DEMO_PAGES(X)
#undef X
};

#define PAGE_COUNT (sizeof(pages) / sizeof(pages[0]))

/* The start of every page up to its <main>. */
static const char *
page_head(const char *current, const char *more, const mc_call *call, apr_pool_t *pool)
{
    const char *base = mc_xml_escape(call->base, pool);
    const char *title = mc_meta(call->config->metadata, "title");
    title = mc_xml_escape(title != NULL ? title : "mapcache", pool);
    const char *links = "";
    for (size_t i = 0; i < PAGE_COUNT; i++)
        if (mc_call_service(call, pages[i].service) != NULL)
            links =
                apr_psprintf(pool, "%s<a href=\"%sdemo/%s\"%s>%s</a>", links, base, pages[i].service,
                             strcmp(current, pages[i].service) == 0 ? " aria-current=\"page\"" : "", pages[i].title);
    return apr_psprintf(pool,
                        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                        "<title>%s</title><link rel=\"icon\" href=\"data:,\">%s"
                        "<link rel=\"stylesheet\" href=\"%sdemo/static/demo.css\"></head>\n"
                        "<body><header><h1><a href=\"%sdemo/\">%s</a></h1><nav>%s</nav></header>\n",
                        title, more, base, base, title, links);
}

static mc_error *
finish_page(mc_request *request, const char *html, apr_pool_t *pool)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = "text/html; charset=utf-8";
    request->u.document.text = mc_buf_attach(mc_buf_copy(html, strlen(html)), pool);
    return MC_OK;
}

static const char *
index_services(const mc_call *call, apr_pool_t *pool)
{
    const char *base = mc_xml_escape(call->base, pool);
    const char *html = "";
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        if (mc_call_service(call, pages[i].service) == NULL)
            continue;
        const char *more = "";
        if (pages[i].capabilities != NULL)
            more = apr_psprintf(pool, "<span><a href=\"%s%s\">capabilities</a></span>", base,
                                mc_xml_escape(pages[i].capabilities, pool));
        html = apr_psprintf(pool, "%s<li><a href=\"%sdemo/%s\">%s</a>%s</li>\n", html, base, pages[i].service,
                            pages[i].title, more);
    }
    return html;
}

static const char *
index_tilesets(const mc_call *call, apr_pool_t *pool)
{
    const mc_config *config = call->config;
    apr_array_header_t *rows = apr_array_make(pool, config->tilesets->nelts + 1, sizeof(const char *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        const char *grids = "";
        for (int j = 0; j < tileset->link_count; j++)
            grids = apr_pstrcat(pool, grids, j > 0 ? ", " : "", tileset->links[j]->grid->name, NULL);
        APR_ARRAY_PUSH(rows, const char *) =
            apr_psprintf(pool, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                         mc_xml_escape(tileset->name, pool), mc_xml_escape(mc_tileset_title(tileset), pool),
                         mc_xml_escape(grids, pool), mc_xml_escape(mc_tileset_mime(tileset), pool));
    }
    return rows->nelts > 0 ? apr_array_pstrcat(pool, rows, 0) : "";
}

static mc_error *
write_demo_index(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    const char *abstract = mc_meta(call->config->metadata, "abstract");
    const char *html = apr_psprintf(
        pool,
        "%s<main class=\"index\"><p>%s</p><h2>Services</h2><ul class=\"cards\">%s</ul>"
        "<h2>Layers</h2><table><thead><tr><th>Name</th><th>Title</th><th>Grids</th><th>Type</th></tr></thead>"
        "<tbody>%s</tbody></table></main></body></html>\n",
        page_head("", "", call, pool), abstract != NULL ? mc_xml_escape(abstract, pool) : "",
        index_services(call, pool), index_tilesets(call, pool));
    return finish_page(request, html, pool);
}

static mc_error *
write_demo_page(mc_request *request, const demo_page *page, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *base = mc_xml_escape(call->base, pool);
    const char *style = apr_psprintf(pool, "<link rel=\"stylesheet\" href=\"%sdemo/static/ol.css\">", base);
    const char *html = apr_psprintf(
        pool,
        "%s<main class=\"map\"><aside id=\"side\"><div id=\"notice\"></div>"
        "<input type=\"search\" id=\"filter\" placeholder=\"Find a layer\" aria-label=\"Find a layer\">"
        "<ul id=\"layers\"></ul><div id=\"fields\"></div><div id=\"place\"></div><pre id=\"info\"></pre></aside>"
        "<div id=\"map\"></div></main>\n<script type=\"application/json\" id=\"config\">%s</script>\n"
        "<script src=\"%sdemo/static/ol.js\"></script><script src=\"%sdemo/static/demo.js\"></script></body></html>\n",
        page_head(page->service, style, call, pool), mc_demo_json(page->service, call, ctx, pool), base, base);
    return finish_page(request, html, pool);
}

typedef struct demo_params {
    int page; /* 0: static; then those of `pages` */
    int file;
} demo_params;

enum { STATIC_FILES };

static bool
is_demo_file_asked(const mc_param_reader *reader)
{
    return ((const demo_params *)reader->target)->page == STATIC_FILES;
}

static const mc_param_row path_params[] = {
#define X(service, title, capabilities) "|" service
    MC_PARAM_CHOICE("page", offsetof(demo_params, page), "static" DEMO_PAGES(X),
                    "The page of a service that is enabled, or `static` before the name of a file; without it the "
                    "index.",
                    .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                    .refusal = "there is no demo page \"{value}\"; the index, demo/, names those that there are"),
#undef X
    MC_PARAM_CHOICE("file", offsetof(demo_params, file), MC_DEMO_FILES, "A file that the pages load.",
                    .flags = MC_PARAM_REQUIRED, .applies = is_demo_file_asked, .kind = MC_ERR_NOT_FOUND,
                    .refusal = "the demo pages have no file \"{value}\""),
    MC_PARAM_END,
};

MC_ONE_OPERATION(demo, "pages and their files", "/demo/<page>/<file>", path_params);

/* The name of a page, and what stands behind its first slash. */
static const apr_array_header_t *
split_demo_path(const char *path, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 2, sizeof(const char *));
    size_t size = strcspn(path, "/");
    APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, path, size);
    if (path[size] == '/')
        APR_ARRAY_PUSH(parts, const char *) = path + size + 1;
    return parts;
}

static mc_error *
demo_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *path = call->path;
    if (*path == '\0')
        return write_demo_index(request, call, pool);
    if (strcmp(path, "demo") == 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the demo service has no page of its own");
    const apr_array_header_t *parts = split_demo_path(path, pool);
    demo_params params = { 0 };
    int next = 0;
    MC_TRY(mc_params_read_path(&params, path_params, call, parts, &next, pool));
    if (params.page == STATIC_FILES) {
        request->kind = MC_REQUEST_DOCUMENT;
        return mc_demo_static(&request->u.document, params.file, pool);
    }
    const demo_page *page = &pages[params.page - 1];
    if (parts->nelts > 1 || mc_call_service(call, page->service) == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND,
                               "there is no demo page \"%s\"; the index, demo/, names those that there are",
                               mc_message_text(path, 100, pool));
    return write_demo_page(request, page, call, ctx, pool);
}

const mc_service_ops mc_service_demo = {
    MC_KIND("demo", mc_service_plain_keys, mc_service_plain, "Pages that show the layers in a browser."),
    .prefix = "demo",
    .parse = demo_parse,
    .operations = demo_operations,
};
