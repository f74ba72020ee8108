/* `mapcache doctor`: runs the checks of lib/doctor and prints what they have found. */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "cli/common/words.h"
#include "doctor/doctor.h"

/* Exit statuses. */
enum { HEALTHY = 0, DOCTOR_FAILED = 1, TO_DO = 2, INCOMPLETE = 3 };

typedef struct doctor_command {
    const char *config, *fix;
    bool json, list, verbose;
    mc_doctor_options options;
} doctor_command;

#define AT(field) offsetof(doctor_command, field)

static const mc_cli_option doctor_rows[] = {
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration (required, but for --list)"),
    MC_OPTION_TEXT("access-log", 0, "FILE", AT(options.access_log),
                   "access log of the server, common or combined format: measures the size of <memory_cache>"),
    MC_OPTION_INT("processes", 0, "COUNT", AT(options.processes), 1, 10000,
                  "processes of the server that is to be; default: 1"),
    MC_OPTION_INT("clients", 0, "COUNT", AT(options.clients), 1, 1000000,
                  "clients that are connected to one process; default: 256"),
    MC_OPTION_NUMBER("seconds", 0, "SECONDS", AT(options.seconds), 1, 3600, "time for everything; default: 30"),
    MC_OPTION_FLAG("draw", 0, AT(options.draw),
                   "draw some tiles of sources that draw: measures metatiles of several sizes, and formats"),
    MC_OPTION_TEXT("fix", 0, "FILE", AT(fix),
                   "write a script that does what was found, \"-\" for standard output in place of the report; the "
                   "script is never run"),
    MC_OPTION_FLAG("list", 0, AT(list), "list the checks"),
    MC_OPTION_JSON(AT(json), "one object of JSON, for programs"),
    MC_OPTION_VERBOSE(AT(verbose)),
    MC_OPTION_END,
};

static void
set_doctor_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((doctor_command *)options)->options = (mc_doctor_options){ .processes = 1, .clients = 256, .seconds = 30 };
}

const mc_cli_option_table mc_doctor_option_table = { doctor_rows, sizeof(doctor_command), set_doctor_defaults };

const char *
mc_check_doctor_options(mc_cli_call *call)
{
    const doctor_command *command = call->options;
    if (!command->list && command->config == NULL)
        return "the option --config is required";
    if (command->json && command->fix != NULL && strcmp(command->fix, "-") == 0)
        return "--json and --fix - both write to standard output";
    return NULL;
}

