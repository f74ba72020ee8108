/* `mapcache check FILE`: everything that is wrong with a configuration before it is served: why it is refused, then
 * other complaints, then notes, each in the order of the file. */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "mapcache/server.h"

/* Exit codes. */
enum { CLEAN = 0, REFUSED = 1, USABLE = 2 };

static const char *const severities[] = {
    [MC_NOTE] = "note", [MC_WARNING] = "warning", [MC_NOT_BUILT] = "not built", [MC_REFUSED] = "error"
};

typedef struct counts {
    int by_severity[MC_REFUSED + 1];
} counts;

static int
rank_severity(mc_severity severity)
{
    return severity == MC_REFUSED ? 0 : severity == MC_NOTE ? 2 : 1;
}

/* Where two stand at the same place, the one found first comes first: both are elements of one array. */
static int
compare_complaints(const void *a, const void *b)
{
    const mc_complaint *left = *(const mc_complaint *const *)a;
    const mc_complaint *right = *(const mc_complaint *const *)b;
    if (rank_severity(left->severity) != rank_severity(right->severity))
        return rank_severity(left->severity) - rank_severity(right->severity);
    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    if (left->column != right->column)
        return left->column < right->column ? -1 : 1;
    return (left > right) - (left < right);
}

static const mc_complaint **
sort_complaints(const mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    int count = diagnostics->complaints->nelts;
    const mc_complaint **list = apr_palloc(pool, sizeof(*list) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        list[i] = &APR_ARRAY_IDX(diagnostics->complaints, i, const mc_complaint);
    qsort(list, (size_t)count, sizeof(*list), compare_complaints);
    return list;
}

typedef struct cli_check_options {
    const char *file;
    bool json, connect, quiet;
    int processes; /* of the server that is to be */
} cli_check_options;

/* Connections to PostgreSQL: of all processes together, to each of the databases. */
static void
print_connections(const mc_config *config, int processes)
{
    int each = mc_config_connections(config, processes);
    printf("%s: databases: %d, connections to each: %d (%d process%s x %d)\n", config->file, config->databases->nelts,
           processes * each, processes, processes == 1 ? "" : "es", each);
}

static void
print_complaints_text(const char *file, const mc_complaint *const *list, int count, const counts *counts)
{
    for (int i = 0; i < count; i++) {
        const mc_complaint *one = list[i];
        if (one->file != NULL)
            printf("%s:%d:%d: ", one->file, one->line, one->column);
        printf("%s: %s\n", severities[one->severity], one->text);
    }
    printf("%s: errors: %d, not built: %d, warnings: %d\n", file, counts->by_severity[MC_REFUSED],
           counts->by_severity[MC_NOT_BUILT], counts->by_severity[MC_WARNING]);
}

/* --quiet: only why the file is refused. */
static void
print_refusals(const mc_complaint *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i]->severity == MC_REFUSED && list[i]->file != NULL)
            fprintf(stderr, "%s:%d:%d: error: %s\n", list[i]->file, list[i]->line, list[i]->column, list[i]->text);
        else if (list[i]->severity == MC_REFUSED)
            fprintf(stderr, "error: %s\n", list[i]->text);
}

static void
print_complaints_json(const char *file, const mc_complaint *const *list, int count, const counts *counts)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "file", file);
    mc_json_integer(line.json, "errors", counts->by_severity[MC_REFUSED]);
    mc_json_integer(line.json, "not_built", counts->by_severity[MC_NOT_BUILT]);
    mc_json_integer(line.json, "warnings", counts->by_severity[MC_WARNING]);
    mc_json_integer(line.json, "notes", counts->by_severity[MC_NOTE]);
    mc_json_open_array(line.json, "complaints");
    for (int i = 0; i < count; i++) {
        const mc_complaint *one = list[i];
        mc_json_space(line.json, "\n");
        mc_json_open_object(line.json, NULL);
        mc_json_string(line.json, "severity", severities[one->severity]);
        mc_json_string(line.json, "file", one->file == NULL ? file : one->file);
        mc_json_integer(line.json, "line", one->line);
        mc_json_integer(line.json, "column", one->column);
        mc_json_string(line.json, "text", one->text);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}

static int
check_config_file(const cli_check_options *options, apr_pool_t *pool)
{
    const char *file = options->file;
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    mc_config *config;
    diagnostics->thorough = true;
    mc_error *error = mc_config_load(&config, file, diagnostics, pool);
    if (error == MC_OK && options->connect)
        mc_config_inspect(config, options->processes, diagnostics, &mc_log_stderr, pool);
    /* A file that is no XML, or cannot be read, never came to the point of complaints. */
    if (error != MC_OK && diagnostics->refused == 0)
        mc_complain(diagnostics, MC_REFUSED, NULL, "%s", mc_error_chain(error, pool));
    const mc_complaint **list = sort_complaints(diagnostics, pool);
    int count = diagnostics->complaints->nelts;
    counts counts = { { 0 } };
    for (int i = 0; i < count; i++)
        counts.by_severity[list[i]->severity]++;
    if (options->json)
        print_complaints_json(file, list, count, &counts);
    else if (options->quiet)
        print_refusals(list, count);
    else
        print_complaints_text(file, list, count, &counts);
    if (!options->json && error == MC_OK && config->databases->nelts > 0)
        print_connections(config, options->processes);
    if (counts.by_severity[MC_REFUSED] > 0)
        return REFUSED;
    return count > counts.by_severity[MC_NOTE] ? USABLE : CLEAN;
}

static const mc_cli_option check_rows[] = {
    MC_OPTION_JSON(offsetof(cli_check_options, json), "one object of JSON, for programs"),
    MC_OPTION_FLAG("connect", 0, offsetof(cli_check_options, connect),
                   "asks its databases, stores, lockers and origins, too: tables that are not there, no spatial index, "
                   "too few places, "
                   "servers that do not answer"),
    MC_OPTION_INT("processes", 0, "COUNT", offsetof(cli_check_options, processes), 1, 10000,
                  "processes of the server that is to be (Apache: what its MPM allows): how many connections it may "
                  "make"),
    MC_OPTION_END,
};

static void
set_check_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((cli_check_options *)options)->processes = 1;
}

const mc_cli_option_table mc_check_option_table = { check_rows, sizeof(cli_check_options), set_check_defaults };

int
mc_command_check(mc_cli_call *call)
{
    cli_check_options *options = call->options;
    if (call->arguments->nelts != 1) {
        mc_cli_refuse(call, "one FILE is needed: the configuration");
        return REFUSED;
    }
    options->file = APR_ARRAY_IDX(call->arguments, 0, const char *);
    options->quiet = call->quiet;
    return check_config_file(options, call->pool);
}
