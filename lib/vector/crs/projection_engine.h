/* The functions that the module with PROJ offers to lib/vector/crs/projection.c. */
#ifndef MC_VECTOR_CRS_PROJECTION_ENGINE_H
#define MC_VECTOR_CRS_PROJECTION_ENGINE_H

#include "vector/crs/projection.h"

/* A PROJ context with the transformations that it has made: used by one thread at a time. */
typedef struct mc_proj_context mc_proj_context;
typedef struct mc_proj_pair mc_proj_pair; /* a transformation of a context */

typedef struct mc_projection_engine {
    /* NULL where there is no memory. */
    mc_proj_context *(*open)(void);
    void (*close)(mc_proj_context *context);
    /* The transformation from `from` to `to`, x (longitude) first on both sides; kept by the context. *pair is NULL,
     * and no error, where both are the same. MC_ERR_CONFIG with PROJ's reason otherwise. */
    mc_error *(*pair)(const mc_proj_pair **pair, mc_proj_context *context, const char *from, const char *to,
                      apr_pool_t *pool);
    /* See mc_projection_points. */
    void (*points)(const mc_proj_pair *pair, double *xy, size_t count);
    /* See mc_projection_ratio. */
    double (*ratio)(const mc_proj_pair *pair);
    /* The box of a box in the other CRS; minx above maxx where the box crosses the antimeridian. False where there is
     * none. */
    bool (*box)(const mc_proj_pair *pair, mc_extent *box, bool inverse);
    /* See mc_projection_formula; NULL where there is none. */
    const char *(*formula)(mc_proj_context *context, const char *srs, apr_pool_t *pool);
} mc_projection_engine;

extern const mc_projection_engine mc_projection_engine_proj;

#endif
