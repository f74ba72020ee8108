/* Manual pages (man 7) and the completion for bash, made of the tables of commands and options. */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>

#include "help.h"
#include "mapcache/server.h"

/* A line of text: no character of it is a command of the formatter. */
static void
print_roff(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '`')
            fputs("\\(ga", out);
        else
            putc(*text, out);
        if (*text == '\n' && (text[1] == '.' || text[1] == '\''))
            fputs("\\&", out);
    }
}

static void
print_manual_line(FILE *out, const char *macro, const char *text, const char *end)
{
    fputs(macro, out);
    print_roff(out, text);
    fputs(end, out);
}

static void
print_manual_option(FILE *out, const mc_cli_option *row)
{
    fputs(".TP\n", out);
    if (row->letter != 0)
        fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    print_manual_line(out, "\\fB\\-\\-", row->name, "\\fR");
    if (row->value != NULL)
        print_manual_line(out, " \\fI", row->value, "\\fR");
    print_manual_line(out, "\n", row->help, "\n");
}

static void
print_manual_statuses(FILE *out, const char *statuses, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrdup(pool, statuses);
    for (char *line = apr_strtok(text, "\n", &rest); line != NULL; line = apr_strtok(NULL, "\n", &rest)) {
        char *meaning = strchr(line, ' ');
        if (meaning != NULL)
            *meaning++ = '\0';
        print_manual_line(out, ".TP\n.B ", line, "\n");
        print_manual_line(out, "", meaning == NULL ? "" : meaning, "\n");
    }
}

/* Of one command: what it does, its options, its exit statuses. */
static void
print_manual_command(FILE *out, const mc_cli_command *row, const char *section, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, pool);
    print_manual_line(out, "", row->about, "\n");
    fprintf(out, ".%s OPTIONS\n", section);
    for (int i = 0; i < options->nelts; i++)
        print_manual_option(out, APR_ARRAY_IDX(options, i, const mc_cli_option *));
    fprintf(out, ".%s EXIT STATUS\n", section);
    print_manual_statuses(out, row->statuses, pool);
}

static void
print_manual_synopsis(FILE *out, const mc_cli_command *row)
{
    print_manual_line(out, ".B mapcache ", row->name, "\n");
    if (*row->synopsis != '\0')
        print_manual_line(out, "", row->synopsis, "\n");
    fputs(".br\n", out);
}

static bool
is_command_of_group(const mc_cli_command *row, const char *group)
{
    size_t size = strlen(group);
    return strncmp(row->name, group, size) == 0 && row->name[size] == ' ';
}

static void
print_manual_group(FILE *out, const mc_cli_command *group, const mc_cli_command *commands, apr_pool_t *pool)
{
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (!is_command_of_group(row, group->name))
            continue;
        print_manual_line(out, ".SH MAPCACHE ", apr_pstrdup(pool, row->name), "\n");
        print_manual_line(out, "", row->summary, ".\n.PP\n");
        print_manual_command(out, row, "SS", pool);
    }
}

/* mapcache-seed.1: of a command, or of all commands of a group. */
static void
print_manual_page(FILE *out, const mc_cli_command *command, const mc_cli_command *commands, apr_pool_t *pool)
{
    fprintf(out, ".TH \"mapcache\\-%s\" 1 \"\" \"mapcache " MC_VERSION "\" \"mapcache\"\n.SH NAME\n", command->name);
    fprintf(out, "mapcache\\-%s \\- ", command->name);
    print_manual_line(out, "", command->summary, "\n.SH SYNOPSIS\n");
    if (command->run != NULL)
        print_manual_synopsis(out, command);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (is_command_of_group(row, command->name))
            print_manual_synopsis(out, row);
    fputs(".SH DESCRIPTION\n", out);
    if (command->run == NULL) {
        print_manual_line(out, "", command->about, "\n");
        print_manual_group(out, command, commands, pool);
    } else {
        print_manual_command(out, command, "SH", pool);
    }
    if (command->drop_in != NULL)
        print_manual_line(out, ".SH DROP-IN NAME\n", command->drop_in, "\n");
    fputs(".SH SEE ALSO\n.BR mapcache (1)", out);
    if (command->page != NULL)
        fprintf(out, ", docs/%s in the documentation of the package", command->page);
    fputs("\n", out);
}

/* mapcache.1: all commands. */
static void
print_manual_overview(FILE *out, const mc_cli_command *commands)
{
    fputs(".TH mapcache 1 \"\" \"mapcache " MC_VERSION "\" \"mapcache\"\n.SH NAME\n"
          "mapcache \\- tile and map server: the commands\n.SH SYNOPSIS\n.B mapcache\n.I COMMAND\n[OPTIONS]\n"
          ".SH COMMANDS\n",
          out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        print_manual_line(out, ".TP\n.B ", row->name, "\n");
        print_manual_line(out, "", row->summary, "\n");
    }
    fputs(".SH DROP-IN NAMES\n.B mapcache_seed\nis\n.BR \"mapcache seed\" ,\n.B mapcache_detail\nis\n"
          ".B mapcache detail\nwith the options and exit statuses of MapCache.\n.SH SEE ALSO\n",
          out);
    const char *between = "";
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (strchr(row->name, ' ') == NULL) {
            fprintf(out, "%s.BR mapcache\\-%s (1)", between, row->name);
            between = ",\n";
        }
    fputs("\n", out);
}

