/*
 * Reads trace lines out of an error log, a piece at a time, and gives them back as groups: the spans of one request or
 * one thread body. The log is input from outside: what does not look like a trace line is passed over, and memory is
 * bounded whatever the log holds.
 */
#ifndef MC_CLI_TRACE_LOG_H
#define MC_CLI_TRACE_LOG_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mc_trace_log mc_trace_log;

/* Times are microseconds since 1970 in the log's own clock; notes and names are numbers for mc_trace_log_name. */
typedef struct mc_trace_span {
    int64_t begin;
    int64_t end;      /* of an unclosed span: the last time that its group has seen */
    int64_t children; /* microseconds inside the spans one level below */
    int parent;       /* index in the group, -1 for the root */
    int depth;        /* 1 for the root */
    int name;
    int note; /* -1: none */
    bool closed;
} mc_trace_span;

/* The spans stand in the order of their BEGIN lines; a span's descendants follow it directly. */
typedef struct mc_trace_group {
    const char *thread; /* "pid:tid" */
    int number;         /* of the group in its thread, from 0 */
    const mc_trace_span *spans;
    int count;
    const char *request; /* fields that name the request, as logfmt; NULL: the log does not tell */
} mc_trace_group;

/* Called at the END of a group's root, so that the groups of a request's threads come before the request's own. The
 * group lives until the call returns. */
typedef void mc_trace_group_sink(void *baton, const mc_trace_log *log, const mc_trace_group *group);

/* Destroyed with the pool. */
mc_trace_log *mc_trace_log_create(mc_trace_group_sink *sink, void *baton, apr_pool_t *pool);

/* The next bytes of the log, cut anywhere. */
void mc_trace_log_feed(mc_trace_log *log, const char *data, size_t size);

/* The end of the log: gives out what is still open, as unclosed spans. */
void mc_trace_log_finish(mc_trace_log *log);

/* Names hold at most 120 printable characters. */
const char *mc_trace_log_name(const mc_trace_log *log, int name);
int mc_trace_log_names(const mc_trace_log *log);

/* Events that belong to no group: an END that nothing has opened, or anything outside of a request and its threads. */
uint64_t mc_trace_log_strays(const mc_trace_log *log);

/* Microseconds of a span less those of its children. */
int64_t mc_trace_span_self(const mc_trace_span *span);

#endif
