/*
 * Traces in the binary form of OTLP: the messages of opentelemetry/proto/trace/v1/trace.proto and
 * opentelemetry/proto/collector/trace/v1/trace_service.proto, as they are sent to /v1/traces
 * (https://opentelemetry.io/docs/specs/otlp/, Binary Protobuf Encoding).
 */
#ifndef MC_TELEMETRY_OTLP_H
#define MC_TELEMETRY_OTLP_H

#include "telemetry/telemetry.h"

/* Bytes that grow; malloc'ed, so that they may change threads. */
typedef struct mc_otlp_bytes {
    uint8_t *data;
    size_t size, room;
    bool lost; /* there was no memory, or more than MC_OTLP_BYTES_MAX: what is there is of no use */
} mc_otlp_bytes;

enum { MC_OTLP_BYTES_MAX = 8 << 20 };

/* Appends the spans of a request as fields of a ScopeSpans. The trace keeps spans, and has ended them. */
void mc_otlp_append_spans(mc_otlp_bytes *out, const mc_account *account, const mc_telemetry_answer *answer,
                          mc_trace *trace, apr_pool_t *pool);

/* Begins an ExportTraceServiceRequest of the service of that name: spans may be appended after that, by
 * mc_otlp_append_spans or as bytes that were made by it; then the request is ended. */
typedef struct mc_otlp_request {
    mc_otlp_bytes bytes;
    size_t resource, scope; /* where the lengths of the open messages stand */
} mc_otlp_request;

void mc_otlp_request_begin(mc_otlp_request *request, const char *service_name);
void mc_otlp_request_append(mc_otlp_request *request, const void *spans, size_t size);
void mc_otlp_request_end(mc_otlp_request *request);

#endif
