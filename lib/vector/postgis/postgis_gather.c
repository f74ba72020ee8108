/*
 * Many features in one value. A row of its own costs the database, libpq and us together more than a small geometry
 * does; so a map of a whole table takes it in pieces of some pages.
 */
#include <apr_strings.h>
#include <string.h>

#include "text/text.h"
#include "vector/postgis/postgis.h"

/* The part of the table's bounds that the map holds, from which on the rest is read along rather than left out by the
 * database: there a comparison of boxes for each row costs half of what sending it costs. */
#define NEARLY_ALL 0.75
/* The part of the table's rows that the last map must have let expect then. */
#define MOST_ROWS 0.6
/* What stands for a null: it is in no text, which comes as UTF-8. */
#define NULL_MARK '\xff'

/* The part of a side of the bounds that lies in the map. */
static double
visible_side_share(double low, double high, double map_low, double map_high)
{
    if (map_low <= low && map_high >= high)
        return 1;
    double from = map_low > low ? map_low : low, to = map_high < high ? map_high : high;
    return to <= from ? 0 : (to - from) / (high - low);
}

double
mc_postgis_visible_part(const mc_postgis_column *column, const mc_extent *box)
{
    const mc_extent *all = &column->bounds;
    return visible_side_share(all->minx, all->maxx, box->minx, box->maxx) *
           visible_side_share(all->miny, all->maxy, box->miny, box->maxy);
}

bool
mc_postgis_may_gather(const mc_postgis_column *column, const mc_postgis_request *request)
{
    if (!request->copy || request->transfer != MC_TRANSFER_BINARY || !column->paged || !column->bounded ||
        column->large || column->varied || column->unsettled || column->geography)
        return false;
    double part = mc_postgis_visible_part(column, &request->query->box);
    return part == 1 || (part >= NEARLY_ALL && column->rows > 0 && request->rows >= MOST_ROWS * column->rows);
}

/* A null stands where the least of all numbers does, and a byte more says which of both it is. */
static const char *
whole_number(const char *column, apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "coalesce(int8send(nullif(%s::int8,'%s'::int8)),CASE WHEN %s IS NULL THEN "
                        "E'\\\\x8000000000000000ff'::bytea ELSE E'\\\\x800000000000000000'::bytea END)||",
                        column, "-9223372036854775808", column);
}

static const char *
build_column_text(const char *column, apr_pool_t *pool)
{
    return apr_psprintf(pool, "coalesce(textsend(%s::text),E'\\\\xff')||E'\\\\x00'::bytea||", column);
}

/* The number of pages is asked for when the statement runs: then it is that of what the statement sees. */
void
mc_postgis_gather(mc_postgis_statement *statement, const char *from, const char *geometry, const char *srids,
                  const char *id, const mc_postgis_request *request, apr_pool_t *pool)
{
    apr_array_header_t *values = apr_array_make(pool, 16, sizeof(const char *));
    if (id != NULL)
        APR_ARRAY_PUSH(values, const char *) =
            apr_psprintf(pool, "int8send(coalesce(%s::int8,0))||", mc_sql_name(id, pool));
    for (int i = 0; i < request->query->attribute_count; i++) {
        const char *column = mc_sql_name(request->query->attributes[i], pool);
        APR_ARRAY_PUSH(values, const char *) = request->integers != NULL && request->integers[i]
                                                   ? whole_number(column, pool)
                                                   : build_column_text(column, pool);
    }
    statement->before_pages = apr_psprintf(
        pool,
        "SELECT part.features FROM (SELECT ('('||page||',0)')::tid AS low,('('||page+%d||',0)')::tid AS high FROM "
        "generate_series(0,",
        MC_POSTGIS_PAGES);
    statement->behind_pages =
        apr_psprintf(pool,
                     ") AS piece,LATERAL (SELECT string_agg(%sST_AsBinary(%s),'') AS features FROM %s AS layer WHERE "
                     "layer.ctid>=piece.low AND layer.ctid<piece.high) AS part",
                     apr_array_pstrcat(pool, values, 0), geometry, from);
    statement->page_count =
        apr_psprintf(pool,
                     "(SELECT CASE WHEN ST_SRID(%s) IN (%s) THEN pg_relation_size(tableoid)/"
                     "current_setting('block_size')::int8 END FROM %s AS any_row WHERE %s IS NOT NULL LIMIT 1)",
                     geometry, srids, from, geometry);
    statement->sql = apr_psprintf(pool, "%s%s,%d) AS page%s", statement->before_pages, statement->page_count,
                                  MC_POSTGIS_PAGES, statement->behind_pages);
}

const char *
mc_postgis_gather_ranges(const mc_postgis_statement *statement, int64_t pages, int pieces, int first, int every,
                         apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s%" APR_INT64_T_FMT ",%d) AS page WHERE page/%d%%%d=%d%s", statement->before_pages,
                        pages - 1, MC_POSTGIS_PAGES, pieces * MC_POSTGIS_PAGES, every, first, statement->behind_pages);
}

/* Eight bytes, or nine: see whole_number. */
static bool
take_whole(mc_postgres_field *field, const char **at, const char *end)
{
    static const char least[8] = { '\x80' };
    if (end - *at < 8)
        return false;
    *field = (mc_postgres_field){ .data = *at, .size = 8 };
    *at += 8;
    if (memcmp(field->data, least, 8) != 0)
        return true;
    if (*at == end)
        return false;
    if (*(*at)++ != '\0')
        field->size = -1;
    return true;
}

static bool
take_gathered_text(mc_postgres_field *field, const char **at, const char *end)
{
    const char *zero = memchr(*at, '\0', (size_t)(end - *at));
    if (zero == NULL)
        return false;
    bool null = zero - *at == 1 && **at == NULL_MARK;
    *field = (mc_postgres_field){ .data = *at, .size = null ? -1 : (int)(zero - *at) };
    *at = zero + 1;
    return true;
}

bool
mc_postgis_next_of(mc_postgres_field *fields, bool *meets, const char **at, const char *end, bool id,
                   const mc_postgis_request *request)
{
    mc_postgres_field *geometry = fields++;
    if (id) {
        if (end - *at < 8)
            return false;
        *fields++ = (mc_postgres_field){ .data = *at, .size = 8 };
        *at += 8;
    }
    for (int i = 0; i < request->query->attribute_count; i++)
        if (!(request->integers != NULL && request->integers[i] ? take_whole : take_gathered_text)(&fields[i], at, end))
            return false;
    size_t size = mc_wkb_measure(meets, *at, (size_t)(end - *at), &request->query->box);
    *geometry = (mc_postgres_field){ .data = *at, .size = (int)size };
    *at += size;
    return size > 0;
}
