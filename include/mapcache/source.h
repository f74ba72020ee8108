/*
 * Sources: the origin of maps that are not in the cache.
 */
#ifndef MAPCACHE_SOURCE_H
#define MAPCACHE_SOURCE_H

#include "mapcache/tile.h"

typedef struct mc_source mc_source;

/* One map (a metatile, or a whole WMS map) that is wanted from an origin. */
typedef struct mc_render {
    const char *tileset; /* LAYERS of an origin without configured layers */
    const mc_grid *grid; /* CRS of the box */
    mc_extent box;       /* x, y order, CRS units */
    int width, height;   /* pixels, buffer included */
    double density;      /* pixels for a pixel of a style: symbols and text are so much larger; 0: as 1 */
    int dimension_count;
    const mc_dimension_value *dimensions;
    bool raw;                          /* any content is accepted, no content is decoded (formats RAW and MVT) */
    const mc_mvt_options *vector_tile; /* a block of vector tiles of the grid is wanted; NULL: an image */
    /* NULL, or the format of the answer to the client: a source that paints may encode its map in this format, over
     * `background` (opaque B, G, R, A; NULL: transparent), or may give pixels without a background. */
    const mc_format *format;
    const uint8_t *background;
    bool whole; /* a map that a client has asked for: no tiles are cut of it */
} mc_render;

/* Either encoded bytes, as the origin sent them or `final`, or pixels. */
typedef struct mc_rendered {
    mc_buf *data;
    mc_pixels *pixels;
    mc_buf **tiles;     /* vector tiles, row by row from the upper left tile, which is also `data` */
    double provisional; /* seconds for which the map is good in place of a better one: it is not stored; 0: for good */
    bool final;         /* the bytes are in the wanted format, over the wanted background */
} mc_rendered;

typedef struct mc_info_request {
    mc_render map;
    int x, y; /* pixel in the map, from the upper left */
    const char *format;
    int count; /* features of each layer at most; 0: not given */
} mc_info_request;

/* A layer of vector tiles, for documents. */
typedef enum mc_attribute_kind { MC_ATTRIBUTE_TEXT, MC_ATTRIBUTE_NUMBER, MC_ATTRIBUTE_BOOLEAN } mc_attribute_kind;

typedef struct mc_vector_attribute {
    const char *name;
    mc_attribute_kind kind;
} mc_vector_attribute;

typedef struct mc_vector_layer_info {
    const char *name;
    int minzoom, maxzoom;           /* levels of the grid that may have the layer */
    apr_array_header_t *attributes; /* of mc_vector_attribute */
} mc_vector_layer_info;

/* The style document of a layer: an SLD or SE file. */
typedef struct mc_source_style {
    const char *layer; /* its name */
    const char *file;  /* absolute path */
} mc_source_style;

struct mc_legend;

/* A table of a PostgreSQL database that maps are drawn from. */
typedef struct mc_source_table {
    const char *connection; /* libpq's string or URI */
    const char
        *table; /* "table" or "schema.table", unquoted; NULL: of a query or function, whose tables are not known */
    int srid;   /* of the coordinates, as configured; 0: as the table says */
    /* Pixels around a map, at a scale denominator, from within which features change it; below 0: the map does not show
     * the table at that scale. Gets `layer`. */
    double (*reach)(const void *layer, double scale);
    const void *layer;
} mc_source_table;

