/*
 * What became of the last load of each configuration file, for whoever is asked how the process is: /ready, the status
 * page, a gauge. One table for a process.
 */
#ifndef MC_CONFIG_RELOAD_STATE_H
#define MC_CONFIG_RELOAD_STATE_H

#include <apr_time.h>

#include "mapcache/config.h"

typedef struct mc_reload_states mc_reload_states;

/* How the last load of a file ended. Texts live in the caller's pool. */
typedef struct mc_reload_state {
    bool known;        /* false: nothing has been told of that file, and all else is zero */
    bool failed;       /* an older configuration than the newest one is served */
    apr_time_t loaded; /* when the configuration in use was loaded */
    apr_time_t tried;  /* when the last load ended, whether it failed or not */
    const char *error; /* why the last load failed, with file, line and column; names paths: for operators only */
    const char *where; /* of that error, for everybody: "mapcache.xml:12:3", the file without its folder */
} mc_reload_state;

mc_reload_states *mc_reload_states_create(void);

/* NULL is ignored. */
void mc_reload_states_destroy(mc_reload_states *states);

/* A load of `file` has ended at `now` (apr_time_now): with an error, or, NULL, by being in use. At most 64 files are
 * known. */
void mc_reload_states_tell(mc_reload_states *states, const char *file, const mc_error *error, apr_time_t now);

/* The same with the text of an error that another process or an earlier time has kept; NULL: none. */
void mc_reload_states_tell_text(mc_reload_states *states, const char *file, const char *error, apr_time_t now);

/* What is known of `file`. NULL states know nothing. */
mc_reload_state mc_reload_states_find(mc_reload_states *states, const char *file, apr_pool_t *pool);

/* Whether the last load of any file failed. NULL states: false. */
bool mc_reload_states_any_failed(mc_reload_states *states);

#endif
