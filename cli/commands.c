/* The table of commands: the program, its help, its manual pages and its completion come from these rows. */
#include "commands.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/help.h"
#include "mapcache/server.h"

static const mc_cli_option no_rows[] = { MC_OPTION_END };
static const mc_cli_option_table no_options = { no_rows, 0, NULL };

typedef struct help_options {
    const char *manual;
    int completion; /* -1: none */
} help_options;

static void
set_help_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((help_options *)options)->completion = -1;
}

static const mc_cli_option help_rows[] = {
    MC_OPTION_TEXT("man", 0, "FOLDER", offsetof(help_options, manual), "write the manual pages into a folder"),
    MC_OPTION_CHOICE("completion", 0, "SHELL", offsetof(help_options, completion), "bash",
                     "print the completion of a shell: bash"),
    MC_OPTION_END,
};
static const mc_cli_option_table help_table = { help_rows, sizeof(help_options), set_help_defaults };

#define PLAIN_STATUSES "0 done\n1 an error"
#define CUBE_STATUSES                                                                                                  \
    "0 all is stored\n1 an error\n2 interrupted: what is stored is right; run it again\n"                              \
    "3 images were left out, each named with its reason, and with it the others of its time"
#define JOBS_ROW(name_, summary_, synopsis_, mask_, argument_, about_)                                                 \
    {                                                                                                                  \
        .name = "jobs " name_, .summary = summary_, .synopsis = synopsis_, .table = &mc_jobs_option_table,             \
        .run = mc_command_jobs, .check = mc_check_jobs_options, .mask = mask_, .argument = argument_, .about = about_, \
        .statuses = PLAIN_STATUSES, .page = "jobs.md"                                                                  \
    }
#define CUBE_ROW(name_, summary_, synopsis_, mask_, argument_, about_, statuses_)                                      \
    {                                                                                                                  \
        .name = "cube " name_, .summary = summary_, .synopsis = synopsis_, .table = &mc_cube_option_table,             \
        .run = mc_command_cube, .check = mc_check_cube_options, .mask = mask_, .argument = argument_, .about = about_, \
        .statuses = statuses_, .page = "datacube.md"                                                                   \
    }

