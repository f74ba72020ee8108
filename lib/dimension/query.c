/*
 * The front of dimensions that ask a database: times taken apart, what has to be asked gathered into one batch.
 */
#include "dimension/query.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <float.h>
#include <string.h>

#include "dimension/query_answers.h"
#include "text/text.h"
#include "text/time.h"

#define ROW_TEXT_MAX 4096

const char *const mc_query_parameter_names[] = {
#define X(bit, name) name,
    MC_QUERY_PARAMETERS(X)
#undef X
};

/* --- configuration ---------------------------------------------------------------------------------------------- */

static unsigned
parameters_in(const char *statement)
{
    unsigned uses = 0;
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++)
        if (strstr(statement, mc_query_parameter_names[i]) != NULL)
            uses |= 1U << i;
    return uses;
}

static void
set_statement(mc_query_statement *statement, const char *text, const char *type, const char *source, int max_entries,
              apr_pool_t *pool)
{
    statement->text = text;
    if (text == NULL)
        return;
    statement->uses = parameters_in(text);
    char *identity =
        apr_psprintf(pool, "%s %d %lu %s\n%s", type, max_entries, (unsigned long)strlen(source), source, text);
    statement->identity = identity;
    statement->identity_size = strlen(identity) + 1;
}

static bool
read_remember(mc_query_dimension *dimension, const char *text, const mc_node *node, mc_build *build)
{
    const double most = 30 * 86400;
    double seconds = 0;
    bool file = dimension->path != NULL;
    if (file && (text == NULL || strcmp(text, "file") == 0)) {
        dimension->by_stamp = true;
        return true;
    }
    if (text != NULL && (!mc_parse_double(&seconds, text) || seconds < 0 || seconds > most)) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<remember> is %s; expected: seconds, 0 to %.0f%s",
                    mc_config_quote(text, build->pool), most,
                    file ? ", or file" : " (file is for the types sqlite and time)");
        return false;
    }
    dimension->remember = (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
    return true;
}

bool
mc_query_set_up(mc_query_dimension *dimension, const mc_query_config *config, const char *source, bool is_file,
                const mc_query_extras *extras, const mc_node *node, mc_build *build)
{
    dimension->path = is_file ? source : NULL;
    if (!mc_dimension_set_common(&dimension->base, &config->common, build) ||
        !read_remember(dimension, config->remember, node, build))
        return false;
    const char *const texts[] = { config->validate_query, config->list_query, extras->default_query,
                                  extras->insert_query };
    for (int i = 0; i < MC_QUERY_KINDS; i++)
        set_statement(&dimension->statements[i], texts[i], config->common.type, source, config->max_entries,
                      build->pool);
    dimension->max_entries = config->max_entries;
    return true;
}

bool
mc_query_by_extent(const mc_dimension *base)
{
    const unsigned extent = 1U << MC_QUERY_MINX | 1U << MC_QUERY_MINY | 1U << MC_QUERY_MAXX | 1U << MC_QUERY_MAXY;
    return (((const mc_query_dimension *)base)->statements[MC_QUERY_VALIDATE].uses & extent) != 0;
}

apr_time_t
mc_query_changed(const mc_dimension *base)
{
    const mc_query_dimension *dimension = (const mc_query_dimension *)base;
    mc_stamp stamp;
    if (dimension->path == NULL || !mc_stamp_take(&stamp, dimension->path))
        return 0;
    bool logged = stamp.wal_size > 0 && stamp.wal_mtime_ns > stamp.mtime_ns; /* readers make an empty one */
    return (logged ? stamp.wal_mtime_ns : stamp.mtime_ns) / 1000;
}

/* --- for back ends ---------------------------------------------------------------------------------------------- */

bool
mc_query_whole_time(int64_t *whole, int64_t time_us, int64_t unit_us)
{
    int64_t rest = time_us % unit_us;
    *whole = time_us / unit_us - (rest < 0);
    return rest == 0;
}

static const char *
time_text(bool timed, int64_t time_us, int64_t unit_us, apr_pool_t *pool)
{
    int64_t whole;
    if (!timed)
        return "0";
    if (mc_query_whole_time(&whole, time_us, unit_us))
        return apr_psprintf(pool, "%" APR_INT64_T_FMT, whole);
    const char *sign = "";
    if (time_us < 0) {
        time_us = -time_us;
        sign = "-";
    }
    int digits = 0;
    for (int64_t unit = unit_us; unit > 1; unit /= 10)
        digits++;
    return apr_psprintf(pool, "%s%" APR_INT64_T_FMT ".%0*" APR_INT64_T_FMT, sign, time_us / unit_us, digits,
                        time_us % unit_us);
}

