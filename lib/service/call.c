/* What a request says, and the document that answers it. */
#include <string.h>

#include "service/service_base.h"

const mc_service *
mc_call_service(const mc_call *call, const char *type)
{
    for (int i = 0; i < call->config->services->nelts; i++) {
        const mc_service *service = APR_ARRAY_IDX(call->config->services, i, mc_service *);
        if (strcmp(service->ops->type, type) == 0)
            return service;
    }
    return NULL;
}

const char *
mc_param(const mc_call *call, const char *name)
{
    return apr_table_get(call->params, name);
}

const char *
mc_call_header(const mc_call *call, const char *name)
{
    return call->http->headers == NULL ? NULL : apr_table_get(call->http->headers, name);
}

mc_error *
mc_request_document(mc_request *request, mc_xml *xml, const char *mime)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = mime;
    return mc_xml_finish(&request->u.document.text, xml);
}
