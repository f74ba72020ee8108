/* The options of `mapcache jobs`: one table for all of its commands. */
#include <apr_strings.h>
#include <float.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/ogr_area.h"
#include "cli/common/values.h"
#include "jobs.h"
#include "text/text.h"

/* Seconds: a century, which the database's dates bear. */
#define OLDEST INT64_C(3155760000)

static bool
parse_jobs_zooms(void *field, const char *text, apr_pool_t *pool)
{
    mc_job_spec *spec = field;
    spec->has_zoom = true;
    return mc_cli_parse_zooms(&spec->minzoom, &spec->maxzoom, text, pool);
}

static bool
parse_jobs_extent(void *field, const char *text, apr_pool_t *pool)
{
    mc_job_spec *spec = field;
    return spec->has_extent = mc_cli_parse_extent(&spec->extent, text, pool);
}

static bool
parse_jobs_age(void *field, const char *text, apr_pool_t *pool)
{
    mc_job_spec *spec = field;
    apr_time_t older;
    if (!mc_cli_parse_age(&older, text, pool))
        return false;
    spec->older = apr_time_sec(older);
    return true;
}

static bool
parse_jobs_mode(void *field, const char *text, apr_pool_t *pool)
{
    (void)pool;
    return mc_job_mode_parse(field, text);
}

static bool
parse_jobs_order(void *field, const char *text, apr_pool_t *pool)
{
    mc_job_spec *spec = field;
    (void)pool;
    return spec->has_order = mc_job_order_parse(&spec->order, text);
}

static bool
parse_jobs_state(void *field, const char *text, apr_pool_t *pool)
{
    jobs_options *options = field;
    (void)pool;
    return options->has_state = mc_job_state_parse(&options->state, text);
}

#define AT(field) offsetof(jobs_options, field)

