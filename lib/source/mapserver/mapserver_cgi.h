/*
 * Maps by mapserv, MapServer's CGI program, where mapcache-mapserver is not installed: one process for each map, which
 * is asked by WMS 1.1.1 (OGC 01-068r3).
 */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_CGI_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_CGI_H

#include "mapcache/source.h"
#include "source/mapserver/mapserver_wire.h"

typedef struct mc_mapserver_cgi {
    const char *source;         /* name, for messages */
    const char *program;        /* path of mapserv */
    const char *mapfile;        /* path */
    const char *layers;         /* comma list of names and groups; NULL: those that are on */
    mc_mapserver_ground ground; /* under the map */
    int processes;              /* at a time, of all sources together; 0: as many as the process has workers */
} mc_mapserver_cgi;

/* The path of mapserv: in PATH, else where Debian has CGI programs. NULL: it is not installed. */
const char *mc_mapserver_find_cgi(apr_pool_t *pool);

/*
 * What a map of the source would find out without a map, by the capabilities that mapserv writes: MC_ERR_CONFIG where
 * the map file lacks layers, or does not offer them by WMS; MC_ERR_UPSTREAM: the words of mapserv about the map file;
 * MC_ERR_UNAVAILABLE: mapserv lacks its own configuration file, which depends on the environment; MC_ERR_TIMEOUT.
 */
mc_error *mc_mapserver_check_cgi(const mc_mapserver_cgi *cgi, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/*
 * Has one map drawn: *data is a PNG, attached to `pool`. The process is killed at the deadline, which the context must
 * have. MC_ERR_CONFIG: the map file lacks a layer, or cannot be read; MC_ERR_UPSTREAM: MapServer says something else
 * than an image, or too much; MC_ERR_NOT_BUILT: a grid without a code of EPSG, and dimensions: mapserv draws a map with
 * another value where the map file does not allow the one that is asked for; MC_ERR_TIMEOUT, MC_ERR_UNAVAILABLE.
 */
mc_error *mc_mapserver_draw_cgi(mc_buf **data, const mc_mapserver_cgi *cgi, const mc_render *wanted, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

#endif
