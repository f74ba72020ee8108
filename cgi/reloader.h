/*
 * A configuration that is loaded again when the program is told so (SIGHUP), or one of its files has changed: on a
 * thread of its own, since that may take seconds, while requests are answered by the one in use.
 */
#ifndef MC_CGI_RELOADER_H
#define MC_CGI_RELOADER_H

#include "generation.h"

typedef struct mc_reloader mc_reloader;

/* Starts the thread. NULL where the system gives none. */
mc_reloader *mc_reloader_start(mc_generations *generations, apr_pool_t *pool);

/* The file is to be loaded once more. Asked several times before the thread begins, it is loaded once. */
void mc_reloader_ask(mc_reloader *reloader);

/* No load begins any more, and the service manager is told nothing more of one that is under way. */
void mc_reloader_stop(mc_reloader *reloader);

/* Afterwards: waits for the end of a load that is under way, until the moment `end` (mc_clock_now). False: it goes on,
 * and uses the generations. */
bool mc_reloader_wait(mc_reloader *reloader, apr_time_t end);

#endif
