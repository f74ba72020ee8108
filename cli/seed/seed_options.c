/* The seeder's options (docs/reference/services.md 9.1). */
#include "seed_options.h"

#include <apr_strings.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/ogr_area.h"
#include "cli/common/values.h"

bool
mc_seed_parse_zooms(void *field, const char *text, apr_pool_t *pool)
{
    mc_seed_options *options = field;
    options->has_zoom = true;
    return mc_cli_parse_zooms(&options->minzoom, &options->maxzoom, text, pool);
}

bool
mc_seed_parse_extent(void *field, const char *text, apr_pool_t *pool)
{
    mc_seed_options *options = field;
    return options->has_extent = mc_cli_parse_extent(&options->extent, text, pool);
}

bool
mc_seed_parse_age(void *field, const char *text, apr_pool_t *pool)
{
    return mc_cli_parse_age(field, text, pool);
}

static bool
parse_metasize(void *field, const char *text, apr_pool_t *pool)
{
    mc_seed_options *options = field;
    return mc_cli_parse_pair(&options->metatile_columns, &options->metatile_rows, text, 1, 64, pool);
}

static bool
parse_order(void *field, const char *text, apr_pool_t *pool)
{
    static const struct {
        const char *name;
        mc_seed_order order;
    } names[] = { { "drill-down", MC_SEED_DOWN },       { "down", MC_SEED_DOWN },    { "scanline", MC_SEED_LEVELS },
                  { "level-by-level", MC_SEED_LEVELS }, { "level", MC_SEED_LEVELS }, { "hilbert", MC_SEED_HILBERT } };
    mc_seed_options *options = field;
    (void)pool;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i].name) == 0) {
            options->order = names[i].order;
            return options->has_order = true;
        }
    return false;
}

#define AT(field) offsetof(mc_seed_options, field)

static const mc_cli_option seed_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration (required)", .required = true),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(tileset), "tileset (required)", .required = true),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(grid), "grid of the tileset; default: its first"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", 0, mc_seed_parse_zooms,
                    "zoom levels, the smaller first; default: all of the grid"),
    MC_OPTION_HEADING("Where"),
    MC_OPTION_VALUE("extent", 'e', "MINX,MINY,MAXX,MAXY", 0, mc_seed_parse_extent, "in units of the grid"),
    MC_OPTION_TEXT("area", 0, "FILE", AT(area), "only tiles that meet its polygons, lines and points: GeoJSON or WKT"),
    MC_OPTION_TEXT("area-srs", 0, "SRS", AT(area_srs),
                   "CRS of the area's coordinates, x first; default: what the file says"),
    MC_OPTION_TEXT("ogr-datasource", 'd', "NAME", AT(ogr.source),
                   "the same from a vector source of GDAL, in units of the grid; not with -e"),
    MC_OPTION_TEXT("ogr-layer", 'l', "NAME", AT(ogr.layer), "its layer, needed if it has several"),
    MC_OPTION_TEXT("ogr-where", 'w', "FILTER", AT(ogr.where), "only features with these attributes"),
    MC_OPTION_TEXT("ogr-sql", 's', "QUERY", AT(ogr.sql), "a query instead of layer and filter"),
    MC_OPTION_FLAG("outside", 0, AT(outside), "delete what does not meet the extent or area, instead of what does"),
    MC_OPTION_HEADING("What is done"),
    MC_OPTION_CHOICE("mode", 'm', "MODE", AT(mode), "seed|delete|transfer", "seed (default), delete or transfer"),
    MC_OPTION_TEXT("transfer", 'x', "NAME", AT(transfer), "tileset that a transfer copies to"),
    MC_OPTION_FLAG("force", 'f', AT(force), "do not look whether tiles exist: draw, delete or copy all"),
    MC_OPTION_VALUE("older", 'o', "AGE", AT(older), mc_seed_parse_age,
                    "only tiles older than \"YYYY/MM/DD hh:mm\" (local time), \"now\", or 90s, 30m, 12h, 7d ago"),
    MC_OPTION_VALUE("metasize", 'M', "COLUMNS,ROWS", 0, parse_metasize, "tiles in a metatile; default: the tileset's"),
    MC_OPTION_VALUE("iteration-mode", 'i', "ORDER", 0, parse_order,
                    "drill-down, scanline or hilbert; default: drill-down for the built-in grids",
                    .choices = "drill-down|scanline|hilbert"),
    MC_OPTION_VALUE("order", 0, "ORDER", 0, parse_order, "the same: down, level or hilbert",
                    .choices = "down|level|hilbert"),
    MC_OPTION_HEADING("Workers"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(threads_wanted), 1, 1000, "threads, 1 to 1000; default 1; not with -p"),
    MC_OPTION_INT("nprocesses", 'p', "COUNT", AT(processes_wanted), 1, 1000, "processes, 1 to 1000; not with -n"),
    MC_OPTION_NUMBER("percent", 'P', "PERCENT", AT(percent), 0, 100,
                     "give up when more than this share of the last 1000 failed; 0 to 100, default 1"),
    MC_OPTION_INT("retries", 0, "COUNT", AT(retries), 0, 100,
                  "try a failed metatile again, after growing pauses; default 0"),
    MC_OPTION_FLAG("no-backoff", 0, AT(no_backoff), "keep all workers at it when the origin slows down or fails"),
    MC_OPTION_NUMBER("rate-limit", 0, "COUNT", AT(rate), 1e-3, 1e9, "tiles per second, at most"),
    MC_OPTION_NUMBER("thread-delay", 0, "SECONDS", AT(thread_delay), 0, 86400, "between the starts of threads"),
    MC_OPTION_HEADING("Lists and places"),
    MC_OPTION_TEXT("log-failed", 'L', "FILE", AT(failures), "gets a line x,y,z for each failure"),
    MC_OPTION_TEXT("retry-failed", 'R', "FILE", AT(retry), "take the tiles from such a file"),
    MC_OPTION_TEXT("list", 0, "FILE", AT(list), "take the tiles from lines z/x/y or x y z, rows from the north"),
    MC_OPTION_TEXT("checkpoint", 0, "FILE", AT(checkpoint), "keeps the place of the run"),
    MC_OPTION_FLAG("resume", 0, AT(resume), "go on at the place that --checkpoint has kept"),
    MC_OPTION_HEADING("Of the tileset"),
    MC_OPTION_TEXT("cache", 'C', "NAME", AT(cache), "use another cache for the tileset"),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(dimensions), "value of a dimension; may be repeated"),
    MC_OPTION_ASSIGNMENT("header", 'H', AT(headers), "for {NAME} in headers of the source; may be repeated"),
    MC_OPTION_HEADING("General"),
    MC_OPTION_DRY_RUN(AT(dry_run), "only count what would be visited, by level, and estimate its size"),
    MC_OPTION_JSON(AT(json), "progress as lines of JSON"),
    MC_OPTION_QUIET(AT(quiet)),
    MC_OPTION_FLAG("non-interactive", 'b', AT(non_interactive), "progress on lines of its own"),
    MC_OPTION_FLAG("verbose", 'v', AT(verbose), "all messages, on standard error, and where the time went"),
    MC_OPTION_END,
};

