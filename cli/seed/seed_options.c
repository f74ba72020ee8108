/*
 * The seeder's options: one table for the parser and for the usage text.
 */
#include "seed_options.h"

#include <apr_getopt.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/ogr_area.h"
#include "seed_values.h"
#include "text/text.h"

enum {
    RATE_LIMIT = 256,
    THREAD_DELAY,
    LIST,
    CHECKPOINT,
    RESUME,
    RETRIES,
    JSON,
    DRY_RUN,
    AREA,
    AREA_SRS,
    OUTSIDE,
    ORDER,
    NO_BACKOFF
};

typedef struct option {
    const char *name;
    int letter;           /* from RATE_LIMIT on: it has none */
    const char *argument; /* NULL: it takes none */
    const char *meaning;
} option;

/* docs/seeding.md has the same table; a test compares it with what --help prints. */
static const option rows[] = {
    { "config", 'c', "FILE", "configuration (required)" },
    { "tileset", 't', "NAME", "tileset (required)" },
    { "grid", 'g', "NAME", "grid of the tileset; default: its first" },
    { "zoom", 'z', "MIN,MAX", "zoom levels, the smaller first; default: all of the grid" },
    { "extent", 'e', "MINX,MINY,MAXX,MAXY", "in units of the grid" },
    { "area", AREA, "FILE", "only tiles that meet its polygons, lines and points: GeoJSON or WKT" },
    { "area-srs", AREA_SRS, "SRS", "CRS of the area's coordinates, x first; default: what the file says" },
    { "ogr-datasource", 'd', "NAME", "the same from a vector source of GDAL, in units of the grid; not with -e" },
    { "ogr-layer", 'l', "NAME", "its layer, needed if it has several" },
    { "ogr-where", 'w', "FILTER", "only features with these attributes" },
    { "ogr-sql", 's', "QUERY", "a query instead of layer and filter" },
    { "outside", OUTSIDE, NULL, "delete what does not meet the extent or area, instead of what does" },
    { "mode", 'm', "MODE", "seed (default), delete or transfer" },
    { "transfer", 'x', "NAME", "tileset that a transfer copies to" },
    { "force", 'f', NULL, "do not look whether tiles exist: draw, delete or copy all" },
    { "older", 'o', "AGE",
      "only tiles older than \"YYYY/MM/DD hh:mm\" (local time), \"now\", or 90s, 30m, 12h, 7d ago" },
    { "metasize", 'M', "COLUMNS,ROWS", "tiles in a metatile; default: the tileset's" },
    { "iteration-mode", 'i', "ORDER", "drill-down, scanline or hilbert; default: drill-down for the built-in grids" },
    { "order", ORDER, "ORDER", "the same: down, level or hilbert" },
    { "nthreads", 'n', "COUNT", "threads, 1 to 1000; default 1; not with -p" },
    { "nprocesses", 'p', "COUNT", "processes, 1 to 1000; not with -n" },
    { "percent", 'P', "PERCENT", "give up when more than this share of the last 1000 failed; 0 to 100, default 1" },
    { "retries", RETRIES, "COUNT", "try a failed metatile again, after growing pauses; default 0" },
    { "no-backoff", NO_BACKOFF, NULL, "keep all workers at it when the origin slows down or fails" },
    { "rate-limit", RATE_LIMIT, "COUNT", "tiles per second, at most" },
    { "thread-delay", THREAD_DELAY, "SECONDS", "between the starts of threads" },
    { "log-failed", 'L', "FILE", "gets a line x,y,z for each failure" },
    { "retry-failed", 'R', "FILE", "take the tiles from such a file" },
    { "list", LIST, "FILE", "take the tiles from lines z/x/y or x y z, rows from the north" },
    { "checkpoint", CHECKPOINT, "FILE", "keeps the place of the run" },
    { "resume", RESUME, NULL, "go on at the place that --checkpoint has kept" },
    { "cache", 'C', "NAME", "use another cache for the tileset" },
    { "dimension", 'D', "NAME=VALUE", "value of a dimension; may be repeated" },
    { "header", 'H', "NAME=VALUE", "for {NAME} in headers of the source; may be repeated" },
    { "dry-run", DRY_RUN, NULL, "only count what would be visited, by level, and estimate its size" },
    { "json", JSON, NULL, "progress as lines of JSON" },
    { "quiet", 'q', NULL, "no progress" },
    { "non-interactive", 'b', NULL, "progress on lines of its own" },
    { "verbose", 'v', NULL, "all messages, on standard error, and where the time went" },
    { "help", 'h', NULL, "this list" },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

void
mc_seed_usage(const char *program, const char *message)
{
    if (message != NULL && strcmp(program, "mapcache seed") == 0) {
        fprintf(stderr, "%s: %s\n`%s --help` lists the options.\n", program, message, program);
        return;
    }
    printf("usage: %s -c FILE -t TILESET [OPTIONS]\n", program);
    if (message != NULL)
        printf("%s\n", message);
    puts("options:");
    for (const option *row = rows; row < rows + ROWS; row++) {
        char flags[64];
        int size = row->letter < RATE_LIMIT ? snprintf(flags, sizeof(flags), "-%c, --%s", row->letter, row->name)
                                            : snprintf(flags, sizeof(flags), "    --%s", row->name);
        if (row->argument != NULL)
            snprintf(flags + size, sizeof(flags) - (size_t)size, " %s", row->argument);
        printf("  %-34s  %s\n", flags, row->meaning);
    }
}

static bool
parse_mode(mc_seed_mode *mode, const char *text)
{
    static const char *const names[] = { "seed", "delete", "transfer" };
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (mc_seed_mode)i;
            return true;
        }
    return false;
}

