/* What is told of the levels that there are. */
#ifndef MC_OVERVIEW_OVERVIEW_LIST_H
#define MC_OVERVIEW_OVERVIEW_LIST_H

#include "overview/overview_shapefile.h"
#include "overview/overview_table.h"

/* Tells of a level, one of the style of the job: sets the source and the levels of the grid. */
void mc_overview_list_level(mc_overview_found *found, const mc_overview_job *job);

/* Tells that the source has no level; and of its levels for other styles, where there are any. */
void mc_overview_list_none(const mc_overview_job *job);
void mc_overview_list_others(const mc_overview_job *job, int levels, int64_t bytes);

/* The error of listing; one that says that the source cannot have levels, or that these are broken or
 * another user's, is told of instead. */
mc_error *mc_overview_list_refused(mc_error *error, const mc_overview_job *job) MC_CHECKED;

/* Tells of all levels of the table or the shapefile of a layer. Errors as of mc_overview_list. */
mc_error *mc_overview_list_table(mc_overview_table *table, const mc_tileset *tileset) MC_CHECKED;
mc_error *mc_overview_list_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset) MC_CHECKED;

#endif
