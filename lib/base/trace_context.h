/*
 * Which trace a request belongs to: W3C Trace Context (https://www.w3.org/TR/trace-context/), the header "traceparent"
 * of those who ask and of those who are asked.
 */
#ifndef MC_BASE_TRACE_CONTEXT_H
#define MC_BASE_TRACE_CONTEXT_H

#include <apr_tables.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of "00-<32 digits>-<16 digits>-<2 digits>", with the end. */
enum { MC_TRACEPARENT_SIZE = 56, MC_TRACE_ID_SIZE = 33 };

typedef struct mc_trace_context {
    uint64_t trace[2]; /* the 16 bytes of the trace's id, as numbers of 8 bytes each, the first one first; 0, 0: none */
    uint64_t parent;   /* id of the span of whoever asked; 0: nobody told */
    uint64_t root;     /* id of the request's own span, never 0 once there is a trace */
    bool sampled;      /* the spans of the request are kept and exported */
    const char *vendors; /* value of "tracestate" that goes with `parent`, to be handed on; NULL: none */
} mc_trace_context;

/*
 * Reads the value of "traceparent" (2.2 of the standard; later versions by the rule of 2.2.4). *sampled: whether
 * whoever asked keeps its spans. False, and nothing is written, for every other text: the request then begins a trace.
 */
bool mc_traceparent_parse(mc_trace_context *context, bool *sampled, const char *text);

/* Whether the value of "tracestate" may be handed on: at most 512 printable characters (3.3.1.1, 3.3.1.5). */
bool mc_tracestate_is_valid(const char *text);

/* Gives a context without a trace one, and every context its root: of a number of mc_trace_random. */
void mc_trace_context_begin(mc_trace_context *context, uint64_t random);

/* The id of the span with this number (from 1, the root's) of the request. */
uint64_t mc_trace_context_span(const mc_trace_context *context, unsigned number);

/* The header for whoever is asked in the span of that number, or for the answer. */
void mc_traceparent_format(char text[MC_TRACEPARENT_SIZE], const mc_trace_context *context, unsigned number);

/* The trace's id as 32 digits; "" without a trace. */
void mc_trace_id_format(char text[MC_TRACE_ID_SIZE], const mc_trace_context *context);

/* A random number of this thread's generator, which a forked process seeds anew. Not for secrets. */
uint64_t mc_trace_random(void);

#endif
