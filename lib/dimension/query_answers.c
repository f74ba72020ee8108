/*
 * An answer is remembered under everything that it can depend on: the back end, its database, the statement, and those
 * of the bound values whose names stand in the statement. A statement without :minx and its like thus is asked once for
 * a whole map.
 */
#include "dimension/query_answers.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "dimension/dimension_counters.h"
#include "memory/clock_cache.h"

/* Questions that one request remembers: a bound for callers whose pool lives long. */
#define ASKED_MAX 1024
#define ASKED_KEY "mc_dimension_asked"

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
    apr_hash_t *answers; /* mc_query_answer *, by key */
    apr_hash_t *looks;   /* query_look *, by path */
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

apr_time_t
mc_query_request_time(mc_ctx *ctx)
{
    return asked_of(ctx)->now;
}

/* --- what is remembered ----------------------------------------------------------------------------------------- */

typedef struct query_key {
    char *bytes;
    size_t size;
} query_key;

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
static query_key
make_key(const mc_query_statement *statement, const mc_query_binds *binds, apr_pool_t *pool)
{
    const char *const texts[] = { binds->tileset, binds->dim, binds->gridsrs };
    const double numbers[] = { binds->extent.minx, binds->extent.maxx, binds->extent.miny, binds->extent.maxy };
    size_t size = statement->identity_size + sizeof(numbers) + 2 * sizeof(int64_t) + 1;
    for (int i = MC_QUERY_TILESET; i <= MC_QUERY_GRIDSRS; i++)
        size += text_size(texts[i]);
    query_key key = { apr_palloc(pool, size), 0 };
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
recall_answer(mc_query_answer *answer, const query_key *key, const mc_query_dimension *dimension,
              const query_look *look, mc_ctx *ctx)
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
remember_answer(const mc_query_answer *answer, const query_key *key, const mc_query_dimension *dimension,
                const query_look *look, bool fleeting, apr_time_t begun, mc_ctx *ctx)
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
    mc_query_answer **answers;
    query_key *keys;
    int count;
} query_gathered;

static query_gathered
gather_open_questions(mc_query_answer **answers, const mc_query_dimension *dimension,
                      const mc_query_statement *statement, const mc_query_binds *binds, int count, asked *asked,
                      const query_look *look, mc_ctx *ctx)
{
    query_gathered open = { .binds = apr_palloc(ctx->pool, sizeof(*open.binds) * (size_t)count),
                            .answers = apr_palloc(ctx->pool, sizeof(*open.answers) * (size_t)count),
                            .keys = apr_palloc(ctx->pool, sizeof(*open.keys) * (size_t)count) };
    for (int i = 0; i < count; i++) {
        query_key key = make_key(statement, &binds[i], ctx->pool);
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

mc_error *
mc_query_answer_all(mc_query_answer **answers, mc_query_dimension *dimension, mc_query_kind kind,
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
