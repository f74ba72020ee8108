/* See change_log.h. */
#include "changes/change_log.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "text/text.h"

/* Of a batch. More SRIDs of a table, and more boxes in all, stand for whole tables; more tables count as lost. */
enum { SETS_MAX = 256, SRIDS_MAX = 16, RELATIONS_MAX = 1 << 16 };

/*
 * Columns of the first row: null, the snapshot, the start of the server, its clock in seconds, whether something is
 * lost, what the readers of the name $3 have applied, when what is lost was removed (null: that is not known). Of the
 * others: object id, SRID, box. All come of one statement, hence of one snapshot.
 *
 * What the cursor does not see: transactions from its end on, and those that were under way. Rows of transactions that
 * have yet to come were written by another cluster. After a restart numbers of transactions may have been given again
 * that the cursor sees: what was written since the start is read in any case. Each part finds its rows by an index: a
 * read costs as much as is new, however long the log is.
 */
#define MC_LOG_ROWS                                                                                                    \
    "SELECT relation::text, srid::text, minx::text, miny::text, maxx::text, maxy::text, NULL::text"                    \
    " FROM mapcache_changes.log WHERE"

static const char read_sql[] =
    "SELECT NULL::text, pg_current_snapshot()::text, pg_postmaster_start_time()::text,"
    " extract(epoch FROM clock_timestamp())::text, (c.future OR l.xid IS NOT NULL)::text,"
    " (SELECT applied::text FROM mapcache_changes.readers WHERE name = $3),"
    " CASE WHEN NOT c.future THEN extract(epoch FROM l.at)::text END"
    " FROM (SELECT pg_snapshot_xmax($1::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot())) AS c(future)"
    " LEFT JOIN mapcache_changes.lost l ON NOT pg_visible_in_snapshot(l.xid, $1::pg_snapshot)"
    " AND l.xid < pg_snapshot_xmax(pg_current_snapshot())"
    " UNION ALL " MC_LOG_ROWS
    " xid >= pg_snapshot_xmax($1::pg_snapshot) AND xid < pg_snapshot_xmax(pg_current_snapshot())"
    " UNION ALL " MC_LOG_ROWS " xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::pg_snapshot)))"
    " UNION ALL " MC_LOG_ROWS " $2::text <> pg_postmaster_start_time()::text AND at >= pg_postmaster_start_time()"
    " AND xid < pg_snapshot_xmax($1::pg_snapshot) AND xid <> ALL (ARRAY(SELECT pg_snapshot_xip($1::pg_snapshot)))";

/* From a name down to partitions and to what views read, and up to the tables that it is a part of, but not down from
 * those again: what their other parts log shows nothing of it. */
static const char resolve_sql[] =
    "WITH RECURSIVE parts(n, o, up) AS ("
    " SELECT u.n::text, to_regclass(u.t)::oid, false FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n)"
    " WHERE to_regclass(u.t) IS NOT NULL"
    " UNION SELECT p.n, x.o, x.up FROM parts p CROSS JOIN LATERAL ("
    " SELECT i.inhrelid, false FROM pg_inherits i WHERE i.inhparent = p.o AND NOT p.up"
    " UNION ALL SELECT i.inhparent, true FROM pg_inherits i WHERE i.inhrelid = p.o"
    " UNION ALL SELECT d.refobjid, false FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class AND c.relkind = 'v'"
    " JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid"
    " AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> p.o WHERE w.ev_class = p.o) AS x(o, up))"
    " SELECT DISTINCT n, o::text FROM parts";

/* What is read of one table. */
typedef struct read_relation {
    int srids;
    mc_box_set *whole; /* NULL: its boxes are known */
} read_relation;

typedef struct log_reading {
    mc_log_batch *batch;
    mc_log_cursor next;
    apr_hash_t *tables;    /* relation and SRID -> mc_box_set */
    apr_hash_t *relations; /* relation -> read_relation */
    apr_time_t begun;
    bool headed; /* the first row was there */
    apr_pool_t *pool;
} log_reading;

static const char *
text_of(const mc_postgres_row *row, int column)
{
    return column < row->columns && row->fields[column].size >= 0 ? row->fields[column].data : NULL;
}

static double
coordinate_of(const mc_postgres_row *row, int column)
{
    const char *text = text_of(row, column);
    double value;
    return text != NULL && mc_parse_double(&value, text) ? value : NAN;
}

