/*
 * The command line's entry: `mapcache COMMAND ...`, or what the program is called: mapcache_seed, mapcache_detail.
 */
#include <apr_general.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "mapcache/server.h"

static mc_command print_version_command, print_help_command;

static const struct command {
    const char *name;
    mc_command *run;
    const char *help;
} commands[] = {
    { "check", mc_command_check, "say what is wrong with a configuration" },
    { "compact", mc_command_compact, "give back what stores do not need any more" },
    { "cube", mc_command_cube, "store images of many dates in a data cube, or list its dates" },
    { "detail", mc_command_detail, "count the tiles that stores hold of an area" },
    { "index", mc_command_index, "write the spatial index of shapefiles" },
    { "ingest", mc_command_ingest, "make tiles of georeferenced images" },
    { "jobs", mc_command_jobs, "share seeding between any number of hosts" },
    { "keys", mc_command_keys, "write the reference of all configuration keys" },
    { "parameters", mc_command_parameters, "write the reference of all parameters of requests" },
    { "seed", mc_command_seed, "fill, refresh, empty or copy a tileset" },
    { "trace", mc_command_trace, "read trace lines from a server's error log" },
    { "version", print_version_command, "print the version" },
    { "help", print_help_command, "print this list" },
};

static int
print_version_command(int argc, const char *const *argv)
{
    (void)argc, (void)argv;
    puts("mapcache " MC_VERSION);
    return 0;
}

static void
print_commands(FILE *out)
{
    fputs("usage: mapcache COMMAND [ARGUMENTS]\n\n", out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\n`mapcache COMMAND --help` explains a command.\n", out);
}

static int
print_help_command(int argc, const char *const *argv)
{
    (void)argc, (void)argv;
    print_commands(stdout);
    return 0;
}

static int
run_named_command(int argc, const char *const *argv)
{
    const char *program = strrchr(argv[0], '/');
    program = program != NULL ? program + 1 : argv[0];
    if (strcmp(program, "mapcache_seed") == 0)
        return mc_command_seed(argc, argv);
    if (strcmp(program, "mapcache_detail") == 0)
        return mc_command_detail(argc, argv);
    if (argc < 2) {
        print_commands(stderr);
        return 1;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "mapcache: there is no command \"%s\"\n\n", name);
    print_commands(stderr);
    return 1;
}

int
main(int argc, const char *const *argv)
{
    if (argc < 1)
        return 1;
    apr_initialize();
    int status = run_named_command(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) { /* a full disk: what is read there would not be whole */
        fputs("mapcache: standard output cannot be written\n", stderr);
        status = status == 0 ? 1 : status;
    }
    apr_terminate();
    return status;
}
