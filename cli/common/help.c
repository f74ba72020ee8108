/* The help of a command, and what is said of a mistake. */
#include "help.h"

#include <apr_strings.h>
#include <string.h>

void
mc_cli_list_commands(FILE *out, const mc_cli_command *commands, const char *group)
{
    size_t skip = group == NULL ? 0 : strlen(group) + 1;
    fprintf(out, "usage: mapcache %s%sCOMMAND [OPTIONS]\n\n", group == NULL ? "" : group, group == NULL ? "" : " ");
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        bool listed = group == NULL ? strchr(row->name, ' ') == NULL
                                    : strncmp(row->name, group, skip - 1) == 0 && row->name[skip - 1] == ' ';
        if (listed)
            fprintf(out, "  %-10s %s\n", row->name + skip, row->summary);
    }
    fprintf(out, "\n`mapcache %s%sCOMMAND --help` explains a command.\n", group == NULL ? "" : group,
            group == NULL ? "" : " ");
}

/* Each line of the text, indented. */
static void
print_statuses(FILE *out, const char *statuses)
{
    fputs("\nExit status:\n", out);
    for (const char *line = statuses; *line != '\0'; line += *line == '\n') {
        int size = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", size, line);
        line += size;
    }
}

void
mc_cli_print_help(FILE *out, const mc_cli_command *command, const char *program, const char *message)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const apr_array_header_t *rows = mc_cli_options_of(command, pool);
    fprintf(out, "usage: %s%s%s\n", program, *command->synopsis == '\0' ? "" : " ", command->synopsis);
    if (message != NULL)
        fprintf(out, "%s\n", message);
    fprintf(out, "\n%s\n\noptions:\n", command->about);
    for (int i = 0; i < rows->nelts; i++) {
        const mc_cli_option *row = APR_ARRAY_IDX(rows, i, const mc_cli_option *);
        char letter[] = { '-', (char)row->letter, ',', '\0' };
        const char *flags = apr_psprintf(pool, "%-3s --%s%s%s", row->letter != 0 ? letter : "", row->name,
                                         row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
        fprintf(out, "  %-34s  %s\n", flags, row->help);
    }
    print_statuses(out, command->statuses);
    apr_pool_destroy(pool);
}

void
mc_cli_refuse(const mc_cli_call *call, const char *problem)
{
    if (strcmp(call->program, "mapcache_seed") == 0)
        mc_cli_print_help(stdout, call->command, call->program, problem);
    else
        fprintf(stderr, "%s: %s\n`%s --help` lists the options.\n", call->program, problem, call->program);
}
