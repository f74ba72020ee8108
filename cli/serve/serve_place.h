/*
 * The private folder of a run, and the keeper: a process that ends what the run has started and removes the folder,
 * also where the run itself was killed.
 */
#ifndef MC_CLI_SERVE_PLACE_H
#define MC_CLI_SERVE_PLACE_H

#include <sys/types.h>

#include "mapcache/error.h"

typedef struct mc_serve_place {
    const char *folder; /* absolute, of safe characters only; mode 0700 */
    pid_t keeper;
    int line; /* to the keeper; its end is the end of the run */
} mc_serve_place;

/*
 * What root starts is served by another user: www-data, or nobody where there is none. Nothing of root is left to the
 * process afterwards. *user: the name, or NULL where nothing had to be given up.
 */
mc_error *mc_serve_leave_root(const char **user, apr_pool_t *pool) MC_CHECKED;

/* Makes a folder below $XDG_RUNTIME_DIR or /tmp and starts the keeper; before any thread is. */
mc_error *mc_serve_place_open(mc_serve_place *place, apr_pool_t *pool) MC_CHECKED;

/* A group of processes that the keeper ends with the run; or, once the group has ended, not any more. */
void mc_serve_place_keep(mc_serve_place *place, pid_t group);
void mc_serve_place_forget(mc_serve_place *place, pid_t group);

/* Waits until the keeper has ended what is left, and has removed the folder. */
void mc_serve_place_close(mc_serve_place *place);

#endif
