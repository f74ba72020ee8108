/* One run of `mapcache serve`, from its folder to its end. */
#ifndef MC_CLI_SERVE_RUN_H
#define MC_CLI_SERVE_RUN_H

#include "serve_show.h"
#include "serve_watch.h"

typedef struct mc_serve_wishes {
    const char *listen;
    int port; /* 0: 8080, or the next one that is free */
    const char *save;
    bool force; /* the file of `save` may be there */
    bool open;
    bool apache, nginx;
    bool quiet, json;
} mc_serve_wishes;

/* Serves the things (of const char *) until a signal ends it; the exit status. */
int mc_serve_run(const mc_serve_wishes *wishes, const apr_array_header_t *things, apr_pool_t *pool);

#endif