void
mc_query_texts(const char *texts[MC_QUERY_PARAMETER_COUNT], const mc_query_binds *binds, int64_t unit_us,
               const char *(*coordinate)(double value, apr_pool_t *pool), apr_pool_t *pool)
{
    texts[MC_QUERY_TILESET] = binds->tileset;
    texts[MC_QUERY_DIM] = binds->dim;
    texts[MC_QUERY_GRIDSRS] = binds->gridsrs;
    texts[MC_QUERY_MINX] = coordinate(binds->extent.minx, pool);
    texts[MC_QUERY_MAXX] = coordinate(binds->extent.maxx, pool);
    texts[MC_QUERY_MINY] = coordinate(binds->extent.miny, pool);
    texts[MC_QUERY_MAXY] = coordinate(binds->extent.maxy, pool);
    texts[MC_QUERY_START] = time_text(binds->timed, binds->start_us, unit_us, pool);
    texts[MC_QUERY_END] = time_text(binds->timed, binds->end_us, unit_us, pool);
}

mc_error *
mc_query_rows_add(mc_query_rows *rows, const char *text, size_t size)
{
    if (text == NULL || (rows->first_only && rows->values->nelts == 1))
        return MC_OK;
    if (size > ROW_TEXT_MAX)
        return mc_error_create(rows->pool, MC_ERR_LIMIT,
                               "dimension %s: a value of its database is longer than %d bytes", rows->dimension,
                               ROW_TEXT_MAX);
    if (rows->values->nelts == rows->most)
        return mc_error_create(rows->pool, MC_ERR_LIMIT,
                               "dimension %s: its database has more than %d values for this (max_entries)",
                               rows->dimension, rows->most);
    APR_ARRAY_PUSH(rows->values, const char *) = apr_pstrmemdup(rows->pool, text, size);
    return MC_OK;
}

/* --- questions -------------------------------------------------------------------------------------------------- */

/* An answer as a caller gets it: shared where its pool dies before the request's, else copied. */
static apr_array_header_t *
answer_values(const mc_query_answer *answer, const mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *values = apr_array_make(pool, 1, sizeof(const char *));
    bool shared = apr_pool_is_ancestor(ctx->pool, pool);
    if (shared && answer->count > 0) {
        values->elts = (char *)(uintptr_t)answer->values; /* a push would copy it first: there is no room */
        values->nelts = values->nalloc = answer->count;
    }
    for (int i = 0; !shared && i < answer->count; i++)
        APR_ARRAY_PUSH(values, const char *) = apr_pstrdup(pool, answer->values[i]);
    return values;
}

static const mc_extent unbounded = { -DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX };

static mc_query_binds
binds_of(const mc_dimension_query *query)
{
    return (mc_query_binds){ .tileset = query->tileset,
                             .dim = query->value,
                             .gridsrs = query->grid == NULL ? NULL : query->grid->srs,
                             .extent = query->extent == NULL ? unbounded : *query->extent };
}

static mc_error *
list_all(mc_query_answer **listed, mc_query_dimension *dimension, mc_query_kind kind, const char *tileset, mc_ctx *ctx)
{
    mc_query_binds binds = { .tileset = tileset, .extent = unbounded };
    return mc_query_answer_all(listed, dimension, kind, &binds, 1, ctx);
}

/* Times may overlap: each value once, where it comes last, which is on top. */
static apr_array_header_t *
merge_answers(mc_query_answer *const *answers, int count, apr_pool_t *pool)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += answers[i]->count;
    const char **reversed = apr_palloc(pool, sizeof(*reversed) * (size_t)(total + 1));
    apr_hash_t *seen = count > 1 ? apr_hash_make(pool) : NULL;
    int kept = 0;
    for (int i = count - 1; i >= 0; i--)
        for (int j = answers[i]->count - 1; j >= 0; j--) {
            const char *value = answers[i]->values[j];
            const void *before = seen == NULL ? NULL : apr_hash_get(seen, value, APR_HASH_KEY_STRING);
            if (before != NULL && before != &answers[i])
                continue; /* what one answer has twice it keeps */
            if (seen != NULL)
                apr_hash_set(seen, value, APR_HASH_KEY_STRING, &answers[i]);
            reversed[kept++] = value;
        }
    apr_array_header_t *values = apr_array_make(pool, kept + 1, sizeof(const char *));
    for (int i = kept - 1; i >= 0; i--)
        APR_ARRAY_PUSH(values, const char *) = apr_pstrdup(pool, reversed[i]);
    return values;
}

