/* The survey: what a cache had before its books. It goes at a bounded pace, and on where a process was killed. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "cache/quota/quota_private.h"

enum {
    SURVEY_AT_ONCE = 512, /* blocks */
    SHARE = 3,            /* of its time the survey leaves the disk to others: so many times what a step took */
    STEP_MOST = 60,       /* seconds that writing down a step may take */
};

typedef struct quota_survey {
    mc_quota *quota;
    mc_ctx *ctx;      /* its pool is of one step */
    apr_pool_t *pool; /* of what is gathered */
    mc_quota_name names[SURVEY_AT_ONCE];
    mc_tile_key blocks[SURVEY_AT_ONCE];
    apr_int64_t times[SURVEY_AT_ONCE];
    int count;
    int64_t tiles;
    const char *place; /* where to go on after what is gathered; NULL: nothing is */
    apr_time_t began;  /* of this step */
    bool mine;
    mc_error *error; /* of `pool`'s parent */
} quota_survey;

static mc_error *
write_survey(mc_handle *books, void *baton, mc_ctx *ctx)
{
    const quota_survey *survey = baton;
    for (int i = 0; i < survey->count; i++)
        MC_TRY(mc_books_note(books, &survey->names[i], &survey->blocks[i], survey->times[i], MC_BOOK_USED, ctx->pool));
    return survey->place == NULL ? MC_OK : mc_books_set_text(books, MC_BOOKS_SURVEY, survey->place, ctx->pool);
}

/* What was found is written down, measured, and, where it is too much, removed; then others have their turn. */
static mc_error *
settle_survey_step(quota_survey *survey, mc_ctx *ctx)
{
    const apr_interval_time_t longest = 5 * APR_USEC_PER_SEC;
    mc_quota *quota = survey->quota;
    ctx->deadline = mc_clock_now() + STEP_MOST * APR_USEC_PER_SEC;
    MC_TRY(mc_books_do(&quota->books, write_survey, survey, ctx));
    MC_TRY(mc_quota_renew(&survey->mine, quota, ctx));
    if (!survey->mine)
        return MC_OK;
    MC_TRY(mc_quota_measure(quota, ctx));
    MC_TRY(mc_quota_evict(quota, ctx));
    const apr_interval_time_t pause = (mc_clock_now() - survey->began) * SHARE;
    ctx->deadline = 0;
    (void)mc_wait_pause(pause < longest ? pause : longest, ctx);
    survey->began = mc_clock_now();
    return mc_ctx_check(ctx, ctx->pool);
}

/* As that, with a pool of its own. */
static mc_error *
end_survey_step(quota_survey *survey)
{
    mc_ctx own = *survey->ctx;
    apr_pool_create(&own.pool, survey->ctx->pool);
    mc_error *error = mc_error_copy(settle_survey_step(survey, &own), survey->ctx->pool);
    apr_pool_destroy(own.pool);
    survey->count = 0;
    survey->place = NULL;
    apr_pool_clear(survey->pool);
    return error;
}

static bool
same_quota_name(const mc_quota_name *a, const mc_quota_name *b)
{
    return strcmp(a->tileset, b->tileset) == 0 && strcmp(a->grid, b->grid) == 0 && strcmp(a->dim, b->dim) == 0 &&
           strcmp(a->extension, b->extension) == 0 && a->client_named == b->client_named;
}

/* The block among those found last, so that tiles of one block take one row. */
static int
find_surveyed(const quota_survey *survey, const mc_quota_name *name, int z, int x, int y)
{
    const int last = survey->count > 16 ? survey->count - 16 : 0;
    for (int i = survey->count - 1; i >= last; i--) {
        const mc_tile_key *block = &survey->blocks[i];
        if (block->x == x && block->y == y && block->z == z && same_quota_name(&survey->names[i], name))
            return i;
    }
    return -1;
}

static bool
take_surveyed(void *baton, const mc_quota_name *name, const mc_tile_key *tile, apr_int64_t time, const char *place)
{
    quota_survey *survey = baton;
    const int shift = mc_uses_shift(survey->quota->cache->uses);
    const int x = mc_uses_first(tile->x, shift), y = mc_uses_first(tile->y, shift);
    const int known = find_surveyed(survey, name, tile->z, x, y);
    survey->tiles++;
    if (known >= 0) {
        survey->times[known] = time > survey->times[known] ? time : survey->times[known];
        return true;
    }
    if (survey->count == SURVEY_AT_ONCE) {
        survey->error = end_survey_step(survey);
        if (survey->error != MC_OK || !survey->mine)
            return false;
    }
    apr_pool_t *pool = survey->pool;
    survey->names[survey->count] =
        (mc_quota_name){ apr_pstrdup(pool, name->tileset), apr_pstrdup(pool, name->grid), apr_pstrdup(pool, name->dim),
                         apr_pstrdup(pool, name->extension), name->client_named };
    survey->blocks[survey->count] = (mc_tile_key){ .z = tile->z, .x = x, .y = y };
    survey->times[survey->count++] = time;
    survey->place = apr_pstrdup(pool, place);
    return true;
}

static mc_error *
write_survey_end(mc_handle *books, void *baton, mc_ctx *ctx)
{
    (void)baton;
    return mc_books_set_number(books, MC_BOOKS_SURVEYED, apr_time_sec(apr_time_now()), ctx->pool);
}

static mc_error *
end_survey(quota_survey *survey)
{
    int64_t bytes;
    mc_quota *quota = survey->quota;
    MC_TRY(end_survey_step(survey));
    if (!survey->mine)
        return MC_OK;
    MC_TRY(mc_books_do(&quota->books, write_survey_end, NULL, survey->ctx));
    MC_TRY(mc_quota_total(&bytes, quota, survey->ctx));
    if (survey->tiles > 0)
        mc_log_write(survey->ctx, MC_LOG_WARN,
                     "cache \"%s\": %" APR_INT64_T_FMT
                     " tiles were found that were there before; it has %" APR_INT64_T_FMT " of %" APR_INT64_T_FMT
                     " bytes",
                     quota->cache->name, (apr_int64_t)survey->tiles, (apr_int64_t)bytes, quota->cache->max_size);
    return MC_OK;
}

/* What the cache had before its books. It takes what it takes; the process's end ends it. */
mc_error *
mc_quota_survey_store(bool *mine, mc_quota *quota, const char *from, mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    own.deadline = 0;
    if (*from != '\0')
        mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": looking through what it has goes on where it ended",
                     quota->cache->name);
    quota_survey *survey = apr_pcalloc(ctx->pool, sizeof(*survey));
    *survey = (quota_survey){ .quota = quota, .ctx = &own, .mine = true, .error = MC_OK, .began = mc_clock_now() };
    apr_pool_create(&survey->pool, ctx->pool);
    const mc_quota_survey task = { from, take_surveyed, survey };
    mc_error *error = quota->store->survey(quota->cache, &task, &own);
    if (error == MC_OK)
        error = survey->error;
    if (error == MC_OK && survey->mine)
        error = end_survey(survey);
    *mine = survey->mine;
    return error;
}