/* The rows of the table in docs/doctor.md. */
static void
list_checks(bool json)
{
    if (!json) {
        for (const mc_doctor_check *check = mc_doctor_list(); check->id != NULL; check++)
            printf("%-18s %s\n", check->id, check->help);
        return;
    }
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_open_array(line.json, "checks");
    for (const mc_doctor_check *check = mc_doctor_list(); check->id != NULL; check++) {
        mc_json_open_object(line.json, NULL);
        mc_json_string(line.json, "id", check->id);
        mc_json_string(line.json, "title", check->title);
        mc_json_string(line.json, "help", check->help);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}

static void
print_finding(const mc_finding *one)
{
    printf("%s%s%s: %s\n", mc_cli_ink_of(stdout, MC_INK_WARNING), one->check->id, mc_cli_ink_of(stdout, MC_INK_END),
           one->subject);
    printf("  found: %s\n  why:   %s\n  do:    %s\n", one->found, one->why, one->todo);
    if (one->factor > 1.05)
        printf("  gain:  about %.*f times less of this work\n", one->factor < 10 ? 1 : 0, one->factor);
    else
        printf("  gain:  not measured\n");
}

static void
print_costs(const mc_doctor_report *report)
{
    for (int i = 0; i < report->costs->nelts; i++) {
        const mc_doctor_cost *cost = &APR_ARRAY_IDX(report->costs, i, const mc_doctor_cost);
        if (i == 0)
            printf("measured for each tile: ms of the processor here, ms by the clock, bytes\n");
        printf("  %s, level %d, %-18s %8.2f %8.2f", cost->tileset, cost->z, cost->what, cost->processor, cost->wall);
        if (cost->bytes > 0)
            printf(" %8.0f", cost->bytes);
        printf("\n");
    }
}

static void
print_report(const mc_doctor_report *report, const char *file, apr_pool_t *pool)
{
    for (int i = 0; i < report->findings->nelts; i++)
        print_finding(&APR_ARRAY_IDX(report->findings, i, const mc_finding));
    for (int i = 0; i < report->sizes->nelts; i++) {
        const mc_doctor_size *size = &APR_ARRAY_IDX(report->sizes, i, const mc_doctor_size);
        if (i == 0)
            printf("memory_cache by the access log:\n");
        printf("  %10s %6.1f %% of requests\n", mc_cli_size_words(size->bytes, pool), 100 * size->ratio);
    }
    print_costs(report);
    for (int i = 0; i < report->gaps->nelts; i++) {
        const mc_doctor_gap *gap = &APR_ARRAY_IDX(report->gaps, i, const mc_doctor_gap);
        printf("not checked: %s%s%s\n", gap->check == NULL ? "" : gap->check->id, gap->check == NULL ? "" : ": ",
               gap->reason);
    }
    printf("%s: findings: %d, not checked: %d\n", file, report->findings->nelts, report->gaps->nelts);
}

static void
print_findings_json(mc_json_writer *json, const mc_doctor_report *report)
{
    mc_json_open_array(json, "findings");
    for (int i = 0; i < report->findings->nelts; i++) {
        const mc_finding *one = &APR_ARRAY_IDX(report->findings, i, const mc_finding);
        mc_json_space(json, "\n");
        mc_json_open_object(json, NULL);
        mc_json_string(json, "check", one->check->id);
        mc_json_string(json, "subject", one->subject);
        mc_json_string(json, "found", one->found);
        mc_json_string(json, "why", one->why);
        mc_json_string(json, "do", one->todo);
        mc_json_digits(json, "factor", one->factor, 4);
        mc_json_string(json, "fix", one->fix);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
print_costs_json(mc_json_writer *json, const mc_doctor_report *report)
{
    mc_json_open_array(json, "costs");
    for (int i = 0; i < report->costs->nelts; i++) {
        const mc_doctor_cost *cost = &APR_ARRAY_IDX(report->costs, i, const mc_doctor_cost);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "tileset", cost->tileset);
        mc_json_string(json, "what", cost->what);
        mc_json_integer(json, "level", cost->z);
        mc_json_decimals(json, "processor_ms", cost->processor, 3);
        mc_json_decimals(json, "wall_ms", cost->wall, 3);
        mc_json_decimals(json, "bytes", cost->bytes, 0);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
print_report_json(const mc_doctor_report *report, const char *file)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "file", file);
    print_findings_json(line.json, report);
    mc_json_open_array(line.json, "not_checked");
    for (int i = 0; i < report->gaps->nelts; i++) {
        const mc_doctor_gap *gap = &APR_ARRAY_IDX(report->gaps, i, const mc_doctor_gap);
        mc_json_open_object(line.json, NULL);
        mc_json_string(line.json, "check", gap->check == NULL ? NULL : gap->check->id);
        mc_json_string(line.json, "reason", gap->reason);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    print_costs_json(line.json, report);
    mc_json_open_object(line.json, "access_log");
    mc_json_integer(line.json, "lines", report->lines);
    mc_json_integer(line.json, "tiles", report->tiles);
    mc_json_decimals(line.json, "tile_bytes", report->tile_bytes, 1);
    mc_json_open_array(line.json, "memory");
    for (int i = 0; i < report->sizes->nelts; i++) {
        const mc_doctor_size *size = &APR_ARRAY_IDX(report->sizes, i, const mc_doctor_size);
        mc_json_open_object(line.json, NULL);
        mc_json_integer(line.json, "bytes", (int64_t)size->bytes);
        mc_json_decimals(line.json, "hit_ratio", size->ratio, 4);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}

static void
write_fix(FILE *out, const mc_finding *one)
{
    fprintf(out, "\n# %s: %s\n# %s\n", one->check->id, one->subject, one->found);
    if (one->fix == NULL)
        fprintf(out, "# By hand: %s\n", one->todo);
    else if (one->database > 0)
        fprintf(out,
                "psql -X -v ON_ERROR_STOP=1 \"${DATABASE_%d:?connection string of database %d}\" <<'END_OF_SQL'\n"
                "%s\nEND_OF_SQL\n",
                one->database, one->database, one->fix);
    else
        fprintf(out, "%s\n", one->fix);
}

static bool
write_script(const mc_doctor_report *report, const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (out == NULL)
        return false;
    fputs("#!/bin/sh\n# Written by mapcache doctor. Read it before you run it. DATABASE_1, DATABASE_2, ... are "
          "connection "
          "strings,\n# in the order of the configuration; they are not written here, as they may have passwords.\nset "
          "-e\n",
          out);
    for (int i = 0; i < report->findings->nelts; i++)
        write_fix(out, &APR_ARRAY_IDX(report->findings, i, const mc_finding));
    bool good = ferror(out) == 0;
    return (out == stdout ? fflush(out) == 0 : fclose(out) == 0) && good;
}

static mc_error *
examine_config(mc_doctor_report **report, const doctor_command *command, const mc_log *log, apr_pool_t *pool)
{
    mc_server *server;
    MC_TRY(mc_server_load(&server, command->config, mc_diagnostics_create(pool), pool));
    return mc_doctor_examine(report, mc_server_config(server), &command->options, log, pool);
}

int
mc_command_doctor(mc_cli_call *call)
{
    const doctor_command *command = call->options;
    if (command->list) {
        list_checks(command->json);
        return HEALTHY;
    }
    mc_log log = mc_log_stderr;
    log.level = mc_cli_log_level(command->verbose, true);
    mc_doctor_report *report;
    mc_error *error = examine_config(&report, command, &log, call->pool);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache doctor: %s\n", mc_error_chain(error, call->pool));
        return DOCTOR_FAILED;
    }
    bool script_only = command->fix != NULL && strcmp(command->fix, "-") == 0;
    if (command->json)
        print_report_json(report, command->config);
    else if (!script_only)
        print_report(report, command->config, call->pool);
    if (command->fix != NULL && !write_script(report, command->fix)) {
        fprintf(stderr, "mapcache doctor: \"%s\" cannot be written\n", command->fix);
        return DOCTOR_FAILED;
    }
    return report->findings->nelts > 0 ? TO_DO : report->gaps->nelts > 0 ? INCOMPLETE : HEALTHY;
}
