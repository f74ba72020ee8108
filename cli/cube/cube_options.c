/* The options of `mapcache cube`. */
#include "cube_options.h"

#include <apr_strings.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/values.h"
#include "text/text.h"

static bool
parse_cube_date(void *field, const char *text, apr_pool_t *pool)
{
    mc_cube_options *options = field;
    const char *slash = strchr(text, '/');
    options->date = slash == NULL ? text : apr_pstrmemdup(pool, text, (apr_size_t)(slash - text));
    options->step = slash == NULL ? NULL : slash + 1;
    return true;
}

static bool
parse_cube_place(void *field, const char *text, apr_pool_t *pool)
{
    mc_cube_options *options = field;
    (void)pool;
    options->placed = true;
    return mc_parse_doubles(options->at, 2, NULL, text, ",");
}

#define AT(field) offsetof(mc_cube_options, field)

static const mc_cli_option cube_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration file (required)", .required = true),
    MC_OPTION_TEXT("cube", 0, "NAME", AT(cube), "name of the cube (required)", .required = true),
    MC_OPTION_HEADING("Images"),
    MC_OPTION_TEXT("list", 0, "FILE", AT(list),
                   "file with one image a line, \"-\" for standard input; after a tab its time"),
    MC_OPTION_TEXT("time", 0, "PATTERN", AT(time), "how the time stands in the images' names, as S2_%Y%m%d"),
    MC_OPTION_VALUE("date", 0, "TIME", 0, parse_cube_date,
                    "time of all images; with a step behind it, as 2024-01-01/P1D, one after the other"),
    MC_OPTION_VALUE("at", 0, "X,Y", 0, parse_cube_place,
                    "X,Y of the images' upper left corner: what the files say of their place is not looked at"),
    MC_OPTION_TEXT("srs", 0, "SRS", AT(raster.srs), "CRS of images that do not say it; default: the cube's"),
    MC_OPTION_VALUE("nodata", 0, "COLOR", AT(raster), mc_cli_parse_no_data,
                    "colour that means no data, R,G,B or one number for all three"),
    MC_OPTION_HEADING("Resources"),
    MC_OPTION_SIZE("cachelimit", 0, AT(cache_limit), 1 << 20, INT64_C(1) << 40,
                   "memory for decoded images that wait to be written, as 64M; default: 256M"),
    MC_OPTION_TEXT("scratch", 0, "FOLDER", AT(scratch),
                   "folder for a file where that is not enough; default: $TMPDIR or /var/tmp"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(threads), 1, 256,
                  "threads that decode; default: one for each processor"),
    MC_OPTION_HEADING("General"),
    MC_OPTION_JSON(AT(json), "one JSON object a line"),
    MC_OPTION_QUIET(AT(quiet)),
    MC_OPTION_VERBOSE(AT(verbose)),
    MC_OPTION_END,
};

static void
set_cube_defaults(void *options, apr_pool_t *pool)
{
    const char *folder = getenv("TMPDIR");
    (void)pool;
    *(mc_cube_options *)options = (mc_cube_options){ .scratch = folder == NULL || *folder == '\0' ? "/var/tmp" : folder,
                                                     .cache_limit = (int64_t)256 << 20 };
}

const mc_cli_option_table mc_cube_option_table = { cube_rows, sizeof(mc_cube_options), set_cube_defaults };

const char *
mc_check_cube_options(mc_cli_call *call)
{
    mc_cube_options *options = call->options;
    options->paths = call->arguments;
    if (call->command->mask != MC_CUBE_INGEST)
        return options->paths->nelts > 0 ? "only ingest takes images" : NULL;
    if (options->paths->nelts == 0 && options->list == NULL)
        return "no images were named";
    if (options->time != NULL && options->date != NULL)
        return "--time and --date both say when the images are of: one of them is enough";
    if (options->time == NULL && options->date == NULL && options->list == NULL)
        return "when are the images of? --time says how it stands in their names, --date gives it";
    return NULL;
}
