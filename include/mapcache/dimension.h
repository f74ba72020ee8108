/*
 * Dimensions of a tileset: what a client may ask for besides place and scale (docs/reference/configuration.md 7).
 */
#ifndef MAPCACHE_DIMENSION_H
#define MAPCACHE_DIMENSION_H

#include "mapcache/tile.h"

typedef struct mc_dimension mc_dimension;

/* The request for which a value is resolved: what statements of the dimension may refer to. */
typedef struct mc_dimension_query {
    const char *tileset;
    const mc_grid *grid;
    const mc_extent *extent; /* in units of the grid's CRS, x (longitude, easting) first; NULL: unbounded */
    const char *value;       /* as requested */
} mc_dimension_query;

typedef struct mc_dimension_ops {
    const char *type;
    const mc_key *keys;
    const char *help;
    mc_dimension *(*from_config)(const mc_node *node, mc_build *build);
    /* The values (const char *) that the requested one stands for, in painting order; empty: none.
     * MC_ERR_INVALID_DIMENSION where the requested value is refused. */
    mc_error *(*resolve)(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query,
                         mc_ctx *ctx, apr_pool_t *pool);
    /* The same for `count` queries at once; NULL: one after the other. */
    mc_error *(*resolve_all)(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *queries,
                             int count, mc_ctx *ctx, apr_pool_t *pool);
    /* All values, for capabilities. */
    mc_error *(*list)(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                      apr_pool_t *pool);
    /* The default value by the back end; NULL: the default value is that of the configuration. */
    mc_error *(*ask_default)(const char **value, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                             apr_pool_t *pool);
    /* Adds a value to the back end; NULL: the type cannot. *inserted: whether the configuration asks for it. */
    mc_error *(*insert)(bool *inserted, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                        apr_pool_t *pool);
    /* The latest value that has begun by `now`, for "current"; NULL: the list is searched. *value stays as it is where
     * no value has begun. */
    mc_error *(*latest)(const char **value, mc_dimension *dimension, apr_time_t now, mc_ctx *ctx, apr_pool_t *pool);
    /* When the file that has the values was changed; 0: not known. NULL: there is no file. */
    apr_time_t (*changed)(const mc_dimension *dimension);
    /* Whether the values that a value stands for depend on the extent; NULL: they do not. */
    bool (*by_extent)(const mc_dimension *dimension);
    void (*forget)(mc_dimension *dimension); /* mc_dimension_forget; NULL: no answers are remembered */
    bool from_backend;                       /* values come from a database */
} mc_dimension_ops;

struct mc_dimension {
    const mc_dimension_ops *ops;
    const char *name;
    const char *unit;
    const char *default_value;
    bool time;
    bool nearest; /* WMS requests for a value that is not there get the nearest one of the list */
    bool periods; /* documents list regular times as periods */
    /* <wms_querybymap>: in a WMS map whose level is at least the given one, what a value stands for is asked once with
     * the map's extent instead of once for each tile with the tile's. */
    bool query_by_map;
    int query_by_map_minzoom;
};

extern const mc_dimension_ops *const mc_dimension_kinds[];

/* Bytes of a value that a client may ask for: it becomes part of paths, keys, statements and requests to origins. */
#define MC_DIMENSION_VALUE_MAX 2048
/* The same where a database is asked and its answer goes there instead: room for a list of some hundred products. */
#define MC_DIMENSION_ASKED_MAX 16384

mc_dimension *mc_dimension_from_config(const mc_node *node, mc_build *build);

/*
 * The values (const char *) that the requested value stands for, in painting order: the last one is on top. The caller
 * must not change the array. Within one request (one ctx->pool) the same query has the same answer, and the back end is
 * asked once.
 * MC_ERR_INVALID_DIMENSION where the value is refused or too long, MC_ERR_LIMIT where it stands for more than
 * <max_entries> values, MC_ERR_UNAVAILABLE where the back end has no answer before the deadline, MC_ERR_IO,
 * MC_ERR_CORRUPT, MC_ERR_UPSTREAM where it fails.
 */
mc_error *mc_dimension_resolve(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query,
                               mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same for the tiles of a map: values[i] for queries[i]. The back end is reached once for all of them. */
mc_error *mc_dimension_resolve_all(apr_array_header_t **values, mc_dimension *dimension,
                                   const mc_dimension_query *queries, int count, mc_ctx *ctx,
                                   apr_pool_t *pool) MC_CHECKED;

/* When what lists the values was changed; 0: not known. */
apr_time_t mc_dimension_changed(const mc_dimension *dimension);

/* What lists the values has changed: answers that the process remembers are asked for again. Any thread. */
void mc_dimension_forget(mc_dimension *dimension);

/* Whether what a value stands for may differ from tile to tile. */
bool mc_dimension_by_extent(const mc_dimension *dimension);

/*
 * After tiles of a value have been stored: <insert_query>, where one is configured (*inserted). The query's extent is
 * that of the new tiles. MC_ERR_IO, MC_ERR_UPSTREAM where the back end refuses.
 */
mc_error *mc_dimension_insert(bool *inserted, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/* All values (const char *) as capabilities list them. `tileset`: the name that statements of the dimension see. */
mc_error *mc_dimension_list(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/*
 * A list of instants (const char *) as WMS 1.3.0, annex C.3, writes intervals: "start/end/resolution" for each run of
 * at least three times with one distance, which may be months and years; the others from themselves to themselves, in
 * the order of time. The array itself where there is no such run, or where one value is no instant. Takes time for one
 * sort of the list.
 */
const apr_array_header_t *mc_dimension_periods(const apr_array_header_t *values, apr_pool_t *pool);

/* Whether a value means the latest time: "current", as WMS 1.3.0 says, or "latest", in any case. */
bool mc_dimension_is_current(const char *value);

/*
 * "current" or "latest" of a time dimension: the latest of its listed times that has begun (WMS 1.3.0 annex C); its
 * default value where none of what is listed is such a time. Any other value, and any of another dimension, stays as it
 * is.
 */
mc_error *mc_dimension_settle(const char **value, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/*
 * The value that stands for the requested one of a WMS request: that one itself; where it stands for nothing and the
 * dimension says <nearest>, the listed number or time that is nearest to it (WMS 1.3.0 annex C.4.2). What is no number
 * and no time stays as it is.
 */
mc_error *mc_dimension_nearest(const char **value, mc_dimension *dimension, const mc_dimension_query *query,
                               mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The default value to be shown in WMS capabilities: the back end's (<default_query>), else the configured one. */
mc_error *mc_dimension_default(const char **value, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                               apr_pool_t *pool) MC_CHECKED;

#endif
