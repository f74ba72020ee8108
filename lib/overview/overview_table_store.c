/* Levels as tables: their blocks are copied, a window at a time. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "overview/overview_table.h"
#include "text/text.h"
#include "vector/geometry/wkb_thin.h"

/* Whoever may read the table may read the level. */
static mc_error *
grant_level(const mc_overview_table *table, const char *name)
{
    return mc_overview_run(
        table,
        apr_psprintf(table->job.pool,
                     "DO $body$ DECLARE role text; BEGIN FOR role IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN "
                     "'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END FROM pg_class c, "
                     "aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = %s AND "
                     "a.privilege_type = 'SELECT' LOOP EXECUTE 'GRANT SELECT ON %s TO ' || role; END LOOP; END "
                     "$body$",
                     table->relation, name));
}

/* A row in the table of levels. */
static mc_error *
register_level(const mc_overview_table *table, const mc_overview_level *level, const char *name)
{
    apr_pool_t *pool = table->job.pool;
    const char *none = "NULL";
    return mc_overview_run(
        table,
        apr_psprintf(
            pool,
            "INSERT INTO " MC_LEVELS_SCHEMA ".levels (name, source, relation, geometry, srid, style, format, "
            "resolution, until, metres_per_unit, columns, filenode, applied, started, reader, triggers, rows, "
            "rows_built, crowded, places) VALUES "
            "(%s, %s, %s, %s, %d, %s::int8, %d, '%s', '%s', '%s', %s, %s, %s, %s, %s, %s, %" APR_INT64_T_FMT
            ", %" APR_INT64_T_FMT ", '%s', %" APR_INT64_T_FMT ")",
            mc_overview_quote(name, pool), mc_overview_quote(mc_sql_table(table->config.table, pool), pool),
            table->relation, mc_overview_quote(table->column.name, pool), table->column.srid,
            apr_psprintf(pool, "'%" APR_INT64_T_FMT "'", (apr_int64_t)table->job.digest), MC_LEVELS_FORMAT,
            mc_double_text('g', 17, level->resolution, pool), mc_double_text('g', 17, level->until, pool),
            mc_double_text('g', 17, table->job.grid->metres_per_unit, pool), mc_overview_quote(table->columns, pool),
            table->filenode, mc_overview_quote(table->applied, pool), mc_overview_quote(table->started, pool),
            table->reader == NULL ? none : mc_overview_quote(table->reader, pool),
            table->triggers == NULL ? none : mc_overview_quote(table->triggers, pool), (apr_int64_t)level->kept,
            (apr_int64_t)level->kept, mc_double_text('g', 17, table->job.crowded, pool), (apr_int64_t)level->window));
}

/* ---- The table of a level ---- */

enum {
    COPY_BYTES = 1 << 20, /* that are sent at once */
    BLOCK_COLUMNS = 4,
    WITH_SRID_POLYGON = 0x20000003,
    BOX_VERTICES = 5,
};

/* Where the blocks of a level go. */
typedef struct level_table {
    const char *name; /* in the schema */
    mc_wkb_buffer out;
} level_table;

static apr_status_t
free_level_table(void *data)
{
    free(((level_table *)data)->out.data);
    return APR_SUCCESS;
}

static const char *
full_name(const level_table *target, apr_pool_t *pool)
{
    return apr_pstrcat(pool, MC_LEVELS_SCHEMA ".", target->name, NULL);
}

void
mc_overview_open_level(mc_overview_level *level, const char *name, apr_pool_t *pool)
{
    level_table *target = apr_pcalloc(pool, sizeof(*target));
    target->name = name;
    level->target = target;
    apr_pool_cleanup_register(pool, target, free_level_table, apr_pool_cleanup_null);
}

/* The table of a level, without rows. What is packed is not compressed again: that would take longer than reading. */
static mc_error *
create_level_table(const mc_overview_job *job, mc_overview_level *level)
{
    const mc_overview_table *table = (const mc_overview_table *)job;
    const char **values;
    MC_TRY(mc_overview_ask(&values, 1, table, "SELECT 'level_' || nextval('" MC_LEVELS_SCHEMA ".numbers')"));
    mc_overview_open_level(level, values[0], job->pool);
    const char *name = full_name(level->target, job->pool);
    MC_TRY(mc_overview_run(table, apr_psprintf(job->pool,
                                               "CREATE TABLE %s (part integer NOT NULL, box geometry(Polygon,%d) NOT "
                                               "NULL, count integer NOT NULL, features bytea NOT NULL)",
                                               name, job->srid)));
    MC_TRY(mc_overview_run(table,
                           apr_psprintf(job->pool, "ALTER TABLE %s ALTER COLUMN features SET STORAGE EXTERNAL", name)));
    return mc_overview_run(
        table,
        apr_psprintf(
            job->pool, "COMMENT ON TABLE %s IS %s", name,
            mc_overview_quote(
                apr_psprintf(job->pool,
                             "Overview of %s: what %s show at %g units for a pixel; SELECT * FROM " MC_LEVELS_SCHEMA
                             ".features('%s')",
                             table->config.table, job->tiles != NULL ? "vector tiles" : "maps", level->resolution,
                             values[0]),
                job->pool)));
}

