/* All commands and options as an object of JSON. */
#include <string.h>

#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "manual.h"

static void
write_json_option(mc_json_writer *json, const mc_cli_command *row, const mc_cli_option *option, bool drop_in)
{
    int letter = mc_cli_letter_of(option, drop_in);
    const char letters[] = { (char)letter, '\0' };
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", option->name);
    if (letter != 0)
        mc_json_string(json, "letter", letters);
    if (option->value != NULL)
        mc_json_string(json, "value", option->value);
    if (option->choices != NULL)
        mc_json_string(json, "choices", option->choices);
    mc_json_string(json, "group", mc_cli_heading_of(row, option));
    mc_json_boolean(json, "required", option->required);
    mc_json_string(json, "help", option->help);
    mc_json_close(json);
}

static void
write_json_command(mc_json_writer *json, const char *name, const mc_cli_command *row, bool drop_in, apr_pool_t *pool)
{
    const apr_array_header_t *options = mc_cli_options_of(row, drop_in, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", name);
    mc_json_string(json, "summary", row->summary);
    mc_json_string(json, "synopsis", row->synopsis);
    mc_json_string(json, "about", row->about);
    mc_json_boolean(json, "group", row->run == NULL);
    mc_json_open_array(json, "options");
    for (int i = 0; i < options->nelts && row->run != NULL; i++)
        write_json_option(json, row, APR_ARRAY_IDX(options, i, const mc_cli_option *), drop_in);
    mc_json_close(json);
    if (row->statuses != NULL)
        mc_json_string(json, "exit_status", row->statuses);
    if (row->examples != NULL)
        mc_json_string(json, "examples", row->examples);
    mc_json_close(json);
}

void
mc_print_commands_json(const mc_cli_command *commands, apr_pool_t *pool)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_open_array(line.json, "commands");
    for (const mc_cli_command *row = commands; row->name != NULL; row++) {
        write_json_command(line.json, row->name, row, false, pool);
        if (row->drop_in != NULL)
            write_json_command(line.json, mc_drop_in_name_of(row, pool), row, true, pool);
    }
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}
