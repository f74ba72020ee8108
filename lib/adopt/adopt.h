/*
 * From the configuration of another server to a mapcache.xml: what is taken over, and notes of what is not. Files are
 * opened for reading only, and no server is asked.
 */
#ifndef MC_ADOPT_ADOPT_H
#define MC_ADOPT_ADOPT_H

#include <apr_tables.h>

#include "mapcache/error.h"

typedef struct mc_adopt mc_adopt;

/* What could not be taken over, where it stands, and what to do about it. */
typedef struct mc_adopt_note {
    const char *file;
    int line; /* 0: of the whole file */
    const char *text;
} mc_adopt_note;

/* The servers whose configurations are read. */
typedef enum mc_adopt_server {
    MC_ADOPT_NO_SERVER,
    MC_ADOPT_MAPPROXY,
    MC_ADOPT_RENDERD,
    MC_ADOPT_MAPSERVER,
    MC_ADOPT_GEOWEBCACHE
} mc_adopt_server;

/* A layer that was taken over. */
typedef struct mc_adopt_layer {
    const char *tileset;   /* its name here */
    const char *there;     /* its name there; of renderd the path of its tiles: "/osm/" */
    const char *extension; /* of the tiles of renderd; NULL of others */
} mc_adopt_layer;

/* A style that was made for a layer: a file of its own in the folder of styles. */
typedef struct mc_adopt_style {
    const char *file; /* its name: letters, digits, - and _, with .sld behind */
    const char *text; /* an SLD document */
} mc_adopt_style;

/* How many of each have been written. */
typedef struct mc_adopt_counts {
    int grids, sources, caches, tilesets, seeds;
} mc_adopt_counts;

mc_adopt *mc_adopt_create(apr_pool_t *pool);

/*
 * Takes over a file, or a folder of GeoServer: which server's it is, is told by the end of its name. Several
 * files of one server, or of several, make one configuration; names that two of them have are told apart by numbers.
 * MC_ERR_CONFIG: nothing of it could be used; what other files have said stays.
 */
mc_error *mc_adopt_read(mc_adopt *adopt, const char *file) MC_CHECKED;

/* Before the first file: layers of map files that can be drawn alike get sources and styles of ours, and the styles are
 * named as files in `folder` (seen from the mapcache.xml). Without it, MapServer's library draws them all. */
void mc_adopt_write_styles_to(mc_adopt *adopt, const char *folder);

/* Of mc_adopt_style: what the caller has to write into that folder. */
const apr_array_header_t *mc_adopt_styles(const mc_adopt *adopt);

/* Which server's a file is, by the end of its name; MC_ADOPT_NO_SERVER: of none that is known. */
mc_adopt_server mc_adopt_server_of(const char *file);

/* Of mc_adopt_layer, in the order of the files. */
const apr_array_header_t *mc_adopt_layers(const mc_adopt *adopt);

/* Permissions (0777) that all of the files have that were read: who may not read one of them may not read what is
 * written, either. */
unsigned mc_adopt_permissions(const mc_adopt *adopt);

/* After the last file: what waits for others. MC_ERR_CONFIG as mc_adopt_read. */
mc_error *mc_adopt_finish(mc_adopt *adopt) MC_CHECKED;

/* Of const char *: commands that fill the caches as the other server's seeder did. */
const apr_array_header_t *mc_adopt_commands(const mc_adopt *adopt);

/* Of const mc_adopt_note, in the order of the files. */
const apr_array_header_t *mc_adopt_notes(const mc_adopt *adopt);
mc_adopt_counts mc_adopt_counted(const mc_adopt *adopt);

/* The whole mapcache.xml. `made_by`: the command, for the comment at its top. */
const char *mc_adopt_write(const mc_adopt *adopt, const char *made_by, apr_pool_t *pool);

#endif
