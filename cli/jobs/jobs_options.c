/* The options of `mapcache jobs`: one table for the parser and for the usage texts of all of its commands. */
#include <apr_strings.h>
#include <string.h>

#include "cli/common/ogr_area.h"
#include "cli/seed/seed_values.h"
#include "jobs.h"
#include "text/text.h"

enum {
    JSON = 256,
    CONNECTION,
    PRIORITY,
    RATE,
    ATTEMPTS,
    SIDE,
    REQUEST,
    RETRIES,
    DRAIN,
    NAME,
    STATE,
    LIMIT,
    AGE,
    ALL,
    AREA,
    AREA_SRS,
    ORDER
};

/* Seconds: a century, which the database's dates bear. */
#define OLDEST INT64_C(3155760000)

/* Which commands have an option. */
enum { ENQUEUE = 1, WORK = 2, LIST = 4, SHOW = 8, WATCH = 16, CHANGE = 32, PRUNE = 64, EVERY = 127 };

static const struct jobs_options_row {
    apr_getopt_option_t option;
    unsigned commands;
} rows[] = {
    { { "config", 'c', TRUE, "configuration file; its <jobs> says where the queue is" }, EVERY },
    { { "connection", CONNECTION, TRUE,
        "connection string of PostgreSQL, instead of that of <jobs>; its schema holds" },
      EVERY },
    { { "tileset", 't', TRUE, "tileset (required)" }, ENQUEUE },
    { { "grid", 'g', TRUE, "grid of the tileset; default: its first" }, ENQUEUE },
    { { "zoom", 'z', TRUE, "MIN,MAX zoom levels; default: all of the grid" }, ENQUEUE },
    { { "extent", 'e', TRUE, "MINX,MINY,MAXX,MAXY in units of the grid" }, ENQUEUE },
    { { "area", AREA, TRUE, "file of GeoJSON or WKT: only what its polygons, lines and points meet" }, ENQUEUE },
    { { "area-srs", AREA_SRS, TRUE,
        "CRS of the area, x first; default: what it names, else degrees (GeoJSON), the grid's (WKT, OGR)" },
      ENQUEUE },
    { { "ogr-datasource", 'd', TRUE, "the same from a vector source of GDAL; not with -e" }, ENQUEUE },
    { { "ogr-layer", 'l', TRUE, "its layer, needed if it has several" }, ENQUEUE },
    { { "ogr-where", 'w', TRUE, "only features with these attributes" }, ENQUEUE },
    { { "ogr-sql", 's', TRUE, "a query instead of layer and filter" }, ENQUEUE },
    { { "order", ORDER, TRUE,
        "of a level's units: level (default, row after row) or hilbert (neighbours come close together)" },
      ENQUEUE },
    { { "mode", 'm', TRUE, "seed (default), reseed, delete or transfer" }, ENQUEUE },
    { { "transfer", 'x', TRUE, "tileset that a transfer copies to" }, ENQUEUE },
    { { "older", 'o', TRUE,
        "only tiles older than \"YYYY/MM/DD hh:mm\" (local time), \"now\", or so long: 30m, 12h, 7d" },
      ENQUEUE },
    { { "dimension", 'D', TRUE, "NAME=VALUE of a dimension; may be repeated" }, ENQUEUE },
    { { "priority", PRIORITY, TRUE, "number; jobs with the highest come first; default 0" }, ENQUEUE },
    { { "rate-limit", RATE, TRUE, "tiles per second of all workers together" }, ENQUEUE },
    { { "attempts", ATTEMPTS, TRUE, "how often a unit is tried; default 3" }, ENQUEUE },
    { { "side", SIDE, TRUE, "metatiles along a unit's side; default: by the size of the job" }, ENQUEUE },
    { { "request", REQUEST, TRUE, "a text of yours: the same one makes a job only once" }, ENQUEUE },
    { { "nthreads", 'n', TRUE, "threads that draw, of each process; default 1" }, WORK },
    { { "nprocesses", 'p', TRUE, "worker processes, each with leases of its own; default 1" }, WORK },
    { { "retries", RETRIES, TRUE, "how often a metatile is tried again at once; default 0" }, WORK },
    { { "drain", DRAIN, FALSE, "end when no open job is left" }, WORK },
    { { "name", NAME, TRUE, "of this worker; default HOST:PROCESS" }, WORK },
    { { "quiet", 'q', FALSE, "no progress" }, WORK },
    { { "verbose", 'v', FALSE, "all messages, on standard error" }, WORK },
    { { "state", STATE, TRUE, "only jobs that are open, paused, cancelled or done" }, LIST },
    { { "limit", LIMIT, TRUE, "at most so many jobs, or units of a job; default 100" }, LIST | SHOW },
    { { "all", ALL, FALSE, "all jobs that this can be done to, instead of JOB ..." }, CHANGE },
    { { "age", AGE, TRUE, "only jobs that ended so many seconds ago or earlier; default 604800 (a week)" }, PRUNE },
    { { "json", JSON, FALSE, "lines of JSON" }, EVERY },
    { { "help", 'h', FALSE, "this list" }, EVERY },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct {
    const char *name, *arguments, *help;
    unsigned mask;
} commands[] = {
    { "enqueue", "-t TILESET", "add a job", ENQUEUE },
    { "work", "", "lease units and work on them, until interrupted", WORK },
    { "list", "", "the newest jobs", LIST },
    { "show", "JOB", "one job with its leased, returned and failed units", SHOW },
    { "watch", "[JOB ...]", "follow open jobs until they are done", WATCH },
    { "cancel", "JOB ...", "end jobs; what is stored stays", CHANGE },
    { "pause", "JOB ...", "hand out nothing more of them for now", CHANGE },
    { "resume", "JOB ...", "go on with paused ones", CHANGE },
    { "retry", "JOB ...", "try their failed units again", CHANGE },
    { "prune", "", "remove jobs that are done or cancelled", PRUNE },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static unsigned
mask_of(const char *command)
{
    for (int i = 0; command != NULL && i < COMMANDS; i++)
        if (strcmp(commands[i].name, command) == 0)
            return commands[i].mask;
    return 0;
}

void
mc_cli_jobs_usage(FILE *out, const char *command)
{
    unsigned mask = mask_of(command);
    if (mask == 0) {
        fputs("usage: mapcache jobs COMMAND -c FILE [OPTIONS]\n\n", out);
        for (int i = 0; i < COMMANDS; i++)
            fprintf(out, "  %-8s %-12s %s\n", commands[i].name, commands[i].arguments, commands[i].help);
        fputs("\n`mapcache jobs COMMAND --help` explains a command.\n", out);
        return;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, command) == 0)
            fprintf(out, "usage: mapcache jobs %s -c FILE %s [OPTIONS]: %s\noptions:\n", command, commands[i].arguments,
                    commands[i].help);
    for (int i = 0; i < ROWS; i++) {
        char flags[48];
        const apr_getopt_option_t *option = &rows[i].option;
        if ((rows[i].commands & mask) == 0)
            continue;
        if (option->optch < JSON)
            snprintf(flags, sizeof(flags), "-%c, --%s", option->optch, option->name);
        else
            snprintf(flags, sizeof(flags), "    --%s", option->name);
        fprintf(out, "  %-22s %s\n", flags, option->description);
    }
}

static bool
set_jobs_flag(jobs_options *options, int letter)
{
    switch (letter) {
    case JSON:
        return options->json = true;
    case DRAIN:
        return options->drain = true;
    case ALL:
        return options->all = true;
    case 'q':
        return options->quiet = true;
    case 'v':
        return options->verbose = true;
    default:
        return false;
    }
}

static bool
set_jobs_name(jobs_options *options, int letter, const char *text)
{
    struct {
        int letter;
        const char **field;
    } const names[] = {
        { 'c', &options->config },
        { CONNECTION, &options->connection },
        { 't', &options->spec.tileset },
        { 'g', &options->spec.grid },
        { 'x', &options->spec.target },
        { REQUEST, &options->spec.request },
        { NAME, &options->name },
        { AREA, &options->area },
        { AREA_SRS, &options->spec.area_srs },
        { 'd', &options->ogr.source },
        { 'l', &options->ogr.layer },
        { 'w', &options->ogr.where },
        { 's', &options->ogr.sql },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].letter == letter) {
            *names[i].field = text;
            return true;
        }
    return false;
}

