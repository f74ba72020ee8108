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

/* Loads `file`. Where that fails, the log says why and there is no generation until the file can be loaded: it is tried
 * again when it changes, and in growing pauses of 1 to 60 seconds. threads: the runtime may start threads. */
mc_generations *mc_generations_create(const char *file, int threads, apr_pool_t *pool);
void mc_generations_destroy(mc_generations *generations);

/* The newest generation, referenced; looks at most once a second whether the file has changed (where auto_reload says
 * so, or nothing is loaded). NULL if there is none. From any thread. */
mc_generation *mc_generation_acquire(mc_generations *generations);

/* The last one who leaves an old generation does not wait for tiles that wait to be stored: a thread does. */
void mc_generation_release(mc_generation *generation);

/* Whether there is a configuration to serve. */
bool mc_generations_loaded(mc_generations *generations);

/* Loads the file once more, whether it has changed or not, with all files that it names. Where that fails, the log says
 * why, and the one in use goes on. From any thread. */
void mc_generations_reload(mc_generations *generations);

/* NULL as long as nothing could be loaded. */
mc_runtime *mc_generations_runtime(mc_generations *generations);

#endif
