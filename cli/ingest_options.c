/* Options of `mapcache ingest`: one table for parser and usage text. */
#include "ingest_options.h"

#include <apr_getopt.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { SRS = 256, NO_DATA, RESAMPLE, BACKGROUND, CACHE_LIMIT, SCRATCH, TIME, TIME_DIMENSION, SKIP_BAD, JSON };

static const apr_getopt_option_t rows[] = {
    { "config", 'c', 1, "configuration file (required)" },
    { "tileset", 't', 1, "tileset whose tiles are made (required)" },
    { "grid", 'g', 1, "grid of the tileset; default: its first one" },
    { "zoom", 'z', 1, "first and last level, as 0,12; default: all down to the level nearest to the finest image" },
    { "list", 'l', 1, "file with one image a line, \"-\" for standard input; after a tab the value of its time" },
    { "time", TIME, 1, "how a time stands in the images' names, as S2_%Y%m%d: each time is a pyramid of its own" },
    { "time-dimension", TIME_DIMENSION, 1, "dimension that these times belong to; default: the tileset's only one" },
    { "dimension", 'D', 1, "NAME=VALUE of another dimension; may be given several times" },
    { "srs", SRS, 1, "CRS of images that do not say it, as EPSG:2056; default: the grid's" },
    { "nodata", NO_DATA, 1, "colour that means no data, R,G,B or one number for all three" },
    { "resample", RESAMPLE, 1, "auto (default), nearest, bilinear or average" },
    { "background", BACKGROUND, 1, "R,G,B behind images where tiles cannot be transparent; default: 0,0,0" },
    { "cachelimit", CACHE_LIMIT, 1, "memory for tiles that are not complete yet, as 64M; default: 256M" },
    { "scratch", SCRATCH, 1, "folder for those beyond it; default: $TMPDIR or /tmp" },
    { "nthreads", 'n', 1, "threads; default: 1" },
    { "skip-bad", SKIP_BAD, 0, "pass over images that cannot be used; the exit status tells" },
    { "dry-run", 'N', 0, "say what would be done, change nothing" },
    { "json", JSON, 0, "progress as one JSON object a line" },
    { "quiet", 'q', 0, "no progress" },
    { "verbose", 'v', 0, "log everything" },
    { "help", 'h', 0, "show this list" },
    { NULL, 0, 0, NULL },
};

void
mc_ingest_usage(const char *message)
{
    if (message != NULL) {
        fprintf(stderr, "mapcache ingest: %s\n`mapcache ingest --help` lists the options.\n", message);
        return;
    }
    puts("usage: mapcache ingest -c FILE -t TILESET [OPTIONS] IMAGE ...\n\n"
         "Makes tiles of georeferenced images: PNG and JPEG with world files, TIFF with GeoTIFF tags or a world file.\n"
         "Where images overlap, the later one is on top. What is stored already stays where no image has data.\n");
    for (const apr_getopt_option_t *row = rows; row->name != NULL; row++) {
        char name[40];
        snprintf(name, sizeof(name), "--%s%s", row->name, row->has_arg ? " ..." : "");
        if (row->optch < 256)
            printf("  -%c, %-22s %s\n", row->optch, name, row->description);
        else
            printf("      %-22s %s\n", name, row->description);
    }
    puts("\nExit status: 0 all is stored, 1 an error, 2 interrupted (what is stored is right; run it again), 3 bad "
         "images\n"
         "were passed over. The last line of --json has it too. More: docs/ingest.md");
}

static bool
parse_zoom(mc_ingest_options *options, const char *text)
{
    double numbers[2];
    int found = 0;
    if (!mc_parse_doubles(numbers, 2, &found, text, ",") || found < 1)
        return false;
    for (int i = 0; i < found; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 255) || numbers[i] != (double)(int)numbers[i])
            return false;
    options->minzoom = (int)numbers[0];
    options->maxzoom = (int)numbers[found - 1];
    return options->minzoom <= options->maxzoom;
}

bool
mc_ingest_color(uint8_t rgb[3], const char *text)
{
    double numbers[3];
    int found = 0;
    if (!mc_parse_doubles(numbers, 3, &found, text, ",") || found == 2)
        return false;
    for (int i = 0; i < 3; i++) {
        double value = numbers[found == 1 ? 0 : i];
        if (!(value >= 0 && value <= 255) || value != (double)(int)value)
            return false;
        rgb[i] = (uint8_t)value;
    }
    return true;
}

