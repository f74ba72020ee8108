/* One reading of a layer, as all kinds of data have it: the worlds of the map, geometries that cannot be read. */
#ifndef MC_VECTOR_FEATURE_READING_H
#define MC_VECTOR_FEATURE_READING_H

#include "vector/feature/wrap.h"

/* First member of every kind's own struct. */
typedef struct mc_feature_reading {
    const char *layer; /* its name, for messages */
    mc_feature_visitor *visit;
    void *baton;
    mc_ctx *ctx;
    /* The rest is set by mc_reading_worlds. */
    mc_wrap plan;
    int world;                   /* that is being read */
    const mc_feature_query *map; /* of that world, in the CRS of the map */
    mc_geometry geometry;        /* of the feature that is being read */
    int64_t skipped;             /* features whose geometry could not be read */
    const int64_t *wholes;       /* as of the feature that is handed over */
} mc_feature_reading;

/* Reads all worlds that the map shows, from west to east. CRS and bounds of the data as of mc_wrap_plan. `read` visits
 * the features of r->map. */
mc_error *mc_reading_worlds(mc_feature_reading *r, const mc_feature_query *query, const char *data_srs,
                            const mc_extent *bounds, mc_error *(*read)(mc_feature_reading *r, apr_pool_t *pool),
                            apr_pool_t *pool) MC_CHECKED;

/* Whether the feature with r->geometry is drawn in this world. `error`: why the geometry could not be read; the first
 * one is logged. */
bool mc_reading_draws(mc_feature_reading *r, mc_error *error, apr_pool_t *scratch);

/* Hands the feature with r->geometry over. */
mc_error *mc_reading_visit(mc_feature_reading *r, int64_t id, const char *const *values) MC_CHECKED;

#endif
