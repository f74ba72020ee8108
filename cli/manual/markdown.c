/* docs/commands.md: all commands, with their options, examples and exit statuses. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/help.h"
#include "manual.h"
#include "server/reference.h"

static void
print_markdown_options(FILE *out, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    const char *group = "";
    for (int i = 0; i < options->nelts; i++) {
        const mc_cli_option *option = APR_ARRAY_IDX(options, i, const mc_cli_option *);
        const char *heading = mc_cli_heading_of(row, option);
        int letter = mc_cli_letter_of(option, drop_in);
        if (strcmp(heading, group) != 0)
            fprintf(out, "\n| %s | |\n|---|---|\n", heading);
        group = heading;
        fprintf(out, "| `%s--%s%s%s` | %s |\n", letter == 0 ? "" : apr_psprintf(pool, "-%c, ", letter), option->name,
                option->value == NULL ? "" : " ", option->value == NULL ? "" : option->value,
                mc_reference_cell(option->help, pool));
    }
}

static void
print_markdown_examples(FILE *out, const mc_cli_command *row, apr_pool_t *pool)
{
    const char *line, *meaning, *at = row->examples;
    if (at != NULL)
        fputs("\nExamples:\n\n", out);
    while (at != NULL && (at = mc_cli_next_example(&line, &meaning, at, pool)) != NULL)
        fprintf(out, "- `%s`: %s\n", strchr(line, '`') == NULL ? line : "", meaning);
}

static void
print_markdown_statuses(FILE *out, const char *statuses, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrdup(pool, statuses);
    fputs("\n| exit status | |\n|---|---|\n", out);
    for (char *line = apr_strtok(text, "\n", &rest); line != NULL; line = apr_strtok(NULL, "\n", &rest))
        fprintf(out, "| %.1s | %s |\n", line, mc_reference_cell(line + 2, pool));
}

static void
print_markdown_command(FILE *out, const mc_cli_command *row, apr_pool_t *pool)
{
    bool deep = strchr(row->name, ' ') != NULL;
    fprintf(out, "\n%s mapcache %s\n\n", deep ? "###" : "##", row->name);
    if (row->run != NULL)
        fprintf(out, "    mapcache %s%s%s\n\n", row->name, *row->synopsis == '\0' ? "" : " ", row->synopsis);
    fprintf(out, "%s\n", mc_reference_cell(row->about, pool));
    if (row->page != NULL && !deep && strcmp(row->page, "commands.md") != 0)
        fprintf(out, "\nMore: [%s](%s).\n", row->page, row->page);
    if (row->run == NULL)
        return;
    print_markdown_options(out, row, false, pool);
    print_markdown_examples(out, row, pool);
    print_markdown_statuses(out, row->statuses, pool);
    if (row->drop_in != NULL)
        fprintf(out, "\n%s\n", mc_reference_cell(row->drop_in, pool));
}

static int
compare_letters(const void *a, const void *b)
{
    const mc_cli_option *left = *(const mc_cli_option *const *)a, *right = *(const mc_cli_option *const *)b;
    return left->letter - right->letter;
}

/* Every letter with its one meaning. */
static void
print_markdown_letters(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    apr_array_header_t *all = apr_array_make(pool, 256, sizeof(const mc_cli_option *));
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (row->run != NULL)
            apr_array_cat(all, mc_cli_options_of(row, false, pool));
    qsort(all->elts, (size_t)all->nelts, sizeof(const mc_cli_option *), compare_letters);
    fputs("\n## Letters\n\nA letter means the same in every command; where MapCache's programs differ, mapcache_seed's "
          "letter is the one.\n\n| letter | option |\n|---|---|\n",
          out);
    int before = 0;
    for (int i = 0; i < all->nelts; i++) {
        const mc_cli_option *option = APR_ARRAY_IDX(all, i, const mc_cli_option *);
        if (option->letter != before)
            fprintf(out, "| `-%c` | `--%s` |\n", option->letter, option->name);
        before = option->letter;
    }
}

void
mc_print_commands_markdown(FILE *out, const mc_cli_command *commands, apr_pool_t *pool)
{
    fputs("# Commands\n\nWritten by `mapcache help --markdown` from the tables that the program itself reads its "
          "options by. The manual pages (`man mapcache-seed`) and the completions of bash, zsh and fish are made of "
          "the same tables.\n\n"
          "- The result is on standard output, what goes wrong on standard error.\n"
          "- `-q`, `--quiet`: nothing is written unless something fails. A warning is no failure: it is not written, "
          "and the exit status tells. With `--json` the progress is left out, the result is written.\n"
          "- `-j`, `--json`: for programs, an object of JSON on each line.\n"
          "- Colours only on a terminal, and not where `NO_COLOR` is set or `TERM` is `dumb`; `--color=always` and "
          "`--color=never` decide otherwise.\n"
          "- Sizes are in kB, MB and GB of 1000 bytes, as file managers show them. Sizes that options take have K, M "
          "and G of 1024.\n"
          "- A mistyped command or option is answered with the name that may be meant.\n"
          "- `source <(mapcache help --completion bash)` (or `zsh`; `mapcache help --completion fish | source`) "
          "completes without the package.\n\n"
          "| command | |\n|---|---|\n",
          out);
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        if (row->topic != NULL)
            fprintf(out, "| **%s** | |\n", row->topic);
        fprintf(out, "| `%s` | %s |\n", row->name, mc_reference_cell(row->summary, pool));
    }
    print_markdown_letters(out, commands, pool);
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        print_markdown_command(out, row, pool);
}
