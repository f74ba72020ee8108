/* See json_line.h. */
#include "json_line.h"

#include <stdio.h>

mc_cli_json_line
mc_cli_json_line_begin(void)
{
    mc_cli_json_line line;
    apr_pool_create(&line.pool, NULL);
    line.json = mc_json_create(MC_JSON_DENSE, line.pool);
    mc_json_open_object(line.json, NULL);
    return line;
}

void
mc_cli_json_line_end(mc_cli_json_line *line)
{
    mc_json_close(line->json);
    puts(mc_json_finish_text(line->json));
    apr_pool_destroy(line->pool);
    *line = (mc_cli_json_line){ NULL, NULL };
}