static bool
parse_resample(mc_ingest_resample *resample, const char *text)
{
    static const char *const names[] = { "auto", "nearest", "bilinear", "average" };
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *resample = (mc_ingest_resample)i;
            return true;
        }
    return false;
}

static bool
parse_assignment(apr_table_t *table, const char *text, apr_pool_t *pool)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    apr_table_set(table, apr_pstrmemdup(pool, text, (apr_size_t)(equals - text)), equals + 1);
    return true;
}

/* False where the value cannot be read. */
static bool
set_value(mc_ingest_options *options, int letter, const char *text, apr_pool_t *pool)
{
    switch (letter) {
    case 'z':
        return parse_zoom(options, text);
    case 'D':
        return parse_assignment(options->dimensions, text, pool);
    case NO_DATA:
        options->raster.has_no_data = true;
        return mc_ingest_color(options->raster.no_data, text);
    case BACKGROUND:
        return mc_ingest_color(options->background, text);
    case RESAMPLE:
        return parse_resample(&options->resample, text);
    case CACHE_LIMIT:
        return mc_parse_size(&options->cache_limit, text) && options->cache_limit >= 8 << 20 &&
               options->cache_limit <= (int64_t)1 << 40;
    case 'n':
        return mc_parse_int(&options->threads, text, 1, 256);
    default:
        return false;
    }
}

static bool
set_flag(mc_ingest_options *options, int letter)
{
    bool *const flag = letter == SKIP_BAD ? &options->skip_bad
                       : letter == 'N'    ? &options->dry_run
                       : letter == JSON   ? &options->json
                       : letter == 'q'    ? &options->quiet
                       : letter == 'v'    ? &options->verbose
                       : letter == 'h'    ? &options->help
                                          : NULL;
    if (flag != NULL)
        *flag = true;
    return flag != NULL;
}

static bool
set_name(mc_ingest_options *options, int letter, const char *text)
{
    const char **const name = letter == 'c'              ? &options->config
                              : letter == 't'            ? &options->tileset
                              : letter == 'g'            ? &options->grid
                              : letter == 'l'            ? &options->list
                              : letter == TIME           ? &options->time
                              : letter == TIME_DIMENSION ? &options->time_dimension
                              : letter == SRS            ? &options->raster.srs
                              : letter == SCRATCH        ? &options->scratch
                                                         : NULL;
    if (name != NULL)
        *name = text;
    return name != NULL;
}

static const char *
name_of(int letter)
{
    const apr_getopt_option_t *row = rows;
    while (row->name != NULL && row->optch != letter)
        row++;
    return row->name;
}

static void
no_complaint(void *stream, const char *format, ...)
{
    (void)stream, (void)format;
}

static const char *
check(const mc_ingest_options *options)
{
    if (options->config == NULL)
        return "the option --config is required";
    if (options->tileset == NULL)
        return "the option --tileset is required";
    if (options->list == NULL && options->paths->nelts == 0)
        return "no image is named";
    return NULL;
}

const char *
mc_ingest_options_parse(mc_ingest_options *options, int argc, const char *const *argv, apr_pool_t *pool)
{
    apr_array_header_t *paths = apr_array_make(pool, 16, sizeof(const char *));
    *options = (mc_ingest_options){ .minzoom = -1,
                                    .maxzoom = -1,
                                    .cache_limit = 256 << 20,
                                    .threads = 1,
                                    .dimensions = apr_table_make(pool, 4),
                                    .paths = paths };
    apr_getopt_t *parser;
    apr_getopt_init(&parser, pool, argc, argv);
    parser->interleave = 1;
    parser->errfn = no_complaint;
    int letter;
    const char *text;
    apr_status_t status;
    while ((status = apr_getopt_long(parser, rows, &letter, &text)) == APR_SUCCESS) {
        if (set_flag(options, letter) || (text != NULL && set_name(options, letter, text)))
            continue;
        if (!set_value(options, letter, text, pool))
            return apr_psprintf(pool, "--%s cannot be \"%s\"", name_of(letter), text);
    }
    if (options->help)
        return NULL;
    if (status != APR_EOF)
        return apr_psprintf(pool, "%s is no option, or lacks its value",
                            parser->ind > 0 && parser->ind <= argc ? argv[parser->ind - 1] : "something");
    for (int i = parser->ind; i < argc; i++) /* its own copy: options that stood between are in front now */
        APR_ARRAY_PUSH(paths, const char *) = parser->argv[i];
    return check(options);
}
