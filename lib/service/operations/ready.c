/* <service type="ready">: whether a load balancer may send requests to this process. */
#include <stdatomic.h>

#include "service/operations/operations.h"

/* A process that has been told to end answers 503, so that new requests go to others while it finishes what it has. One
 * whose newest configuration cannot be loaded goes on with the one before, and says so. */
static mc_error *
ready_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_operations_check(call, pool));
    const mc_process *process = ctx->process;
    if (process != NULL && atomic_load(&process->draining))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "this process is ending");
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "status", "ready");
    mc_json_boolean(json, "reload_failed", process != NULL && atomic_load(&process->reload_failed));
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

MC_OPERATORS_OPERATION(ready, "application/json", "503 once the process has been told to end.");

const mc_service_ops mc_service_ready = {
    MC_OPERATORS_SERVICE(ready, "Whether a load balancer may send requests to this process."),
};
