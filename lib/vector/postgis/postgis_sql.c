/* Statements for PostGIS layers: see postgis.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "text/text.h"
#include "text/time.h"
#include "vector/postgis/postgis.h"

enum { NAME_MAX_SIZE = 64, WEB_MERCATOR = 3857, WGS84 = 4326 };

/* Microseconds from 1970, where our times begin, to 2000, where PostgreSQL's do. */
#define EPOCH_2000 INT64_C(946684800000000)
/* Half the width of the world in web Mercator's metres. */
/* The part of a box that is added to each of its sides before it is transformed: edges bend. */
#define BEND 0.02

typedef struct postgis_sql_builder {
    mc_postgis_statement *statement;
    const mc_postgis_column *column;
    const mc_postgis_request *request;
    const char *box; /* of the map as a geometry in the column's SRID */
    bool full;       /* there is no room for one more value */
    bool described;  /* nothing is read: values do not matter, and any name is that of a dimension */
    apr_pool_t *pool;
} postgis_sql_builder;

/* What stands for a value in the statement. */
static const char *
bind_value(postgis_sql_builder *b, mc_postgres_param value, const char *type)
{
    mc_postgis_statement *statement = b->statement;
    b->full = b->full || statement->param_count == MC_POSTGRES_PARAMS;
    if (b->full)
        return "NULL";
    statement->params[statement->param_count++] = value;
    return apr_psprintf(b->pool, "$%d::%s", statement->param_count, type);
}

/* A value's eight bytes, as the wire has them. */
static mc_postgres_param
eight_bytes(uint64_t bits, unsigned type, apr_pool_t *pool)
{
    uint8_t *bytes = apr_palloc(pool, 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> (56 - 8 * i));
    return (mc_postgres_param){ .value = bytes, .size = 8, .binary = true, .type = type };
}

static const char *
bind_double(postgis_sql_builder *b, double value)
{
    uint64_t bits;
    if (!b->request->copy) {
        memcpy(&bits, &value, sizeof(bits));
        return bind_value(b, eight_bytes(bits, MC_POSTGRES_FLOAT8, b->pool), "float8");
    }
    return apr_psprintf(b->pool, "'%s'::float8", mc_double_text('g', 17, value, b->pool));
}

static bool
is_transformed(const postgis_sql_builder *b)
{
    return b->request->map_srid != 0 && b->column->srid != 0 && b->request->map_srid != b->column->srid;
}

/* No more than the world: what lies beyond it has coordinates that transformations refuse or turn around. */
static mc_extent
inside_world(mc_extent box, int srid)
{
    double x = srid == WEB_MERCATOR ? MC_WEB_MERCATOR_HALF : srid == WGS84 ? 180 : HUGE_VAL;
    double y = srid == WEB_MERCATOR ? MC_WEB_MERCATOR_HALF : srid == WGS84 ? 89.99 : HUGE_VAL;
    return mc_extent_intersection(&box, &(mc_extent){ -x, -y, x, y });
}

/* Where the map's CRS is not the layer's, around a net of points: the edges of a box bend, and what a box that is
 * larger than its CRS holds is not told by its corners. */
static const char *
build_map_box(postgis_sql_builder *b)
{
    mc_extent box = b->request->query->box;
    if (is_transformed(b)) {
        double x = (box.maxx - box.minx) * BEND, y = (box.maxy - box.miny) * BEND;
        box = inside_world((mc_extent){ box.minx - x, box.miny - y, box.maxx + x, box.maxy + y }, b->request->map_srid);
    }
    const char *minx = bind_double(b, box.minx), *miny = bind_double(b, box.miny), *maxx = bind_double(b, box.maxx);
    const char *maxy = bind_double(b, box.maxy);
    if (!is_transformed(b))
        return apr_psprintf(b->pool, "ST_MakeEnvelope(%s,%s,%s,%s,%d)", minx, miny, maxx, maxy, b->column->srid);
    return apr_psprintf(b->pool,
                        "ST_Envelope(ST_Transform(ST_SetSRID(ST_Collect(ARRAY(SELECT ST_MakePoint(%s+(%s-%s)*i/8,"
                        "%s+(%s-%s)*j/8) FROM generate_series(0,8) i,generate_series(0,8) j)),%d),%d))",
                        minx, maxx, minx, miny, maxy, miny, b->request->map_srid, b->column->srid);
}

/* Bytes of a part of a statement in which nothing is a placeholder: a string, a quoted name, a comment, a dollar quote;
 * 0 where none begins here. */
