/*
 * `mapcache trace`: what the trace lines of an error log tell.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "trace_report.h"

static const char usage[] =
    "usage: mapcache trace [--summary] [--html FILE] [LOG ...]\n"
    "\n"
    "Reads trace lines from the logs, or from standard input, and prints the calls of each request\n"
    "and thread as a tree, with microseconds. LogLevel mapcache:debug makes a server write them.\n"
    "\n"
    "  --summary    instead: count, total, self time, median and 95th percentile of each function\n"
    "  --html FILE  instead: a page with a flame chart of every request\n";

typedef struct trace_options {
    bool summary;
    const char *html;
    const char *const *logs;
    int log_count;
} trace_options;

static bool
parse_options(trace_options *options, int argc, const char *const *argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
        if (strcmp(argv[i], "--summary") == 0)
            options->summary = true;
        else if (strcmp(argv[i], "--html") == 0 && i + 1 < argc)
            options->html = argv[++i];
        else
            return false;
    }
    options->logs = argv + i;
    options->log_count = argc - i;
    return !(options->summary && options->html != NULL);
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
    if (options->log_count == 0)
        good = read_log(log, "-");
    for (int i = 0; i < options->log_count; i++)
        good = read_log(log, options->logs[i]) && good;
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
    mc_trace_page_begin(&page, out);
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
    mc_trace_summary_print(summary, log, stdout);
    return good;
}

int
mc_command_trace(int argc, const char *const *argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    trace_options options = { 0 };
    if (!parse_options(&options, argc, argv)) {
        fputs(usage, stderr);
        return 1;
    }
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    bool good;
    if (options.html != NULL)
        good = write_trace_html_page(&options, pool);
    else if (options.summary)
        good = write_summary(&options, pool);
    else
        good = read_logs(mc_trace_log_create(mc_trace_print_tree, stdout, pool), &options);
    apr_pool_destroy(pool);
    return good && fflush(stdout) == 0 ? 0 : 1;
}
