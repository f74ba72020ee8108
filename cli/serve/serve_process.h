/* Programs that a run starts: each the leader of a group of its own, and ended by the kernel with the run. */
#ifndef MC_CLI_SERVE_PROCESS_H
#define MC_CLI_SERVE_PROCESS_H

#include <sys/types.h>

#include "mapcache/error.h"

typedef struct mc_serve_command {
    const char *const *words;     /* the program's path first; the last one is NULL */
    const char *const *variables; /* "NAME=value" that are added to the environment; the last one is NULL */
    int output;                   /* of standard output and standard error; -1: nowhere */
    bool lasting;                 /* it goes on where the run ends: a browser */
} mc_serve_command;

/* Starts a program. That it cannot be executed is exit status 127. */
mc_error *mc_serve_process_start(pid_t *process, const mc_serve_command *command, apr_pool_t *pool) MC_CHECKED;

/* The program of that name in $PATH or in a folder for programs of administrators; NULL: there is none. */
const char *mc_serve_process_find(const char *name, apr_pool_t *pool);

/* Tells the group of a process to end, and waits; after `seconds` it is killed. */
void mc_serve_process_end(pid_t process, double seconds);

/* Ends the children of one that has ended, and waits so long at most until they are gone: what a dying process listens
 * on, no other one can. */
void mc_serve_process_bury(pid_t process, double seconds);

#endif
