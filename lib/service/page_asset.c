/* The files of the pages that are compiled in, and pages made from frames. */
#include "service/page_asset.h"

#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

const mc_page_asset *
mc_page_asset_find(const char *name)
{
    for (const mc_page_asset *asset = mc_page_assets; asset->name != NULL; asset++)
        if (strcmp(asset->name, name) == 0)
            return asset;
    return NULL;
}

void
mc_page_asset_answer(mc_document *document, const mc_page_asset *asset, apr_pool_t *pool)
{
    document->mime = asset->mime;
    document->text = mc_buf_attach(mc_buf_copy(asset->bytes, asset->size), pool);
}

/* The text of the field that a brace begins, and how many bytes name it; NULL where the brace is only a brace. */
static const char *
find_field(size_t *size, const char *brace, const char *const *fields)
{
    for (size_t i = 0; fields[i] != NULL; i += 2) {
        *size = strlen(fields[i]);
        if (strncmp(brace + 1, fields[i], *size) == 0 && brace[1 + *size] == '}')
            return fields[i + 1];
    }
    return NULL;
}

mc_buf *
mc_page_fill(const mc_page_asset *asset, const char *const *fields, apr_pool_t *pool)
{
    const char *at = apr_pstrmemdup(pool, (const char *)asset->bytes, asset->size), *brace;
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    for (const char *from = at; (brace = strchr(from, '{')) != NULL; from = brace + 1) {
        size_t size;
        const char *text = find_field(&size, brace, fields);
        if (text == NULL)
            continue;
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, at, (apr_size_t)(brace - at));
        APR_ARRAY_PUSH(parts, const char *) = mc_xml_escape(text, pool);
        at = brace + size + 2;
    }
    APR_ARRAY_PUSH(parts, const char *) = at;
    const char *html = apr_array_pstrcat(pool, parts, 0);
    return mc_buf_attach(mc_buf_copy(html, strlen(html)), pool);
}

void
mc_request_page(mc_request *request, mc_buf *html)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document = (mc_document){ .text = html, .mime = "text/html; charset=utf-8", .policy = MC_PAGE_POLICY };
}
