/*
 * The front of dimensions that ask a database: times taken apart, answers remembered for a request and for the process,
 * what has to be asked gathered into one batch.
 *
 * An answer is remembered under everything that it can depend on: the back end, its database, the statement, and those
 * of the bound values whose names stand in the statement. A statement without :minx and its like thus is asked once for
 * a whole map.
 */
#include "dimension/query.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "dimension/dimension_counters.h"
#include "memory/clock_cache.h"
#include "text/text.h"
#include "text/time.h"

#define ROW_TEXT_MAX 4096
/* Questions that one request remembers: a bound for callers whose pool lives long. */
#define ASKED_MAX 1024
#define ASKED_KEY "mc_dimension_asked"

const char *const mc_query_parameter_names[] = {
#define X(bit, name) name,
    MC_QUERY_PARAMETERS(X)
#undef X
};

struct mc_query_rows {
    apr_pool_t *pool;
    apr_array_header_t *values; /* of const char * */
    int most;
    bool first_only; /* further rows are not looked at */
    const char *dimension;
};

/* What a question was answered with. Of the request: in its pool, or in an entry of the process's table that the pool
 * holds. */
typedef struct answer {
    const char *const *values;
    int count; /* -1: not asked yet */
} answer;

/* What the process remembers; one block of memory, the texts behind the pointers. */
typedef struct query_remembered {
    bool lasting;     /* the same as long as the stamp is */
    mc_stamp stamp;   /* of the file, where there is one */
    apr_time_t taken; /* mc_clock_now() */
    int count;
    const char *values[];
} query_remembered;

/* How a file was found by this request. */
typedef struct query_look {
    apr_time_t taken; /* before the stamp */
    bool present;
    mc_stamp stamp;
} query_look;

/* What one request knows: the same question gets the same answer, and a file is looked at once. */
typedef struct asked {
    apr_pool_t *pool;
    apr_hash_t *answers; /* answer *, by key */
    apr_hash_t *looks;   /* look *, by path */
    apr_time_t now;
} asked;

static asked *
asked_of(mc_ctx *ctx)
{
    void *data = NULL;
    apr_pool_userdata_get(&data, ASKED_KEY, ctx->pool);
    asked *known = data;
    if (known != NULL && apr_hash_count(known->answers) < ASKED_MAX)
        return known;
    known = apr_pcalloc(ctx->pool, sizeof(*known));
    known->pool = ctx->pool;
    known->answers = apr_hash_make(ctx->pool);
    known->looks = apr_hash_make(ctx->pool);
    known->now = apr_time_now();
    apr_pool_userdata_setn(known, ASKED_KEY, NULL, ctx->pool);
    return known;
}

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

/* --- what is remembered ----------------------------------------------------------------------------------------- */

typedef struct key {
    char *bytes;
    size_t size;
} key;

static char *
put_key_bytes(char *out, const void *bytes, size_t size)
{
    memcpy(out, bytes, size);
    return out + size;
}

/* A text as itself and its end; NULL as a byte that no text begins with. */
static char *
put_key_text(char *out, const char *text)
{
    return text == NULL ? put_key_bytes(out, "\xff", 2) : put_key_bytes(out, text, strlen(text) + 1);
}

static size_t
text_size(const char *text)
{
    return text == NULL ? 2 : strlen(text) + 1;
}

/* The statement, and the values of those parameters that it uses. */
static key
make_key(const mc_query_statement *statement, const mc_query_binds *binds, apr_pool_t *pool)
{
    const char *const texts[] = { binds->tileset, binds->dim, binds->gridsrs };
    const double numbers[] = { binds->extent.minx, binds->extent.maxx, binds->extent.miny, binds->extent.maxy };
    size_t size = statement->identity_size + sizeof(numbers) + 2 * sizeof(int64_t) + 1;
    for (int i = MC_QUERY_TILESET; i <= MC_QUERY_GRIDSRS; i++)
        size += text_size(texts[i]);
    key key = { apr_palloc(pool, size), 0 };
    char *out = put_key_bytes(key.bytes, statement->identity, statement->identity_size);
    for (int i = MC_QUERY_TILESET; i <= MC_QUERY_GRIDSRS; i++)
        if (statement->uses & 1U << i)
            out = put_key_text(out, texts[i]);
    for (int i = MC_QUERY_MINX; i <= MC_QUERY_MAXY; i++)
        if (statement->uses & 1U << i)
            out = put_key_bytes(out, &numbers[i - MC_QUERY_MINX], sizeof(double));
    *out++ = binds->timed ? 't' : '-';
    if (binds->timed && (statement->uses & (1U << MC_QUERY_START | 1U << MC_QUERY_END))) {
        out = put_key_bytes(out, &binds->start_us, sizeof(int64_t));
        out = put_key_bytes(out, &binds->end_us, sizeof(int64_t));
    }
    key.size = (size_t)(out - key.bytes);
    return key;
}