static mc_box_set *
add_box_set(log_reading *reading, uint32_t relation, int srid, mc_box_set *boxes)
{
    APR_ARRAY_PUSH(reading->batch->tables, mc_log_table) = (mc_log_table){ relation, srid, boxes };
    return boxes;
}

/* NULL: there are too many. */
static read_relation *
relation_of(log_reading *reading, uint32_t relation)
{
    read_relation *known = apr_hash_get(reading->relations, &relation, sizeof(relation));
    if (known != NULL || apr_hash_count(reading->relations) >= RELATIONS_MAX)
        return known;
    known = apr_pcalloc(reading->pool, sizeof(*known));
    apr_hash_set(reading->relations, apr_pmemdup(reading->pool, &relation, sizeof(relation)), sizeof(relation), known);
    return known;
}

/* Where the boxes of an SRID go (below 0: it is none). NULL: nowhere, as all counts as lost. */
static mc_box_set *
boxes_of(log_reading *reading, uint32_t relation, int srid)
{
    const uint32_t parts[2] = { relation, (uint32_t)srid };
    mc_box_set *known = apr_hash_get(reading->tables, parts, sizeof(parts));
    read_relation *of = known != NULL ? NULL : relation_of(reading, relation);
    if (of == NULL) {
        reading->batch->lost = reading->batch->lost || known == NULL;
        return known;
    }
    if (of->whole != NULL)
        return of->whole;
    if (srid < 0 || of->srids >= SRIDS_MAX || apr_hash_count(reading->tables) >= SETS_MAX)
        return of->whole = add_box_set(reading, relation, 0, mc_box_set_create_whole(reading->pool));
    of->srids++;
    known = mc_box_set_create(reading->pool);
    apr_hash_set(reading->tables, apr_pmemdup(reading->pool, parts, sizeof(parts)), sizeof(parts), known);
    return add_box_set(reading, relation, srid, known);
}

static void
take_log_head(log_reading *reading, const mc_postgres_row *row)
{
    mc_log_batch *batch = reading->batch;
    double clock = coordinate_of(row, 3), removed = coordinate_of(row, 6);
    batch->seen = apr_time_now();
    batch->steady = mc_clock_now();
    batch->trip = batch->seen - reading->begun;
    if (isfinite(clock) && fabs(clock) < 1e11)
        batch->offset = (apr_time_t)(clock * APR_USEC_PER_SEC) - (reading->begun + batch->trip / 2);
    const char *lost = text_of(row, 4), *snapshot = text_of(row, 1), *started = text_of(row, 2);
    batch->lost = batch->lost || lost == NULL || strcmp(lost, "false") != 0;
    batch->lost_by = batch->seen;
    if (isfinite(removed) && fabs(removed) < 1e11 &&
        (apr_time_t)(removed * APR_USEC_PER_SEC) - batch->offset < batch->seen)
        batch->lost_by = (apr_time_t)(removed * APR_USEC_PER_SEC) - batch->offset + batch->trip;
    batch->applied = text_of(row, 5) == NULL ? NULL : apr_pstrdup(reading->pool, text_of(row, 5));
    reading->next.snapshot = snapshot == NULL ? NULL : apr_pstrdup(reading->pool, snapshot);
    reading->next.started = started == NULL ? NULL : apr_pstrdup(reading->pool, started);
    reading->headed = snapshot != NULL && started != NULL;
}

/* A box that is not whole stands for the table, and so does one whose SRID is none. */
static void
take_changed_box(log_reading *reading, const mc_postgres_row *row)
{
    const char *relation = text_of(row, 0), *srid = text_of(row, 1);
    int number = 0;
    if (srid == NULL || !mc_parse_int(&number, srid, 0, 999999))
        number = -1;
    mc_box_set *boxes = boxes_of(reading, (uint32_t)strtoul(relation, NULL, 10), number);
    reading->batch->rows++;
    if (boxes != NULL)
        mc_box_set_add(boxes, &(mc_extent){ coordinate_of(row, 2), coordinate_of(row, 3), coordinate_of(row, 4),
                                            coordinate_of(row, 5) });
}

static mc_error *
read_log_rows(log_reading *reading, mc_postgres_result *result)
{
    for (;;) {
        const mc_postgres_row *row;
        MC_TRY(mc_postgres_next(&row, result));
        if (row == NULL)
            return MC_OK;
        if (text_of(row, 0) == NULL)
            take_log_head(reading, row);
        else
            take_changed_box(reading, row);
    }
}

