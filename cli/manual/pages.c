/* Manual pages of commands, made of the tables of commands and options. */
#include <apr_lib.h>
#include <apr_strings.h>
#include <errno.h>
#include <string.h>

#include "cli/common/help.h"
#include "manual.h"
#include "roff.h"

static void
print_manual_option(FILE *out, const mc_cli_option *row, bool drop_in)
{
    int letter = mc_cli_letter_of(row, drop_in);
    fputs(".TP\n", out);
    if (letter != 0)
        fprintf(out, "\\fB\\-%c\\fR, ", letter);
    mc_roff_text(out, "\\fB\\-\\-", row->name, "\\fR");
    if (row->value != NULL)
        mc_roff_text(out, " \\fI", row->value, "\\fR");
    mc_roff_text(out, "\n", row->help, "\n");
}

/* `deep`: below the heading of a command, not of the page. */
static void
print_manual_heading(FILE *out, const char *title, bool deep, apr_pool_t *pool)
{
    char *upper = apr_pstrdup(pool, title);
    for (char *at = upper; *at != '\0'; at++)
        *at = (char)apr_toupper(*at);
    mc_roff_text(out, deep ? ".SS \"" : ".SH \"", upper, "\"\n");
}

static void
print_manual_options(FILE *out, const mc_cli_command *row, bool drop_in, bool deep, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    const char *group = "";
    print_manual_heading(out, "Options", deep, pool);
    for (int i = 0; i < options->nelts; i++) {
        const mc_cli_option *option = APR_ARRAY_IDX(options, i, const mc_cli_option *);
        const char *heading = mc_cli_heading_of(row, option);
        if (strcmp(heading, group) != 0 && strcmp(heading, "Options") != 0)
            mc_roff_text(out, !deep ? ".SS \"" : i == 0 ? "\\fI" : ".PP\n\\fI", heading, deep ? "\\fR\n" : "\"\n");
        group = heading;
        print_manual_option(out, option, drop_in);
    }
}

static void
print_manual_examples(FILE *out, const mc_cli_command *row, bool deep, apr_pool_t *pool)
{
    const char *line, *meaning, *at = row->examples;
    if (at == NULL)
        return;
    print_manual_heading(out, "Examples", deep, pool);
    while ((at = mc_cli_next_example(&line, &meaning, at, pool)) != NULL) {
        mc_roff_text(out, ".TP\n.B \"", line, "\"\n");
        mc_roff_text(out, "", meaning, "\n");
    }
}

static void
print_manual_statuses(FILE *out, const char *statuses, bool deep, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrdup(pool, statuses);
    print_manual_heading(out, "Exit status", deep, pool);
    for (char *line = apr_strtok(text, "\n", &rest); line != NULL; line = apr_strtok(NULL, "\n", &rest)) {
        char *meaning = strchr(line, ' ');
        *meaning++ = '\0';
        mc_roff_text(out, ".TP\n.B ", line, "\n");
        mc_roff_text(out, "", meaning, "\n");
    }
}

/* Of one command: what it does, its options, examples, its exit statuses. */
static void
print_manual_command(FILE *out, const mc_cli_command *row, bool drop_in, bool deep, apr_pool_t *pool)
{
    mc_roff_text(out, "", row->about, "\n");
    print_manual_options(out, row, drop_in, deep, pool);
    if (!drop_in)
        print_manual_examples(out, row, deep, pool);
    print_manual_statuses(out, row->statuses, deep, pool);
}

static void
print_manual_synopsis(FILE *out, const char *program, const mc_cli_command *row, apr_pool_t *pool)
{
    mc_roff_text(out, ".B ", program, "\n");
    if (*row->synopsis != '\0')
        mc_roff_text(out, "", row->synopsis, "\n");
    (void)pool;
}

static void
print_manual_synopses(FILE *out, const mc_cli_command *command, const mc_cli_command *commands, apr_pool_t *pool)
{
    const char *between = "";
    fputs(".SH SYNOPSIS\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run != NULL && (row == command || mc_cli_is_command_of(row, command->name))) {
            fputs(between, out);
            print_manual_synopsis(out, apr_pstrcat(pool, "mapcache ", row->name, NULL), row, pool);
            between = ".br\n";
        }
}

