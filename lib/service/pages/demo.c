/*
 * The pages (docs/reference/services.md 6.6): a front page that lists the layers, a map that shows them, a map for each
 * enabled protocol, and what their scripts ask for. They load nothing from other hosts, and address everything from
 * where they are themselves, so that they work behind any proxy.
 */
#include "service/pages/demo.h"

#include <apr_strings.h>
#include <string.h>

#include "service/page_asset.h"
#include "service/param.h"
#include "text/text.h"

static const char *const services[] = {
#define X(service, title) service,
    MC_DEMO_PAGES(X)
#undef X
};

static const char *
demo_title(const mc_call *call)
{
    const char *title = mc_meta(call->config->metadata, "title");
    return title != NULL && *title != '\0' ? title : "mapcache";
}

/* A frame with its addresses: "{here}" leads to the folder of the pages, "{base}" to the root of the alias, from the
 * address that was asked for, which may lack the slash at its end. `service`: the protocol that the map begins with. */
static void
write_demo_frame(mc_request *request, const char *frame, const char *service, const mc_call *call, apr_pool_t *pool)
{
    bool bare = strcmp(call->full_path, "demo") == 0;
    const char *abstract = mc_meta(call->config->metadata, "abstract");
    const char *const fields[] = {
        "title",    demo_title(call),
        "abstract", abstract != NULL ? abstract : "",
        "here",     bare ? "demo/" : "./",
        "base",     bare ? "./" : "../",
        "service",  service,
        NULL,
    };
    mc_request_page(request, mc_page_fill(mc_page_asset_find(frame), fields, pool));
}

typedef struct demo_params {
    int page; /* PAGE_*, then those of `services` */
    const char *file;
    const char *layer;
} demo_params;

enum { PAGE_STATIC, PAGE_MAP, PAGE_LAYERS, PAGE_STYLE, PAGE_SERVICES };

static bool
is_demo_file_asked(const mc_param_reader *reader)
{
    return ((const demo_params *)reader->target)->page == PAGE_STATIC;
}

static const mc_param_row path_params[] = {
#define X(service, title) "|" service
    MC_PARAM_CHOICE("page", offsetof(demo_params, page), "static|map|layers.json|style.json" MC_DEMO_PAGES(X),
                    "The map of all layers, that of a service that is enabled, `layers.json`: what they know of the "
                    "layers, or `static` before the name of a file; without it the front page.",
                    .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                    .refusal = "there is no demo page \"{value}\"; the index, demo/, names those that there are"),
#undef X
    MC_PARAM_TEXT("file", offsetof(demo_params, file), "A file that the pages load.", .max = 100,
                  .flags = MC_PARAM_REQUIRED, .applies = is_demo_file_asked, .kind = MC_ERR_NOT_FOUND,
                  .refusal = "the demo pages have no file \"{value}\""),
    MC_PARAM_END,
};

static const mc_param_row layers_params[] = {
    MC_PARAM_TEXT(
        "layer", offsetof(demo_params, layer),
        "The tileset of which all is told, with its grids and dimensions; without it a line for each tileset.",
        .flags = MC_PARAM_EMPTY),
    MC_PARAM_END,
};

static const mc_param_row style_params[] = {
    MC_PARAM_TEXT("layer", offsetof(demo_params, layer),
                  "The layer, as in addresses of tiles: a tileset, values of dimensions in brackets, @ and a grid.",
                  .flags = MC_PARAM_REQUIRED),
    MC_PARAM_END,
};

static const mc_operation demo_operations[] = {
    { "pages and their files",
      "/demo/<page>/<file>",
      { path_params },
      { { "/", 302, NULL, "The way to the front page.", NULL },
        { "/demo/", 200, "text/html", "The front page: layers as cards.", NULL },
        { "/demo/map", 200, "text/html", "The map of all layers.", NULL },
        { "/demo/wmts", 200, "text/html", "The same, asked for by one protocol.", NULL },
        { "/demo/nothing", 404, "text/plain", "There is no such page.", NULL } } },
    { "what the pages know of layers",
      "/demo/layers.json",
      { layers_params },
      { { "/demo/layers.json", 200, "application/json", "A line for each layer.", NULL },
        { "/demo/layers.json?layer=world", 200, "application/json", "All about one.", NULL } } },
    { "a style of one layer",
      "/demo/style.json",
      { style_params },
      { { "/demo/style.json?layer=roads-mvt@GoogleMapsCompatible", 200, "application/json", "For MapLibre and QGIS.",
          NULL } } },
    { 0 },
};

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
refuse_demo_page(const char *path, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_NOT_FOUND,
                           "there is no demo page \"%s\"; the index, demo/, names those that there are",
                           mc_message_text(path, 100, pool));
}

static mc_error *
answer_demo_layers(mc_request *request, demo_params *params, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_params_read(params, layers_params, call, pool));
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = "application/json";
    if (params->layer == NULL)
        return mc_demo_layers(&request->u.document.text, call, ctx, pool);
    return mc_demo_layer(&request->u.document.text, params->layer, call, ctx, pool);
}

static mc_error *
answer_demo_style(mc_request *request, demo_params *params, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_params_read(params, style_params, call, pool));
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = "application/json";
    return mc_demo_style(&request->u.document.text, params->layer, call, ctx, pool);
}

static mc_error *
demo_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *path = call->path;
    if (*path == '\0') {
        write_demo_frame(request, "front.html", "", call, pool);
        return MC_OK;
    }
    if (strcmp(path, "demo") == 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the demo service has no page of its own");
    const apr_array_header_t *parts = split_demo_path(path, pool);
    demo_params params = { 0 };
    int next = 0;
    MC_TRY(mc_params_read_path(&params, path_params, call, parts, &next, pool));
    if (params.page == PAGE_STATIC) {
        request->kind = MC_REQUEST_DOCUMENT;
        return mc_demo_static(&request->u.document, params.file, pool);
    }
    if (parts->nelts > 1)
        return refuse_demo_page(path, pool);
    if (params.page == PAGE_LAYERS)
        return answer_demo_layers(request, &params, call, ctx, pool);
    if (params.page == PAGE_STYLE)
        return answer_demo_style(request, &params, call, ctx, pool);
    if (params.page == PAGE_MAP) {
        write_demo_frame(request, "map.html", "", call, pool);
        return MC_OK;
    }
    const char *service = services[params.page - PAGE_SERVICES];
    if (mc_call_service(call, service) == NULL)
        return refuse_demo_page(path, pool);
    write_demo_frame(request, "map.html", service, call, pool);
    return MC_OK;
}

const mc_service_ops mc_service_demo = {
    MC_KIND("demo", mc_service_plain_keys, mc_service_plain, "Pages that show the layers in a browser."),
    .prefix = "demo",
    .parse = demo_parse,
    .operations = demo_operations,
};
