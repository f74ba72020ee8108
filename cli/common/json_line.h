/* Objects of JSON on standard output, one on a line: what commands print for programs. */
#ifndef MC_CLI_JSON_LINE_H
#define MC_CLI_JSON_LINE_H

#include "text/json_writer.h"

typedef struct mc_cli_json_line {
    mc_json_writer *json; /* its object is open */
    apr_pool_t *pool;     /* lives until the line's end */
} mc_cli_json_line;

mc_cli_json_line mc_cli_json_line_begin(void);

/* Closes the object, prints the line and frees it. */
void mc_cli_json_line_end(mc_cli_json_line *line);

#endif