static void
set_seed_defaults(void *options, apr_pool_t *pool)
{
    *(mc_seed_options *)options =
        (mc_seed_options){ .percent = 1, .dimensions = apr_table_make(pool, 4), .headers = apr_table_make(pool, 4) };
}

const mc_cli_option_table mc_seed_option_table = { seed_rows, sizeof(mc_seed_options), set_seed_defaults };

/* What limits the area. */
const char *
mc_seed_check_area(const mc_seed_options *options)
{
    const mc_seed_ogr *ogr = &options->ogr;
    const char *problem = mc_ogr_area_check(ogr, options->has_extent, options->area);
    if (problem != NULL)
        return problem;
    if (options->area_srs != NULL && options->area == NULL && ogr->source == NULL)
        return "--area-srs needs --area or --ogr-datasource";
    if (!options->outside)
        return NULL;
    if (options->mode != MC_SEED_DELETE && options->mode != MC_SEED_MARK)
        return "--outside is for --mode delete";
    if (options->has_extent == (options->area != NULL || ogr->source != NULL))
        return "--outside needs one of --extent, --area and --ogr-datasource";
    return NULL;
}

const char *
mc_check_seed_options(mc_cli_call *call)
{
    mc_seed_options *options = call->options;
    options->drop_in = call->drop_in;
    if (options->threads_wanted > 0 && options->processes_wanted > 0)
        return "the workers are either threads (-n) or processes (-p)";
    options->processes = options->processes_wanted > 0;
    options->workers = options->processes ? options->processes_wanted : options->threads_wanted;
    if (options->workers == 0)
        options->workers = 1;
    if (options->mode == MC_SEED_TRANSFER && options->transfer == NULL)
        return "a transfer needs --transfer TILESET";
    if (options->retry != NULL && options->list != NULL)
        return "the tiles come from one of --retry-failed and --list";
    if (options->resume && options->checkpoint == NULL)
        return "--resume needs --checkpoint FILE";
    return mc_seed_check_area(options);
}