static const mc_cli_option jobs_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration file; its <jobs> says where the queue is"),
    MC_OPTION_TEXT("connection", 0, "TEXT", AT(connection),
                   "connection string of PostgreSQL, instead of that of <jobs>; its schema holds"),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(spec.tileset), "tileset (required)", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(spec.grid), "grid of the tileset; default: its first",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", AT(spec), parse_jobs_zooms, "zoom levels; default: all of the grid",
                    .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_HEADING("Where"),
    MC_OPTION_VALUE("extent", 'e', "MINX,MINY,MAXX,MAXY", AT(spec), parse_jobs_extent, "in units of the grid",
                    .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("area", 0, "FILE", AT(area), "file of GeoJSON or WKT: only what its polygons, lines and points meet",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("area-srs", 0, "SRS", AT(spec.area_srs),
                   "CRS of the area, x first; default: what it names, else degrees (GeoJSON), the grid's (WKT, OGR)",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("ogr-datasource", 'd', "NAME", AT(ogr.source), "the same from a vector source of GDAL; not with -e",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("ogr-layer", 'l', "NAME", AT(ogr.layer), "its layer, needed if it has several",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("ogr-where", 'w', "FILTER", AT(ogr.where), "only features with these attributes",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("ogr-sql", 's', "QUERY", AT(ogr.sql), "a query instead of layer and filter",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_HEADING("What is done"),
    MC_OPTION_VALUE("order", 0, "ORDER", AT(spec), parse_jobs_order,
                    "of a level's units: level (default, row after row) or hilbert (neighbours come close together)",
                    .choices = "level|hilbert", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_VALUE("mode", 'm', "MODE", AT(spec.mode), parse_jobs_mode, "seed (default), reseed, delete or transfer",
                    .choices = "seed|reseed|delete|transfer", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("transfer", 'x', "NAME", AT(spec.target), "tileset that a transfer copies to",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_VALUE("older", 'o', "AGE", AT(spec), parse_jobs_age,
                    "only tiles older than \"YYYY/MM/DD hh:mm\" (local time), \"now\", or so long: 30m, 12h, 7d",
                    .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(dimensions), "value of a dimension; may be repeated",
                         .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_INT("priority", 0, "NUMBER", AT(spec.priority), -MC_JOBS_PRIORITY_MAX, MC_JOBS_PRIORITY_MAX,
                  "number; jobs with the highest come first; default 0", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_NUMBER("rate-limit", 0, "COUNT", AT(spec.rate), DBL_TRUE_MIN, DBL_MAX,
                     "tiles per second of all workers together", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_INT("attempts", 0, "COUNT", AT(spec.attempts), 1, MC_JOBS_ATTEMPTS_MAX,
                  "how often a unit is tried; default 3", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_INT("side", 0, "COUNT", AT(spec.side), 1, MC_JOBS_SIDE_MAX,
                  "metatiles along a unit's side; default: by the size of the job", .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_TEXT("request", 0, "TEXT", AT(spec.request), "a text of yours: the same one makes a job only once",
                   .commands = MC_JOBS_ENQUEUE),
    MC_OPTION_HEADING("Workers"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(threads), 1, 1000, "threads that draw, of each process; default 1",
                  .commands = MC_JOBS_WORK),
    MC_OPTION_INT("nprocesses", 'p', "COUNT", AT(processes), 1, 1000,
                  "worker processes, each with leases of its own; default 1", .commands = MC_JOBS_WORK),
    MC_OPTION_INT("retries", 0, "COUNT", AT(retries), 0, 1000, "how often a metatile is tried again at once; default 0",
                  .commands = MC_JOBS_WORK),
    MC_OPTION_FLAG("drain", 0, AT(drain), "end when no open job is left", .commands = MC_JOBS_WORK),
    MC_OPTION_TEXT("name", 0, "NAME", AT(name), "of this worker; default HOST:PROCESS", .commands = MC_JOBS_WORK),
    MC_OPTION_FLAG("verbose", 'v', AT(verbose), "all messages, on standard error", .commands = MC_JOBS_WORK),
    MC_OPTION_HEADING("Jobs"),
    MC_OPTION_VALUE("state", 0, "STATE", 0, parse_jobs_state, "only jobs that are open, paused, cancelled or done",
                    .choices = "open|paused|cancelled|done", .commands = MC_JOBS_LIST),
    MC_OPTION_INT("limit", 0, "COUNT", AT(limit), 1, MC_JOBS_LISTED_MAX,
                  "at most so many jobs, or units of a job; default 100", .commands = MC_JOBS_LIST | MC_JOBS_SHOW),
    MC_OPTION_FLAG("all", 0, AT(all), "all jobs that this can be done to, instead of JOB ...",
                   .commands = MC_JOBS_CHANGE),
    MC_OPTION_INT64("age", 0, "SECONDS", AT(older), 0, OLDEST,
                    "only jobs that ended so many seconds ago or earlier; default 604800 (a week)",
                    .commands = MC_JOBS_PRUNE),
    MC_OPTION_HEADING("General"),
    MC_OPTION_QUIET(AT(quiet)),
    MC_OPTION_JSON(AT(json), "lines of JSON"),
    MC_OPTION_END,
};

static void
set_jobs_defaults(void *options, apr_pool_t *pool)
{
    jobs_options *o = options;
    *o = (jobs_options){ .threads = 1,
                         .processes = 1,
                         .limit = 100,
                         .older = 604800,
                         .ids = apr_array_make(pool, 4, sizeof(int64_t)),
                         .dimensions = apr_table_make(pool, 4) };
    o->spec.dimensions = o->dimensions;
}

const mc_cli_option_table mc_jobs_option_table = { jobs_rows, sizeof(jobs_options), set_jobs_defaults };

const char *
mc_check_jobs_options(mc_cli_call *call)
{
    jobs_options *options = call->options;
    unsigned mask = call->command->mask;
    const char *command = strchr(call->command->name, ' ') + 1;
    for (int i = 0; i < call->arguments->nelts; i++) {
        const char *word = APR_ARRAY_IDX(call->arguments, i, const char *);
        int64_t id;
        if (!mc_parse_int64(&id, word, 1, INT64_MAX))
            return apr_psprintf(call->pool, "\"%s\" is no job's number", word);
        APR_ARRAY_PUSH(options->ids, int64_t) = id;
    }
    if (mask == MC_JOBS_SHOW && options->ids->nelts != 1)
        return "show needs the number of one job";
    if (mask == MC_JOBS_CHANGE && (options->ids->nelts > 0) == options->all)
        return apr_psprintf(call->pool, "%s needs numbers of jobs, or --all", command);
    if (mask == MC_JOBS_ENQUEUE && options->spec.tileset == NULL)
        return "enqueue needs --tileset";
    const char *problem = mc_ogr_area_check(&options->ogr, options->spec.has_extent, options->area);
    if (problem != NULL)
        return problem;
    if ((mask & (MC_JOBS_ENQUEUE | MC_JOBS_WORK)) != 0 && options->config == NULL)
        return apr_psprintf(call->pool, "%s needs --config", command);
    if (options->config == NULL && options->connection == NULL)
        return "--config or --connection is needed: where the queue is";
    return NULL;
}
