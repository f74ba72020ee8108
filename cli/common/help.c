/* The help of a command, and what is said of a mistake. */
#include "help.h"

#include <apr_strings.h>
#include <string.h>

#include "style.h"

static void
print_heading(FILE *out, const char *title, const char *end)
{
    fprintf(out, "%s%s%s%s", mc_cli_ink_of(out, MC_INK_HEADING), title, mc_cli_ink_of(out, MC_INK_END), end);
}

void
mc_cli_list_commands(FILE *out, const mc_cli_command *commands, const char *group)
{
    size_t skip = group == NULL ? 0 : strlen(group) + 1;
    const char *name = group == NULL ? "" : group, *space = group == NULL ? "" : " ";
    print_heading(out, "usage:", " ");
    fprintf(out, "mapcache %s%sCOMMAND [OPTIONS]\n\n", name, space);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (group != NULL && strcmp(row->name, group) == 0)
            fprintf(out, "%s\n\n", row->about);
    if (group != NULL)
        print_heading(out, "Commands:", "\n");
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (group == NULL && row->topic != NULL) {
            fputs(row == commands ? "" : "\n", out);
            print_heading(out, row->topic, ":\n");
        }
        bool listed = group == NULL ? strchr(row->name, ' ') == NULL : mc_cli_is_command_of(row, group);
        if (listed)
            fprintf(out, "  %s%-10s%s %s\n", mc_cli_ink_of(out, MC_INK_NAME), row->name + skip,
                    mc_cli_ink_of(out, MC_INK_END), row->summary);
    }
    fprintf(out, "\n`mapcache %s%sCOMMAND --help` explains a command.\n", name, space);
}

bool
mc_cli_is_command_of(const mc_cli_command *row, const char *group)
{
    size_t size = strlen(group);
    return strncmp(row->name, group, size) == 0 && row->name[size] == ' ';
}

/* Each line of the text, indented. */
static void
print_statuses(FILE *out, const char *statuses)
{
    print_heading(out, "\nExit status:", "\n");
    for (const char *line = statuses; *line != '\0'; line += *line == '\n') {
        int size = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", size, line);
        line += size;
    }
}

static void
print_help_option(FILE *out, const mc_cli_option *row, bool drop_in, apr_pool_t *pool)
{
    char letter[] = { '-', (char)mc_cli_letter_of(row, drop_in), ',', '\0' };
    const char *flags = apr_psprintf(pool, "%-3s --%s%s%s", letter[1] != '\0' ? letter : "", row->name,
                                     row->value == NULL ? "" : " ", row->value == NULL ? "" : row->value);
    fprintf(out, "  %s%-34s%s  %s\n", mc_cli_ink_of(out, MC_INK_NAME), flags, mc_cli_ink_of(out, MC_INK_END),
            row->help);
}

static void
print_help_options(FILE *out, const mc_cli_command *command, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *rows = mc_cli_options_of(command, drop_in, pool);
    const char *group = "";
    for (int i = 0; i < rows->nelts; i++) {
        const mc_cli_option *row = APR_ARRAY_IDX(rows, i, const mc_cli_option *);
        const char *heading = mc_cli_heading_of(command, row);
        if (strcmp(group, heading) != 0)
            print_heading(out, apr_pstrcat(pool, "\n", heading, ":", NULL), "\n");
        group = heading;
        print_help_option(out, row, drop_in, pool);
    }
}

const char *
mc_cli_next_example(const char **command, const char **meaning, const char *at, apr_pool_t *pool)
{
    if (at == NULL || *at == '\0')
        return NULL;
    size_t size = strcspn(at, "\n");
    *command = apr_pstrmemdup(pool, at, size);
    at += size + (at[size] == '\n');
    size = strcspn(at, "\n");
    *meaning = apr_pstrmemdup(pool, at, size);
    return at + size + (at[size] == '\n');
}

static void
print_help_examples(FILE *out, const mc_cli_command *command, apr_pool_t *pool)
{
    const char *line, *meaning, *at = command->examples;
    if (at == NULL)
        return;
    print_heading(out, "\nExamples:", "\n");
    while ((at = mc_cli_next_example(&line, &meaning, at, pool)) != NULL)
        fprintf(out, "  %s%s%s\n      %s\n", mc_cli_ink_of(out, MC_INK_NAME), line, mc_cli_ink_of(out, MC_INK_END),
                meaning);
}

const char *
mc_cli_page_of(const mc_cli_command *command, apr_pool_t *pool)
{
    const char *name = apr_pstrdup(pool, command->name), *space = strchr(name, ' ');
    return apr_pstrcat(pool, "mapcache-", space == NULL ? name : apr_pstrmemdup(pool, name, (apr_size_t)(space - name)),
                       "(1)", NULL);
}

void
mc_cli_print_help(FILE *out, const mc_cli_command *command, const char *program, const char *message)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    print_heading(out, "usage:", " ");
    fprintf(out, "%s%s%s\n", program, *command->synopsis == '\0' ? "" : " ", command->synopsis);
    if (message != NULL)
        fprintf(out, "%s\n", message);
    fprintf(out, "\n%s\n", command->about);
    print_help_options(out, command, mc_cli_is_drop_in_name(program), pool);
    print_help_examples(out, command, pool);
    print_statuses(out, command->statuses);
    print_heading(out, "\nSee also:", "\n");
    fprintf(out, "  mapcache(1) %s%s%s%s%s\n", mc_cli_page_of(command, pool), command->also == NULL ? "" : " ",
            command->also == NULL ? "" : command->also, command->page == NULL ? "" : " docs/",
            command->page == NULL ? "" : command->page);
    apr_pool_destroy(pool);
}

bool
mc_cli_is_drop_in_name(const char *program)
{
    return strncmp(program, "mapcache_", 9) == 0;
}

void
mc_cli_refuse(const mc_cli_call *call, const char *problem)
{
    if (strcmp(call->program, "mapcache_seed") == 0)
        mc_cli_print_help(stdout, call->command, call->program, problem);
    else
        fprintf(stderr, "%s%s:%s %s\n`%s --help` lists the options.\n", mc_cli_ink_of(stderr, MC_INK_ERROR),
                call->program, mc_cli_ink_of(stderr, MC_INK_END), problem, call->program);
}
