/* The options of `mapcache purge`. */
#include <stddef.h>

#include "cli/commands.h"
#include "purge.h"

#define AT(field) offsetof(mc_purge_options, field)

static const mc_cli_option purge_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(seed.config), "configuration (required)", .required = true),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(seed.tileset), "tileset (required)", .required = true),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(seed.grid), "grid of the tileset; default: all of them"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", AT(seed), mc_seed_parse_zooms,
                    "zoom levels, the smaller first; default: all"),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(seed.dimensions),
                         "value of a dimension, as stored; default: all values; may be repeated"),
    MC_OPTION_VALUE("older", 'o', "AGE", AT(seed.older), mc_seed_parse_age,
                    "only tiles older than \"YYYY/MM/DD hh:mm\" (local time), \"now\", or 90s, 30m, 12h, 7d ago"),
    MC_OPTION_HEADING("Where"),
    MC_SEED_AREA_OPTIONS,
    MC_OPTION_FLAG("outside", 0, AT(seed.outside), "what does not meet the extent or area, instead of what does"),
    MC_OPTION_HEADING("How"),
    MC_OPTION_FLAG(
        "stale", 0, AT(stale),
        "mark the tiles as old instead: servers show them until they have drawn new ones, behind the answers"),
    MC_OPTION_HEADING("Workers"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(seed.threads_wanted), 1, 1000,
                  "threads that delete tile by tile, 1 to 1000; default 1"),
    MC_OPTION_HEADING("General"),
    MC_OPTION_FLAG("yes", 'y', AT(yes), "do not ask"),
    MC_OPTION_DRY_RUN(AT(dry_run), "say what would be deleted, delete nothing"),
    MC_OPTION_JSON(AT(json), "lines of JSON"),
    MC_OPTION_VERBOSE(AT(seed.verbose)),
    MC_OPTION_END,
};

static void
set_purge_defaults(void *options, apr_pool_t *pool)
{
    ((mc_purge_options *)options)->seed = (mc_seed_options){
        .mode = MC_SEED_DELETE, .percent = 1, .dimensions = apr_table_make(pool, 4), .headers = apr_table_make(pool, 4)
    };
}

const mc_cli_option_table mc_purge_option_table = { purge_rows, sizeof(mc_purge_options), set_purge_defaults };

const char *
mc_check_purge_options(mc_cli_call *call)
{
    mc_purge_options *options = call->options;
    mc_seed_options *seed = &options->seed;
    seed->workers = seed->threads_wanted > 0 ? seed->threads_wanted : 1;
    if (options->stale)
        seed->mode = MC_SEED_MARK;
    seed->dry_run = options->dry_run;
    seed->json = options->json;
    return mc_seed_check_area(seed);
}
