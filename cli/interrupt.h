/* Commands that complete what they are at when they are interrupted. */
#ifndef MC_CLI_INTERRUPT_H
#define MC_CLI_INTERRUPT_H

/* From now on the first SIGINT or SIGTERM sets *stop to 1 and writes `message` (a text that stays; NULL: none) to
 * standard error; the next one ends the program with exit status 2. */
void mc_cli_stop_on_interrupt(volatile int *stop, const char *message);

#endif
