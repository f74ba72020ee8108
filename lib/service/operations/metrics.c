/* <service type="metrics">: the counters and histograms of all processes of the server, in OpenMetrics 1.0 text, or as
 * Prometheus' older text format (0.0.4) where a client does not ask for the new one. */
#include "base/metrics.h"
#include "base/budget.h"

#include <string.h>

#include "cache/write_behind.h"
#include "service/operations/operations.h"

enum { TEXT_MAX = 1 << 20 };

static mc_error *
metrics_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_operations_check(call, pool));
    const char *accept = call->http->headers == NULL ? NULL : apr_table_get(call->http->headers, "Accept");
    bool open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    mc_buf *text = mc_buf_attach(mc_buf_create(0, TEXT_MAX), pool);
    MC_TRY(mc_metrics_write_gauge(text, "memory_budget_bytes",
                                  "Bytes that large allocations of the answering process may take; 0: any.",
                                  mc_budget_limit(), pool));
    MC_TRY(mc_metrics_write_gauge(text, "memory_used_bytes",
                                  "Bytes that large allocations of the answering process take.", mc_budget_used(),
                                  pool));
    MC_TRY(mc_metrics_write_gauge(text, "behind_waiting_bytes",
                                  "Bytes of tiles of the answering process that wait to be stored behind the answer.",
                                  ctx->process == NULL ? 0 : mc_write_behinds_waiting(ctx->process->write_behinds),
                                  pool));
    MC_TRY(mc_metrics_write(ctx->process == NULL ? NULL : ctx->process->metrics,
                            open ? MC_METRICS_OPEN : MC_METRICS_PLAIN, text, pool));
    mc_operations_respond(request, text,
                          open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                               : "text/plain; version=0.0.4; charset=utf-8");
    request->u.document.vary = "Accept";
    return MC_OK;
}

MC_OPERATORS_OPERATION(metrics, "text/plain", "As Prometheus reads it; as OpenMetrics where `Accept` asks for that.");

const mc_service_ops mc_service_metrics = {
    MC_OPERATORS_SERVICE(metrics,
                         "Counters and histograms of the server, for Prometheus and what reads the same format."),
};
