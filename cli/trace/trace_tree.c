/*
 * Call trees as the published parser prints them (docs/reference/tracing.md 2.2): entries look like Python dictionaries
 * of one entry, because scripts that read its output rely on that.
 */
#include "cli/common/json_line.h"
#include "trace_report.h"

static void
print_event(FILE *out, const mc_trace_log *log, const mc_trace_span *span, const char *label)
{
    fprintf(out, "%*s{'%s:%s': ", 2 * span->depth + 1, "", label, mc_trace_log_name(log, span->name));
    if (span->closed)
        fprintf(out, "%lld}\n", (long long)(span->end - span->begin));
    else
        fputs("None}\n", out);
}

/* Prints the END of `open` and of those around it, up to the parent of what comes next. */
static void
print_ends(FILE *out, const mc_trace_log *log, const mc_trace_group *group, int open, int next_parent)
{
    for (; open != next_parent; open = group->spans[open].parent)
        if (group->spans[open].closed)
            print_event(out, log, &group->spans[open], "END..");
}

void
mc_trace_print_tree(void *baton, const mc_trace_log *log, const mc_trace_group *group)
{
    FILE *out = baton;
    int open = -1;
    fprintf(out, "Thread #%s:%d:\n", group->thread, group->number);
    for (int i = 0; i < group->count; i++) {
        print_ends(out, log, group, open, group->spans[i].parent);
        print_event(out, log, &group->spans[i], group->spans[i].closed ? "BEGIN" : "begin");
        open = i;
    }
    print_ends(out, log, group, open, -1);
    fputc('\n', out);
}

void
mc_trace_print_json(void *unused, const mc_trace_log *log, const mc_trace_group *group)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    (void)unused;
    mc_json_string(line.json, "thread", group->thread);
    mc_json_integer(line.json, "number", group->number);
    if (group->request != NULL)
        mc_json_string(line.json, "request", group->request);
    mc_json_open_array(line.json, "calls");
    for (int i = 0; i < group->count; i++) {
        const mc_trace_span *span = &group->spans[i];
        mc_json_open_object(line.json, NULL);
        mc_json_string(line.json, "name", mc_trace_log_name(log, span->name));
        mc_json_integer(line.json, "parent", span->parent);
        mc_json_integer(line.json, "begin", span->begin);
        if (span->closed)
            mc_json_integer(line.json, "microseconds", span->end - span->begin);
        else
            mc_json_null(line.json, "microseconds");
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}
