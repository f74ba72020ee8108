/*
 * The seeder's options: one table for the parser and for the usage text.
 */
#include "seed_options.h"

#include <apr_getopt.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

enum { RATE_LIMIT = 256, THREAD_DELAY, LIST, CHECKPOINT, RESUME, RETRIES, JSON, DRY_RUN };

static const apr_getopt_option_t rows[] = {
    { "config", 'c', TRUE, "configuration file (required)" },
    { "tileset", 't', TRUE, "tileset (required)" },
    { "grid", 'g', TRUE, "grid of the tileset; default: its first" },
    { "zoom", 'z', TRUE, "MIN,MAX zoom levels; default: all of the grid" },
    { "extent", 'e', TRUE, "MINX,MINY,MAXX,MAXY in units of the grid" },
    { "mode", 'm', TRUE, "seed (default), delete or transfer" },
    { "transfer", 'x', TRUE, "tileset that a transfer copies to" },
    { "force", 'f', FALSE, "do not look whether tiles exist: draw, delete or copy all" },
    { "older", 'o', TRUE, "only tiles older than \"YYYY/MM/DD hh:mm\" (local time) or \"now\"" },
    { "metasize", 'M', TRUE, "COLUMNS,ROWS of a metatile; default: the tileset's" },
    { "iteration-mode", 'i', TRUE, "drill-down or scanline; default: drill-down for the built-in grids" },
    { "nthreads", 'n', TRUE, "threads; default 1; not with -p" },
    { "nprocesses", 'p', TRUE, "processes; not with -n" },
    { "percent", 'P', TRUE, "give up when more than this share of the last 1000 failed; 0 to 100, default 1" },
    { "log-failed", 'L', TRUE, "file that gets a line x,y,z for each failure" },
    { "retry-failed", 'R', TRUE, "take the tiles from such a file" },
    { "cache", 'C', TRUE, "use another cache for the tileset" },
    { "dimension", 'D', TRUE, "NAME=VALUE of a dimension; may be repeated" },
    { "header", 'H', TRUE, "NAME=VALUE for {NAME} in headers of the source; may be repeated" },
    { "quiet", 'q', FALSE, "no progress" },
    { "non-interactive", 'b', FALSE, "progress on lines of its own" },
    { "verbose", 'v', FALSE, "all messages, on standard error" },
    { "help", 'h', FALSE, "this list" },
    { "rate-limit", RATE_LIMIT, TRUE, "tiles per second, at most" },
    { "thread-delay", THREAD_DELAY, TRUE, "seconds between the starts of threads" },
    { "list", LIST, TRUE, "take the tiles from a file of lines z/x/y or x y z, rows from the north" },
    { "checkpoint", CHECKPOINT, TRUE, "file that keeps the place of the run" },
    { "resume", RESUME, FALSE, "go on at the place that --checkpoint has kept" },
    { "retries", RETRIES, TRUE, "how often a failed metatile is tried again, after growing pauses; default 0" },
    { "json", JSON, FALSE, "progress as lines of JSON" },
    { "dry-run", DRY_RUN, FALSE, "only count what would be visited, by level" },
    { "ogr-datasource", 'd', TRUE, "vector source that limits the area (not in this build)" },
    { "ogr-layer", 'l', TRUE, "its layer (not in this build)" },
    { "ogr-where", 'w', TRUE, "its filter (not in this build)" },
    { "ogr-sql", 's', TRUE, "its query (not in this build)" },
    { NULL, 0, 0, NULL },
};

void
mc_seed_usage(const char *program, const char *message)
{
    printf("usage: %s -c FILE -t TILESET [OPTIONS]\n", program);
    if (message != NULL)
        printf("%s\n", message);
    puts("options:");
    for (const apr_getopt_option_t *row = rows; row->name != NULL; row++) {
        char flags[48];
        if (row->optch < RATE_LIMIT)
            snprintf(flags, sizeof(flags), "-%c, --%s", row->optch, row->name);
        else
            snprintf(flags, sizeof(flags), "    --%s", row->name);
        printf("  %-24s %s\n", flags, row->description);
    }
}

/* Whole numbers with a comma between. */
static bool
parse_pair(int *first, int *second, const char *text, int min, int max, apr_pool_t *pool)
{
    const char *comma = strchr(text, ',');
    return comma != NULL && mc_parse_int(first, apr_pstrmemdup(pool, text, (size_t)(comma - text)), min, max) &&
           mc_parse_int(second, comma + 1, min, max);
}

/* "now", or a local time. */
static bool
parse_age(apr_time_t *older, const char *text)
{
    if (strcmp(text, "now") == 0) {
        *older = apr_time_now();
        return true;
    }
    struct tm local = { .tm_isdst = -1 };
    const char *rest = strptime(text, "%Y/%m/%d %H:%M", &local);
    if (rest == NULL || *rest != '\0')
        return false;
    time_t seconds = mktime(&local);
    *older = apr_time_from_sec(seconds);
    return seconds > 0;
}

