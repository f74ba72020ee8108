/* The source "cube", shared by its files. */
#ifndef MC_SOURCE_CUBE_H
#define MC_SOURCE_CUBE_H

#include "mapcache/cube.h"
#include "source/source_base.h"
#include "text/time.h"

typedef struct mc_cube_source {
    mc_source_base base; /* first */
    const char *cube_name;
    const mc_cube *cube;
    const char *dimension; /* the dimension whose value is the date */
    int resample;          /* mc_resample */
} mc_cube_source;

/* The requested time as spans (mc_time_span); NULL where none is asked for. */
mc_error *mc_cube_source_times(apr_array_header_t **spans, const mc_cube_source *source, const mc_render *wanted,
                               apr_pool_t *pool) MC_CHECKED;

/* A map in pixels of the cube: the map's upper left corner, counted from the outer corner of the cube's first pixel,
 * and the size of one pixel of the map. MC_ERR_CONFIG where the map is in another CRS than the cube. */
typedef struct mc_cube_view {
    double left, top, step_x, step_y;
} mc_cube_view;
mc_error *mc_cube_source_view(mc_cube_view *view, const mc_cube_source *source, const mc_render *wanted,
                              apr_pool_t *pool) MC_CHECKED;

/* The info operation: the values at a point at each of the requested dates. */
mc_error *mc_cube_source_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;
const apr_array_header_t *mc_cube_source_info_formats(apr_pool_t *pool);

#endif
