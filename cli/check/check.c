/* `mapcache check FILE`: everything that is wrong with a configuration, in the order of the file, before it is served.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "mapcache/server.h"
#include "text/text.h"

/* Exit codes. */
enum { CLEAN = 0, REFUSED = 1, USABLE = 2 };

static const char *const severities[] = {
    [MC_WARNING] = "warning", [MC_NOT_BUILT] = "not built", [MC_REFUSED] = "error"
};

typedef struct counts {
    int by_severity[MC_REFUSED + 1];
} counts;

/* Where two stand at the same place, the one found first comes first: both are elements of one array. */
static int
compare_places(const void *a, const void *b)
{
    const mc_complaint *left = *(const mc_complaint *const *)a;
    const mc_complaint *right = *(const mc_complaint *const *)b;
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
    qsort(list, (size_t)count, sizeof(*list), compare_places);
    return list;
}

typedef struct cli_check_options {
    const char *file;
    bool json, connect;
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

static void
print_complaints_json(const char *file, const mc_complaint *const *list, int count, const counts *counts,
                      apr_pool_t *pool)
{
    printf("{\"file\":\"%s\",\"errors\":%d,\"not_built\":%d,\"warnings\":%d,\"complaints\":[",
           mc_json_escape(file, pool), counts->by_severity[MC_REFUSED], counts->by_severity[MC_NOT_BUILT],
           counts->by_severity[MC_WARNING]);
    for (int i = 0; i < count; i++) {
        const mc_complaint *one = list[i];
        printf("%s\n{\"severity\":\"%s\",\"file\":\"%s\",\"line\":%d,\"column\":%d,\"text\":\"%s\"}", i == 0 ? "" : ",",
               severities[one->severity], mc_json_escape(one->file == NULL ? file : one->file, pool), one->line,
               one->column, mc_json_escape(one->text, pool));
    }
    puts("]}");
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
        print_complaints_json(file, list, count, &counts, pool);
    else
        print_complaints_text(file, list, count, &counts);
    if (!options->json && error == MC_OK && config->databases->nelts > 0)
        print_connections(config, options->processes);
    if (counts.by_severity[MC_REFUSED] > 0)
        return REFUSED;
    return count > 0 ? USABLE : CLEAN;
}

static void
print_check_usage(FILE *out)
{
    fputs(
        "usage: mapcache check [--json] [--connect] [--processes N] FILE\n\n"
        "Reads a configuration as a server would and prints what is wrong with it.\n"
        "  --connect      asks its PostGIS databases, too: tables that are not there, no spatial index, too few "
        "places\n"
        "  --processes N  of the server that is to be (Apache: what its MPM allows): how many connections it may make\n"
        "Exit code: 0 nothing, 1 it would not be served, 2 it would, with warnings or without some of its items.\n",
        out);
}

/* False: they are wrong. */
static bool
parse_check_arguments(cli_check_options *options, int argc, const char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options->json = true;
        else if (strcmp(argv[i], "--connect") == 0)
            options->connect = true;
        else if (strcmp(argv[i], "--processes") == 0 && i + 1 < argc) {
            if (!mc_parse_int(&options->processes, argv[++i], 1, 10000))
                return false;
        } else if (argv[i][0] == '-' || options->file != NULL)
            return false;
        else
            options->file = argv[i];
    }
    return options->file != NULL;
}

int
mc_command_check(int argc, const char *const *argv)
{
    cli_check_options options = { .processes = 1 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_check_usage(stdout);
            return CLEAN;
        }
    if (!parse_check_arguments(&options, argc, argv)) {
        print_check_usage(stderr);
        return REFUSED;
    }
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    int status = check_config_file(&options, pool);
    apr_pool_destroy(pool);
    return status;
}
