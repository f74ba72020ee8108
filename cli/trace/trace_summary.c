/*
 * Sums by function: how often, how long in all, how long without what it calls, and the percentiles. Memory does not
 * grow with the log: durations are counted in a histogram whose cells are less than 1 % wide.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/common/json_line.h"
#include "trace_report.h"

/* Cells: one for each microsecond below 128, then 64 for each doubling. */
enum { EXACT = 128, PER_DOUBLING = 64, DOUBLINGS = 33, CELLS = EXACT + PER_DOUBLING * DOUBLINGS, FUNCTIONS_MAX = 2048 };

typedef struct function {
    int name;
    uint64_t count;
    uint64_t unclosed;
    int64_t total, self, longest;
    uint32_t cells[CELLS];
} function;

struct mc_trace_summary {
    apr_pool_t *pool;
    function *functions[FUNCTIONS_MAX]; /* by number of the name */
};

mc_trace_summary *
mc_trace_summary_create(apr_pool_t *pool)
{
    mc_trace_summary *summary = apr_pcalloc(pool, sizeof(*summary));
    summary->pool = pool;
    return summary;
}

static int
find_duration_cell(int64_t duration)
{
    if (duration < EXACT)
        return (int)duration;
    int doubling = 63 - __builtin_clzll((unsigned long long)duration) - 7;
    if (doubling >= DOUBLINGS)
        return CELLS - 1;
    return EXACT + doubling * PER_DOUBLING + (int)((duration >> (doubling + 1)) - PER_DOUBLING);
}

/* The middle of a cell. */
static int64_t
cell_value(int cell)
{
    if (cell < EXACT)
        return cell;
    int doubling = (cell - EXACT) / PER_DOUBLING;
    int64_t low = (int64_t)((cell - EXACT) % PER_DOUBLING + PER_DOUBLING) << (doubling + 1);
    return low + ((int64_t)1 << doubling);
}

void
mc_trace_summary_add(void *baton, const mc_trace_log *log, const mc_trace_group *group)
{
    mc_trace_summary *summary = baton;
    (void)log;
    for (int i = 0; i < group->count; i++) {
        const mc_trace_span *span = &group->spans[i];
        function **slot = &summary->functions[span->name];
        if (*slot == NULL) {
            *slot = apr_pcalloc(summary->pool, sizeof(**slot));
            (*slot)->name = span->name;
        }
        if (!span->closed) {
            (*slot)->unclosed++;
            continue;
        }
        (*slot)->count++;
        (*slot)->total += span->end - span->begin;
        (*slot)->self += mc_trace_span_self(span);
        if (span->end - span->begin > (*slot)->longest)
            (*slot)->longest = span->end - span->begin;
        (*slot)->cells[find_duration_cell(span->end - span->begin)]++;
    }
}

/* The smallest duration that at least `share` of all do not exceed. */
static int64_t
compute_duration_percentile(const function *function, double share)
{
    uint64_t seen = 0;
    for (int cell = 0; cell < CELLS; cell++) {
        seen += function->cells[cell];
        if (seen > 0 && (double)seen >= share * (double)function->count)
            return cell_value(cell) < function->longest ? cell_value(cell) : function->longest;
    }
    return 0;
}

static int
by_total(const void *a, const void *b)
{
    const function *first = *(function *const *)a, *second = *(function *const *)b;
    return first->total < second->total ? 1 : first->total > second->total ? -1 : first->name - second->name;
}

static void
print_trace_duration(FILE *out, int64_t microseconds, bool milliseconds)
{
    if (milliseconds)
        fprintf(out, " %13.3f", (double)microseconds / 1000);
    else
        fprintf(out, " %13lld", (long long)microseconds);
}

void
mc_trace_summary_print(const mc_trace_summary *summary, const mc_trace_log *log, FILE *out)
{
    const function *rows[FUNCTIONS_MAX];
    int count = 0, width = 8;
    bool milliseconds = false;
    uint64_t unclosed = 0;
    for (int i = 0; i < FUNCTIONS_MAX; i++) {
        if (summary->functions[i] == NULL)
            continue;
        rows[count++] = summary->functions[i];
        int length = (int)strlen(mc_trace_log_name(log, i));
        width = length > width ? length : width;
        milliseconds = milliseconds || summary->functions[i]->total >= 1000000;
        unclosed += summary->functions[i]->unclosed;
    }
    qsort(rows, (size_t)count, sizeof(rows[0]), by_total);
    const char *unit = milliseconds ? "ms" : "us";
    fprintf(out, "%-*s %9s %10s %s %10s %s %10s %s %10s %s\n", width, "function", "count", "total", unit, "self", unit,
            "p50", unit, "p95", unit);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%-*s %9llu", width, mc_trace_log_name(log, rows[i]->name), (unsigned long long)rows[i]->count);
        print_trace_duration(out, rows[i]->total, milliseconds);
        print_trace_duration(out, rows[i]->self, milliseconds);
        print_trace_duration(out, compute_duration_percentile(rows[i], 0.50), milliseconds);
        print_trace_duration(out, compute_duration_percentile(rows[i], 0.95), milliseconds);
        fputc('\n', out);
    }
    if (unclosed > 0)
        fprintf(out, "\n%llu events have no END; they are not in these figures.\n", (unsigned long long)unclosed);
}

void
mc_trace_summary_json(const mc_trace_summary *summary, const mc_trace_log *log)
{
    for (int i = 0; i < FUNCTIONS_MAX; i++) {
        const function *row = summary->functions[i];
        if (row == NULL)
            continue;
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "function", mc_trace_log_name(log, i));
        mc_json_integer(line.json, "count", (int64_t)row->count);
        mc_json_integer(line.json, "total", row->total);
        mc_json_integer(line.json, "self", row->self);
        mc_json_integer(line.json, "p50", compute_duration_percentile(row, 0.50));
        mc_json_integer(line.json, "p95", compute_duration_percentile(row, 0.95));
        mc_json_integer(line.json, "unclosed", (int64_t)row->unclosed);
        mc_cli_json_line_end(&line);
    }
}
