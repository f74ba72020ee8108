/* See operations.h; and <service type="health">: whether this process answers, and what it cannot answer. */
#include "service/operations/operations.h"

#include <apr_strings.h>
#include <string.h>

#include "text/json_writer.h"

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
mc_operations_respond_json(mc_request *request, mc_json_writer *json)
{
    mc_buf *text;
    mc_json_space(json, "\n");
    MC_TRY(mc_json_finish(&text, json));
    mc_operations_respond(request, text, "application/json");
    return MC_OK;
}

void
mc_operations_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    (void)status, (void)call;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "error", error->message);
    if (error->locator != NULL)
        mc_json_string(json, "field", error->locator);
    mc_json_close(json);
    mc_json_space(json, "\n");
    body->mime = "application/json";
    if (mc_json_finish(&body->text, json) != MC_OK)
        *body = (mc_document){ 0 };
}

/* The layers that answer 503 until the configuration or the build is another one. */
static void
write_unavailable_layers(mc_json_writer *json, const mc_config *config)
{
    mc_json_open_array(json, "unavailable_layers");
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (tileset->not_built != NULL)
            mc_json_string(json, NULL, tileset->name);
    }
    mc_json_close(json);
}

static mc_error *
health_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    MC_TRY(mc_operations_check(call, pool));
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "status", "ok");
    mc_json_string(json, "version", MC_VERSION);
    write_unavailable_layers(json, call->config);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

MC_OPERATORS_OPERATION(health, "application/json", "Also the layers that cannot be answered.");

const mc_service_ops mc_service_health = {
    MC_OPERATORS_SERVICE(health, "Whether the server answers, for monitors and load balancers."),
};