static mc_error *
finish_level_table(double *bytes, const mc_overview_job *job, mc_overview_level *level)
{
    const mc_overview_table *table = (const mc_overview_table *)job;
    const level_table *target = level->target;
    const char **values, *name = full_name(target, job->pool);
    MC_TRY(mc_overview_run(table, apr_psprintf(job->pool, "CREATE INDEX ON %s USING gist (box)", name)));
    MC_TRY(mc_overview_run(table, apr_pstrcat(job->pool, "ANALYZE ", name, NULL)));
    MC_TRY(grant_level(table, name));
    MC_TRY(register_level(table, level, target->name));
    MC_TRY(
        mc_overview_ask(&values, 1, table, apr_psprintf(job->pool, "SELECT pg_total_relation_size('%s')::text", name)));
    *bytes = values == NULL ? 0 : strtod(values[0], NULL);
    return MC_OK;
}

static mc_error *
drop_level_table(const mc_overview_job *job, mc_overview_level *level)
{
    return mc_overview_run((const mc_overview_table *)job,
                           apr_pstrcat(job->pool, "DROP TABLE ", full_name(level->target, job->pool), NULL));
}

/* ---- COPY in its binary format ---- */

static void
append_network_order(mc_wkb_buffer *bytes, uint32_t number, int size)
{
    uint8_t big[4];
    for (int i = 0; i < size; i++)
        big[i] = (uint8_t)(number >> 8 * (size - 1 - i));
    mc_wkb_append(bytes, big, (size_t)size);
}

static void
append_double(mc_wkb_buffer *bytes, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    append_network_order(bytes, (uint32_t)(bits >> 32), 4);
    append_network_order(bytes, (uint32_t)bits, 4);
}

/* A polygon in extended well-known binary. */
static void
append_box(mc_wkb_buffer *out, const mc_extent *box, int srid)
{
    const double x[2] = { box->minx, box->maxx }, y[2] = { box->maxy, box->miny };
    static const int corners[BOX_VERTICES][2] = { { 0, 0 }, { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
    append_network_order(out, 1 + 4 * 4 + BOX_VERTICES * 16, 4);
    append_network_order(out, 0, 1);
    append_network_order(out, WITH_SRID_POLYGON, 4);
    append_network_order(out, (uint32_t)srid, 4);
    append_network_order(out, 1, 4);
    append_network_order(out, BOX_VERTICES, 4);
    for (int i = 0; i < BOX_VERTICES; i++) {
        append_double(out, x[corners[i][0]]);
        append_double(out, y[corners[i][1]]);
    }
}

static mc_error *
begin_level_copy(const mc_overview_job *job, mc_overview_level *level)
{
    static const char head[19] = "PGCOPY\n\377\r\n"; /* then no flags, and nothing more */
    level_table *target = level->target;
    apr_pool_t *pool;
    apr_pool_create(&pool, job->pool);
    target->out.size = 0;
    mc_wkb_append(&target->out, head, sizeof(head));
    mc_error *error =
        mc_postgres_copy_begin(((const mc_overview_table *)job)->session,
                               apr_pstrcat(pool, "COPY " MC_LEVELS_SCHEMA ".", target->name,
                                           " (part, box, count, features) FROM STDIN (FORMAT binary)", NULL));
    error = mc_error_copy(error, job->pool);
    apr_pool_destroy(pool);
    return error;
}

static mc_error *
send_rows(const mc_overview_job *job, mc_wkb_buffer *out, size_t least)
{
    if (out->failed)
        return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "there is no memory for the blocks of a level");
    if (out->size < least)
        return MC_OK;
    MC_TRY(mc_postgres_copy_bytes(((const mc_overview_table *)job)->session, out->data, out->size));
    out->size = 0;
    return MC_OK;
}

static mc_error *
copy_block(const mc_overview_job *job, mc_overview_level *level, const mc_overview_block *block)
{
    mc_wkb_buffer *out = &((level_table *)level->target)->out;
    append_network_order(out, BLOCK_COLUMNS, 2);
    append_network_order(out, 4, 4);
    append_network_order(out, (uint32_t)block->part, 4);
    append_box(out, &block->box, job->srid);
    append_network_order(out, 4, 4);
    append_network_order(out, (uint32_t)block->count, 4);
    append_network_order(out, (uint32_t)block->size, 4);
    mc_wkb_append(out, block->bytes, block->size);
    return send_rows(job, out, COPY_BYTES);
}

static mc_error *
end_level_copy(const mc_overview_job *job, mc_overview_level *level)
{
    mc_wkb_buffer *out = &((level_table *)level->target)->out;
    append_network_order(out, 0xffff, 2);
    MC_TRY(send_rows(job, out, 0));
    return mc_postgres_copy_end(((const mc_overview_table *)job)->session);
}

static mc_error *
draw_level(const mc_overview_job *job, const mc_overview_level *level, const mc_feature_query *query,
           mc_feature_visitor *visit, void *baton, int64_t *skipped, apr_pool_t *pool)
{
    return mc_overview_draw_table((const mc_overview_table *)job, ((const level_table *)level->target)->name, query,
                                  visit, baton, skipped, pool);
}

const mc_overview_store_ops mc_overview_table_store = { .create = create_level_table,
                                                        .begin = begin_level_copy,
                                                        .write = copy_block,
                                                        .end = end_level_copy,
                                                        .draw = draw_level,
                                                        .finish = finish_level_table,
                                                        .drop = drop_level_table };
