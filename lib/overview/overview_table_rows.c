/* Rows of a table, as a builder reads them. */
#include <apr_strings.h>

#include "overview/overview_table.h"
#include "text/text.h"

/* Place, geometry and the attributes of some rows of the table. */
static const char *
rows_sql(const mc_overview_table *table, const char *condition, apr_pool_t *pool)
{
    const mc_overview_job *job = &table->job;
    const char *geometry = mc_sql_name(table->column.name, pool), *attributes = "";
    for (int i = 0; i < job->attribute_count; i++)
        attributes = apr_pstrcat(pool, attributes, ",", mc_sql_name(job->attributes[i], pool), "::text", NULL);
    if (job->ids)
        attributes = apr_pstrcat(pool, attributes, ",", mc_sql_name(table->config.id, pool), "::int8::text", NULL);
    return apr_psprintf(pool,
                        "SELECT ctid, %s%s FROM %s WHERE %s AND pg_column_size(%s) <= %d AND ST_SRID(%s) IN (0,%d)",
                        geometry, attributes, mc_sql_table(table->config.table, pool), condition, geometry,
                        MC_POSTGIS_GEOMETRY_MAX, geometry, table->column.srid);
}

/* A page and a place in the page; 0: it is none. */
int64_t
mc_overview_ordinal(const mc_overview_table *table, const mc_postgres_field *ctid)
{
    const uint8_t *bytes = (const uint8_t *)ctid->data;
    if (ctid->size != 6)
        return 0;
    const int64_t page = (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    const int64_t place = bytes[4] << 8 | bytes[5];
    return place < table->job.piece_ordinals ? page * table->job.piece_ordinals + place : 0;
}

static mc_error *
visit_table_rows(const mc_overview_table *table, const char *condition, bool stored_order,
                 mc_overview_row_visitor *visit, void *baton, apr_pool_t *pool)
{
    const mc_overview_job *job = &table->job;
    const int attributes = job->attribute_count + job->ids;
    const mc_postgres_query query = {
        .session = table->session,
        .sql = rows_sql(table, condition, pool),
        .binary = true,
        .copy = true,
        .stored_order = stored_order,
    };
    const char **values = apr_palloc(pool, sizeof(char *) * (size_t)(attributes + 1));
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row;
    mc_error *error = mc_postgres_start(&result, job->ctx->process->postgres, &query, job->ctx, job->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (row->columns != 2 + attributes) {
            error = mc_error_create(pool, MC_ERR_CORRUPT, "the database gives rows of %d columns", row->columns);
        } else if (row->fields[1].size >= 0) {
            const mc_overview_row taken = { .geometry = row->fields[1].data,
                                            .size = (size_t)row->fields[1].size,
                                            .values = values,
                                            .ordinal = mc_overview_ordinal(table, &row->fields[0]) };
            for (int i = 0; i < attributes; i++)
                values[i] = row->fields[2 + i].size < 0 ? NULL : row->fields[2 + i].data;
            error =
                taken.ordinal == 0 ? mc_overview_refuse(job, "its rows have no places in pages") : visit(baton, &taken);
        }
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_overview_visit_rows(const mc_overview_table *table, const char *condition, mc_overview_row_visitor *visit,
                       void *baton, apr_pool_t *pool)
{
    return visit_table_rows(table, condition, true, visit, baton, pool);
}

typedef struct row_list {
    apr_array_header_t *rows;
    int values; /* of a row */
    apr_pool_t *pool;
} row_list;

static mc_error *
keep_piece_row(void *baton, const mc_overview_row *row)
{
    const row_list *list = baton;
    mc_overview_row *kept = &APR_ARRAY_PUSH(list->rows, mc_overview_row);
    *kept = *row;
    kept->geometry = apr_pmemdup(list->pool, row->geometry, row->size);
    kept->values = apr_palloc(list->pool, sizeof(char *) * (size_t)(list->values + 1));
    for (int i = 0; i < list->values; i++)
        kept->values[i] = row->values[i] == NULL ? NULL : apr_pstrdup(list->pool, row->values[i]);
    return MC_OK;
}

mc_error *
mc_overview_read_rows(apr_array_header_t **rows, const mc_overview_table *table, const char *condition,
                      apr_pool_t *pool)
{
    row_list list = { apr_array_make(pool, 4096, sizeof(mc_overview_row)), table->job.attribute_count + table->job.ids,
                      pool };
    *rows = list.rows;
    return visit_table_rows(table, condition, false, keep_piece_row, &list, pool); /* it names places itself */
}
