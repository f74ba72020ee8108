/* Inside of the room: one look at a thing, and the looks for each kind of thing. */
#ifndef MC_DATA_DATA_PRIVATE_H
#define MC_DATA_DATA_PRIVATE_H

#include "data/data.h"

typedef struct mc_data_search {
    mc_data_limits limits;      /* filled in */
    apr_array_header_t *layers; /* of mc_data_layer * */
    apr_array_header_t *notes;  /* of const char * */
    int files;                  /* that were looked at */
    const char *slowest;        /* the file of a folder whose look took the longest */
    apr_time_t slowest_time;    /* and how long: microseconds */
    bool late;                  /* the time is over: the rest of the folder is left out */
    const char *thing;          /* that is looked at now */
    mc_ctx *ctx;                /* with the deadline */
    apr_pool_t *pool;
} mc_data_search;

/* Adds a layer, zeroed but for its kind and type, and levels -1. NULL, and a note, where there are too many. */
mc_data_layer *mc_data_add(mc_data_search *search, mc_data_kind kind, const char *type);
void mc_data_note(mc_data_search *search, const char *format, ...) MC_PRINTF(2, 3);

/* Letters, digits, '_', '-' and '.' of a text; others become '_'. Never empty. */
const char *mc_data_identifier(const char *text, apr_pool_t *pool);

/* "DIR/land.cover.tif" -> "land.cover"; of a folder the folder's name. */
const char *mc_data_stem(const char *path, apr_pool_t *pool);

/* The layer's title, or where one of the first `count` of `layers` (mc_data_layer *) has the same: "land (north)" with
 * the name of the folder, or a number. */
const char *mc_data_distinct_title(const mc_data_layer *layer, const apr_array_header_t *layers, int count,
                                   apr_pool_t *pool);

/* A thing as it stands in a configuration: without blanks around it, a relative path as seen from the file's folder. */
const char *mc_data_thing_path(const char *file, const char *text, apr_pool_t *pool);

/* postgresql:// or postgres:// */
bool mc_data_is_database(const char *thing);

/* Fills in what follows from srs and extent: degrees and, where they are unknown, levels. `pixel`: size of a pixel in
 * units of the srs; 0: of vectors. */
void mc_data_place(mc_data_layer *layer, double pixel, apr_pool_t *pool);

/* A text of a JSON object; NULL where it is not there, is no text, or is too long for one line. */
const char *mc_data_json_text(const char *json, size_t size, const char *name, apr_pool_t *pool);

/* A text as a part of a pattern of glob(). */
const char *mc_data_glob_text(const char *text, apr_pool_t *pool);

/* Each adds what it finds at `path`, of which `part` (or NULL: all) is wanted. Errors as of mc_data_find. */
mc_error *mc_data_look_shapefile(mc_data_search *search, const char *path) MC_CHECKED;
mc_error *mc_data_look_tiles(bool *known, mc_data_search *search, const char *path, const char *part) MC_CHECKED;
bool mc_data_is_pmtiles(const char *path, apr_pool_t *pool); /* by its first bytes */
mc_error *mc_data_look_pmtiles(mc_data_search *search, const char *path) MC_CHECKED;
bool mc_data_is_mapfile(const char *path, apr_pool_t *pool); /* by its ending; not a raster of PCRaster */
mc_error *mc_data_look_mapfile(mc_data_search *search, const char *path) MC_CHECKED;
/* Of Esri's bundles, where `path` is the folder of the levels or above it. False: the folder is none. */
bool mc_data_look_bundles(mc_data_search *search, const char *path);
mc_error *mc_data_look_bundle_file(mc_data_search *search, const char *path) MC_CHECKED;
/* Of ROK4: by what a JSON file says. Of a folder those that lie in it; false: there is none. */
bool mc_data_is_pyramid(const char *path, apr_pool_t *pool);
mc_error *mc_data_look_pyramid(mc_data_search *search, const char *path) MC_CHECKED;
bool mc_data_look_pyramids(mc_data_search *search, const char *path);
mc_error *mc_data_look_mrf(mc_data_search *search, const char *path) MC_CHECKED;
mc_error *mc_data_look_file(mc_data_search *search, const char *path, const char *part) MC_CHECKED;
mc_error *mc_data_look_folder(mc_data_search *search, const char *path) MC_CHECKED;
mc_error *mc_data_look_database(mc_data_search *search, const char *thing) MC_CHECKED;
mc_error *mc_data_look_gdal(mc_data_search *search, const char *path, const char *part) MC_CHECKED;

#endif
