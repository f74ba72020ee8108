/* See operations.h; and <service type="health">: whether this process answers, and what it cannot answer. */
#include "service/operations/operations.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

mc_service *
mc_operations_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_service *service = mc_service_plain(ops, node, build);
    if (service != NULL && service->cors == NULL)
        service->cors = "off";
    return service;
}

mc_error *
mc_operations_check(const mc_call *call, apr_pool_t *pool)
{
    if (strcmp(call->full_path, call->service->ops->prefix) == 0)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "no service answers to the path \"%s\"", call->full_path);
}

void
mc_operations_respond(mc_request *request, mc_buf *text, const char *mime)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document = (mc_document){ .text = text, .mime = mime, .momentary = true };
}

mc_error *
mc_operations_respond_text(mc_request *request, const char *text, const char *mime, apr_pool_t *pool)
{
    mc_operations_respond(request, mc_buf_attach(mc_buf_copy(text, strlen(text)), pool), mime);
    return MC_OK;
}

static mc_service *
health_from_config(const mc_node *node, mc_build *build)
{
    return mc_operations_from_config(&mc_service_health, node, build);
}

/* The layers that answer 503 until the configuration or the build is another one. */
static const char *
unavailable_layers(const mc_config *config, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (tileset->not_built != NULL)
            APR_ARRAY_PUSH(parts, const char *) =
                apr_pstrcat(pool, parts->nelts == 0 ? "\"" : ",\"", mc_json_escape(tileset->name, pool), "\"", NULL);
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

static mc_error *
health_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    MC_TRY(mc_operations_check(call, pool));
    const char *text = apr_psprintf(pool, "{\"status\":\"ok\",\"version\":\"%s\",\"unavailable_layers\":[%s]}\n",
                                    MC_VERSION, unavailable_layers(call->config, pool));
    return mc_operations_respond_text(request, text, "application/json", pool);
}

const mc_service_ops mc_service_health = {
    "health",
    "health",
    mc_service_plain_keys,
    "Whether the server answers, for monitors and load balancers.",
    health_from_config,
    health_parse,
    NULL,
};
