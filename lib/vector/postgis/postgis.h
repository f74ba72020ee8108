/* Tables and queries of PostGIS as data of a layer. */
#ifndef MC_VECTOR_POSTGIS_POSTGIS_H
#define MC_VECTOR_POSTGIS_POSTGIS_H

#include "db/postgres/postgres.h"
#include "text/text.h"
#include "vector/feature/feature.h"

/* How geometry travels. */
typedef enum mc_transfer { MC_TRANSFER_AUTO, MC_TRANSFER_BINARY, MC_TRANSFER_HEX, MC_TRANSFER_TWKB } mc_transfer;

typedef struct mc_postgis_config {
    const char *connection; /* libpq's string or URI */
    const char *table;      /* "table" or "schema.table", unquoted; or NULL */
    const char *query;      /* a SELECT, with !BBOX! and its like; or NULL */
    const char *function;   /* "function" or "schema.function", unquoted, that makes vector tiles; or NULL */
    const char *geometry;   /* column; NULL: the first of the table */
    int srid;               /* 0: the column's */
    const char *id;         /* column with the feature's number; NULL: none */
    int transfer;
} mc_postgis_config;

/* The database is not asked before the first map. The configuration is copied. */
mc_feature_data *mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool);

/* The configuration of a layer; NULL: the data is of another kind. */
const mc_postgis_config *mc_postgis_config_of(const mc_feature_data *data);

/* A fault of a layer that the database shows, in words for the layer's owner: the database cannot be asked, or there is
 * no spatial index. NULL: no fault. */
const char *mc_postgis_inspect(mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);

/* The largest geometry in bytes, as stored in the table; larger geometries are read as null. libpq holds a row twice:
 * one feature would take a gigabyte. PostgreSQL refuses the whole query where the well-known binary of a geometry is
 * larger than a gigabyte. */
#define MC_POSTGIS_GEOMETRY_MAX (128 << 20)

/* ---- postgis_function.c */

/*
 * A function of the database that makes vector tiles, as data without features. Its arguments are, in this order: the
 * level, the column and the row of a tile, all whole numbers, counted from the upper left tile; then others, by their
 * names: one of type json or jsonb gets all dimensions of the tileset as an object of texts (without a name it must be
 * the fourth), any other one gets the dimension of its name, and may be left out where it has a default and the tileset
 * no such dimension. Its result is bytea, a set of bytea, or rows whose first column is bytea: all of them together are
 * the tile. The configuration is copied; the database is not asked before the first tile.
 *
 * Errors of a tile: MC_ERR_UPSTREAM where there is no such function or more than one, where the function fails or makes
 * more than the block's `max_bytes`; MC_ERR_CONFIG where an argument has no value; MC_ERR_INVALID_DIMENSION where a
 * dimension's value is none of the argument's type.
 */
mc_feature_data *mc_postgis_function_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool);

/* As mc_postgis_inspect, of such data. */
const char *mc_postgis_function_inspect(mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);

/* ---- postgis_column.c */

/* The geometry column of a layer, by the layer's configuration and the database's catalogue. */
typedef struct mc_postgis_column {
    const char *name;
    int srid;       /* 0: none; coordinates are taken for the map's */
    int declared;   /* what the catalogue says, where the configuration may say otherwise; 0: rows alone tell */
    bool geography; /* of that type: degrees, with an index of its own kind */
    bool varied;    /* there may be curves, surfaces or collections */
    bool unsettled; /* rows may have other SRIDs */
    bool stored;    /* rows have places in a table of their own, which put them in order */
    bool parted;    /* a table with partitions or children: places of rows are not of one table */
    bool large;     /* there may be geometries above MC_POSTGIS_GEOMETRY_MAX */
    bool paged;     /* its pages can be read in pieces, and hold (nearly) all of its values themselves */
    double rows;    /* of the table, as its statistics have them; 0: not known */
    bool bounded;   /* it was found inside of `bounds`, in its own units */
    mc_extent bounds;
} mc_postgis_column;

/* Asks the database for what the configuration leaves open. MC_ERR_UPSTREAM: there is no such table or column. */
mc_error *mc_postgis_find_column(mc_postgis_column *column, const mc_postgis_config *config, mc_ctx *ctx,
                                 apr_pool_t *pool) MC_CHECKED;

