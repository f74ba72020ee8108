/* Overviews of a shapefile, in a file beside it (vector/levels/level_file.h). */
#ifndef MC_OVERVIEW_OVERVIEW_SHAPEFILE_H
#define MC_OVERVIEW_OVERVIEW_SHAPEFILE_H

#include "overview/overview_private.h"
#include "vector/levels/level_writer.h"
#include "vector/shapefile/shapefile.h"
#include "vector/shapefile/shp.h"

/* A shapefile whose overviews are built or dropped. */
typedef struct mc_overview_shapefile {
    mc_overview_job job;
    mc_shapefile_config config;
    const mc_shp *shp;
    const int *fields; /* of the table, for each attribute of the job; -1: it has none of that name */
    mc_level_writer *writer;
} mc_overview_shapefile;

extern const mc_overview_source_ops mc_overview_shapefile_source;
extern const mc_overview_store_ops mc_overview_file_store;

/* Builds all levels of the shapefile of a layer, or drops them. Errors as of mc_overview_build. */
mc_error *mc_overview_build_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset) MC_CHECKED;
mc_error *mc_overview_drop_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset) MC_CHECKED;

/* Opens it, and sets what its levels are for, and its CRS. MC_ERR_CONFIG: it cannot have overviews. */
mc_error *mc_overview_open_shapefile(const char **srs, mc_overview_shapefile *shapefile,
                                     const mc_tileset *tileset) MC_CHECKED;

/* The digests in the names of files of overviews beside the shapefile: uint64_t. `base`: its path without ".shp". */
mc_error *mc_overview_list_styles(apr_array_header_t **styles, const mc_overview_job *job, const char *base) MC_CHECKED;

/* Goes over all records for the facts of the job. MC_ERR_CONFIG: there is no geometry. */
mc_error *mc_overview_find_shapes(mc_overview_shapefile *shapefile) MC_CHECKED;

#endif
