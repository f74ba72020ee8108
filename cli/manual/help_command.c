/* `mapcache help` and `mapcache version`. */
#include <apr_strings.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "manual.h"
#include "mapcache/server.h"

typedef struct help_options {
    const char *manual, *fcgi;
    int completion; /* -1: none */
    bool markdown, json;
} help_options;

static void
set_help_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((help_options *)options)->completion = -1;
}

static const mc_cli_option help_rows[] = {
    MC_OPTION_CHOICE("completion", 0, "SHELL", offsetof(help_options, completion), "bash|zsh|fish",
                     "print the completion of a shell: bash, zsh or fish"),
    MC_OPTION_TEXT("man", 0, "FOLDER", offsetof(help_options, manual), "write the manual pages into a folder"),
    MC_OPTION_TEXT("fcgi-help", 0, "FILE", offsetof(help_options, fcgi),
                   "with --man: what mapcache.fcgi --help prints, for its page"),
    MC_OPTION_FLAG("markdown", 0, offsetof(help_options, markdown), "print all commands as docs/commands.md has them"),
    MC_OPTION_JSON(offsetof(help_options, json), "print all commands and options as an object of JSON"),
    MC_OPTION_END,
};
const mc_cli_option_table mc_help_option_table = { help_rows, sizeof(help_options), set_help_defaults };

static const mc_cli_option version_rows[] = {
    MC_OPTION_JSON(0, "as an object of JSON"),
    MC_OPTION_END,
};
const mc_cli_option_table mc_version_option_table = { version_rows, sizeof(bool), NULL };

int
mc_command_version(mc_cli_call *call)
{
    if (!call->json) {
        puts("mapcache " MC_VERSION);
        return 0;
    }
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "program", "mapcache");
    mc_json_string(line.json, "version", MC_VERSION);
    mc_cli_json_line_end(&line);
    return 0;
}

/* help COMMAND, with one word or two. */
static int
print_help_of_command(mc_cli_call *call)
{
    enum { MOST = 100 };
    const char *known[MOST], *name = apr_array_pstrcat(call->pool, call->arguments, ' ');
    int count = 0;
    for (const mc_cli_command *row = mc_cli_commands; row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0) {
            if (row->run == NULL)
                mc_cli_list_commands(stdout, mc_cli_commands, row->name);
            else
                mc_cli_print_help(stdout, row, apr_pstrcat(call->pool, "mapcache ", name, NULL), NULL);
            return 0;
        }
        if (count < MOST)
            known[count++] = row->name;
    }
    const char *nearest = mc_config_nearest(name, known, count);
    fprintf(stderr, "mapcache help: there is no command \"%s\"%s%s%s\n`mapcache help` lists the commands.\n", name,
            nearest == NULL ? "" : ": did you mean \"", nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
    return 1;
}

/* NULL after a message: it cannot be read. */
static const char *
read_whole_text(const char *path, apr_pool_t *pool)
{
    enum { MOST = 1 << 16 };
    FILE *in = fopen(path, "r");
    char *text = apr_palloc(pool, MOST);
    size_t size = in == NULL ? 0 : fread(text, 1, MOST - 1, in);
    bool good = in != NULL && !ferror(in);
    if (!good)
        fprintf(stderr, "mapcache help: %s cannot be read: %s\n", path, strerror(errno));
    if (in != NULL)
        fclose(in);
    text[size] = '\0';
    return good ? text : NULL;
}

static int
write_manual_pages(const help_options *options, apr_pool_t *pool)
{
    const char *help = NULL;
    if (options->fcgi != NULL && (help = read_whole_text(options->fcgi, pool)) == NULL)
        return 1;
    return mc_write_manual(options->manual, help, mc_cli_commands, pool) ? 0 : 1;
}

int
mc_command_help(mc_cli_call *call)
{
    static void (*const completions[])(FILE *, const mc_cli_command *, apr_pool_t *) = { mc_print_bash_completion,
                                                                                         mc_print_zsh_completion,
                                                                                         mc_print_fish_completion };
    const help_options *options = call->options;
    if (options->manual != NULL)
        return write_manual_pages(options, call->pool);
    if (options->completion >= 0)
        completions[options->completion](stdout, mc_cli_commands, call->pool);
    else if (options->markdown)
        mc_print_commands_markdown(stdout, mc_cli_commands, call->pool);
    else if (options->json)
        mc_print_commands_json(mc_cli_commands, call->pool);
    else if (call->arguments->nelts > 0)
        return print_help_of_command(call);
    else
        mc_cli_list_commands(stdout, mc_cli_commands, NULL);
    return 0;
}
