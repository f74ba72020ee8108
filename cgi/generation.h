/*
 * The configuration that is being served, and the next one: a changed file is loaded beside the one in use, which goes
 * with its last request. A file that cannot be used changes nothing.
 */
#ifndef MC_CGI_GENERATION_H
#define MC_CGI_GENERATION_H

#include "mapcache/server.h"

typedef struct mc_generations mc_generations;

/* One loaded configuration. */
typedef struct mc_generation {
    mc_server *server;
    mc_log log; /* standard error, at the configuration's level */
    apr_pool_t *pool;
    mc_generations *generations;
    _Atomic int references;
} mc_generation;

/* Loads `file`. Where that fails, the log says why and there is no generation until the file can be loaded.
 * threads: the runtime may start threads. */
mc_generations *mc_generations_create(const char *file, int threads, apr_pool_t *pool);
void mc_generations_destroy(mc_generations *generations);

/* The newest generation, referenced. NULL if there is none. From any thread; never waits for a load. */
mc_generation *mc_generation_acquire(mc_generations *generations);

/* The last one who leaves an old generation does not wait for tiles that wait to be stored: a thread does. */
void mc_generation_release(mc_generation *generation);

/* Whether there is a configuration to serve. */
bool mc_generations_loaded(mc_generations *generations);

/* Loads the file once more, whether it has changed or not, with all files that it names. Where that fails, the log says
 * why, and the one in use goes on. Where somebody is writing to the files, the load is left to the next look. */
void mc_generations_reload(mc_generations *generations);

/*
 * Looks whether the configuration, or a file that it was read of, is another one than the one that was loaded last, and
 * loads it then, once two looks have found the same files: nobody is writing to them any more. Where <auto_reload> says
 * so, or nothing is loaded, or the last load found the files being written; what failed is also tried again in growing
 * pauses of 1 to 60 seconds, because what was missing may be there again. Returns the microseconds until the next look;
 * 0: none is wanted before the next mc_generations_reload.
 */
apr_interval_time_t mc_generations_look(mc_generations *generations);

/* NULL as long as nothing could be loaded. */
mc_runtime *mc_generations_runtime(mc_generations *generations);

#endif
