/* Colours: on a terminal only, and where nobody has asked for none. */
#ifndef MC_CLI_STYLE_H
#define MC_CLI_STYLE_H

#include <stdbool.h>
#include <stdio.h>

#include "mapcache/ctx.h"

typedef enum mc_cli_ink {
    MC_INK_END, /* back to what the terminal has */
    MC_INK_HEADING,
    MC_INK_NAME, /* what is typed as it stands: an option, a command */
    MC_INK_ERROR,
    MC_INK_WARNING,
    MC_INK_GOOD,
    MC_INK_FAINT,
} mc_cli_ink;

/* Looks for --color WHEN among the words of the call, before all else is read. */
void mc_cli_choose_color(int argc, const char *const *argv);

/* Whether the stream is a terminal that understands escape sequences: no bar is drawn elsewhere. */
bool mc_cli_is_screen(FILE *stream);

/* The escape sequence of an ink, or "" where the stream gets no colours. */
const char *mc_cli_ink_of(FILE *stream, mc_cli_ink ink);

/* What is logged on standard error. A warning is no failure: --quiet does not say it. */
mc_log_level mc_cli_log_level(bool verbose, bool quiet);

#endif