/* The SRIDs whose rows are those of the layer, as in a list of SQL: its own and the declared one. */
const char *mc_postgis_known_srids(const mc_postgis_column *column, apr_pool_t *pool);

/* The SRID that the column of a table declares now; -1: the column is gone. Errors as above. */
mc_error *mc_postgis_ask_declared(int *declared, const mc_postgis_config *config, const char *column, mc_ctx *ctx,
                                  apr_pool_t *pool) MC_CHECKED;

/*
 * Where rows alone tell the SRID: whether they have another one by now than they were found to have. For the first one
 * with a geometry the database may look at the whole table. For a query, and for a view whose rows alone tell, false.
 * Errors as above.
 */
mc_error *mc_postgis_row_changed(bool *changed, const mc_postgis_config *config, const mc_postgis_column *column,
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The texts of the first row of a statement's answer, `columns` of them; *values NULL: there is none. */
mc_error *mc_postgis_first_row(const char ***values, int columns, const mc_postgis_config *config, const char *sql,
                               const mc_postgres_param *params, int count, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether a spatial index serves boxes; true also for views and queries, which cannot have an index. */
mc_error *mc_postgis_is_indexed(bool *indexed, const mc_postgis_config *config, const mc_postgis_column *column,
                                mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_extent.c */

/* Where the features of a layer lie. */
typedef struct mc_postgis_place {
    bool known;
    bool estimated; /* by statistics of the table, with a margin: a feature may lie outside */
    mc_extent box;  /* in units of `srid` */
    int srid;
} mc_postgis_place;

/*
 * Of a table with a spatial index by the root of that index, which covers all features; of others by looking at all
 * features, for at most two seconds; where that takes longer, by the table's statistics. Of a <query>, of empty tables
 * and of views that take longer, nothing is known. Errors of the database as of mc_postgis_find_column.
 */
mc_error *mc_postgis_find_place(mc_postgis_place *place, const mc_postgis_config *config, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_sql.c */

typedef struct mc_postgis_request {
    const mc_feature_query *query;
    int map_srid;         /* of the query's box; 0: none is known */
    mc_transfer transfer; /* not AUTO */
    int digits;           /* of TWKB, behind the decimal point */
    /*
     * For COPY: numbers stand in the text, written by us, where else they would be bound. The rows of a table are not
     * sorted by their places then, which would cost as much as reading them: the database reads them in that order
     * (stored_order of the statement). Without COPY they are sorted, and the database may find them in any order.
     */
    bool copy;
    const bool *integers; /* of the attributes: whole numbers, which come as int8; NULL: all come as text */
    double rows;          /* that the map probably has; 0: not known */
    bool guessed;         /* by the catalogue, not by a map before */
} mc_postgis_request;

typedef struct mc_postgis_statement {
    const char *sql;
    mc_postgres_param params[MC_POSTGRES_PARAMS];
    int param_count;
    bool dimensions;                         /* values of clients are among them */
    bool stored_order;                       /* mc_postgres_query has it */
    bool gathered;                           /* each row is one value that holds many features (mc_postgis_next_of) */
    const char *before_pages, *behind_pages; /* of a gathered one: mc_postgis_gather_ranges */
    const char *page_count;                  /* and how many pages the table has, as SQL: see mc_postgis_gather */
    bool by_key; /* mc_postgres_query has it: few rows, which the spatial index finds, whatever the box */
} mc_postgis_statement;

/*
 * The statement that reads a layer, and its values. !BBOX! becomes the box as a geometry in the layer's SRID, !PIXEL!
 * the size of a pixel in units of the map, !SCALE! the scale denominator, !NAME! the value of the dimension NAME as
 * text, !NAME_START! and !NAME_END! the moments at which it begins and ends (half-open) where it is a time. Values of
 * clients are bound and never part of the text. Placeholders in strings, quoted names and comments stay as they are.
 * MC_ERR_CONFIG for an unknown placeholder, MC_ERR_INVALID_DIMENSION for a value that is no time.
 *
 * Columns: the geometry; the feature's number as int8, where numbers are wanted and the layer has numbers; the
 * attributes. A table whose bounds are inside of the box is read without comparing the boxes of its rows, so a row may
 * lie outside of the box. Values of dimensions are bound in a statement for COPY too; a statement with bound values
 * (`param_count`) cannot be sent as COPY.
 */
mc_error *mc_postgis_build(mc_postgis_statement *statement, const mc_postgis_config *config,
                           const mc_postgis_column *column, const mc_postgis_request *request,
                           apr_pool_t *pool) MC_CHECKED;

/* The statement of one row that has the columns of the layer, all null, and after them the ids of types that are
 * geometry, as text with commas. Nothing of the layer is read. */
mc_error *mc_postgis_build_fields(mc_postgis_statement *statement, const mc_postgis_config *config,
                                  const mc_postgis_column *column, apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_signature.c */

/* An argument of such a function, behind the first three. */
typedef struct mc_function_argument {
    const char *name; /* "": none */
    const char *type; /* as SQL writes it, quoted where needed */
    bool json;        /* json or jsonb */
    bool optional;    /* it has a default */
} mc_function_argument;

/* Asks the database for the arguments (mc_function_argument) of the only function of that name that makes vector tiles,
 * and for its comment; *comment NULL: it has none. Errors as of mc_postgis_function_create. */
mc_error *mc_postgis_ask_signature(apr_array_header_t **arguments, const char **comment,
                                   const mc_postgis_config *config, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The statement that calls the function for each tile of the block, a row for each answer: the tile's number in the
 * block (int4), the answer's bytes (int4), and the answer, null where it has more than the block's `max_bytes`. */
mc_error *mc_postgis_build_call(mc_postgis_statement *statement, const mc_postgis_config *config,
                                const apr_array_header_t *arguments, const mc_tile_block *block,
                                apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_gather.c */

/* Pages of a table whose features make one value. */
#define MC_POSTGIS_PAGES 32
/* A table is gathered only where its values outside of the table's pages have at most so many bytes: all of these
 * values would be read at once. */
#define MC_POSTGIS_OUTSIDE_MAX (8 << 20)

/* The part of the table's bounds that a box in the column's units holds. */
double mc_postgis_visible_part(const mc_postgis_column *column, const mc_extent *box);

/* Whether the map can and should be read by gathering: COPY of (nearly) the whole table, plain shapes in one SRID. */
bool mc_postgis_may_gather(const mc_postgis_column *column, const mc_postgis_request *request);

/*
 * The statement for gathering. Each MC_POSTGIS_PAGES pages of the table make one value, in the order of the table. The
 * value holds for each feature: the feature's number in eight bytes where there is an `id`; each attribute, as eight
 * bytes or as text that ends with a zero byte; the feature's WKB. `from` is the table; names of columns are quoted here
 * but for the geometry's. Where the geometry has none of the `srids` (mc_postgis_known_srids; no WKB tells), and where
 * there is none, the table has no pages to be read: their number is null.
 */
void mc_postgis_gather(mc_postgis_statement *statement, const char *from, const char *geometry, const char *srids,
                       const char *id, const mc_postgis_request *request, apr_pool_t *pool);

/* The statement for a part of these values: those of ranges first, first + every, ... of a table of so many pages, each
 * of so many values. */
const char *mc_postgis_gather_ranges(const mc_postgis_statement *statement, int64_t pages, int pieces, int first,
                                     int every, apr_pool_t *pool);

/* Reads the next feature from the bytes at *at, as the fields of a row of the same map. The fields point into those
 * bytes. *meets: the feature is in the query's box. False: the bytes hold no feature. */
bool mc_postgis_next_of(mc_postgres_field *fields, bool *meets, const char **at, const char *end, bool id,
                        const mc_postgis_request *request);

/* ---- postgis_value.c */

/* An int8 as it travels; 0 for a null. */
int64_t mc_postgis_whole(const mc_postgres_field *field);

/* Turns hex digits into bytes, up to the first character that is no hex digit. Returns the number of bytes. */
size_t mc_postgis_unhex(uint8_t *out, const char *text, int size);

/* ---- postgis_fields.c */

/* The attributes (mc_field) that the database has now. */
mc_error *mc_postgis_ask_fields(apr_array_header_t **fields, const mc_postgis_config *config,
                                const mc_postgis_column *column, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