const mc_cli_command mc_cli_commands[] = {
    { "check", "say what is wrong with a configuration", "[OPTIONS] FILE", &mc_check_option_table, mc_command_check,
      .argument = "FILE", .about = "Reads a configuration as a server would and prints what is wrong with it.",
      .statuses = "0 nothing is wrong\n1 the file would not be served\n"
                  "2 the file would be served, with warnings or without some of its items",
      .page = "operations.md" },
    { "compact", "give back what stores do not need any more", "-c FILE [OPTIONS]", &mc_compact_option_table,
      mc_command_compact,
      .about = "Gives back what stores of tiles do not need any more: free pages of SQLite, MBTiles and GeoPackage\n"
               "files, dead rows of PostgreSQL tables. Servers and seeders may use them meanwhile.",
      .statuses = "0 done\n1 a wrong option or configuration\n2 a store could not be compacted",
      .page = "operations.md" },
    { "cube", "store images of many dates in a data cube, or list its dates", "COMMAND", &no_options,
      .about = "A data cube holds images of one area at many dates. These commands store images in a cube that a\n"
               "configuration names, list the dates, and make the overviews.",
      .page = "datacube.md" },
    CUBE_ROW(
        "ingest", "store images, each at its time", "-c FILE --cube NAME [OPTIONS] IMAGE ...", MC_CUBE_INGEST, "IMAGE",
        "Stores images (PNG and JPEG with world files, TIFF with GeoTIFF tags or a world file) in a cube, each at\n"
        "its time. Images of one time are a mosaic: where they overlap, the later one is on top. A time that the\n"
        "cube has already is corrected where the images lie.",
        CUBE_STATUSES),
    CUBE_ROW("dates", "list the times of a cube", "-c FILE --cube NAME [--json]", MC_CUBE_DATES, "IMAGE",
             "Prints the times of the images of a cube, the earliest first, one on a line.", PLAIN_STATUSES),
    CUBE_ROW("overviews", "make the overviews that are configured", "-c FILE --cube NAME [OPTIONS]", MC_CUBE_OVERVIEWS,
             "IMAGE", "Makes the overviews of a cube that was stored with another number of them.",
             "0 all overviews are stored\n1 an error\n2 interrupted: what is stored is right; run it again"),
    { "detail", "count the tiles that stores hold of an area", "-c FILE -t TILESET -g GRID [OPTIONS]",
      &mc_detail_option_table, mc_command_detail, mc_check_detail_options,
      .about = "Writes to standard output how many tiles of the area each SQLite file has, as JSON.",
      .statuses = PLAIN_STATUSES,
      .drop_in =
          "The program mapcache_detail has the options, the output and the exit statuses of MapCache's program. It\n"
          "looks into SQLite files only, and has no --stores.",
      .page = "operations.md" },
    { "index", "write the spatial index of shapefiles", "FILE.shp ...", &no_options, mc_command_index,
      .argument = "FILE.shp",
      .about = "Writes the spatial index of each shapefile (FILE.qix, as MapServer, GDAL and QGIS have it): under "
               "another\nname first, so that whoever reads meanwhile has the old one or the new one.",
      .statuses = "0 all indexes were written\n1 an index was not written", .page = "drawing.md" },
    { "ingest", "make tiles of georeferenced images", "-c FILE -t TILESET [OPTIONS] IMAGE ...", &mc_ingest_option_table,
      mc_command_ingest, mc_check_ingest_options, .argument = "IMAGE",
      .about = "Makes tiles of georeferenced images: PNG and JPEG with world files, TIFF with GeoTIFF tags or a world\n"
               "file. Where images overlap, the later one is on top. What is stored already stays where no image has\n"
               "data. The last line of --json has the exit status, too.",
      .statuses = "0 all is stored\n1 an error\n2 interrupted: what is stored is right; run it again\n"
                  "3 bad images were passed over",
      .page = "ingest.md" },
    { "jobs", "share seeding between any number of hosts", "COMMAND -c FILE [OPTIONS]", &no_options,
      .about = "A queue of seeding jobs in PostgreSQL. A job is put into the queue once; workers on any number of\n"
               "hosts share the job, and each of its metatiles is drawn once.",
      .page = "jobs.md" },
    JOBS_ROW("enqueue", "add a job", "-c FILE -t TILESET [OPTIONS]", MC_JOBS_ENQUEUE, NULL,
             "Puts a job into the queue and prints the number of the job. The same --request adds a job only once."),
    JOBS_ROW("work", "lease units and work on them, until interrupted", "-c FILE [OPTIONS]", MC_JOBS_WORK, NULL,
             "Leases units of the job with the highest priority, draws and stores their tiles, and takes the next\n"
             "units. An interrupt gives back what is not finished. With -p the death of a process is an error."),
    JOBS_ROW("list", "list the newest jobs", "-c FILE [OPTIONS]", MC_JOBS_LIST, NULL,
             "Prints a line for each job, the newest first: state, progress, workers."),
    JOBS_ROW("show", "show one job with its leased, returned and failed units", "-c FILE JOB [OPTIONS]", MC_JOBS_SHOW,
             "JOB", "Prints a job and those of its units that are leased, given back or failed, with their messages."),
    JOBS_ROW("watch", "follow open jobs until they are done", "-c FILE [JOB ...] [OPTIONS]", MC_JOBS_WATCH, "JOB",
             "Prints the progress of the jobs, or of all open jobs, until none of them is open."),
    JOBS_ROW("cancel", "end jobs; what is stored stays", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Ends jobs before they are done. Tiles that are stored stay. Workers hear of it within two seconds."),
    JOBS_ROW("pause", "hand out nothing more of jobs for now", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out no more units of the jobs, until they are resumed. Workers hear of it within two seconds."),
    JOBS_ROW("resume", "go on with paused jobs", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out units of paused jobs again."),
    JOBS_ROW("retry", "try failed units of jobs again", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out the failed units of the jobs again. Only the metatiles that failed are drawn."),
    JOBS_ROW("prune", "remove jobs that are done or cancelled", "-c FILE [OPTIONS]", MC_JOBS_PRUNE, NULL,
             "Removes jobs that ended some time ago from the queue, and workers that are silent for as long."),
    { "keys", "write the reference of all configuration keys", "", &no_options, mc_command_keys,
      .about = "Writes the reference of all configuration keys, in Markdown.", .statuses = PLAIN_STATUSES,
      .page = "configuration.md" },
    { "parameters", "write the reference of all parameters of requests", "", &no_options, mc_command_parameters,
      .about = "Writes the reference of all parameters of requests, in Markdown.", .statuses = PLAIN_STATUSES,
      .page = "parameters.md" },
    { "seed", "fill, refresh, empty or copy a tileset", "-c FILE -t TILESET [OPTIONS]", &mc_seed_option_table,
      mc_command_seed, mc_check_seed_options,
      .about =
          "Draws the tiles of an area and stores them before clients ask. Tiles that are stored stay as they are,\n"
          "unless --older or --force says otherwise. --mode delete removes tiles, --mode transfer copies them to\n"
          "another tileset.",
      .statuses = "0 done, or nothing to do; also after fewer failures than --percent, and after one interrupt\n"
                  "1 wrong options or configuration; more failures than --percent; a checkpoint that cannot be used; "
                  "a worker process that died\n"
                  "2 interrupted twice\n"
                  "3 done, but some lines of --list are no tiles",
      .drop_in =
          "The program mapcache_seed has the options, the lines and the exit statuses of MapCache's program. It\n"
          "prints what is wrong with its options to standard output, and the list of options behind it.",
      .page = "seeding.md" },
    { "trace", "read trace lines from a server's error log", "[--summary] [--html FILE] [LOG ...]",
      &mc_trace_option_table, mc_command_trace, mc_check_trace_options, .argument = "LOG",
      .about = "Reads trace lines from the logs, or from standard input, and prints the calls of each request\n"
               "and thread as a tree, with microseconds. LogLevel mapcache:debug makes a server write them.",
      .statuses = PLAIN_STATUSES, .page = "operations.md" },
    { "version", "print the version", "", &no_options, mc_command_version,
      .about = "Prints the name and the version of the program.", .statuses = PLAIN_STATUSES, .page = NULL },
    { "help", "print this list, or explain a command", "[COMMAND]", &help_table, mc_command_help, .argument = "COMMAND",
      .about = "Prints the list of commands, or the help of a command. With an option: the manual pages of all\n"
               "commands, or the completion of a shell.",
      .statuses = PLAIN_STATUSES },
    { .name = NULL },
};

int
mc_command_version(mc_cli_call *call)
{
    (void)call;
    puts("mapcache " MC_VERSION);
    return 0;
}

/* help COMMAND, with one word or two. */
static int
print_help_of_command(mc_cli_call *call)
{
    const char *name = apr_array_pstrcat(call->pool, call->arguments, ' ');
    for (const mc_cli_command *row = mc_cli_commands; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0) {
            if (row->run == NULL)
                mc_cli_list_commands(stdout, mc_cli_commands, row->name);
            else
                mc_cli_print_help(stdout, row, apr_pstrcat(call->pool, "mapcache ", name, NULL), NULL);
            return 0;
        }
    fprintf(stderr, "mapcache help: there is no command \"%s\"\n", name);
    return 1;
}

int
mc_command_help(mc_cli_call *call)
{
    const help_options *options = call->options;
    if (options->manual != NULL)
        return mc_cli_write_manual(options->manual, mc_cli_commands, call->pool) ? 0 : 1;
    if (options->completion >= 0)
        mc_cli_print_completion(stdout, mc_cli_commands, call->pool);
    else if (call->arguments->nelts > 0)
        return print_help_of_command(call);
    else
        mc_cli_list_commands(stdout, mc_cli_commands, NULL);
    return 0;
}