static size_t
opaque_sql_size(const char *sql)
{
    const char *end = NULL;
    if (*sql == '\'' || *sql == '"')
        end = strchr(sql + 1, *sql);
    else if (strncmp(sql, "--", 2) == 0)
        return strcspn(sql, "\n");
    else if (strncmp(sql, "/*", 2) == 0)
        end = strstr(sql + 2, "*/") == NULL ? NULL : strstr(sql + 2, "*/") + 1;
    else if (*sql == '$' && (sql[1] == '$' || isalpha((unsigned char)sql[1]) || sql[1] == '_')) {
        size_t tag = 1 + strcspn(sql + 1, "$ \t\n'\"(),;");
        if (sql[tag] != '$')
            return 0;
        for (const char *at = sql + tag + 1; *at != '\0' && end == NULL; at++)
            if (strncmp(at, sql, tag + 1) == 0)
                end = at + tag;
    } else
        return 0;
    return end == NULL ? strlen(sql) : (size_t)(end - sql) + 1;
}

/* "!NAME!" at `sql`: its name, or NULL. */
static const char *
placeholder_at(const char *sql, apr_pool_t *pool)
{
    size_t size = 0;
    if (*sql != '!')
        return NULL;
    while (isalnum((unsigned char)sql[1 + size]) || sql[1 + size] == '_')
        size++;
    return size == 0 || size > NAME_MAX_SIZE || sql[1 + size] != '!' ? NULL : apr_pstrmemdup(pool, sql + 1, size);
}

static const mc_dimension_value *
find_dimension(const mc_feature_query *query, const char *name, size_t size)
{
    for (int i = 0; i < query->dimension_count; i++)
        if (strlen(query->dimensions[i].name) == size && strncasecmp(query->dimensions[i].name, name, size) == 0)
            return &query->dimensions[i];
    return NULL;
}

/* One end of the time that a dimension's value is. */
static mc_error *
bind_time_end(const char **text, postgis_sql_builder *b, const mc_dimension_value *dimension, bool end)
{
    mc_time_span span;
    const char *value = dimension->value == NULL ? "" : dimension->value;
    const char *wrong = mc_time_parse(&span, value, strlen(value), apr_time_now());
    if (wrong != NULL) {
        mc_error *error =
            mc_error_create(b->pool, MC_ERR_INVALID_DIMENSION, "dimension %s is no time: %s", dimension->name, wrong);
        error->locator = dimension->name;
        return error;
    }
    int64_t moment = (end ? span.end_us : span.start_us) - EPOCH_2000;
    *text = bind_value(b, eight_bytes((uint64_t)moment, MC_POSTGRES_TIMESTAMPTZ, b->pool), "timestamptz");
    return MC_OK;
}

/* What stands for a placeholder in the statement. */
static mc_error *
bind_placeholder(const char **text, postgis_sql_builder *b, const char *name)
{
    static const char begin[] = "_START", end[] = "_END";
    const mc_feature_query *query = b->request->query;
    size_t size = strlen(name);
    const mc_dimension_value *whole = find_dimension(query, name, size), *timed = NULL;
    bool ends = size > strlen(end) && strcmp(name + size - strlen(end), end) == 0;
    bool begins = size > strlen(begin) && strcmp(name + size - strlen(begin), begin) == 0;
    if (ends || begins)
        timed = find_dimension(query, name, size - strlen(ends ? end : begin));
    if (strcmp(name, "BBOX") == 0)
        *text = b->box;
    else if (strcmp(name, "PIXEL") == 0)
        *text = bind_double(b, query->resolution);
    else if (strcmp(name, "SCALE") == 0)
        *text = bind_double(b, query->scale);
    else if (whole != NULL || timed != NULL)
        b->statement->dimensions = true;
    if (whole != NULL)
        *text = bind_value(b, (mc_postgres_param){ .value = whole->value, .type = MC_POSTGRES_TEXT }, "text");
    else if (timed != NULL)
        return bind_time_end(text, b, timed, ends);
    if (*text == NULL && b->described)
        *text = ends || begins ? "NULL::timestamptz" : "NULL::text";
    if (*text == NULL)
        return mc_error_create(b->pool, MC_ERR_CONFIG,
                               "the query of the layer asks for !%s!, which is neither BBOX, PIXEL, SCALE nor a "
                               "dimension of the tileset",
                               name);
    return MC_OK;
}