static bool
parse_order(mc_seed_options *options, const char *text)
{
    static const struct {
        const char *name;
        mc_seed_order order;
    } names[] = { { "drill-down", MC_SEED_DOWN },       { "down", MC_SEED_DOWN },    { "scanline", MC_SEED_LEVELS },
                  { "level-by-level", MC_SEED_LEVELS }, { "level", MC_SEED_LEVELS }, { "hilbert", MC_SEED_HILBERT } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i].name) == 0) {
            options->order = names[i].order;
            return options->has_order = true;
        }
    return false;
}

static bool
parse_workers(mc_seed_options *options, bool processes, const char *text)
{
    if (options->workers != 0 && options->processes != processes)
        return false;
    options->processes = processes;
    return mc_parse_int(&options->workers, text, 1, 1000);
}

static bool
set_seed_flag(mc_seed_options *options, int letter)
{
    switch (letter) {
    case 'f':
        return options->force = true;
    case 'q':
        return options->quiet = true;
    case 'b':
        return options->non_interactive = true;
    case 'v':
        return options->verbose = true;
    case RESUME:
        return options->resume = true;
    case JSON:
        return options->json = true;
    case DRY_RUN:
        return options->dry_run = true;
    case OUTSIDE:
        return options->outside = true;
    case NO_BACKOFF:
        return options->no_backoff = true;
    default:
        return false;
    }
}