static bool
parse_assignment(apr_table_t *table, const char *text, apr_pool_t *pool)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    apr_table_set(table, apr_pstrmemdup(pool, text, (size_t)(equals - text)), equals + 1);
    return true;
}

static bool
parse_extent(mc_extent *extent, const char *text)
{
    double numbers[4];
    int found;
    if (!mc_parse_doubles(numbers, 4, &found, text, ",") || found != 4)
        return false;
    *extent = (mc_extent){ numbers[0], numbers[1], numbers[2], numbers[3] };
    return mc_extent_valid(extent);
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
parse_order(mc_seed_order *order, const char *text)
{
    bool down = strcmp(text, "drill-down") == 0;
    *order = down ? MC_ORDER_DRILL_DOWN : MC_ORDER_SCANLINE;
    return down || strcmp(text, "scanline") == 0 || strcmp(text, "level-by-level") == 0;
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
set_flag(mc_seed_options *options, int letter)
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
    default:
        return false;
    }
}

static bool
set_name(mc_seed_options *options, int letter, const char *text)
{
    struct {
        int letter;
        const char **field;
    } const names[] = {
        { 'c', &options->config },   { 't', &options->tileset },  { 'g', &options->grid },
        { 'x', &options->transfer }, { 'L', &options->failures }, { 'R', &options->retry },
        { 'C', &options->cache },    { LIST, &options->list },    { CHECKPOINT, &options->checkpoint },
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
set_value(mc_seed_options *options, int letter, const char *text, apr_pool_t *pool)
{
    switch (letter) {
    case 'z':
        options->has_zoom = true;
        return parse_pair(&options->minzoom, &options->maxzoom, text, 0, 1000, pool) &&
               options->minzoom <= options->maxzoom;
    case 'e':
        return options->has_extent = parse_extent(&options->extent, text);
    case 'm':
        return parse_mode(&options->mode, text);
    case 'o':
        return parse_age(&options->older, text);
    case 'M':
        return parse_pair(&options->metatile_columns, &options->metatile_rows, text, 1, 64, pool);
    case 'i':
        return parse_order(&options->order, text);
    case 'n':
    case 'p':
        return parse_workers(options, letter == 'p', text);
    case 'P':
        return mc_parse_int(&options->percent, text, 0, 100);
    case 'D':
        return parse_assignment(options->dimensions, text, pool);
    case 'H':
        return parse_assignment(options->headers, text, pool);
    case RATE_LIMIT:
        return mc_parse_int(&options->rate, text, 1, 1000000000);
    case RETRIES:
        return mc_parse_int(&options->retries, text, 0, 100);
    case THREAD_DELAY:
        return mc_parse_double(&options->thread_delay, text) && options->thread_delay >= 0 &&
               options->thread_delay <= 86400;
    default:
        return false;
    }
}

static const char *
option_name(int letter)
{
    const apr_getopt_option_t *row = rows;
    while (row->name != NULL && row->optch != letter)
        row++;
    return row->name;
}

static const char *
check(const mc_seed_options *options)
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
    if (options->retry != NULL && options->failures != NULL && strcmp(options->retry, options->failures) == 0)
        return "--log-failed would empty the file that --retry-failed reads";
    return NULL;
}

/* The list of options follows every complaint; apr_getopt's own message goes before it. */
static void
complain(void *stream, const char *format, ...)
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
    apr_getopt_init(&parser, pool, argc, argv);
    parser->errfn = complain;
    parser->errarg = stdout;
    int letter;
    const char *text;
    apr_status_t status;
    while ((status = apr_getopt_long(parser, rows, &letter, &text)) == APR_SUCCESS) {
        if (letter == 'h') {
            options->help = true;
            return NULL;
        }
        if (letter == 'd' || letter == 'l' || letter == 'w' || letter == 's')
            return apr_psprintf(pool, "--%s: this build has no OGR; limit the area with --extent", option_name(letter));
        if (set_flag(options, letter) || (text != NULL && set_name(options, letter, text)))
            continue;
        if (!set_value(options, letter, text, pool))
            return apr_psprintf(pool, "--%s cannot be \"%s\"%s", option_name(letter), text,
                                letter == 'n' || letter == 'p' ? " (a number above 0, for one of -n and -p)" : "");
    }
    if (status != APR_EOF)
        return "an option is not known or lacks its argument";
    if (parser->ind < argc)
        return apr_psprintf(pool, "\"%s\" is no option", argv[parser->ind]);
    if (options->workers == 0)
        options->workers = 1;
    return check(options);
}
