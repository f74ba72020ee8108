/* The completion for zsh. */
#include <string.h>

#include "cli/common/help.h"
#include "manual.h"

/* Inside of single quotes and of the brackets of _arguments or of _describe. */
static void
print_zsh_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            putc(*text, out);
}

/* What may follow an option: ":FILE:_files". */
static void
print_zsh_value(FILE *out, const mc_cli_option *option)
{
    if (option->value == NULL)
        return;
    putc(':', out);
    print_zsh_text(out, option->value);
    switch (mc_value_sort_of(option)) {
    case MC_VALUE_FILE:
        fputs(":_files", out);
        break;
    case MC_VALUE_FOLDER:
        fputs(":_files -/", out);
        break;
    case MC_VALUE_CHOICE:
        fputs(":(", out);
        for (const char *at = option->choices; *at != '\0'; at++)
            putc(*at == '|' ? ' ' : *at, out);
        fputs(")", out);
        break;
    case MC_VALUE_OTHER:
        fputs(": ", out);
        break;
    }
}

/* '(-z --zoom)'{-z+,--zoom=}'[zoom levels]:MIN,MAX: ' */
static void
print_zsh_option(FILE *out, const mc_cli_option *option, bool drop_in)
{
    bool many = option->kind == MC_CLI_TEXTS || option->kind == MC_CLI_ASSIGNMENT;
    const char *joined = option->value == NULL ? "" : "=", *close = option->value == NULL ? "" : "+";
    int letter = mc_cli_letter_of(option, drop_in);
    fputs(" \\\n            ", out);
    if (many && letter != 0)
        fprintf(out, "'*'{-%c%s,--%s%s}'", letter, close, option->name, joined);
    else if (letter != 0)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'", letter, option->name, letter, close, option->name, joined);
    else
        fprintf(out, "'%s--%s%s", many ? "*" : "", option->name, joined);
    putc('[', out);
    print_zsh_text(out, option->help);
    putc(']', out);
    print_zsh_value(out, option);
    putc('\'', out);
}

static void
print_zsh_command(FILE *out, const char *name, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    fprintf(out, "    '%s')\n        _arguments -s -S", name);
    for (int i = 0; i < options->nelts; i++)
        print_zsh_option(out, APR_ARRAY_IDX(options, i, const mc_cli_option *), drop_in);
    if (row->argument != NULL && strcmp(row->argument, "COMMAND") == 0)
        fputs(" \\\n            '*:COMMAND:_mapcache_commands'", out);
    else if (row->argument != NULL && strcmp(row->argument, "JOB") != 0)
        fprintf(out, " \\\n            '*:%s:_files'", row->argument);
    fputs(" ;;\n", out);
}

/* A function that offers the commands, or those of a group. */
static void
print_zsh_list(FILE *out, const mc_cli_command *commands, const char *group)
{
    fprintf(out, "_mapcache%s%s_commands()\n{\n    local -a list=(\n", group == NULL ? "" : "_",
            group == NULL ? "" : group);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (group == NULL ? strchr(row->name, ' ') == NULL : mc_cli_is_command_of(row, group)) {
            fprintf(out, "        '%s:", row->name + (group == NULL ? 0 : strlen(group) + 1));
            print_zsh_text(out, row->summary);
            fputs("'\n", out);
        }
    fputs("    )\n    _describe command list\n}\n", out);
}

void
mc_print_zsh_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    fputs("#compdef mapcache mapcache_seed mapcache_detail\n"
          "# Completion for zsh: made by `mapcache help --completion zsh`.\n",
          out);
    print_zsh_list(out, commands, NULL);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run == NULL)
            print_zsh_list(out, commands, row->name);
    fputs("_mapcache()\n{\n    local command=${words[1]:t}\n    if [[ $command == mapcache ]]; then\n"
          "        if (( CURRENT == 2 )); then _mapcache_commands; return; fi\n"
          "        command=$words[2]\n        shift words; (( CURRENT-- ))\n    fi\n    case $command in\n",
          out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run == NULL)
            fprintf(out,
                    "    %s)\n        if (( CURRENT == 2 )); then _mapcache_%s_commands; return; fi\n"
                    "        command=\"%s $words[2]\"\n        shift words; (( CURRENT-- )) ;;\n",
                    row->name, row->name, row->name);
    fputs("    esac\n    case $command in\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (row->run != NULL)
            print_zsh_command(out, row->name, row, false, pool);
        if (row->drop_in != NULL)
            print_zsh_command(out, mc_drop_in_name_of(row, pool), row, true, pool);
    }
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _mapcache ]]; then _mapcache \"$@\"\n"
          "elif (( $+functions[compdef] )); then compdef _mapcache mapcache mapcache_seed mapcache_detail; fi\n",
          out);
}