static bool
set_seed_name(mc_seed_options *options, int letter, const char *text)
{
    struct {
        int letter;
        const char **field;
    } const names[] = {
        { 'c', &options->config },    { 't', &options->tileset },       { 'g', &options->grid },
        { 'x', &options->transfer },  { 'L', &options->failures },      { 'R', &options->retry },
        { 'C', &options->cache },     { LIST, &options->list },         { CHECKPOINT, &options->checkpoint },
        { AREA, &options->area },     { AREA_SRS, &options->area_srs }, { 'd', &options->ogr.source },
        { 'l', &options->ogr.layer }, { 'w', &options->ogr.where },     { 's', &options->ogr.sql },
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
set_seed_value(mc_seed_options *options, int letter, const char *text, apr_pool_t *pool)
{
    switch (letter) {
    case 'z':
        options->has_zoom = true;
        return mc_seed_parse_zooms(&options->minzoom, &options->maxzoom, text, pool);
    case 'e':
        return options->has_extent = mc_seed_parse_extent(&options->extent, text, pool);
    case 'm':
        return parse_mode(&options->mode, text);
    case 'o':
        return mc_seed_parse_age(&options->older, text, pool);
    case 'M':
        return mc_seed_parse_pair(&options->metatile_columns, &options->metatile_rows, text, 1, 64, pool);
    case 'i':
    case ORDER:
        return parse_order(options, text);
    case 'n':
    case 'p':
        return parse_workers(options, letter == 'p', text);
    case 'P':
        return mc_parse_double(&options->percent, text) && options->percent >= 0 && options->percent <= 100;
    case 'D':
        return mc_seed_parse_assignment(options->dimensions, text, pool);
    case 'H':
        return mc_seed_parse_assignment(options->headers, text, pool);
    case RATE_LIMIT:
        return mc_parse_double(&options->rate, text) && options->rate >= 1e-3 && options->rate <= 1e9;
    case RETRIES:
        return mc_parse_int(&options->retries, text, 0, 100);
    case THREAD_DELAY:
        return mc_parse_double(&options->thread_delay, text) && options->thread_delay >= 0 &&
               options->thread_delay <= 86400;
    default:
        return false;
    }
}

/* What a value should have been, by the table. */
static const char *
describe_seed_value_error(int letter, const char *text, apr_pool_t *pool)
{
    const option *row = rows;
    while (row < rows + ROWS - 1 && row->letter != letter)
        row++;
    return apr_psprintf(pool, "--%s cannot be \"%s\": --%s %s: %s", row->name, text, row->name, row->argument,
                        row->meaning);
}

/* What limits the area. */
static const char *
check_area(const mc_seed_options *options)
{
    const mc_seed_ogr *ogr = &options->ogr;
    const char *problem = mc_ogr_area_check(ogr, options->has_extent, options->area);
    if (problem != NULL)
        return problem;
    if (options->area_srs != NULL && options->area == NULL && ogr->source == NULL)
        return "--area-srs needs --area or --ogr-datasource";
    if (!options->outside)
        return NULL;
    if (options->mode != MC_SEED_DELETE)
        return "--outside is for --mode delete";
    if (options->has_extent == (options->area != NULL || ogr->source != NULL))
        return "--outside needs one of --extent, --area and --ogr-datasource";
    return NULL;
}

static const char *
check_seed_options(const mc_seed_options *options)
{
    if (options->config == NULL)
        return "the option --config is required";
    if (options->tileset == NULL)
        return "the option --tileset is required";
    if (options->mode == MC_SEED_TRANSFER && options->transfer == NULL)
        return "a transfer needs --transfer TILESET";
    if (options->retry != NULL && options->list != NULL)
        return "the tiles come from one of --retry-failed and --list";
    if (options->resume && options->checkpoint == NULL)
        return "--resume needs --checkpoint FILE";
    return check_area(options);
}

/* The list of options follows every complaint; apr_getopt's own message goes before it. */
static void
print_seed_option_error(void *stream, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stream, format, args);
    va_end(args);
}

const char *
mc_seed_options_parse(mc_seed_options *options, int argc, const char *const *argv, apr_pool_t *pool)
{
    *options =
        (mc_seed_options){ .percent = 1, .dimensions = apr_table_make(pool, 4), .headers = apr_table_make(pool, 4) };
    apr_getopt_t *parser;
    apr_getopt_option_t known[ROWS + 1] = { 0 };
    for (int i = 0; i < ROWS; i++)
        known[i] = (apr_getopt_option_t){ rows[i].name, rows[i].letter, rows[i].argument != NULL, NULL };
    apr_getopt_init(&parser, pool, argc, argv);
    parser->errfn = print_seed_option_error;
    options->drop_in = strcmp(argv[0], "seed") != 0;
    parser->errarg = options->drop_in ? stdout : stderr;
    int letter;
    const char *text;
    apr_status_t status;
    while ((status = apr_getopt_long(parser, known, &letter, &text)) == APR_SUCCESS) {
        if (letter == 'h') {
            options->help = true;
            return NULL;
        }
        if (set_seed_flag(options, letter) || (text != NULL && set_seed_name(options, letter, text)))
            continue;
        if (!set_seed_value(options, letter, text, pool))
            return describe_seed_value_error(letter, text, pool);
    }
    if (status != APR_EOF)
        return "an option is not known or lacks its argument";
    if (parser->ind < argc)
        return apr_psprintf(pool, "\"%s\" is no option", argv[parser->ind]);
    if (options->workers == 0)
        options->workers = 1;
    return check_seed_options(options);
}
