/* See telemetry.h: a request as it begins, and as it ends. */
#include <apr_strings.h>
#include <string.h>

#include "base/metrics.h"
#include "telemetry/exporter.h"
#include "telemetry/line_file.h"
#include "telemetry/lines.h"
#include "telemetry/telemetry_counters.h"

/* Whether the request is to be traced: whoever asked says so, or chance does. */
static bool
choose_trace(const mc_telemetry *telemetry, mc_trace_context *context, const apr_table_t *headers, uint64_t random)
{
    bool sampled;
    const char *parent = telemetry->trusts && headers != NULL ? apr_table_get(headers, "traceparent") : NULL;
    if (parent == NULL || !mc_traceparent_parse(context, &sampled, parent))
        return random < telemetry->threshold;
    const char *vendors = apr_table_get(headers, "tracestate");
    if (vendors != NULL && mc_tracestate_is_valid(vendors))
        context->vendors = vendors;
    return sampled;
}

unsigned
mc_telemetry_begin(const mc_telemetry *telemetry, mc_account *account, const apr_table_t *headers,
                   const mc_process *process)
{
    mc_trace_context *context = &account->context;
    if (telemetry->target != NULL) {
        const uint64_t random = mc_trace_random();
        context->sampled = choose_trace(telemetry, context, headers, random) && process->exporter != NULL &&
                           mc_exporter_lets_in(process->exporter, telemetry->most_traces);
        mc_trace_context_begin(context, random);
    }
    if (context->sampled)
        mc_count(process->metrics, MC_COUNT_traces_sampled_total, 1);
    return context->sampled || telemetry->slow != NULL ? MC_TRACE_SPANS : 0;
}

bool
mc_telemetry_wants(const mc_telemetry *telemetry, const mc_account *account)
{
    return telemetry != NULL && (account->context.sampled || telemetry->slow != NULL || telemetry->access != NULL);
}

static void
tell_slow_request(const mc_telemetry *telemetry, const mc_account *account, const mc_telemetry_answer *answer,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    mc_slow_plan *plan = apr_palloc(pool, sizeof(*plan));
    mc_slow_plan_make(plan, ctx->trace);
    const char *line = mc_line_format("slow", telemetry->json, account, answer, plan, pool);
    mc_line_file_write(telemetry->slow, line, strlen(line), ctx);
}

void
mc_telemetry_end(const mc_telemetry *telemetry, const mc_account *account, const mc_telemetry_answer *answer,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    if (account->context.sampled) {
        mc_otlp_bytes spans = { 0 };
        mc_otlp_append_spans(&spans, account, answer, ctx->trace, pool);
        mc_exporter_push(ctx->process->exporter, telemetry->target, spans);
    }
    if (telemetry->slow != NULL && answer->duration >= telemetry->slow_after)
        tell_slow_request(telemetry, account, answer, ctx, pool);
    if (telemetry->access != NULL && (telemetry->tells_hits || !answer->hit)) {
        const char *line = mc_line_format("access", telemetry->json, account, answer, NULL, pool);
        mc_line_file_write(telemetry->access, line, strlen(line), ctx);
    }
}