static const query_look *
stat_catalogue(asked *asked, const char *file)
{
    query_look *known = apr_hash_get(asked->looks, file, APR_HASH_KEY_STRING);
    if (known != NULL)
        return known;
    known = apr_pcalloc(asked->pool, sizeof(*known));
    known->taken = apr_time_now();
    known->present = mc_stamp_take(&known->stamp, file);
    apr_hash_set(asked->looks, apr_pstrdup(asked->pool, file), APR_HASH_KEY_STRING, known);
    return known;
}

static apr_status_t
release_entry(void *entry)
{
    mc_clock_cache_release(entry);
    return APR_SUCCESS;
}

void
mc_query_forget(mc_dimension *base)
{
    atomic_store(&((mc_query_dimension *)base)->forgotten, mc_clock_now());
}

static bool
still_valid(const query_remembered *found, const mc_query_dimension *dimension, const query_look *look)
{
    if (dimension->by_stamp)
        return found->lasting && mc_stamp_equal(&found->stamp, &look->stamp);
    return mc_clock_now() - found->taken < dimension->remember && found->taken > atomic_load(&dimension->forgotten);
}

/* Fills the answer with what the process remembers. */
static bool
recall_answer(answer *answer, const key *key, const mc_query_dimension *dimension, const query_look *look, mc_ctx *ctx)
{
    mc_clock_cache *answers = ctx->process == NULL ? NULL : ctx->process->query_results;
    if (answers == NULL || (!dimension->by_stamp && dimension->remember == 0))
        return false;
    mc_clock_cache_entry *entry;
    const query_remembered *found = mc_clock_cache_get(answers, &entry, key->bytes, key->size);
    if (found == NULL)
        return false;
    if (!still_valid(found, dimension, look)) {
        mc_clock_cache_release(entry);
        return false;
    }
    apr_pool_cleanup_register(ctx->pool, entry, release_entry, apr_pool_cleanup_null);
    answer->values = found->values;
    answer->count = found->count;
    mc_count(ctx->process->metrics, MC_COUNT_dimension_remembered_total, 1);
    return true;
}

static void
remember_answer(const answer *answer, const key *key, const mc_query_dimension *dimension, const query_look *look,
                bool fleeting, apr_time_t begun, mc_ctx *ctx)
{
    mc_clock_cache *answers = ctx->process == NULL ? NULL : ctx->process->query_results;
    /* Of a file that has just changed the stamp says nothing: a write that comes now may leave it as it is. */
    bool lasting = look != NULL && !fleeting && mc_stamp_settled(&look->stamp, look->taken);
    if (answers == NULL || (dimension->by_stamp ? !lasting : dimension->remember == 0))
        return;
    size_t size = sizeof(query_remembered) + sizeof(char *) * (size_t)answer->count;
    for (int i = 0; i < answer->count; i++)
        size += strlen(answer->values[i]) + 1;
    query_remembered *block = malloc(size);
    if (block == NULL)
        return;
    *block = (query_remembered){ .lasting = lasting, .taken = begun, .count = answer->count };
    if (look != NULL)
        block->stamp = look->stamp;
    char *text = (char *)&block->values[answer->count];
    for (int i = 0; i < answer->count; i++) {
        block->values[i] = text;
        text = put_key_text(text, answer->values[i]);
    }
    mc_clock_cache_put(answers, key->bytes, key->size, block, size, free);
}

/* --- asking ----------------------------------------------------------------------------------------------------- */

/* Those of the questions that nobody has an answer to. */
typedef struct query_gathered {
    mc_query_binds *binds;
    mc_query_rows **rows;
    answer **answers;
    key *keys;
    int count;
} query_gathered;

static query_gathered
gather_open_questions(answer **answers, const mc_query_dimension *dimension, const mc_query_statement *statement,
                      const mc_query_binds *binds, int count, asked *asked, const query_look *look, mc_ctx *ctx)
{
    query_gathered open = { .binds = apr_palloc(ctx->pool, sizeof(*open.binds) * (size_t)count),
                            .answers = apr_palloc(ctx->pool, sizeof(*open.answers) * (size_t)count),
                            .keys = apr_palloc(ctx->pool, sizeof(*open.keys) * (size_t)count) };
    for (int i = 0; i < count; i++) {
        key key = make_key(statement, &binds[i], ctx->pool);
        answers[i] = apr_hash_get(asked->answers, key.bytes, (apr_ssize_t)key.size);
        if (answers[i] != NULL)
            continue;
        answers[i] = apr_palloc(ctx->pool, sizeof(**answers));
        answers[i]->count = -1;
        apr_hash_set(asked->answers, key.bytes, (apr_ssize_t)key.size, answers[i]);
        if (recall_answer(answers[i], &key, dimension, look, ctx))
            continue;
        open.binds[open.count] = binds[i];
        open.answers[open.count] = answers[i];
        open.keys[open.count++] = key;
    }
    return open;
}

