/* Options of `mapcache ingest`: one table for parser and usage text. */
#include "ingest_options.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/options.h"
#include "text/text.h"

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
    mc_options_list(rows);
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

static bool
parse_ingest_resample(mc_ingest_resample *resample, const char *text)
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
set_ingest_option_value(void *baton, int letter, const char *text, apr_pool_t *pool)
{
    mc_ingest_options *options = baton;
    switch (letter) {
    case 'z':
        return parse_zoom(options, text);
    case 'D':
        return parse_assignment(options->dimensions, text, pool);
    case NO_DATA:
        options->raster.has_no_data = true;
        return mc_option_color(options->raster.no_data, text);
    case BACKGROUND:
        return mc_option_color(options->background, text);
    case RESAMPLE:
        return parse_ingest_resample(&options->resample, text);
    case CACHE_LIMIT:
        return mc_parse_size(&options->cache_limit, text) && options->cache_limit >= 8 << 20 &&
               options->cache_limit <= (int64_t)1 << 40;
    case 'n':
        return mc_parse_int(&options->threads, text, 1, 256);
    default:
        return false;
    }
}

static const char *
check_ingest_options(const mc_ingest_options *options)
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
    *options = (mc_ingest_options){
        .minzoom = -1, .maxzoom = -1, .cache_limit = 256 << 20, .threads = 1, .dimensions = apr_table_make(pool, 4)
    };
    const mc_option_place places[] = {
        { 'c', &options->config, NULL },
        { 't', &options->tileset, NULL },
        { 'g', &options->grid, NULL },
        { 'l', &options->list, NULL },
        { TIME, &options->time, NULL },
        { TIME_DIMENSION, &options->time_dimension, NULL },
        { SRS, &options->raster.srs, NULL },
        { SCRATCH, &options->scratch, NULL },
        { SKIP_BAD, NULL, &options->skip_bad },
        { 'N', NULL, &options->dry_run },
        { JSON, NULL, &options->json },
        { 'q', NULL, &options->quiet },
        { 'v', NULL, &options->verbose },
        { 'h', NULL, &options->help },
        { 0, NULL, NULL },
    };
    const char *problem =
        mc_options_parse(&options->paths, rows, places, set_ingest_option_value, options, argc, argv, pool);
    return problem != NULL || options->help ? problem : check_ingest_options(options);
}
