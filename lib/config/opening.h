/*
 * Looks at data while a configuration is checked thoroughly. What opens the data may wait for a network, or crash on a
 * broken file: so a child process opens the data and says what it found, within a time.
 */
#ifndef MC_CONFIG_OPENING_H
#define MC_CONFIG_OPENING_H

#include "mapcache/config.h"

/* What a look found. Its functions copy texts into a pool of their own. */
typedef struct mc_findings mc_findings;

/* Why no map can be drawn; what would better be another way. */
void mc_findings_refuse(mc_findings *findings, const char *text);
void mc_findings_warn(mc_findings *findings, const char *text);

/* Runs in the child. */
typedef void mc_opening_look(mc_findings *findings, const void *data, apr_pool_t *pool);

typedef struct mc_opening {
    mc_opening_look *look;
    const void *data;
    const char *subject;  /* of complaints: `source "land"` */
    const char *what;     /* "the raster" */
    mc_severity severity; /* of what is refused */
} mc_opening;

/* Opens the data in a child process, which is ended when it takes too long, and complains of what was found. Looks at
 * all the data of a configuration have a time, too, after which the rest is not looked at. For a process without
 * threads. */
void mc_config_look(mc_diagnostics *diagnostics, const mc_node *at, const mc_opening *opening, apr_pool_t *pool);

#endif
