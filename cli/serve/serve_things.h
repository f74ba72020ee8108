/* What a run serves: things whose data are looked at, for which a configuration is written; or a configuration. */
#ifndef MC_CLI_SERVE_THINGS_H
#define MC_CLI_SERVE_THINGS_H

#include "mapcache/server.h"

typedef struct mc_serve_things {
    const apr_array_header_t *names; /* of const char *: absolute paths and addresses, with their passwords */
    bool given;                      /* the thing is a mapcache.xml */
    const char *config;              /* the mapcache.xml that is served */
    const char *text;                /* what is in it, where it was written here, but for <cors> */
    bool closed;                     /* what is written here is not for the pages of other sites */
    mc_config *model;                /* of the configuration that is served */
    const apr_array_header_t *files; /* of const char *: that the configuration names */
    const apr_array_header_t *notes; /* of const char *: what was left out, and warnings */
    const apr_array_header_t *told;  /* of const char *: the same warnings as the server's log has them */
    apr_pool_t *pool;                /* of all that belongs to the model; the next one has its own */
} mc_serve_things;

/* Recognises the things; `folder` is for what has to be written. `closed`: as the field. */
mc_error *mc_serve_things_name(mc_serve_things *things, const apr_array_header_t *arguments, const char *folder,
                               bool closed, apr_pool_t *pool) MC_CHECKED;

/*
 * Looks at the things and makes things->model. *changed: the configuration differs from the one before, or may differ.
 * After an error everything stays as it was.
 */
mc_error *mc_serve_things_look(mc_serve_things *things, bool *changed, apr_pool_t *parent) MC_CHECKED;

/* Asks the data of things->model where they lie, for at most three seconds, so that it can be shown. */
void mc_serve_things_ask_places(const mc_serve_things *things, apr_pool_t *parent);

/* The things that are files or folders: of const char *. */
const apr_array_header_t *mc_serve_things_paths(const mc_serve_things *things, apr_pool_t *pool);

/* Writes the configuration for an administrator into an open file. */
mc_error *mc_serve_things_save(const mc_serve_things *things, int file, apr_pool_t *pool) MC_CHECKED;

#endif
