/*
 * Dimensions of a tileset: what a client may ask for besides place and scale (spec 7).
 */
#ifndef MAPCACHE_DIMENSION_H
#define MAPCACHE_DIMENSION_H

#include "mapcache/tile.h"

typedef struct mc_dimension mc_dimension;

/* What a query of the dimension may refer to. */
typedef struct mc_dimension_query {
    const char *tileset;
    const mc_grid *grid;
    const mc_extent *extent; /* NULL: unbounded */
    const char *value;       /* as requested */
} mc_dimension_query;

typedef struct mc_dimension_ops {
    const char *type;
    const mc_key *keys;
    const char *help;
    mc_dimension *(*from_config)(const mc_node *node, mc_build *build);
    /* Ordered values that the requested one stands for; empty: none. MC_ERR_INVALID_DIMENSION where it is refused. */
    mc_error *(*resolve)(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query,
                         mc_ctx *ctx, apr_pool_t *pool);
    /* All values, for capabilities. */
    mc_error *(*list)(apr_array_header_t **values, mc_dimension *dimension, mc_ctx *ctx, apr_pool_t *pool);
    bool from_backend;
} mc_dimension_ops;

struct mc_dimension {
    const mc_dimension_ops *ops;
    const char *name;
    const char *unit;
    const char *default_value;
    bool time;
};

extern const mc_dimension_ops *const mc_dimension_kinds[];

/* Bytes of a value that a client may ask for: it becomes part of paths, keys, statements and requests to origins. */
#define MC_DIMENSION_VALUE_MAX 2048

mc_dimension *mc_dimension_from_config(const mc_node *node, mc_build *build);

/* What the requested value stands for. MC_ERR_INVALID_DIMENSION where it is refused or longer than
 * MC_DIMENSION_VALUE_MAX. */
mc_error *mc_dimension_resolve(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query,
                               mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_dimension_list(apr_array_header_t **values, mc_dimension *dimension, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

#endif
