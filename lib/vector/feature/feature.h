/*
 * Vector data: the features that a layer reads for a map. One const table of operations for each kind of data (PostGIS,
 * shapefile); a visitor that paints, counts or encodes is called for each feature as it arrives.
 */
#ifndef MC_VECTOR_FEATURE_FEATURE_H
#define MC_VECTOR_FEATURE_FEATURE_H

#include "mapcache/ctx.h"
#include "mapcache/grid.h"
#include "mapcache/tile.h"
#include "vector/geometry/geometry.h"

/* The type of an attribute, whose values are texts. */
typedef enum mc_field_type { MC_FIELD_TEXT, MC_FIELD_INTEGER, MC_FIELD_NUMBER, MC_FIELD_BOOLEAN } mc_field_type;

typedef struct mc_field {
    const char *name;
    mc_field_type type;
} mc_field;

/* A request for features. */
typedef struct mc_feature_query {
    const char *srs;               /* of the map: "EPSG:3857" */
    mc_extent box;                 /* x, y order, in units of that CRS, with the margin that the symbols need */
    mc_pixel_grid pixel_grid;      /* to pixels of the map */
    double fineness;               /* the part of a pixel of the grid that is seen as one pixel; 0: all of the pixel */
    double resolution;             /* units of the CRS for a pixel */
    double scale;                  /* denominator, at 0.28 mm for a pixel of a style (OGC 05-078r4, 10.2) */
    double density;                /* pixels of the map for a pixel of a style; 0: as 1 */
    const char *const *attributes; /* names of those that are wanted */
    int attribute_count;
    bool ids;           /* the features' numbers are wanted; else the numbers may be anything */
    bool wholes;        /* the visitor takes whole numbers as such: see mc_feature */
    bool wrap;          /* beyond the antimeridian the map goes on with the other side (vector/feature/wrap.h) */
    double wrap_margin; /* units of the CRS on the left and right of `box`: what of the other side lies only there is
                           left out */
    uint64_t style;     /* digest of the style that paints the features, or of the rules of vector tiles: what cannot be
                           seen in that style, or is in no tile, may be left out (docs/internals/overviews.md); 0: all
                           features are wanted */
    const mc_dimension_value *dimensions;
    int dimension_count;
    struct mc_packet_taker *taker; /* who takes packets in place of features (packet.h); NULL: nobody */
} mc_feature_query;

static inline double
mc_query_density(const mc_feature_query *query)
{
    return query->density > 0 ? query->density : 1;
}

/*
 * Makes the query for data in another CRS than the map's: the box in the CRS of the data, and a pixel grid that
 * transforms (mc_warp). A copy of the query where both CRSs are the same; data_srs NULL: the map's. Errors, which name
 * the layer, as of mc_projection_open.
 */
mc_error *mc_feature_query_project(mc_feature_query *own, const mc_feature_query *query, const char *data_srs,
                                   const char *layer, apr_pool_t *pool) MC_CHECKED;

/* One feature, valid during the call that hands it over. */
typedef struct mc_feature {
    int64_t id;                    /* the feature's number in the data, or its place in the data */
    mc_geometry *geometry;         /* in pixels of the map */
    const char *const *values;     /* attributes as text, in the order of the query's names; NULL: null */
    const int64_t *wholes;         /* the numbers of attributes whose value is mc_value_is_whole, where the query has
                                      asked for such; else anything */
    const mc_feature_query *query; /* the query, or that of another world, with the geometry's pixel grid */
    struct apr_hash_t
        *placed; /* shapes that filters have made for `query` (draw/style/spatial.h); NULL: nothing is painted */
} mc_feature;

/* What stands for a value that is given as a whole number; told by its address. */
extern const char mc_value_is_whole[];

/* Visits one feature; an error ends the reading and comes back from it. */
typedef mc_error *mc_feature_visitor(void *baton, const mc_feature *feature, mc_ctx *ctx);

typedef struct mc_feature_data mc_feature_data;

/* Where features stand in a PostgreSQL database. */
typedef struct mc_feature_table {
    const char *connection; /* libpq's string or URI */
    const char
        *table; /* "table" or "schema.table", unquoted; NULL: it is a query or a function, whose tables are not known */
    int srid;   /* of the coordinates, as configured; 0: as the table says */
} mc_feature_table;

/* A block of vector tiles of a grid, row by row from its upper left tile. */
typedef struct mc_tile_block {
    int z, column, row; /* of the upper left tile, from the level's upper left tile to the right and down */
    int columns, rows;
    int64_t max_bytes; /* of a tile */
    const mc_dimension_value *dimensions;
    int dimension_count;
} mc_tile_block;

/* Visits the layers that a tile of the block has, encoded, during the call; an error ends the reading and comes back
 * from it. `column` and `row` are counted from the upper left tile of the block. */
typedef mc_error *mc_encoded_visitor(void *baton, int column, int row, const void *bytes, size_t size, mc_ctx *ctx);

typedef struct mc_feature_ops {
    const char *type; /* as in <source type="..."> */
    /*
     * Reads all features whose box meets the query's, in an order that is the same for the same data. A geometry that
     * cannot be read is logged once for each call, counted in *skipped and left out.
     */
    mc_error *(*read)(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
                      int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool);
    /* All attributes (mc_field), for feature info and vector tiles. */
    mc_error *(*fields)(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);
    /* Where all features lie, without reading them. */
    mc_error *(*place)(mc_place *place, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);
    /* The table of the features, by the configuration alone; NULL: they stand in no database. */
    void (*table)(mc_feature_table *table, const mc_feature_data *data);
    /* Of data that is made of encoded vector tiles alone, and has no features to read; NULL: the data is features. A
     * tile may be visited several times, or never. */
    mc_error *(*tiles)(mc_feature_data *data, const mc_tile_block *block, mc_encoded_visitor *visit, void *baton,
                       mc_ctx *ctx, apr_pool_t *pool);
    /* What the data says of those tiles: TileJSON, with vector_layers as far as they are known; *json NULL: nothing. */
    mc_error *(*describe)(const char **json, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);
} mc_feature_ops;

/* First member of every kind's own struct. */
struct mc_feature_data {
    const mc_feature_ops *ops;
    const char *name;         /* of the layer, for messages */
    bool has_ids;             /* features have permanent numbers */
    const char *id_attribute; /* the attribute that holds the numbers; NULL: no attribute does */
};

#endif