static void
print_manual_group(FILE *out, const mc_cli_command *group, const mc_cli_command *commands, apr_pool_t *pool)
{
    mc_roff_text(out, "", group->about, "\n");
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (mc_cli_is_command_of(row, group->name)) {
            print_manual_heading(out, apr_pstrcat(pool, "mapcache ", row->name, NULL), false, pool);
            mc_roff_text(out, "", row->summary, ".\n.PP\n");
            print_manual_command(out, row, false, true, pool);
        }
}

void
mc_print_command_page(FILE *out, const mc_cli_command *command, const mc_cli_command *commands, apr_pool_t *pool)
{
    mc_roff_begin(out, apr_pstrcat(pool, "mapcache-", command->name, NULL), 1, command->summary);
    print_manual_synopses(out, command, commands, pool);
    fputs(".SH DESCRIPTION\n", out);
    if (command->run == NULL)
        print_manual_group(out, command, commands, pool);
    else
        print_manual_command(out, command, false, false, pool);
    if (command->drop_in != NULL)
        mc_roff_text(out, ".SH \"NAME OF MAPCACHE\"\n", command->drop_in, "\n");
    mc_roff_also(out, "mapcache(1)", command->also, command->page, pool);
}

void
mc_print_drop_in_page(FILE *out, const mc_cli_command *command, apr_pool_t *pool)
{
    const char *name = mc_drop_in_name_of(command, pool);
    mc_roff_begin(out, name, 1, apr_pstrcat(pool, command->summary, ", as MapCache does it", NULL));
    fputs(".SH SYNOPSIS\n", out);
    print_manual_synopsis(out, name, command, pool);
    mc_roff_text(out, ".SH DESCRIPTION\n", command->drop_in, "\n.PP\n");
    print_manual_command(out, command, true, false, pool);
    mc_roff_also(out, mc_cli_page_of(command, pool), "mapcache(1) mapcache.xml(5)", command->page, pool);
}

static void
print_overview_commands(FILE *out, const mc_cli_command *commands)
{
    fputs(".SH COMMANDS\n", out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (row->topic != NULL)
            mc_roff_text(out, ".SS \"", row->topic, "\"\n");
        mc_roff_text(out, ".TP\n.B \"", row->name, "\"\n");
        mc_roff_text(out, "", row->summary, "\n");
    }
}

/* What holds for every command. */
static void
print_overview_rules(FILE *out)
{
    fputs(
        ".SH \"FOR EVERY COMMAND\"\n"
        "A letter means the same in every command. The result of a command is on standard output, what goes wrong on\n"
        "standard error.\n.TP\n\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nNothing is written unless something fails. A warning "
        "is no failure: it is not\nwritten, and the exit status tells. With \\fB\\-\\-json\\fR the progress is left "
        "out, the result is written.\n.TP\n\\fB\\-j\\fR, \\fB\\-\\-json\\fR\nFor programs: JSON on standard output, an "
        "object on each line.\n.TP\n\\fB\\-\\-color\\fR \\fIWHEN\\fR\nauto (colours on a terminal), always or never.\n"
        ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set and not empty, there are no colours.\n.TP\n.B TERM\nWhere it is "
        "dumb or not set, there are no colours and no bars.\n.SH \"NAMES OF MAPCACHE\"\n.BR mapcache_seed (1)\nis\n"
        ".BR mapcache\\-seed (1),\n.BR mapcache_detail (1)\nis\n.BR mapcache\\-detail (1)\n"
        "with the options, the output and the exit statuses of MapCache.\n",
        out);
}

void
mc_print_overview_page(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    const char *pages = "mapcache_seed(1) mapcache_detail(1) mapcache.xml(5) mod_mapcache(8) mapcache.fcgi(8)";
    mc_roff_begin(out, "mapcache", 1, "tile and map server: the command line");
    fputs(".SH SYNOPSIS\n.B mapcache\n.I COMMAND\n[OPTIONS]\n.SH DESCRIPTION\n"
          "Checks configurations, fills and looks after stores of tiles. The server itself is a module of Apache,\n"
          ".BR mod_mapcache (8),\nor a FastCGI program,\n.BR mapcache.fcgi (8).\n",
          out);
    print_overview_commands(out, commands);
    print_overview_rules(out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (strchr(row->name, ' ') == NULL)
            pages = apr_pstrcat(pool, pages, " ", mc_cli_page_of(row, pool), NULL);
    mc_roff_also(out, "", pages, "README.md", pool);
}

const char *
mc_drop_in_name_of(const mc_cli_command *command, apr_pool_t *pool)
{
    return command->drop_in == NULL ? NULL : apr_pstrcat(pool, "mapcache_", command->name, NULL);
}