static mc_error *
ask_query_backend(query_gathered *open, mc_query_dimension *dimension, mc_query_kind kind, const query_look *look,
                  mc_ctx *ctx)
{
    MC_TRY(mc_admission_enter(ctx, ctx->pool));
    MC_SLOW(ctx);
    open->rows = apr_palloc(ctx->pool, sizeof(*open->rows) * (size_t)open->count);
    for (int i = 0; i < open->count; i++) {
        open->rows[i] = apr_palloc(ctx->pool, sizeof(**open->rows));
        *open->rows[i] = (mc_query_rows){ .pool = ctx->pool,
                                          .values = apr_array_make(ctx->pool, 8, sizeof(const char *)),
                                          .most = dimension->max_entries,
                                          .first_only = kind == MC_QUERY_DEFAULT,
                                          .dimension = dimension->base.name };
    }
    mc_query_batch batch = { .kind = kind,
                             .statement = &dimension->statements[kind],
                             .binds = open->binds,
                             .rows = open->rows,
                             .count = open->count,
                             .stamp = look == NULL ? NULL : &look->stamp };
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_dimension_queries_total,
             (uint64_t)open->count);
    apr_time_t begun = mc_clock_now(); /* it knows nothing of what has changed since */
    MC_TRY(dimension->ask(dimension, &batch, ctx, ctx->pool));
    for (int i = 0; i < open->count; i++) {
        open->answers[i]->values = (const char *const *)open->rows[i]->values->elts;
        open->answers[i]->count = open->rows[i]->values->nelts;
        remember_answer(open->answers[i], &open->keys[i], dimension, look, batch.fleeting, begun, ctx);
    }
    return MC_OK;
}

/* The answers to `count` questions: from this request, from the process, from the back end. */
static mc_error *
answer_dimension_queries(answer **answers, mc_query_dimension *dimension, mc_query_kind kind,
                         const mc_query_binds *binds, int count, mc_ctx *ctx)
{
    asked *asked = asked_of(ctx);
    const query_look *look = dimension->path == NULL ? NULL : stat_catalogue(asked, dimension->path);
    if (look != NULL && !look->present)
        return mc_error_wrap(ctx->pool, mc_error_create(ctx->pool, MC_ERR_IO, "%s: no such file", dimension->path),
                             MC_ERR_IO, "the catalogue of dimension %s is not there", dimension->base.name);
    query_gathered open =
        gather_open_questions(answers, dimension, &dimension->statements[kind], binds, count, asked, look, ctx);
    if (open.count == 0)
        return MC_OK;
    mc_error *error = ask_query_backend(&open, dimension, kind, look, ctx);
    for (int i = 0; error != MC_OK && i < open.count; i++)
        apr_hash_set(asked->answers, open.keys[i].bytes, (apr_ssize_t)open.keys[i].size, NULL);
    return error;
}

/* --- questions -------------------------------------------------------------------------------------------------- */

/* An answer as a caller gets it: shared where its pool dies before the request's, else copied. */
static apr_array_header_t *
answer_values(const answer *answer, const mc_ctx *ctx, apr_pool_t *pool)
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
list_all(answer **listed, mc_query_dimension *dimension, mc_query_kind kind, const char *tileset, mc_ctx *ctx)
{
    mc_query_binds binds = { .tileset = tileset, .extent = unbounded };
    return answer_dimension_queries(listed, dimension, kind, &binds, 1, ctx);
}

/* Times may overlap: each value once, where it comes last, which is on top. */
static apr_array_header_t *
merge_answers(answer *const *answers, int count, apr_pool_t *pool)
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
    MC_TRY(mc_time_parse_list(&spans, dimension->base.name, one.dim, asked_of(ctx)->now, pool));
    mc_query_binds *binds = apr_palloc(ctx->pool, sizeof(*binds) * (size_t)spans->nelts);
    answer **answers = apr_palloc(ctx->pool, sizeof(*answers) * (size_t)spans->nelts);
    for (int i = 0; i < spans->nelts; i++) {
        binds[i] = one;
        binds[i].start_us = APR_ARRAY_IDX(spans, i, mc_time_span).start_us;
        binds[i].end_us = APR_ARRAY_IDX(spans, i, mc_time_span).end_us;
    }
    MC_TRY(answer_dimension_queries(answers, dimension, MC_QUERY_VALIDATE, binds, spans->nelts, ctx));
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
    answer **answers = apr_palloc(ctx->pool, sizeof(*answers) * (size_t)count);
    for (int i = 0; i < count; i++)
        binds[i] = binds_of(&queries[i]);
    MC_TRY(answer_dimension_queries(answers, dimension, MC_QUERY_VALIDATE, binds, count, ctx));
    for (int i = 0; i < count; i++)
        values[i] = answer_values(answers[i], ctx, pool);
    return MC_OK;
}

mc_error *
mc_query_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    answer *listed;
    MC_TRY(list_all(&listed, (mc_query_dimension *)base, MC_QUERY_LIST, tileset, ctx));
    *values = answer_values(listed, ctx, pool);
    return MC_OK;
}

mc_error *
mc_query_default(const char **value, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_query_dimension *dimension = (mc_query_dimension *)base;
    answer *found;
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