/* The query with its placeholders replaced. */
static mc_error *
expand_placeholders(const char **expanded, postgis_sql_builder *b, const char *sql)
{
    apr_array_header_t *parts = apr_array_make(b->pool, 16, sizeof(const char *));
    while (*sql != '\0') {
        size_t size = opaque_sql_size(sql);
        const char *name = size > 0 ? NULL : placeholder_at(sql, b->pool);
        const char *text = NULL;
        if (name == NULL) {
            if (size == 0)
                size = 1 + strcspn(sql + 1, "'\"-/$!");
            text = apr_pstrmemdup(b->pool, sql, size);
        } else {
            MC_TRY(bind_placeholder(&text, b, name));
            size = strlen(name) + 2;
        }
        sql += size;
        APR_ARRAY_PUSH(parts, const char *) = text;
    }
    *expanded = apr_array_pstrcat(b->pool, parts, 0);
    return MC_OK;
}

/* What stands behind FROM. */
static mc_error *
build_from_relation(const char **from, postgis_sql_builder *b, const mc_postgis_config *config)
{
    if (config->table != NULL) {
        *from = mc_sql_table(config->table, b->pool);
        return MC_OK;
    }
    MC_TRY(expand_placeholders(from, b, config->query));
    *from = apr_pstrcat(b->pool, "(", *from, "\n)", NULL); /* the query may end in a comment */
    return MC_OK;
}

/* Whether the map holds the whole table: a comparison for each row would then cost a fifth of reading it. */
static bool
map_holds_table(const postgis_sql_builder *b)
{
    const mc_extent *box = &b->request->query->box, *all = &b->column->bounds;
    return b->column->bounded && !b->column->large && !is_transformed(b) && box->minx <= all->minx &&
           box->miny <= all->miny && box->maxx >= all->maxx && box->maxy >= all->maxy;
}

/* The index of a geography is of boxes around pieces of the globe, which parallels leave to the side; a box of half the
 * world has none. */
static const char *
build_where_clause(const postgis_sql_builder *b, const char *geometry)
{
    if (map_holds_table(b))
        return "";
    if (!b->column->geography)
        return apr_pstrcat(b->pool, " WHERE ", geometry, " && ", b->box, NULL);
    return apr_psprintf(
        b->pool,
        " WHERE %s && CASE WHEN ST_XMax(%s)-ST_XMin(%s)<60 AND ST_YMax(%s)-ST_YMin(%s)<60 THEN "
        "ST_Segmentize(ST_Expand(%s,(ST_XMax(%s)-ST_XMin(%s)+ST_YMax(%s)-ST_YMin(%s))/50),2)::geography "
        "ELSE 'MULTIPOINT(0 0,90 0,180 0,-90 0,0 90,0 -90)'::geography END AND %s::geometry && %s",
        geometry, b->box, b->box, b->box, b->box, b->box, b->box, b->box, b->box, b->box, geometry, b->box);
}

/* Whether the plan for one box is that of all others: rows of a table, so few that they are sorted, by its
 * index. Where nothing is known of the rows yet, they may be many. */
static bool
has_one_plan(const postgis_sql_builder *b, const mc_postgis_config *config)
{
    const mc_postgis_request *request = b->request;
    return config->table != NULL && b->column->stored && !b->column->geography && !request->copy && request->rows > 0 &&
           !request->guessed && !map_holds_table(b);
}

/* In the map's CRS; null where a row's own SRID says that it is of another CRS than the layer's: also where the column
 * has one SRID, which may be another one by now. The numbers of the column's own SRID are in the CRS that <srid> says.
 */
static const char *
in_map(const postgis_sql_builder *b, const char *geometry)
{
    int srid = b->column->srid;
    const char *known = mc_postgis_known_srids(b->column, b->pool);
    bool unpacked = b->request->transfer == MC_TRANSFER_BINARY; /* its SRID comes along */
    if (!is_transformed(b))
        return unpacked || srid == 0
                   ? geometry
                   : apr_psprintf(b->pool, "(CASE WHEN ST_SRID(%s) IN (0,%s) THEN %s END)", geometry, known, geometry);
    return apr_psprintf(b->pool, "(CASE WHEN ST_SRID(%s) IN (0,%s) THEN ST_Transform(ST_SetSRID(%s,%d),%d) END)",
                        geometry, known, geometry, srid, b->request->map_srid);
}

