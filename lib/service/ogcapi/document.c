/* Documents of the API: addresses, links, and the form that a client wants. */
#include <apr_strings.h>
#include <stdarg.h>
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "service/page_asset.h"
#include "text/text.h"

const char *
mc_ogcapi_url(const mc_ogcapi_ask *ask, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const char *path = apr_pvsprintf(ask->pool, format, values);
    va_end(values);
    return apr_pstrcat(ask->pool, ask->call->base, "ogcapi", path, NULL);
}

void
mc_ogcapi_member(mc_json_writer *json, const char *key, const char *text)
{
    if (text != NULL)
        mc_json_string(json, key, text);
}

static void
write_link_members(mc_json_writer *json, const char *rel, const char *type, const char *title, const char *href)
{
    mc_json_string(json, "rel", rel);
    mc_ogcapi_member(json, "type", type);
    mc_ogcapi_member(json, "title", title);
    mc_json_string(json, "href", href);
}

void
mc_ogcapi_link(mc_json_writer *json, const char *rel, const char *type, const char *title, const char *href)
{
    mc_json_open_object(json, NULL);
    write_link_members(json, rel, type, title, href);
    mc_json_close(json);
}

void
mc_ogcapi_link_template(mc_json_writer *json, const char *rel, const char *type, const char *title, const char *href)
{
    mc_json_open_object(json, NULL);
    write_link_members(json, rel, type, title, href);
    mc_json_boolean(json, "templated", true);
    mc_json_close(json);
}

void
mc_ogcapi_open_links(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    bool html = ask->form == MC_OGCAPI_HTML;
    const char *path = ask->call->full_path;
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        size--;
    const char *encoded = mc_url_encode(apr_pstrmemdup(ask->pool, path, size), "/@:;,=()!*'$", true, false, ask->pool);
    const char *own = apr_pstrcat(ask->pool, ask->call->base, encoded, "?", mc_ogcapi_selection(ask), NULL);
    mc_json_open_array(json, "links");
    mc_ogcapi_link(json, html ? "alternate" : "self", ask->json_mime, "This document as JSON",
                   apr_pstrcat(ask->pool, own, "f=json", NULL));
    mc_ogcapi_link(json, html ? "self" : "alternate", "text/html", "This document as a page",
                   apr_pstrcat(ask->pool, own, "f=html", NULL));
}

mc_error *
mc_ogcapi_respond(mc_ogcapi_ask *ask, mc_json_writer *json)
{
    mc_document *document = &ask->request->u.document;
    mc_json_space(json, "\n");
    ask->request->kind = MC_REQUEST_DOCUMENT;
    MC_TRY(mc_json_finish(&document->text, json));
    document->mime = ask->json_mime;
    if (ask->form == MC_OGCAPI_HTML)
        MC_TRY(mc_ogcapi_page(ask, document->text));
    mc_ogcapi_finish(ask);
    return MC_OK;
}

void
mc_ogcapi_finish(mc_ogcapi_ask *ask)
{
    mc_document *document = &ask->request->u.document;
    document->vary = ask->negotiated ? "Accept" : NULL;
    document->policy = ask->form == MC_OGCAPI_HTML ? MC_PAGE_POLICY : NULL;
}
