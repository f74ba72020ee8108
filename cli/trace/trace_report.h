/* What `mapcache trace` makes of the groups of a log. Each report takes one group after the other and keeps little. */
#ifndef MC_CLI_TRACE_REPORT_H
#define MC_CLI_TRACE_REPORT_H

#include <stdio.h>

#include "text/json_writer.h"
#include "trace_log.h"

/* The call trees in the published parser's form. The baton is a FILE *. */
void mc_trace_print_tree(void *out, const mc_trace_log *log, const mc_trace_group *group);

/* An object of JSON on a line for each group. */
void mc_trace_print_json(void *unused, const mc_trace_log *log, const mc_trace_group *group);

/* Sums by function. */
typedef struct mc_trace_summary mc_trace_summary;
mc_trace_summary *mc_trace_summary_create(apr_pool_t *pool);
void mc_trace_summary_add(void *summary, const mc_trace_log *log, const mc_trace_group *group);
void mc_trace_summary_json(const mc_trace_summary *summary, const mc_trace_log *log);
void mc_trace_summary_print(const mc_trace_summary *summary, const mc_trace_log *log, FILE *out);

/* A page with a flame chart, written as the groups come. */
typedef struct mc_trace_page {
    FILE *out;
    mc_json_writer *json; /* the page's data */
    int groups;
    int64_t spans;
    int omitted; /* groups that came after the page was full */
} mc_trace_page;
void mc_trace_page_begin(mc_trace_page *page, FILE *out, apr_pool_t *pool);
void mc_trace_page_add(void *page, const mc_trace_log *log, const mc_trace_group *group);
void mc_trace_page_end(mc_trace_page *page, const mc_trace_log *log);

#endif