/* What cannot be packed goes as WKB of the byte order whose first byte no TWKB begins with. */
static const char *
build_packed_geometry(const postgis_sql_builder *b, const char *geometry, const char *shape)
{
    const char *twkb = apr_psprintf(b->pool, "ST_AsTWKB(%s,%d)", shape, b->request->digits);
    if (!b->column->varied)
        return twkb;
    return apr_psprintf(b->pool,
                        "CASE WHEN ST_GeometryType(%s) IN ('ST_Polygon','ST_MultiPolygon','ST_LineString',"
                        "'ST_MultiLineString','ST_Point','ST_MultiPoint') THEN %s ELSE ST_AsBinary(%s,'XDR') END",
                        geometry, twkb, shape);
}

mc_error *
mc_postgis_build(mc_postgis_statement *statement, const mc_postgis_config *config, const mc_postgis_column *column,
                 const mc_postgis_request *request, apr_pool_t *pool)
{
    postgis_sql_builder b = { .statement = statement, .column = column, .request = request, .pool = pool };
    const char *own = mc_sql_name(column->name, pool);
    const char *geometry = column->geography ? apr_pstrcat(pool, own, "::geometry", NULL) : own;
    const char *id = config->id == NULL || !request->query->ids
                         ? ""
                         : apr_pstrcat(pool, ",", mc_sql_name(config->id, pool), "::int8", NULL);
    const char *from, *shape = in_map(&b, geometry);
    const bool sorted = column->stored && (!request->copy || column->geography);
    apr_array_header_t *columns = apr_array_make(pool, 16, sizeof(const char *));
    statement->param_count = 0;
    statement->dimensions = false;
    statement->by_key = has_one_plan(&b, config);
    statement->gathered = config->table != NULL && mc_postgis_may_gather(column, request) && !is_transformed(&b);
    statement->stored_order = (column->stored || column->parted) && !sorted && !statement->gathered;
    if (statement->gathered) {
        mc_postgis_gather(statement, mc_sql_table(config->table, pool), own, mc_postgis_known_srids(column, pool),
                          *id == '\0' ? NULL : config->id, request, pool);
        return MC_OK;
    }
    b.box = build_map_box(&b);
    MC_TRY(build_from_relation(&from, &b, config));
    for (int i = 0; i < request->query->attribute_count; i++)
        APR_ARRAY_PUSH(columns, const char *) =
            apr_pstrcat(pool, ",", mc_sql_name(request->query->attributes[i], pool),
                        request->integers != NULL && request->integers[i] ? "::int8" : "::text", NULL);
    if (b.full)
        return mc_error_create(pool, MC_ERR_CONFIG, "the query of the layer has more than %d placeholders",
                               MC_POSTGRES_PARAMS - 4);
    if (request->transfer == MC_TRANSFER_HEX)
        shape = apr_pstrcat(pool, "encode(ST_AsBinary(", shape, "),'hex')", NULL);
    if (request->transfer == MC_TRANSFER_TWKB) /* of few digits: statements stay prepared */
        shape = build_packed_geometry(&b, geometry, shape);
    if (column->large)
        shape = apr_psprintf(pool, "CASE WHEN pg_column_size(%s)<=%d THEN %s END", own, MC_POSTGIS_GEOMETRY_MAX, shape);
    statement->sql = apr_pstrcat(pool, "SELECT ", shape, id, apr_array_pstrcat(pool, columns, 0), " FROM ", from,
                                 " AS layer", build_where_clause(&b, own), sorted ? " ORDER BY ctid" : "", NULL);
    return MC_OK;
}

mc_error *
mc_postgis_build_fields(mc_postgis_statement *statement, const mc_postgis_config *config,
                        const mc_postgis_column *column, apr_pool_t *pool)
{
    const mc_feature_query nowhere = { .box = { 0, 0, 0, 0 }, .resolution = 1, .scale = 1 };
    const mc_postgis_request request = { .query = &nowhere, .copy = true };
    postgis_sql_builder b = {
        .statement = statement, .column = column, .request = &request, .described = true, .pool = pool
    };
    const char *from;
    statement->param_count = 0;
    statement->dimensions = false;
    b.box = build_map_box(&b);
    MC_TRY(build_from_relation(&from, &b, config));
    statement->sql = apr_pstrcat(pool,
                                 "SELECT layer.*,(SELECT string_agg(oid::text,',') FROM pg_type WHERE typname IN "
                                 "('geometry','geography','raster','topogeometry','box2d','box3d')) "
                                 "FROM (VALUES (1)) AS one LEFT JOIN ",
                                 from, " AS layer ON false", NULL);
    return MC_OK;
}
