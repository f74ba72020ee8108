/* Tables and queries of PostGIS as data of a layer. */
#ifndef MC_VECTOR_POSTGIS_POSTGIS_H
#define MC_VECTOR_POSTGIS_POSTGIS_H

#include "db/postgres/postgres.h"
#include "vector/feature/feature.h"

/* How geometry travels. */
typedef enum mc_transfer { MC_TRANSFER_AUTO, MC_TRANSFER_BINARY, MC_TRANSFER_HEX, MC_TRANSFER_TWKB } mc_transfer;

typedef struct mc_postgis_config {
    const char *connection; /* libpq's string or URI */
    const char *table;      /* "table" or "schema.table", unquoted; or NULL */
    const char *query;      /* a SELECT, with !BBOX! and its like; or NULL */
    const char *geometry;   /* column; NULL: the first of the table */
    int srid;               /* 0: the column's */
    const char *id;         /* column with the feature's number; NULL: none */
    int transfer;
} mc_postgis_config;

/* Nothing is asked before the first map. The configuration is copied. */
mc_feature_data *mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool);

/* What the database shows to be wrong with a layer, in words for its owner: it cannot be asked, has no spatial index.
 * NULL: nothing. */
const char *mc_postgis_inspect(mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool);

/* Bytes of a geometry in its table. Beyond, it comes as null: libpq holds a row twice, a gigabyte of it for the sake of
 * one feature, and PostgreSQL refuses the whole query where its well-known binary is larger than that. */
#define MC_POSTGIS_GEOMETRY_MAX (128 << 20)

/* ---- postgis_column.c */

/* The geometry of a layer, as its configuration and the database's catalogue have it. */
typedef struct mc_postgis_column {
    const char *name;
    int srid;       /* 0: none; coordinates are taken for the map's */
    bool geography; /* of that type: degrees, with an index of its own kind */
    bool varied;    /* there may be others than points, lines and polygons: curves, surfaces, collections */
    bool unsettled; /* rows may have other SRIDs */
    bool stored;    /* rows have places in a table of their own, which put them in order */
    bool large;     /* there may be geometries above MC_POSTGIS_GEOMETRY_MAX */
    bool paged;     /* its pages can be read in pieces, and hold (nearly) all of its values themselves */
    double rows;    /* of the table, as its statistics have them; 0: not known */
    bool bounded;   /* it was found inside of `bounds`, in its own units */
    mc_extent bounds;
} mc_postgis_column;

/* "schema"."table" of a table as configured, and any name in double quotes. */
const char *mc_postgis_table(const char *table, apr_pool_t *pool);
const char *mc_postgis_quoted(const char *name, apr_pool_t *pool);

/* Asks what the configuration leaves open. MC_ERR_UPSTREAM: the table or its column is not there. */
mc_error *mc_postgis_find_column(mc_postgis_column *column, const mc_postgis_config *config, mc_ctx *ctx,
                                 apr_pool_t *pool) MC_CHECKED;

/* Whether an index serves boxes; true also where there cannot be one: of views and queries. */
mc_error *mc_postgis_is_indexed(bool *indexed, const mc_postgis_config *config, const mc_postgis_column *column,
                                mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_sql.c */

typedef struct mc_postgis_request {
    const mc_feature_query *query;
    int map_srid;         /* of the query's box; 0: none is known */
    mc_transfer transfer; /* not AUTO */
    int digits;           /* of TWKB, behind the decimal point */
    /*
     * For a few rows, which the database may find in any order: sorted by their places in the table. Many it reads in
     * that order anyway (a bitmap of the index, or the whole table), and sorting them would cost as much as reading.
     */
    bool sorted;
    bool copy;            /* for COPY: numbers stand in the text, written by us, where else they would be bound */
    const bool *integers; /* of the attributes: whole numbers, which come as int8; NULL: all come as text */
    double rows;          /* that the map probably has; 0: not known */
} mc_postgis_request;

typedef struct mc_postgis_statement {
    const char *sql;
    mc_postgres_param params[MC_POSTGRES_PARAMS];
    int param_count;
    bool dimensions; /* values of clients are among them */
    bool gathered;   /* each row is one value, with many features in it: mc_postgis_next_of */
} mc_postgis_statement;

/*
 * The statement that reads a layer, and its values. !BBOX! becomes the box as a geometry in the layer's SRID, !PIXEL!
 * the size of a pixel in units of the map, !SCALE! the scale denominator, !NAME! the value of the dimension NAME as
 * text, !NAME_START! and !NAME_END! the moments at which it begins and ends (half-open) where it is a time. What comes
 * from clients is bound and never part of the text. Placeholders in strings, quoted names and comments stay as they
 * are. MC_ERR_CONFIG for one that means nothing, MC_ERR_INVALID_DIMENSION for a value that is no time.
 *
 * Columns: the geometry, where they are wanted and there are any the feature's number as int8, the attributes. A table
 * whose bounds are all inside of the box is read without looking at its boxes one by one: so a row may come that lies
 * beside it. Values of dimensions are bound also in a statement for COPY, which it then cannot be: look at
 * `param_count`.
 */
mc_error *mc_postgis_build(mc_postgis_statement *statement, const mc_postgis_config *config,
                           const mc_postgis_column *column, const mc_postgis_request *request,
                           apr_pool_t *pool) MC_CHECKED;

/* The statement of one row that has the columns of the layer, all null, and after them the ids of types that are
 * geometry, as text with commas. Nothing of the layer is read. */
mc_error *mc_postgis_build_fields(mc_postgis_statement *statement, const mc_postgis_config *config,
                                  const mc_postgis_column *column, apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_gather.c */

/* Pages of a table whose features make one value. */
#define MC_POSTGIS_PAGES 32
/* Bytes of values outside of its pages up to which a table is read so: they would all come at once. */
#define MC_POSTGIS_OUTSIDE_MAX (8 << 20)

/* Whether the map can and should be read so: COPY of (nearly) the whole table, of plain shapes in one SRID. */
bool mc_postgis_may_gather(const mc_postgis_column *column, const mc_postgis_request *request);

/*
 * The statement for it. Of each MC_POSTGIS_PAGES pages in turn, so that the order is that of the table, one value: for
 * each feature its number in eight bytes where there is an `id`, each attribute, as eight bytes or as text that a zero
 * ends (no text has one), and its WKB. `from` is the table; names of columns are quoted here but for the geometry's.
 */
const char *mc_postgis_gather(const char *from, const char *geometry, const char *id, const mc_postgis_request *request,
                              apr_pool_t *pool);

/* Takes the next feature off the bytes at *at, as the fields of a row of the same map. They lie in those bytes. *meets:
 * it is in the query's box. False: these are no such bytes. */
bool mc_postgis_next_of(mc_postgres_field *fields, bool *meets, const char **at, const char *end, bool id,
                        const mc_postgis_request *request);

/* ---- postgis_value.c */

/* A whole number, written out. */
typedef struct mc_whole_text {
    char text[24];
} mc_whole_text;

/* An int8 as it travels; 0 for a null. */
int64_t mc_postgis_whole(const mc_postgres_field *field);

/* As the database writes it; inside of `into`. */
const char *mc_postgis_write_whole(mc_whole_text *into, int64_t number);

/* Hex digits back into bytes, up to the first that is none: their count. */
size_t mc_postgis_unhex(uint8_t *out, const char *text, int size);

/* ---- postgis_fields.c */

/* The attributes (mc_field), as the database has them now. */
mc_error *mc_postgis_ask_fields(apr_array_header_t **fields, const mc_postgis_config *config,
                                const mc_postgis_column *column, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
