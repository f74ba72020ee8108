/* The completion for bash. */
#include <string.h>

#include "cli/common/help.h"
#include "manual.h"

/* Each call of the program, under its own name and under MapCache's: the words of its options, and the words that may
 * follow an option. */
static void
print_bash_options(FILE *out, const char *name, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    fprintf(out, "    '%s') words='", name);
    for (int i = 0; i < options->nelts; i++)
        fprintf(out, "%s--%s", i == 0 ? "" : " ", APR_ARRAY_IDX(options, i, const mc_cli_option *)->name);
    fputs("' ;;\n", out);
}

static void
print_bash_values(FILE *out, const char *name, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    static const char *const actions[] = { "", "files=1", "folders=1", "" };
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    for (int i = 0; i < options->nelts; i++) {
        const mc_cli_option *option = APR_ARRAY_IDX(options, i, const mc_cli_option *);
        int letter = mc_cli_letter_of(option, drop_in);
        if (option->value == NULL)
            continue;
        fprintf(out, "        '%s --%s'", name, option->name);
        if (letter != 0)
            fprintf(out, " | '%s -%c'", name, letter);
        fputs(") values='", out);
        for (const char *at = option->choices; at != NULL && *at != '\0'; at++)
            putc(*at == '|' ? ' ' : *at, out);
        fprintf(out, "' files=0 %s ;;\n", actions[mc_value_sort_of(option)]);
    }
}

typedef void print_of_command(FILE *out, const char *name, const mc_cli_command *row, bool drop_in, apr_pool_t *pool);

static void
print_for_bash_commands(FILE *out, const mc_cli_command *commands, print_of_command *print, apr_pool_t *pool)
{
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (row->run != NULL)
            print(out, row->name, row, false, pool);
        if (row->drop_in != NULL)
            print(out, mc_drop_in_name_of(row, pool), row, true, pool);
    }
}

static void
print_bash_commands(FILE *out, const mc_cli_command *commands, const char *group)
{
    const char *between = "";
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (group == NULL ? strchr(row->name, ' ') == NULL : mc_cli_is_command_of(row, group)) {
            fprintf(out, "%s%s", between, row->name + (group == NULL ? 0 : strlen(group) + 1));
            between = " ";
        }
}

void
mc_print_bash_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    fputs("# Completion of mapcache, mapcache_seed and mapcache_detail for bash: made by `mapcache help --completion "
          "bash`.\n# shellcheck shell=bash\n_mapcache()\n{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' words='' "
          "values=''\n    local files=1 folders=0 first=1\n"
          "    # --name=value is three words where = parts words\n"
          "    if [ \"$current\" = = ]; then current=''\n"
          "    elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    case ${COMP_WORDS[0]##*/} in\n"
          "    mapcache_seed | mapcache_detail) command=${COMP_WORDS[0]##*/} first=0 ;;\n"
          "    *) [ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]} ;;\n"
          "    esac\n    case $command in\n    '') words='",
          out);
    print_bash_commands(out, commands, NULL);
    fputs("' files=0 ;;\n    help) words='", out);
    print_bash_commands(out, commands, NULL);
    fputs(" --completion --man --fcgi-help --markdown --json' files=0 ;;\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run == NULL) {
            fprintf(out, "    %s) if [ \"$COMP_CWORD\" -gt 2 ]; then command=\"%s ${COMP_WORDS[2]}\"; else words='",
                    row->name, row->name);
            print_bash_commands(out, commands, row->name);
            fputs("' files=0; fi ;;\n", out);
        }
    fputs("    esac\n    case $command in\n", out);
    print_for_bash_commands(out, commands, print_bash_options, pool);
    fputs("    esac\n    values=$words\n    if [ \"$COMP_CWORD\" -gt \"$first\" ]; then\n"
          "        case \"$command $before\" in\n",
          out);
    print_for_bash_commands(out, commands, print_bash_values, pool);
    fputs("        esac\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
          "    [ \"${current:0:1}\" = - ] && return\n"
          "    [ \"$files\" = 1 ] && mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
          "    [ \"$folders\" = 1 ] && mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -d -- \"$current\")\n"
          "    return 0\n}\ncomplete -o filenames -F _mapcache mapcache mapcache_seed mapcache_detail\n",
          out);
}
