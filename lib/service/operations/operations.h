/* What the services for operators (metrics, health, readiness, status) share. */
#ifndef MC_SERVICE_OPERATIONS_OPERATIONS_H
#define MC_SERVICE_OPERATIONS_OPERATIONS_H

#include "service/param.h"
#include "service/service_base.h"
#include "text/json_writer.h"

/* from_config: without <cors> no other site's pages may read what is answered. */
mc_service *mc_operations_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build);

/* The members of mc_service_ops of a service for operators, whose parse stands in its file with that prefix. */
#define MC_OPERATORS_SERVICE(type_, help_)                                                                             \
    MC_KIND(#type_, mc_service_plain_keys, mc_operations_from_config, help_),                                          \
        .prefix = #type_, .parse = type_##_parse, .unlisted = true, .operations = type_##_operations

/* Its only operation, for the references. `mime_`: of the answer, which `help_` tells. */
#define MC_OPERATORS_OPERATION(type_, mime_, help_)                                                                    \
    static const mc_operation type_##_operations[] = {                                                                 \
        { "the request", "/" #type_, { NULL }, { { "/" #type_, 200, mime_, help_, NULL } } },                          \
        { 0 },                                                                                                         \
    }

/* MC_ERR_NOT_FOUND for what stands behind the service's own path. */
mc_error *mc_operations_check(const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* Makes `request` an answer of this moment: nobody keeps it. `text` lives in a pool of the request. */
void mc_operations_respond(mc_request *request, mc_buf *text, const char *mime);

/* The same with a document in JSON, whose last line is ended here. */
mc_error *mc_operations_respond_json(mc_request *request, mc_json_writer *json) MC_CHECKED;

/* report: an error as a JSON object, {"error": message, "field": parameter}. */
void mc_operations_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool);

#endif
