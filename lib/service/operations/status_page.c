/* The status page: a frame, and the files that it loads. What it shows, its script asks for. */
#include <apr_strings.h>
#include <string.h>

#include "service/operations/status.h"
#include "service/page_asset.h"

mc_buf *
mc_status_page(const mc_call *call, apr_pool_t *pool)
{
    const char *title = mc_meta(call->config->metadata, "title");
    const char *const fields[] = {
        "title", title != NULL && *title != '\0' ? title : "mapcache",
        "demo",  mc_call_service(call, "demo") != NULL ? "../demo/?list" : "",
        "jobs",  mc_call_service(call, "jobs") != NULL ? "../jobs/" : "",
        NULL,
    };
    return mc_page_fill(mc_page_asset_find("status.html"), fields, pool);
}

mc_error *
mc_status_static(mc_request *request, const char *name, apr_pool_t *pool)
{
    static const char *const files[] = { "status.js", "status_chart.js", "status_flame.js",
                                         "dom.js",    "status.css",      "base.css" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(name, files[i]) == 0) {
            request->kind = MC_REQUEST_DOCUMENT;
            mc_page_asset_answer(&request->u.document, mc_page_asset_find(name), pool);
            return MC_OK;
        }
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "the status page has no such file");
}
