/*
 * Many features in one value. A row of its own costs the database, libpq and us together more than a small geometry
 * does; so a map of a whole table takes it in pieces of some pages.
 */
#include <apr_strings.h>
#include <string.h>

#include "feature/postgis.h"

/* The part of the table's bounds that the map holds, from which on the rest is read along rather than sorted out by
 * the database: a comparison for each row costs a fifth of reading it. */
#define NEARLY_ALL 0.9
/* The part of the table's rows that the last map must have let expect then. */
#define MOST_ROWS 0.5
/* What stands for a null: it is in no text, which comes as UTF-8. */
#define NULL_MARK "\xff"

/* The part of a side of the bounds that lies in the map. */
static double
share(double low, double high, double map_low, double map_high)
{
    if (map_low <= low && map_high >= high)
        return 1;
    double from = map_low > low ? map_low : low, to = map_high < high ? map_high : high;
    return to <= from ? 0 : (to - from) / (high - low);
}

bool
mc_postgis_may_gather(const mc_postgis_column *column, const mc_postgis_wish *wish)
{
    const mc_extent *all = &column->bounds, *box = &wish->query->box;
    if (!wish->copy || wish->transfer != MC_TRANSFER_BINARY || !column->paged || !column->bounded || column->large ||
        column->varied || column->unsettled || column->geography)
        return false;
    double part = share(all->minx, all->maxx, box->minx, box->maxx) * share(all->miny, all->maxy, box->miny, box->maxy);
    return part == 1 || (part >= NEARLY_ALL && column->rows > 0 && wish->rows >= MOST_ROWS * column->rows);
}

/* The number of pages is asked for when the statement runs: then it is that of what the statement sees. */
const char *
mc_postgis_gather(const char *from, const char *geometry, const char *id, const mc_feature_query *query,
                  apr_pool_t *pool)
{
    apr_array_header_t *values = apr_array_make(pool, 16, sizeof(const char *));
    for (int i = 0; i < query->attribute_count; i++)
        APR_ARRAY_PUSH(values, const char *) =
            apr_psprintf(pool, "||coalesce(textsend(%s::text),E'\\\\xff')||E'\\\\x00'",
                         mc_postgis_quoted(query->attributes[i], pool));
    const char *number =
        id == NULL ? "" : apr_psprintf(pool, "||int8send(coalesce(%s::int8,0))", mc_postgis_quoted(id, pool));
    return apr_psprintf(
        pool,
        "SELECT (SELECT string_agg(ST_AsBinary(%s)%s%s,'') FROM %s AS layer WHERE layer.ctid>=piece.low AND "
        "layer.ctid<piece.high) FROM (SELECT ('('||page||',0)')::tid AS low,('('||page+%d||',0)')::tid AS high FROM "
        "generate_series(0,(SELECT pg_relation_size(any_row.tableoid)/current_setting('block_size')::int8 FROM %s AS "
        "any_row LIMIT 1),%d) AS page) AS piece",
        geometry, number, apr_array_pstrcat(pool, values, 0), from, MC_POSTGIS_PAGES, from, MC_POSTGIS_PAGES);
}

bool
mc_postgis_next_of(mc_postgres_field *fields, bool *meets, const char **at, const char *end, int count, bool id,
                   const mc_extent *box)
{
    size_t size = mc_wkb_measure(meets, *at, (size_t)(end - *at), box);
    if (size == 0)
        return false;
    fields[0] = (mc_postgres_field){ .data = *at, .size = (int)size };
    *at += size;
    if (id) {
        if (end - *at < 8)
            return false;
        fields[1] = (mc_postgres_field){ .data = *at, .size = 8 };
        *at += 8;
    }
    for (int i = id ? 2 : 1; i < count; i++) {
        const char *zero = memchr(*at, '\0', (size_t)(end - *at));
        if (zero == NULL)
            return false;
        bool null = zero - *at == 1 && **at == NULL_MARK[0];
        fields[i] = (mc_postgres_field){ .data = *at, .size = null ? -1 : (int)(zero - *at) };
        *at = zero + 1;
    }
    return true;
}
