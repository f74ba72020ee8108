/* One trace line (docs/reference/tracing.md 1.1 and 1.3), taken apart. */
#ifndef MC_CLI_TRACE_LINE_H
#define MC_CLI_TRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mc_slice {
    const char *text;
    size_t size;
} mc_slice;

typedef struct mc_trace_line {
    int64_t time; /* microseconds since 1970 in the log's own clock */
    uint64_t pid, tid;
    bool begin;
    mc_slice name;
    mc_slice note;    /* size 0: none */
    mc_slice request; /* of a line that is no event and names the request: its fields, as logfmt; size 0: an event */
} mc_trace_line;

/* False for everything that is no trace line. The slices point into `text`. */
bool mc_trace_line_parse(mc_trace_line *line, const char *text, size_t size);

#endif
