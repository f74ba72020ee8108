/*
 * What the programs of the server write, line by line. A thread of its own takes it from them, so that none of them
 * ever waits for the run, which may look at data for a long time.
 */
#ifndef MC_CLI_SERVE_LOG_H
#define MC_CLI_SERVE_LOG_H

#include "mapcache/error.h"

typedef struct mc_serve_log mc_serve_log;

/* Begins to take lines, with all signals blocked that the caller has blocked. */
mc_error *mc_serve_log_open(mc_serve_log **log, apr_pool_t *pool) MC_CHECKED;

/* The descriptor that the programs write to. */
int mc_serve_log_output(const mc_serve_log *log);

/* A descriptor that can be read once there are lines to take. */
int mc_serve_log_event(const mc_serve_log *log);

/* All lines that were written until now, one behind the other, each ended by '\0', and *size, their bytes; valid until
 * the next call. *lost: how many there was no room for. */
const char *mc_serve_log_take(mc_serve_log *log, size_t *size, int *lost);

/* Ends the thread; what was not taken is gone. NULL: nothing happens. */
void mc_serve_log_close(mc_serve_log *log);

#endif