/* False when the value cannot be used. */
static bool
set_number(jobs_options *options, int letter, const char *text)
{
    mc_job_spec *spec = &options->spec;
    int64_t age;
    switch (letter) {
    case PRIORITY:
        return mc_parse_int(&spec->priority, text, -MC_JOBS_PRIORITY_MAX, MC_JOBS_PRIORITY_MAX);
    case RATE:
        return mc_parse_double(&spec->rate, text) && spec->rate > 0;
    case ATTEMPTS:
        return mc_parse_int(&spec->attempts, text, 1, MC_JOBS_ATTEMPTS_MAX);
    case SIDE:
        return mc_parse_int(&spec->side, text, 1, MC_JOBS_SIDE_MAX);
    case RETRIES:
        return mc_parse_int(&options->retries, text, 0, 1000);
    case 'n':
        return mc_parse_int(&options->threads, text, 1, 1000);
    case 'p':
        return mc_parse_int(&options->processes, text, 1, 1000);
    case LIMIT:
        return mc_parse_int(&options->limit, text, 1, MC_JOBS_LISTED_MAX);
    case AGE:
        if (!mc_parse_int64(&age, text, 0, OLDEST))
            return false;
        options->older = age;
        return true;
    default:
        return false;
    }
}

static bool
set_jobs_value(jobs_options *options, int letter, const char *text, apr_pool_t *pool)
{
    mc_job_spec *spec = &options->spec;
    apr_time_t older;
    switch (letter) {
    case 'z':
        spec->has_zoom = true;
        return mc_seed_parse_zooms(&spec->minzoom, &spec->maxzoom, text, pool);
    case 'e':
        return spec->has_extent = mc_seed_parse_extent(&spec->extent, text, pool);
    case 'm':
        return mc_job_mode_parse(&spec->mode, text);
    case 'o':
        if (!mc_seed_parse_age(&older, text, pool))
            return false;
        spec->older = apr_time_sec(older);
        return true;
    case ORDER:
        return spec->has_order = mc_job_order_parse(&spec->order, text);
    case 'D':
        return mc_seed_parse_assignment(options->dimensions, text, pool);
    case STATE:
        return options->has_state = mc_job_state_parse(&options->state, text);
    default:
        return set_number(options, letter, text);
    }
}

