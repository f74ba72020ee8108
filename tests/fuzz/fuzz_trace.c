/* The log reader of `mapcache trace` against any bytes. The input comes in two pieces, cut at its first byte's place,
 * so that lines across reads are met, too. */
#include <stdlib.h>

#include "cli/trace/trace_line.c"
#include "cli/trace/trace_log.c"

#include "fuzz_support.h"

/* What every report relies on: spans nest, children follow their parents, times do not run backwards. */
static void
check(void *baton, const mc_trace_log *log, const mc_trace_group *group)
{
    (void)baton;
    for (int i = 0; i < group->count; i++) {
        const mc_trace_span *span = &group->spans[i];
        MC_ASSERT(span->parent < i && (span->parent >= 0) == (i > 0));
        MC_ASSERT(i == 0 ? span->depth == 1 : span->depth == group->spans[span->parent].depth + 1);
        MC_ASSERT(span->end >= span->begin && mc_trace_span_self(span) >= 0);
        MC_ASSERT(mc_trace_log_name(log, span->name) != NULL);
        MC_ASSERT(span->note < mc_trace_log_names(log));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_trace_log *log = mc_trace_log_create(check, NULL, pool);
    size_t first = size > 0 ? data[0] % size : 0;
    mc_trace_log_feed(log, (const char *)data, first);
    mc_trace_log_feed(log, (const char *)data + first, size - first);
    mc_trace_log_finish(log);
    apr_pool_destroy(pool);
    return 0;
}