typedef struct mc_source_ops {
    const char *type;
    const mc_key *keys;
    const char *help;
    mc_source *(*from_config)(const mc_node *node, mc_build *build);
    /* Looks up what is declared below sources (grids, tilesets), with complaints, once all of the configuration is
     * read; NULL: nothing. */
    void (*connect)(mc_source *source, const mc_node *node, mc_build *build);
    /* Why the source, of which mc_source.no_vector_tiles is NULL, makes no vector tiles of a tileset's grid: NULL, it
     * makes them. Before the source is connected, but with all grids. NULL: it makes them of all grids. */
    const char *(*no_vector_tiles)(mc_source *source, const mc_grid *grid, mc_build *build);
    /* Calls `visit` for each source that the source may draw from; NULL: none. */
    void (*parts)(mc_source *source, void (*visit)(void *baton, mc_source *part), void *baton);
    mc_error *(*render)(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool);
    /* Draws the maps of several sources of this kind over each other, the first one at the bottom: one map for each,
     * all of one box and size. NULL: the source does not draw. */
    mc_error *(*render_stack)(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count,
                              mc_ctx *ctx, apr_pool_t *pool);
    mc_error *(*info)(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx,
                      apr_pool_t *pool); /* NULL: none */
    /* The layers of the source's vector tiles (mc_vector_layer_info); NULL: the source makes none. */
    mc_error *(*vector_layers)(apr_array_header_t **layers, mc_source *source, mc_ctx *ctx, apr_pool_t *pool);
    /* Adds the symbols of the source's maps to a legend (lib/draw/label/legend.h). NULL: the source knows no symbols.
     */
    void (*legend)(struct mc_legend *legend, mc_source *source);
    /* The style documents of the source's layers (mc_source_style), the lowest layer first, each file once: of layers
     * that have one. NULL: the source has none. */
    apr_array_header_t *(*styles)(mc_source *source, apr_pool_t *pool);
    /* Where the source's maps have something to show, by what the data say of themselves; NULL: the source does not
     * know. */
    mc_error *(*place)(mc_place *place, mc_source *source, mc_ctx *ctx, apr_pool_t *pool);
    /* Calls `visit` for each table that the source itself draws from (not those of its parts); NULL: the source does
     * not know of any. */
    void (*tables)(mc_source *source, void (*visit)(void *baton, const mc_source_table *table), void *baton);
    /* Checks the data itself, with complaints; NULL: no check. */
    void (*inspect)(mc_source *source, mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool);
} mc_source_ops;

/*
 * How a source has answered this process: of its calls for maps. Any thread may read and write the fields.
 */
typedef struct mc_source_state {
    _Atomic bool fails;        /* the last call did */
    _Atomic uint64_t calls;    /* with their repetitions one each */
    _Atomic uint64_t failures; /* of these */
    _Atomic apr_time_t failed; /* microseconds of mc_clock_now(): the last failure */
    _Atomic int kind;          /* mc_error_kind of the last failure */
} mc_source_state;

struct mc_source {
    const mc_source_ops *ops;
    const char *name;
    mc_position position;
    mc_source_state state;
    mc_metadata *metadata;
    int retries;
    double retry_delay;
    double deadline;      /* seconds for one call */
    const char *endpoint; /* of the origin whose circuit breaker is asked before a call; NULL: of none */
    const apr_array_header_t *info_formats; /* of const char *; NULL: not queryable */
    bool needs_format;                      /* gives pixels: the tileset must have a format */
    bool cascades;                          /* hands on the maps of another server */
    bool tiles_as_sent;                     /* one tile of the server may be stored as it came */
    bool any_srs;                           /* draws maps in any CRS, not only in those of the tileset's grids */
    bool stacks_over;                       /* leaves what lies below its maps to be seen */
    const char *no_dimensions;   /* why the source refuses maps of tilesets with dimensions; NULL: it does not */
    const char *no_vector_tiles; /* why the source makes no vector tiles; NULL: it makes vector tiles */
    const char *no_images;       /* why the source draws no maps, only vector tiles; NULL: it draws maps */
};

extern const mc_source_ops *const mc_source_kinds[];

/* Refuses a source that draws from itself, after all are connected. */
void mc_source_refuse_loop(mc_source *source, const mc_node *node, mc_build *build);

mc_source *mc_source_from_config(const mc_node *node, mc_build *build);

/* Both repeat failed calls within the source's deadline. Bytes that are no image (unless `raw`) are MC_ERR_UPSTREAM;
 * the end of the deadline is MC_ERR_TIMEOUT. */
mc_error *mc_source_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;
/* Whether maps of the source (or NULL) are drawn here, which takes processors: not asked for, nor read. */
bool mc_source_draws(const mc_source *source);

/* Whether the map of `upper` can be drawn over that of `lower` in one go. */
bool mc_source_stacks(const mc_source *lower, const mc_source *upper);

/* The maps of sources that stack, drawn in one go: labels keep off those of all layers. */
mc_error *mc_source_render_stack(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count,
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

mc_error *mc_source_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

#endif
