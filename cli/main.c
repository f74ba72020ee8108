/*
 * The command line's entry: `mapcache COMMAND ...`, or what the program is called: mapcache_seed, mapcache_detail.
 */
#include <apr_general.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/help.h"
#include "cli/common/style.h"
#include "commands.h"
#include "mapcache/config.h"

/* Programs of MapCache, and the commands that stand for them. */
static const struct {
    const char *program, *command;
} drop_in_names[] = { { "mapcache_seed", "seed" }, { "mapcache_detail", "detail" } };

static const mc_cli_command *
find_command(const char *name)
{
    for (const mc_cli_command *row = mc_cli_commands; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* With --quiet the result goes unsaid, too: the exit status tells. What --json prints is asked for. */
static int
run_silenced(const mc_cli_command *command, mc_cli_call *call)
{
    if (call->quiet && !call->json && !call->drop_in && freopen("/dev/null", "w", stdout) == NULL) {
        fputs("mapcache: /dev/null cannot be opened\n", stderr);
        return 1;
    }
    return command->run(call);
}

/* argv[0] is the last word of the command's name. */
static int
run_command_row(const mc_cli_command *command, const char *drop_in, int argc, const char *const *argv)
{
    mc_cli_call call = { .command = command, .drop_in = drop_in != NULL };
    bool help;
    int status = 1;
    apr_pool_create(&call.pool, NULL);
    call.program = drop_in != NULL ? drop_in : apr_pstrcat(call.pool, "mapcache ", command->name, NULL);
    const char *problem = mc_cli_options_parse(&help, &call, argc, argv);
    if (problem != NULL)
        mc_cli_refuse(&call, problem);
    else if (help)
        mc_cli_print_help(stdout, command, call.program, NULL), status = 0;
    else
        status = run_silenced(command, &call);
    apr_pool_destroy(call.pool);
    return status;
}

static int
refuse_command(const char *group, const char *name)
{
    enum { MOST = 100 };
    const char *known[MOST] = { NULL };
    int count = 0;
    size_t skip = group == NULL ? 0 : strlen(group) + 1;
    for (const mc_cli_command *row = mc_cli_commands; row->name != NULL && count < MOST; row++)
        if (group == NULL ? strchr(row->name, ' ') == NULL : mc_cli_is_command_of(row, group))
            known[count++] = row->name + skip;
    const char *nearest = mc_config_nearest(name, known, count);
    const char *of = group == NULL ? "" : group, *space = group == NULL ? "" : " ";
    fprintf(stderr, "%smapcache%s%s:%s there is no command \"%s\"%s%s%s\n`mapcache %s%s--help` lists the commands.\n",
            mc_cli_ink_of(stderr, MC_INK_ERROR), space, of, mc_cli_ink_of(stderr, MC_INK_END), name,
            nearest == NULL ? "" : ": did you mean \"", nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?",
            of, space);
    return 1;
}

static bool
is_help_option(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* argv[0] is the group's name, and argv[1] the command's. */
static int
run_group(const char *group, int argc, const char *const *argv)
{
    char name[64];
    if (argc < 2 || is_help_option(argv[1])) {
        mc_cli_list_commands(argc < 2 ? stderr : stdout, mc_cli_commands, group);
        return argc < 2;
    }
    snprintf(name, sizeof(name), "%s %s", group, argv[1]);
    const mc_cli_command *command = find_command(name);
    return command == NULL ? refuse_command(group, argv[1]) : run_command_row(command, NULL, argc - 1, argv + 1);
}

static int
run_named_command(int argc, const char *const *argv)
{
    const char *program = strrchr(argv[0], '/');
    program = program != NULL ? program + 1 : argv[0];
    for (size_t i = 0; i < sizeof(drop_in_names) / sizeof(drop_in_names[0]); i++)
        if (strcmp(program, drop_in_names[i].program) == 0)
            return run_command_row(find_command(drop_in_names[i].command), drop_in_names[i].program, argc, argv);
    if (argc < 2) {
        mc_cli_list_commands(stderr, mc_cli_commands, NULL);
        return 1;
    }
    const char *name = argv[1];
    if (is_help_option(name))
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const mc_cli_command *command = find_command(name);
    if (command == NULL || strchr(name, ' ') != NULL)
        return refuse_command(NULL, name);
    return command->run == NULL ? run_group(command->name, argc - 1, argv + 1)
                                : run_command_row(command, NULL, argc - 1, argv + 1);
}

int
main(int argc, const char *const *argv)
{
    if (argc < 1)
        return 1;
    mc_cli_choose_color(argc, argv);
    apr_initialize();
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    apr_pool_abort_set(mc_memory_exhausted, apr_pool_parent_get(pool)); /* of all that will have no parent */
    int status = run_named_command(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) { /* a full disk: what is read there would not be whole */
        fputs("mapcache: standard output cannot be written\n", stderr);
        status = status == 0 ? 1 : status;
    }
    apr_terminate();
    return status;
}
