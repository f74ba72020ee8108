/* Options of `mapcache cube`: one table for parser and usage text. */
#include "cube_options.h"

#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/options.h"
#include "text/text.h"

enum { CUBE = 256, TIME, DATE, AT, SRS, NO_DATA, CACHE_LIMIT, SCRATCH, JSON };

/* docs/datacube.md has the same table; a test compares it with what --help prints. */
static const apr_getopt_option_t rows[] = {
    { "config", 'c', 1, "configuration file (required)" },
    { "cube", CUBE, 1, "name of the cube (required)" },
    { "list", 'l', 1, "file with one image a line, \"-\" for standard input; after a tab its time" },
    { "time", TIME, 1, "how the time stands in the images' names, as S2_%Y%m%d" },
    { "date", DATE, 1, "time of all images; with a step behind it, as 2024-01-01/P1D, one after the other" },
    { "at", AT, 1, "X,Y of the images' upper left corner: what the files say of their place is not looked at" },
    { "srs", SRS, 1, "CRS of images that do not say it; default: the cube's" },
    { "nodata", NO_DATA, 1, "colour that means no data, R,G,B or one number for all three" },
    { "cachelimit", CACHE_LIMIT, 1, "memory for decoded images that wait to be written, as 64M; default: 256M" },
    { "scratch", SCRATCH, 1, "folder for a file where that is not enough; default: $TMPDIR or /var/tmp" },
    { "nthreads", 'n', 1, "threads that decode; default: one for each processor" },
    { "json", JSON, 0, "one JSON object a line" },
    { "quiet", 'q', 0, "no progress" },
    { "verbose", 'v', 0, "log everything" },
    { "help", 'h', 0, "show this list" },
    { NULL, 0, 0, NULL },
};

void
mc_cube_usage(const char *message)
{
    if (message != NULL) {
        fprintf(stderr, "mapcache cube: %s\n`mapcache cube --help` lists the options.\n", message);
        return;
    }
    puts(
        "usage: mapcache cube ingest -c FILE --cube NAME [OPTIONS] IMAGE ...\n"
        "       mapcache cube dates -c FILE --cube NAME [--json]\n"
        "       mapcache cube overviews -c FILE --cube NAME [OPTIONS]\n\n"
        "ingest stores images (PNG and JPEG with world files, TIFF with GeoTIFF tags or a world file) in a cube, each\n"
        "at its time. Images of one time are a mosaic: where they overlap, the later one is on top. A time that the\n"
        "cube has already is corrected where the images lie. dates lists the times of a cube. overviews makes those "
        "that\n"
        "are configured, of a cube that was stored with another number of them.\n");
    mc_options_list(rows);
    puts("\nExit status: 0 all is stored, 1 an error, 2 interrupted (what is stored is right; run it again), 3 images\n"
         "were left out, each named with its reason, and with it the others of its time. More: docs/datacube.md");
}

/* False where the value cannot be read. */
static bool
set_cube_option_value(void *baton, int letter, const char *text, apr_pool_t *pool)
{
    mc_cube_options *options = baton;
    const char *slash;
    switch (letter) {
    case DATE:
        slash = strchr(text, '/');
        options->date = slash == NULL ? text : apr_pstrmemdup(pool, text, (apr_size_t)(slash - text));
        options->step = slash == NULL ? NULL : slash + 1;
        return true;
    case AT:
        options->placed = true;
        return mc_parse_doubles(options->at, 2, NULL, text, ",");
    case NO_DATA:
        options->raster.has_no_data = true;
        return mc_option_color(options->raster.no_data, text);
    case CACHE_LIMIT:
        return mc_parse_size(&options->cache_limit, text) && options->cache_limit >= 1 << 20 &&
               options->cache_limit <= (int64_t)1 << 40;
    case 'n':
        return mc_parse_int(&options->threads, text, 1, 256);
    default:
        return false;
    }
}

static const char *
check_cube_options(const mc_cube_options *options, const char *word)
{
    if (options->config == NULL)
        return "which configuration? (-c FILE)";
    if (options->cube == NULL)
        return "which cube? (--cube NAME)";
    if (strcmp(word, "ingest") != 0)
        return options->paths->nelts > 0 ? "only ingest takes images" : NULL;
    if (options->paths->nelts == 0 && options->list == NULL)
        return "no images were named";
    if (options->time != NULL && options->date != NULL)
        return "--time and --date both say when the images are of: one of them is enough";
    if (options->time == NULL && options->date == NULL && options->list == NULL)
        return "when are the images of? --time says how it stands in their names, --date gives it";
    return NULL;
}

const char *
mc_cube_options_parse(mc_cube_options *options, int argc, const char *const *argv, apr_pool_t *pool)
{
    const char *folder = getenv("TMPDIR");
    *options = (mc_cube_options){ .scratch = folder == NULL || *folder == '\0' ? "/var/tmp" : folder,
                                  .cache_limit = (int64_t)256 << 20 };
    const mc_option_place places[] = {
        { 'c', &options->config, NULL },
        { CUBE, &options->cube, NULL },
        { 'l', &options->list, NULL },
        { TIME, &options->time, NULL },
        { SRS, &options->raster.srs, NULL },
        { SCRATCH, &options->scratch, NULL },
        { JSON, NULL, &options->json },
        { 'q', NULL, &options->quiet },
        { 'v', NULL, &options->verbose },
        { 'h', NULL, &options->help },
        { 0, NULL, NULL },
    };
    const char *problem =
        mc_options_parse(&options->paths, rows, places, set_cube_option_value, options, argc, argv, pool);
    if (problem != NULL || options->help)
        return problem;
    return check_cube_options(options, argv[0]);
}