static const char *
take_ids(jobs_options *options, const apr_getopt_t *parser, const char *command, unsigned mask, apr_pool_t *pool)
{
    for (int i = parser->ind; i < parser->argc; i++) {
        int64_t id;
        if ((mask & (SHOW | WATCH | CHANGE)) == 0)
            return apr_psprintf(pool, "\"%s\" is no option", parser->argv[i]);
        if (!mc_parse_int64(&id, parser->argv[i], 1, INT64_MAX))
            return apr_psprintf(pool, "\"%s\" is no job's number", parser->argv[i]);
        APR_ARRAY_PUSH(options->ids, int64_t) = id;
    }
    if ((mask & SHOW) != 0 && options->ids->nelts != 1)
        return "show needs the number of one job";
    if ((mask & CHANGE) != 0 && (options->ids->nelts > 0) == options->all)
        return apr_psprintf(pool, "%s needs numbers of jobs, or --all", command);
    if ((mask & ENQUEUE) != 0 && options->spec.tileset == NULL)
        return "enqueue needs --tileset";
    const char *problem = mc_ogr_area_check(&options->ogr, options->spec.has_extent, options->area);
    if (problem != NULL)
        return problem;
    if ((mask & (ENQUEUE | WORK)) != 0 && options->config == NULL)
        return apr_psprintf(pool, "%s needs --config", command);
    if (options->config == NULL && options->connection == NULL)
        return "--config or --connection is needed: where the queue is";
    return NULL;
}

static void
print_jobs_option_error(void *baton, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(baton, format, args);
    va_end(args);
}

/* What a value should have been, by the table. */
static const char *
describe_jobs_value_error(int letter, const char *text, apr_pool_t *pool)
{
    const struct jobs_options_row *row = rows;
    while (row < rows + ROWS - 1 && row->option.optch != letter)
        row++;
    return apr_psprintf(pool, "--%s cannot be \"%s\": %s", row->option.name, text, row->option.description);
}

const char *
mc_cli_jobs_parse(jobs_options *options, const char *command, int argc, const char *const *argv, apr_pool_t *pool)
{
    unsigned mask = mask_of(command);
    apr_getopt_option_t *list = apr_pcalloc(pool, sizeof(*list) * (ROWS + 1));
    for (int i = 0, count = 0; i < ROWS; i++)
        if ((rows[i].commands & mask) != 0)
            list[count++] = rows[i].option;
    *options = (jobs_options){ .threads = 1,
                               .processes = 1,
                               .limit = 100,
                               .older = 604800,
                               .ids = apr_array_make(pool, 4, sizeof(int64_t)),
                               .dimensions = apr_table_make(pool, 4) };
    options->spec.dimensions = options->dimensions;
    apr_getopt_t *parser;
    apr_getopt_init(&parser, pool, argc, argv);
    parser->interleave = 1;
    parser->errfn = print_jobs_option_error;
    parser->errarg = stderr;
    int letter;
    const char *text;
    apr_status_t status;
    while ((status = apr_getopt_long(parser, list, &letter, &text)) == APR_SUCCESS) {
        if (letter == 'h')
            options->help = true;
        else if (!set_jobs_flag(options, letter) && !set_jobs_name(options, letter, text) &&
                 !set_jobs_value(options, letter, text, pool))
            return describe_jobs_value_error(letter, text, pool);
    }
    if (status != APR_EOF)
        return "an option is not known or lacks its argument";
    return options->help ? NULL : take_ids(options, parser, command, mask, pool);
}
