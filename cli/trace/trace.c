/*
 * `mapcache trace`: what the trace lines of an error log tell.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "trace_report.h"

typedef struct trace_options {
    bool summary;
    bool json;
    const char *html;
    const apr_array_header_t *logs; /* of const char * */
} trace_options;

static const mc_cli_option trace_rows[] = {
    MC_OPTION_FLAG("summary", 0, offsetof(trace_options, summary),
                   "instead: count, total, self time, median and 95th percentile of each function"),
    MC_OPTION_TEXT("html", 0, "FILE", offsetof(trace_options, html),
                   "instead: a page with a flame chart of every request"),
    MC_OPTION_JSON(offsetof(trace_options, json),
                   "an object for each request and thread, with its calls; with --summary for each function"),
    MC_OPTION_END,
};

const mc_cli_option_table mc_trace_option_table = { trace_rows, sizeof(trace_options), NULL };

const char *
mc_check_trace_options(mc_cli_call *call)
{
    trace_options *options = call->options;
    options->logs = call->arguments;
    if (options->json && options->html != NULL)
        return "one of --json and --html can be made at a time";
    return options->summary && options->html != NULL ? "one of --summary and --html can be made at a time" : NULL;
}

static bool
read_log(mc_trace_log *log, const char *name)
{
    FILE *in = strcmp(name, "-") == 0 ? stdin : fopen(name, "r");
    if (in == NULL) {
        fprintf(stderr, "mapcache trace: cannot open %s: %s\n", name, strerror(errno));
        return false;
    }
    char piece[65536];
    for (size_t size; (size = fread(piece, 1, sizeof(piece), in)) > 0;)
        mc_trace_log_feed(log, piece, size);
    bool good = !ferror(in);
    if (!good)
        fprintf(stderr, "mapcache trace: cannot read %s: %s\n", name, strerror(errno));
    if (in != stdin)
        fclose(in);
    return good;
}

static bool
read_logs(mc_trace_log *log, const trace_options *options)
{
    bool good = true;
    if (options->logs->nelts == 0)
        good = read_log(log, "-");
    for (int i = 0; i < options->logs->nelts; i++)
        good = read_log(log, APR_ARRAY_IDX(options->logs, i, const char *)) && good;
    mc_trace_log_finish(log);
    if (mc_trace_log_strays(log) > 0)
        fprintf(stderr, "mapcache trace: left out %llu events that belong to no request\n",
                (unsigned long long)mc_trace_log_strays(log));
    return good;
}

static bool
write_trace_html_page(const trace_options *options, apr_pool_t *pool)
{
    FILE *out = fopen(options->html, "w");
    if (out == NULL) {
        fprintf(stderr, "mapcache trace: cannot write %s: %s\n", options->html, strerror(errno));
        return false;
    }
    mc_trace_page page;
    mc_trace_log *log = mc_trace_log_create(mc_trace_page_add, &page, pool);
    mc_trace_page_begin(&page, out, pool);
    bool good = read_logs(log, options);
    mc_trace_page_end(&page, log);
    if (page.omitted > 0)
        fprintf(stderr, "mapcache trace: %d requests and threads did not fit into the page\n", page.omitted);
    bool written = !ferror(out);
    if (fclose(out) != 0 || !written) {
        fprintf(stderr, "mapcache trace: cannot write %s\n", options->html);
        return false;
    }
    return good;
}

static bool
write_summary(const trace_options *options, apr_pool_t *pool)
{
    mc_trace_summary *summary = mc_trace_summary_create(pool);
    mc_trace_log *log = mc_trace_log_create(mc_trace_summary_add, summary, pool);
    bool good = read_logs(log, options);
    if (options->json)
        mc_trace_summary_json(summary, log);
    else
        mc_trace_summary_print(summary, log, stdout);
    return good;
}

int
mc_command_trace(mc_cli_call *call)
{
    const trace_options *options = call->options;
    bool good;
    if (options->html != NULL)
        good = write_trace_html_page(options, call->pool);
    else if (options->summary)
        good = write_summary(options, call->pool);
    else
        good = read_logs(
            mc_trace_log_create(options->json ? mc_trace_print_json : mc_trace_print_tree, stdout, call->pool),
            options);
    return good && fflush(stdout) == 0 ? 0 : 1;
}