/* The page of a command, or of the program where `command` is NULL. */
static bool
write_manual_page(const char *path, const mc_cli_command *command, const mc_cli_command *commands, apr_pool_t *pool)
{
    FILE *out = fopen(path, "w");
    if (out != NULL && command != NULL)
        print_manual_page(out, command, commands, pool);
    else if (out != NULL)
        print_manual_overview(out, commands);
    bool written = out != NULL && !ferror(out);
    if (out != NULL && fclose(out) == 0 && written)
        return true;
    fprintf(stderr, "mapcache help: %s cannot be written: %s\n", path, strerror(errno));
    return false;
}

bool
mc_cli_write_manual(const char *folder, const mc_cli_command *commands, apr_pool_t *pool)
{
    bool written = write_manual_page(apr_pstrcat(pool, folder, "/mapcache.1", NULL), NULL, commands, pool);
    for (const mc_cli_command *row = commands; row->name != NULL && written; row++)
        if (strchr(row->name, ' ') == NULL)
            written =
                write_manual_page(apr_pstrcat(pool, folder, "/mapcache-", row->name, ".1", NULL), row, commands, pool);
    return written;
}

/* --- bash --------------------------------------------------------------------------------------------------------- */

static void
print_completed_options(FILE *out, const mc_cli_command *row, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, pool);
    fprintf(out, "    '%s') words='", row->name);
    for (int i = 0; i < options->nelts; i++)
        fprintf(out, "%s--%s", i == 0 ? "" : " ", APR_ARRAY_IDX(options, i, const mc_cli_option *)->name);
    fputs("' ;;\n", out);
}

/* Words that may follow an option. */
static void
print_completed_values(FILE *out, const mc_cli_command *row, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, pool);
    for (int i = 0; i < options->nelts; i++) {
        const mc_cli_option *option = APR_ARRAY_IDX(options, i, const mc_cli_option *);
        if (option->value == NULL)
            continue;
        fprintf(out, "    '%s --%s'", row->name, option->name);
        if (option->letter != 0)
            fprintf(out, " | '%s -%c'", row->name, option->letter);
        fputs(") values='", out);
        for (const char *at = option->choices; at != NULL && *at != '\0'; at++)
            putc(*at == '|' ? ' ' : *at, out);
        fprintf(out, "' files=%d ;;\n", strcmp(option->value, "FILE") == 0 || strcmp(option->value, "FOLDER") == 0);
    }
}

static void
print_completed_commands(FILE *out, const mc_cli_command *commands, const char *group)
{
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (group == NULL ? strchr(row->name, ' ') == NULL : is_command_of_group(row, group))
            fprintf(out, "%s ", row->name + (group == NULL ? 0 : strlen(group) + 1));
}

void
mc_cli_print_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    fputs(
        "# Completion of mapcache, mapcache_seed and mapcache_detail for bash: made by `mapcache help --completion "
        "bash`.\n_mapcache()\n{\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' words='' values=''\n"
        "    local files=1 first=1\n"
        "    case ${COMP_WORDS[0]##*/} in\n"
        "    mapcache_seed) command=seed first=0 ;;\n"
        "    mapcache_detail) command=detail first=0 ;;\n"
        "    *) [ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]} ;;\n"
        "    esac\n    case $command in\n    '') words='",
        out);
    print_completed_commands(out, commands, NULL);
    fputs("' files=0 ;;\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run == NULL) {
            fprintf(out, "    %s) if [ \"$COMP_CWORD\" -gt 2 ]; then command=\"%s ${COMP_WORDS[2]}\"; else words='",
                    row->name, row->name);
            print_completed_commands(out, commands, row->name);
            fputs("' files=0; fi ;;\n", out);
        }
    fputs("    esac\n    case $command in\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run != NULL)
            print_completed_options(out, row, pool);
    fputs("    esac\n    if [ \"$COMP_CWORD\" -gt \"$first\" ]; then\n        case \"$command $before\" in\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run != NULL)
            print_completed_values(out, row, pool);
    fputs("        *) values=$words ;;\n        esac\n    else\n        values=$words\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
          "    if [ \"$files\" = 1 ] && [ \"${current:0:1}\" != - ]; then\n"
          "        mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
          "    fi\n}\ncomplete -o filenames -F _mapcache mapcache mapcache_seed mapcache_detail\n",
          out);
}
