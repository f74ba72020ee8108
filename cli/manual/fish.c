/* The completion for fish. */
#include <apr_strings.h>
#include <string.h>

#include "cli/common/help.h"
#include "manual.h"

/* Inside of single quotes. */
static void
print_fish_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            putc('\\', out);
        putc(*text, out);
    }
}

static void
print_fish_option(FILE *out, const char *begin, const mc_cli_option *option, bool drop_in)
{
    static const char *const actions[] = { " -x", " -r -F", " -x -a '(__fish_complete_directories)'", "" };
    int letter = mc_cli_letter_of(option, drop_in);
    mc_value_sort sort = mc_value_sort_of(option);
    fputs(begin, out);
    if (letter != 0)
        fprintf(out, " -s %c", letter);
    fprintf(out, " -l %s", option->name);
    if (option->value != NULL)
        fputs(actions[sort], out);
    if (sort == MC_VALUE_CHOICE) {
        fputs(" -x -a '", out);
        for (const char *at = option->choices; *at != '\0'; at++)
            putc(*at == '|' ? ' ' : *at, out);
        putc('\'', out);
    }
    fputs(" -d '", out);
    print_fish_text(out, option->help);
    fputs("'\n", out);
}

static void
print_fish_command(FILE *out, const char *begin, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    for (int i = 0; i < options->nelts; i++)
        print_fish_option(out, begin, APR_ARRAY_IDX(options, i, const mc_cli_option *), drop_in);
    if (row->argument != NULL && strcmp(row->argument, "COMMAND") != 0 && strcmp(row->argument, "JOB") != 0)
        fprintf(out, "%s -F\n", begin);
}

/* The commands, behind `mapcache`, or those of a group behind the group's name. */
static void
print_fish_list(FILE *out, const mc_cli_command *commands, const char *group, const char *behind)
{
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (group == NULL ? strchr(row->name, ' ') == NULL : mc_cli_is_command_of(row, group)) {
            fprintf(out, "complete -c mapcache -f -n '__mapcache_is %s' -a %s -d '", behind,
                    row->name + (group == NULL ? 0 : strlen(group) + 1));
            print_fish_text(out, row->summary);
            fputs("'\n", out);
        }
}

void
mc_print_fish_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    fputs("# Completion of mapcache, mapcache_seed and mapcache_detail for fish: made by `mapcache help --completion "
          "fish`.\nfunction __mapcache_is\n    set -l words (commandline -opc)\n    set -e words[1]\n"
          "    set -l name $words[1]\n    if contains -- \"$name\"",
          out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run == NULL)
            fprintf(out, " %s", row->name);
    fputs("; and set -q words[2]\n        set name \"$words[1] $words[2]\"\n    end\n"
          "    test \"$name\" = \"$argv[1]\"\nend\ncomplete -c mapcache -f\n",
          out);
    print_fish_list(out, commands, NULL, "\"\"");
    print_fish_list(out, commands, NULL, "help");
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (row->run == NULL)
            print_fish_list(out, commands, row->name, row->name);
        else
            print_fish_command(out, apr_psprintf(pool, "complete -c mapcache -n '__mapcache_is \"%s\"'", row->name),
                               row, false, pool);
        if (row->drop_in != NULL)
            print_fish_command(out, apr_psprintf(pool, "complete -c %s", mc_drop_in_name_of(row, pool)), row, true,
                               pool);
    }
}