mc_error *
mc_change_log_read(mc_log_batch *batch, mc_log_cursor *cursor, const char *reader, mc_postgres_session *session,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param params[] = {
        { .value = cursor->snapshot, .type = MC_POSTGRES_TEXT },
        { .value = cursor->started, .type = MC_POSTGRES_TEXT },
        { .value = reader, .type = MC_POSTGRES_TEXT },
    };
    const mc_postgres_query query = { .session = session, .sql = read_sql, .params = params, .param_count = 3 };
    mc_postgres_result *result;
    log_reading reading = { .batch = batch,
                            .tables = apr_hash_make(pool),
                            .relations = apr_hash_make(pool),
                            .begun = apr_time_now(),
                            .pool = pool };
    *batch = (mc_log_batch){ .tables = apr_array_make(pool, 4, sizeof(mc_log_table)) };
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = read_log_rows(&reading, result);
    mc_postgres_end(result);
    MC_TRY(error);
    if (!reading.headed)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the database does not say what it sees");
    *cursor = reading.next;
    return MC_OK;
}

bool
mc_log_covers(const char *applied, const char *snapshot)
{
    char *end;
    if (applied == NULL)
        return false;
    unsigned long long least = strtoull(applied, NULL, 10); /* "xmin:xmax:list" */
    (void)strtoull(snapshot, &end, 10);
    return *end == ':' && least >= strtoull(end + 1, NULL, 10);
}

mc_error *
mc_change_log_find_reader(const char **snapshot, const char *name, mc_postgres_session *session, mc_ctx *ctx,
                          apr_pool_t *pool)
{
    const mc_postgres_param param = { .value = name, .type = MC_POSTGRES_TEXT };
    const mc_postgres_query query = { .session = session,
                                      .sql = "SELECT applied::text FROM mapcache_changes.readers WHERE name = $1",
                                      .params = &param,
                                      .param_count = 1 };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    *snapshot = MC_LOG_BEGINNING;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && text_of(row, 0) != NULL)
        *snapshot = apr_pstrdup(pool, text_of(row, 0));
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_change_log_enter_reader(const char *name, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param params[] = { { .value = name, .type = MC_POSTGRES_TEXT },
                                         { .value = MC_LOG_BEGINNING, .type = MC_POSTGRES_TEXT } };
    return mc_change_log_run("INSERT INTO mapcache_changes.readers (name, applied) VALUES ($1, $2::pg_snapshot)"
                             " ON CONFLICT (name) DO NOTHING",
                             params, 2, session, ctx, pool);
}

/* A list of quoted names as an array literal of PostgreSQL. */
static const char *
list_names(const apr_array_header_t *names, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, names->nelts + 1, sizeof(const char *));
    for (int i = 0; i < names->nelts; i++) {
        const char *name = mc_sql_table(APR_ARRAY_IDX(names, i, const char *), pool);
        name = mc_replace_all(mc_replace_all(name, "\\", "\\\\", pool), "\"", "\\\"", pool);
        APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(pool, "\"", name, "\"", NULL);
    }
    return apr_pstrcat(pool, "{", apr_array_pstrcat(pool, texts, ','), "}", NULL);
}

mc_error *
mc_change_log_resolve(apr_array_header_t **found, const apr_array_header_t *names, mc_postgres_session *session,
                      mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param param = { .value = list_names(names, pool), .type = MC_POSTGRES_TEXT };
    const mc_postgres_query query = { .session = session, .sql = resolve_sql, .params = &param, .param_count = 1 };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    *found = apr_array_make(pool, names->nelts + 1, sizeof(mc_log_name));
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    while (error == MC_OK && row != NULL) {
        int index = 0;
        const char *number = text_of(row, 0), *relation = text_of(row, 1);
        if (number != NULL && relation != NULL && mc_parse_int(&index, number, 1, names->nelts))
            APR_ARRAY_PUSH(*found, mc_log_name) = (mc_log_name){ index - 1, (uint32_t)strtoul(relation, NULL, 10) };
        error = mc_postgres_next(&row, result);
    }
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_change_log_run(const char *sql, const mc_postgres_param *params, int count, mc_postgres_session *session,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_query query = { .session = session, .sql = sql, .params = params, .param_count = count };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    do {
        if (error == MC_OK)
            error = mc_postgres_next(&row, result);
    } while (error == MC_OK && row != NULL);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_change_log_ask(bool *answer, const char *sql, const mc_postgres_param *params, int count,
                  mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_query query = { .session = session, .sql = sql, .params = params, .param_count = count };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    *answer = error == MC_OK && row != NULL && row->columns > 0 && strcmp(row->fields[0].data, "true") == 0;
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}
