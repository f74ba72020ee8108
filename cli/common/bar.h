/* A bar of progress on the last line of a terminal. */
#ifndef MC_CLI_BAR_H
#define MC_CLI_BAR_H

#include <stdbool.h>

/* Clears the line of standard output where *drawn says that a bar stands there, before something else is written. */
void mc_cli_clear_bar(bool *drawn);

#endif