static mc_error *
resolve_times(apr_array_header_t **values, mc_query_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
              apr_pool_t *pool)
{
    apr_array_header_t *spans;
    mc_query_binds one = binds_of(query);
    MC_TRY(mc_dimension_settle(&one.dim, &dimension->base, query->tileset, ctx, pool));
    one.timed = true;
    MC_TRY(mc_time_parse_list(&spans, dimension->base.name, one.dim, mc_query_request_time(ctx), pool));
    mc_query_binds *binds = apr_palloc(ctx->pool, sizeof(*binds) * (size_t)spans->nelts);
    mc_query_answer **answers = apr_palloc(ctx->pool, sizeof(*answers) * (size_t)spans->nelts);
    for (int i = 0; i < spans->nelts; i++) {
        binds[i] = one;
        binds[i].start_us = APR_ARRAY_IDX(spans, i, mc_time_span).start_us;
        binds[i].end_us = APR_ARRAY_IDX(spans, i, mc_time_span).end_us;
    }
    MC_TRY(mc_query_answer_all(answers, dimension, MC_QUERY_VALIDATE, binds, spans->nelts, ctx));
    *values = spans->nelts == 1 ? answer_values(answers[0], ctx, pool) : merge_answers(answers, spans->nelts, pool);
    if ((*values)->nelts > dimension->max_entries)
        return mc_error_create(pool, MC_ERR_LIMIT, "dimension %s: these times have more than %d values (max_entries)",
                               dimension->base.name, dimension->max_entries);
    return MC_OK;
}

mc_error *
mc_query_resolve_all(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *queries, int count,
                     mc_ctx *ctx, apr_pool_t *pool)
{
    mc_query_dimension *dimension = (mc_query_dimension *)base;
    if (base->time) {
        for (int i = 0; i < count; i++)
            MC_TRY(resolve_times(&values[i], dimension, &queries[i], ctx, pool));
        return MC_OK;
    }
    mc_query_binds *binds = apr_palloc(ctx->pool, sizeof(*binds) * (size_t)count);
    mc_query_answer **answers = apr_palloc(ctx->pool, sizeof(*answers) * (size_t)count);
    for (int i = 0; i < count; i++)
        binds[i] = binds_of(&queries[i]);
    MC_TRY(mc_query_answer_all(answers, dimension, MC_QUERY_VALIDATE, binds, count, ctx));
    for (int i = 0; i < count; i++)
        values[i] = answer_values(answers[i], ctx, pool);
    return MC_OK;
}

mc_error *
mc_query_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_query_answer *listed;
    MC_TRY(list_all(&listed, (mc_query_dimension *)base, MC_QUERY_LIST, tileset, ctx));
    *values = answer_values(listed, ctx, pool);
    return MC_OK;
}

mc_error *
mc_query_default(const char **value, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_query_dimension *dimension = (mc_query_dimension *)base;
    mc_query_answer *found;
    *value = base->default_value;
    if (dimension->statements[MC_QUERY_DEFAULT].text == NULL)
        return MC_OK;
    MC_TRY(list_all(&found, dimension, MC_QUERY_DEFAULT, tileset, ctx));
    if (found->count > 0)
        *value = apr_pstrdup(pool, found->values[0]);
    return MC_OK;
}

mc_error *
mc_query_insert(bool *inserted, mc_dimension *base, const mc_dimension_query *query, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_query_dimension *dimension = (mc_query_dimension *)base;
    const mc_query_statement *statement = &dimension->statements[MC_QUERY_INSERT];
    mc_query_binds binds = binds_of(query);
    mc_time_span span;
    mc_query_rows rows = { .pool = pool, .most = 1, .first_only = true, .dimension = base->name };
    mc_query_rows *const all[] = { &rows };
    mc_stamp stamp;
    *inserted = statement->text != NULL;
    if (!*inserted)
        return MC_OK;
    binds.timed = mc_time_parse(&span, binds.dim, strlen(binds.dim), apr_time_now()) == NULL;
    if (binds.timed) {
        binds.start_us = span.start_us;
        binds.end_us = span.end_us;
    }
    rows.values = apr_array_make(pool, 1, sizeof(const char *));
    mc_query_batch batch = { MC_QUERY_INSERT, statement, &binds, all, 1, NULL, false };
    if (dimension->path != NULL && mc_stamp_take(&stamp, dimension->path))
        batch.stamp = &stamp;
    return dimension->ask(dimension, &batch, ctx, pool);
}
