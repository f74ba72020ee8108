/* Statements for PostGIS layers: see postgis.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "feature/postgis.h"

enum { PLACEHOLDERS_MAX = 32, NAME_MAX_SIZE = 64 };

/* An identifier in double quotes. */
static const char *
quoted(const char *name, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, strlen(name) * 2 + 3), *at = out;
    *at++ = '"';
    for (; *name != '\0'; name++) {
        if (*name == '"')
            *at++ = '"';
        *at++ = *name;
    }
    *at++ = '"';
    *at = '\0';
    return out;
}

const char *
mc_postgis_table(const char *table, apr_pool_t *pool)
{
    const char *dot = strchr(table, '.');
    if (dot == NULL)
        return quoted(table, pool);
    return apr_pstrcat(pool, quoted(apr_pstrmemdup(pool, table, (size_t)(dot - table)), pool), ".",
                       quoted(dot + 1, pool), NULL);
}

/* The box of the map in the layer's SRID. */
static const char *
box_of(int srid, int map_srid, apr_pool_t *pool)
{
    const char *box = apr_psprintf(pool, "ST_MakeEnvelope($1::float8,$2::float8,$3::float8,$4::float8,%d)", map_srid);
    return srid == map_srid ? box : apr_psprintf(pool, "ST_Transform(%s,%d)", box, srid);
}

/* Bytes of a part of a statement in which nothing is a placeholder: a string, a quoted name, a comment, a dollar quote;
 * 0 where none begins here. */
static size_t
opaque(const char *sql)
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
find_dimension(const mc_feature_query *query, const char *name)
{
    for (int i = 0; i < query->dimension_count; i++)
        if (strcasecmp(query->dimensions[i].name, name) == 0)
            return &query->dimensions[i];
    return NULL;
}

/* What stands for a placeholder in the statement. */
static mc_error *
bind_placeholder(const char **text, mc_postgis_statement *statement, const char *name, const mc_feature_query *query,
                 apr_pool_t *pool)
{
    mc_postgis_placeholder made = { MC_BIND_DIMENSION, name };
    const char *type = "text";
    if (strcmp(name, "PIXEL") == 0 || strcmp(name, "SCALE") == 0) {
        made.kind = *name == 'P' ? MC_BIND_PIXEL : MC_BIND_SCALE;
        type = "float8";
    } else if (query != NULL && find_dimension(query, name) == NULL) {
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "the query of the layer asks for !%s!, which is neither BBOX, PIXEL, "
                               "SCALE nor a dimension of the tileset",
                               name);
    }
    if (statement->placeholder_count == PLACEHOLDERS_MAX)
        return mc_error_create(pool, MC_ERR_CONFIG, "the query of the layer has more than %d placeholders",
                               PLACEHOLDERS_MAX);
    statement->placeholders[statement->placeholder_count++] = made;
    *text = apr_psprintf(pool, "$%d::%s", 4 + statement->placeholder_count, type);
    return MC_OK;
}

/* The query with its placeholders replaced. *boxed: it restricts itself to the box. `query` NULL: any name is a
 * dimension. */
static mc_error *
expand(const char **expanded, bool *boxed, mc_postgis_statement *statement, const char *sql, const char *box,
       const mc_feature_query *query, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    *boxed = false;
    while (*sql != '\0') {
        size_t size = opaque(sql);
        const char *name = size > 0 ? NULL : placeholder_at(sql, pool);
        const char *text = NULL;
        if (name == NULL) {
            if (size == 0)
                size = 1 + strcspn(sql + 1, "'\"-/$!");
            text = apr_pstrmemdup(pool, sql, size);
        } else if (strcmp(name, "BBOX") == 0) {
            *boxed = true;
            text = box;
        } else
            MC_TRY(bind_placeholder(&text, statement, name, query, pool));
        sql += name != NULL ? strlen(name) + 2 : size;
        APR_ARRAY_PUSH(parts, const char *) = text;
    }
    *expanded = apr_array_pstrcat(pool, parts, 0);
    return MC_OK;
}

/* What stands behind FROM. *boxed: it restricts itself to the box. */
static mc_error *
relation(const char **from, bool *boxed, mc_postgis_statement *statement, const mc_postgis_config *config, int map_srid,
         const mc_feature_query *query, apr_pool_t *pool)
{
    *boxed = false;
    statement->placeholder_count = 0;
    if (config->table != NULL) {
        *from = mc_postgis_table(config->table, pool);
        return MC_OK;
    }
    MC_TRY(expand(from, boxed, statement, config->query, box_of(config->srid, map_srid, pool), query, pool));
    *from = apr_pstrcat(pool, "(", *from, "\n)", NULL); /* the query may end in a comment */
    return MC_OK;
}

mc_error *
mc_postgis_build_fields(mc_postgis_statement *statement, const mc_postgis_config *config, apr_pool_t *pool)
{
    const char *from;
    bool boxed;
    MC_TRY(relation(&from, &boxed, statement, config, config->srid, NULL, pool));
    statement->sql = apr_pstrcat(pool,
                                 "SELECT layer.*,(SELECT string_agg(oid::text,',') FROM pg_type WHERE typname IN "
                                 "('geometry','geography','raster','topogeometry','box2d','box3d')) "
                                 "FROM (VALUES (1)) AS one LEFT JOIN ",
                                 from, " AS layer ON false", NULL);
    return MC_OK;
}

mc_error *
mc_postgis_build(mc_postgis_statement *statement, const mc_postgis_config *config, const mc_feature_query *query,
                 int map_srid, apr_pool_t *pool)
{
    const char *geometry = quoted(config->geometry, pool), *box = box_of(config->srid, map_srid, pool);
    const char *from, *columns = "";
    bool boxed;
    MC_TRY(relation(&from, &boxed, statement, config, map_srid, query, pool));
    for (int i = 0; i < query->attribute_count; i++)
        columns = apr_pstrcat(pool, columns, ",", quoted(query->attributes[i], pool), "::text", NULL);
    const char *id = config->id == NULL ? "0::int8" : apr_pstrcat(pool, quoted(config->id, pool), "::int8", NULL);
    const char *shape =
        config->srid == map_srid ? geometry : apr_psprintf(pool, "ST_Transform(%s,%d)", geometry, map_srid);
    if (config->transfer == MC_TRANSFER_HEX)
        shape = apr_pstrcat(pool, "encode(ST_AsBinary(", shape, "),'hex')", NULL);
    if (config->transfer == MC_TRANSFER_TWKB) /* of few values: statements stay prepared */
        shape = apr_psprintf(pool, "ST_AsTWKB(%s,%d)", shape, mc_twkb_precision(query->resolution));
    statement->sql = apr_pstrcat(pool, "SELECT ", shape, ",", id, columns, " FROM ", from, " AS layer WHERE ", geometry,
                                 " && ", box, NULL);
    return MC_OK;
}
