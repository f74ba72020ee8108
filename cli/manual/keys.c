/* `mapcache keys`, `mapcache parameters`, `mapcache urls`: the references, as docs/configuration.md, docs/parameters.md
 * and docs/urls.md hold them, or row by row as JSON.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/json_line.h"
#include "roff.h"
#include "server/reference.h"

static const mc_cli_option keys_rows[] = {
    MC_OPTION_JSON(0, "an object for each row instead of Markdown"),
    MC_OPTION_END,
};
const mc_cli_option_table mc_keys_option_table = { keys_rows, sizeof(bool), NULL };

/* One row of a table. `header`: the row with the names of the columns. */
static void
print_row_json(const char *heading, const char *header, const char *row, apr_pool_t *pool)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "heading", heading);
    for (header++, row++; *header != '\0' && *row != '\0';) {
        const char *name = mc_take_markdown_cell(&header, pool);
        mc_json_string(line.json, name, mc_take_markdown_cell(&row, pool));
    }
    mc_cli_json_line_end(&line);
}

static void
print_reference_json(const char *markdown, apr_pool_t *pool)
{
    const char *heading = "", *header = NULL;
    char *text = apr_pstrdup(pool, markdown);
    for (char *line = text, *end; line != NULL; line = end == NULL ? NULL : end + 1) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        if (*line == '#')
            heading = mc_strip_markdown(line + strspn(line, "# "), pool);
        if (*line != '|')
            header = NULL;
        else if (header == NULL)
            header = line;
        else if (strncmp(line, "|---", 4) != 0)
            print_row_json(heading, header, line, pool);
    }
}

static int
print_reference(const mc_cli_call *call, const char *markdown)
{
    if (call->json)
        print_reference_json(markdown, call->pool);
    else
        fputs(markdown, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

int
mc_command_keys(mc_cli_call *call)
{
    return print_reference(call, mc_reference_markdown(call->pool));
}

int
mc_command_parameters(mc_cli_call *call)
{
    return print_reference(call, mc_parameters_markdown(call->pool));
}

int
mc_command_urls(mc_cli_call *call)
{
    return print_reference(call, mc_urls_markdown(call->pool));
}
