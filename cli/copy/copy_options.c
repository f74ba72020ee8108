/* The options of `mapcache copy`. */
#include <stddef.h>

#include "cli/commands.h"
#include "copy.h"

#define AT(field) offsetof(mc_copy_options, field)

static const mc_cli_option copy_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(seed.config), "configuration; not needed from file to file"),
    MC_OPTION_TEXT("from", 0, "NAME", AT(from),
                   "tileset, cache or file (.mbtiles, .gpkg, .sqlite3, .pmtiles) that has the tiles (required)",
                   .required = true),
    MC_OPTION_TEXT("to", 0, "NAME", AT(to), "tileset, cache, file or s3://BUCKET/KEY.pmtiles that gets them (required)",
                   .required = true),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(seed.tileset),
                   "of the tilesets of the cache or the file only this one; default: all of them"),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(seed.grid), "grid of the tileset; default: all of them"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", AT(seed), mc_seed_parse_zooms,
                    "zoom levels, the smaller first; default: all"),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(seed.dimensions),
                         "value of a dimension, as stored; default: all values; may be repeated"),
    MC_OPTION_HEADING("Where"),
    MC_SEED_AREA_OPTIONS,
    MC_OPTION_HEADING("What is done"),
    MC_OPTION_TEXT(
        "warp", 0, "GRID", AT(warp),
        "draw pictures anew on this grid, from the stored tiles of another one; --zoom and --extent are its"),
    MC_OPTION_FLAG("force", 'f', AT(seed.force), "also copy tiles that the target has"),
    MC_OPTION_FLAG("verify", 0, AT(verify), "read all of them back afterwards, and compare them byte by byte"),
    MC_OPTION_HEADING("Workers"),
    MC_OPTION_INT("nthreads", 'n', "COUNT", AT(seed.threads_wanted), 1, 1000,
                  "threads, 1 to 1000; default 1; not with -p"),
    MC_OPTION_INT("nprocesses", 'p', "COUNT", AT(seed.processes_wanted), 1, 1000, "processes, 1 to 1000; not with -n"),
    MC_OPTION_NUMBER("percent", 'P', "PERCENT", AT(seed.percent), 0, 100,
                     "give up when more than this share of the last 1000 blocks failed; 0 to 100, default 1"),
    MC_OPTION_INT("retries", 0, "COUNT", AT(seed.retries), 0, 100,
                  "try a failed block again, after growing pauses; default 3"),
    MC_OPTION_NUMBER("rate-limit", 0, "COUNT", AT(seed.rate), 1e-3, 1e9, "tiles per second, at most"),
    MC_OPTION_HEADING("Lists and places"),
    MC_OPTION_TEXT("log-failed", 'L', "FILE", AT(seed.failures), "gets a line x,y,z for each failed block"),
    MC_OPTION_TEXT("list", 0, "FILE", AT(seed.list), "take the tiles from lines z/x/y or x y z, rows from the north"),
    MC_OPTION_TEXT("checkpoint", 0, "FILE", AT(seed.checkpoint), "keeps the place of the run"),
    MC_OPTION_FLAG("resume", 0, AT(seed.resume), "go on at the place that --checkpoint has kept"),
    MC_OPTION_HEADING("General"),
    MC_OPTION_DRY_RUN(AT(seed.dry_run), "only count what would be visited, by level, and estimate its size"),
    MC_OPTION_JSON(AT(seed.json), "progress as lines of JSON"),
    MC_OPTION_QUIET(AT(seed.quiet)),
    MC_OPTION_FLAG("verbose", 'v', AT(seed.verbose), "all messages, on standard error, and where the time went"),
    MC_OPTION_END,
};

static void
set_copy_defaults(void *options, apr_pool_t *pool)
{
    ((mc_copy_options *)options)->seed = (mc_seed_options){ .mode = MC_SEED_COPY,
                                                            .percent = 1,
                                                            .retries = 3,
                                                            .no_backoff = true,
                                                            .dimensions = apr_table_make(pool, 4),
                                                            .headers = apr_table_make(pool, 4) };
}

const mc_cli_option_table mc_copy_option_table = { copy_rows, sizeof(mc_copy_options), set_copy_defaults };

const char *
mc_check_copy_options(mc_cli_call *call)
{
    mc_copy_options *options = call->options;
    mc_seed_options *seed = &options->seed;
    if (seed->threads_wanted > 0 && seed->processes_wanted > 0)
        return "the workers are either threads (-n) or processes (-p)";
    if (seed->resume && seed->checkpoint == NULL)
        return "--resume needs --checkpoint FILE";
    if (seed->dry_run && options->verify)
        return "--verify compares what was copied, and --dry-run copies nothing";
    seed->processes = seed->processes_wanted > 0;
    seed->workers = seed->processes ? seed->processes_wanted : seed->threads_wanted;
    if (seed->workers == 0)
        seed->workers = 1;
    return mc_seed_check_area(seed);
}
