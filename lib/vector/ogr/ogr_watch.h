/* SQL that a GeoPackage holds, as a view without an end, ends with the request that reads the file. */
#ifndef MC_VECTOR_OGR_OGR_WATCH_H
#define MC_VECTOR_OGR_OGR_WATCH_H

#include "mapcache/ctx.h"

/* Once for the process, before GDAL opens anything. */
void mc_ogr_watch_databases(void);

/* From now on this thread opens and reads files for `ctx`; NULL: for nobody. */
void mc_ogr_watch_begin(mc_ctx *ctx);

/* The end of that. The error, or that of the request where SQL was ended for it: SQLite has another word for that. */
mc_error *mc_ogr_watch_end(mc_error *error, apr_pool_t *pool) MC_CHECKED;

#endif
