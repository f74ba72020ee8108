/* The options of `mapcache ingest`. */
#include "ingest_options.h"

#include <stddef.h>

#include "cli/commands.h"
#include "cli/common/values.h"
#include "text/text.h"

static bool
parse_ingest_zooms(void *field, const char *text, apr_pool_t *pool)
{
    mc_ingest_options *options = field;
    double numbers[2];
    int found = 0;
    (void)pool;
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
parse_background(void *field, const char *text, apr_pool_t *pool)
{
    (void)pool;
    return mc_cli_parse_color(field, text);
}

#define AT(field) offsetof(mc_ingest_options, field)

static const mc_cli_option ingest_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration file (required)", .required = true),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(tileset), "tileset whose tiles are made (required)", .required = true),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(grid), "grid of the tileset; default: its first one"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", 0, parse_ingest_zooms,
                    "first and last level, as 0,12; default: all down to the level nearest to the finest image"),
    MC_OPTION_HEADING("Images"),
    MC_OPTION_TEXT("list", 0, "FILE", AT(list),
                   "file with one image a line, \"-\" for standard input; after a tab the value of its time"),
    MC_OPTION_TEXT("time", 0, "PATTERN", AT(time),
                   "how a time stands in the images' names, as S2_%Y%m%d: each time is a pyramid of its own"),
    MC_OPTION_TEXT("time-dimension", 0, "NAME", AT(time_dimension),
                   "dimension that these times belong to; default: the tileset's only one"),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(dimensions), "value of another dimension; may be given several times"),
    MC_OPTION_TEXT("srs", 0, "SRS", AT(raster.srs),
                   "CRS of images that do not say it, as EPSG:2056; without it such images are refused"),
    MC_OPTION_VALUE("nodata", 0, "COLOR", AT(raster), mc_cli_parse_no_data,
                    "colour that means no data, R,G,B or one number for all three"),
    MC_OPTION_CHOICE("resample", 0, "KIND", AT(resample), "auto|nearest|bilinear|average",
                     "auto (default), nearest, bilinear or average"),
    MC_OPTION_VALUE("background", 0, "COLOR", AT(background), parse_background,
                    "R,G,B behind images where tiles cannot be transparent; default: 0,0,0"),
    MC_OPTION_HEADING("Resources"),
    MC_OPTION_SIZE("cachelimit", 0, AT(cache_limit), 8 << 20, INT64_C(1) << 40,
                   "memory for tiles that are not complete yet, as 64M; default: 256M"),
    MC_OPTION_TEXT("scratch", 0, "FOLDER", AT(scratch), "folder for those beyond it; default: $TMPDIR or /tmp"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(threads), 1, 256, "threads; default: 1"),
    MC_OPTION_HEADING("General"),
    MC_OPTION_FLAG("skip-bad", 0, AT(skip_bad), "pass over images that cannot be used; the exit status tells"),
    MC_OPTION_DRY_RUN(AT(dry_run), "say what would be done, change nothing"),
    MC_OPTION_JSON(AT(json), "progress as one JSON object a line"),
    MC_OPTION_QUIET(AT(quiet)),
    MC_OPTION_VERBOSE(AT(verbose)),
    MC_OPTION_END,
};

static void
set_ingest_defaults(void *options, apr_pool_t *pool)
{
    *(mc_ingest_options *)options = (mc_ingest_options){
        .minzoom = -1, .maxzoom = -1, .cache_limit = 256 << 20, .threads = 1, .dimensions = apr_table_make(pool, 4)
    };
}

const mc_cli_option_table mc_ingest_option_table = { ingest_rows, sizeof(mc_ingest_options), set_ingest_defaults };

const char *
mc_check_ingest_options(mc_cli_call *call)
{
    mc_ingest_options *options = call->options;
    options->paths = call->arguments;
    return options->list == NULL && options->paths->nelts == 0 ? "no image is named" : NULL;
}
