/* Commands that complete what they are at when they are interrupted. */
#ifndef MC_CLI_INTERRUPT_H
#define MC_CLI_INTERRUPT_H

#include <apr_time.h>

/* An interrupt may come several times at once: timeout(1) and shells send it to a process and then to its group, and
 * the wrappers of programs pass on what a terminal has sent to all. What comes so soon is the same one. */
enum { MC_CLI_SAME_INTERRUPT = 500000 /* microseconds */ };

/* From now on the first SIGINT or SIGTERM sets *stop to 1 and writes `message` (a text that stays; NULL: none) to
 * standard error; the next one, if it comes later than half a second after, ends the program with exit status 2. */
void mc_cli_stop_on_interrupt(volatile int *stop, const char *message);

#endif
