/*
 * The front of all sources: the common keys, repetitions within the deadline, and the check that what came
 * is an image at all, so that a back end has to know its protocol only.
 */
#include "mapcache/source.h"

#include <apr_strings.h>
#include <string.h>

#include "base/account.h"
#include "base/backoff.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "http/http.h"
#include "http/http_breakers.h"
#include "mapcache/trace.h"
#include "source/source_base.h"
#include "source/source_counters.h"

enum {
    TAIL = 1024,   /* bytes at the end of an image where its end mark must be: some origins append text */
    EXCERPT = 300, /* bytes of an answer that is no image, for the log */
};

bool
mc_source_read(mc_source_base *base, const mc_source_ops *ops, const mc_node *node, mc_build *build)
{
    base->source.ops = ops;
    base->source.metadata = mc_metadata_create(build->pool);
    base->source.no_vector_tiles = "it does not draw vector data";
    if (!mc_config_read(base, node, ops->keys, build->diagnostics))
        return false;
    if (base->metadata != NULL)
        for (int i = 0; i < base->metadata->nelts; i++)
            mc_metadata_add(base->source.metadata, APR_ARRAY_IDX(base->metadata, i, const mc_node *));
    return true;
}

/* A copy of the context whose deadline is not later than the source's. */
static mc_ctx
limit_source_deadline(const mc_ctx *ctx, const mc_source *source)
{
    mc_ctx copy = *ctx;
    apr_time_t end = mc_clock_now() + (apr_interval_time_t)(source->deadline * APR_USEC_PER_SEC);
    if (copy.deadline == 0 || end < copy.deadline)
        copy.deadline = end;
    return copy;
}

/* Nobody waits for longer. */
#define LONGEST_PAUSE (APR_INT64_C(86400) * APR_USEC_PER_SEC)

static bool
worth_repeating(const mc_error *error)
{
    return error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_TIMEOUT || error->kind == MC_ERR_IO ||
           error->kind == MC_ERR_CORRUPT;
}

/* Waits before repetition number `attempt` (from 1). False when the time that is left does not allow it, or nobody
 * waits for the answer any more. */
static bool
pause_before(const mc_source *source, int attempt, mc_ctx *ctx)
{
    apr_interval_time_t first = (apr_interval_time_t)(source->retry_delay * APR_USEC_PER_SEC);
    apr_interval_time_t delay = mc_backoff(attempt - 1, first, LONGEST_PAUSE);
    if (mc_ctx_remaining(ctx, delay + 1) <= delay)
        return false;
    return mc_wait_pause(delay, ctx);
}

/* After a failed call: whether it is to be made again. Logs why. */
static bool
repeat_source_call(const mc_source *source, const mc_error *error, int attempt, mc_ctx *ctx)
{
    if (attempt >= source->retries || !worth_repeating(error) || !pause_before(source, attempt + 1, ctx))
        return false;
    mc_log_write(ctx, MC_LOG_INFO, "source \"%s\": repetition %d of %d after: %s", source->name, attempt + 1,
                 source->retries, mc_error_chain(error, ctx->pool));
    return true;
}

static bool
tail_has(const mc_buf *data, const char *mark, size_t size)
{
    size_t tail = data->size < TAIL ? data->size : TAIL;
    return memmem(data->data + data->size - tail, tail, mark, size) != NULL;
}

/*
 * Signature and end mark only: who needs the pixels decodes them anyway. The answer itself goes to the log alone, as it
 * may name files of the origin.
 */
static mc_error *
check_source_image(const mc_buf *data, const mc_source *source, apr_pool_t *pool)
{
    mc_coding coding = mc_image_sniff(data->data, data->size);
    if (coding == MC_CODING_PNG && tail_has(data, "IEND\xae\x42\x60\x82", 8))
        return MC_OK;
    if (coding == MC_CODING_JPEG && tail_has(data, "\xff\xd9", 2))
        return MC_OK;
    if (coding == MC_CODING_WEBP && data->size >= mc_little32(data->data + 4) + (uint64_t)8)
        return MC_OK; /* the size that the file itself has (RFC 9649, 2.4) */
    if (mc_coding_format(coding) != NULL)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the image from source \"%s\" is cut off after %lu bytes",
                               source->name, (unsigned long)data->size);
    size_t length = data->size < EXCERPT ? data->size : EXCERPT;
    mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "it begins with: %s",
                                      length == 0 ? "" : apr_pstrmemdup(pool, (const char *)data->data, length));
    return mc_error_wrap(pool, cause, MC_ERR_UPSTREAM,
                         "source \"%s\" answered with something that is no PNG, JPEG or WebP", source->name);
}

/* What a client or the budget of this process is to blame for says nothing of a source. */
static void
note_source_result(mc_source_state *state, const mc_error *error, const mc_ctx *ctx)
{
    const bool fails = error != MC_OK && mc_error_status(error->kind) >= 500 && error->kind != MC_ERR_BUSY &&
                       error->kind != MC_ERR_NO_MEMORY && !mc_ctx_abandoned(ctx);
    atomic_fetch_add_explicit(&state->calls, 1, memory_order_relaxed);
    if (fails) {
        atomic_store(&state->kind, (int)error->kind);
        atomic_store(&state->failed, mc_clock_now());
        atomic_fetch_add(&state->failures, 1);
    }
    if ((fails || error == MC_OK) && atomic_load_explicit(&state->fails, memory_order_relaxed) != fails)
        atomic_store(&state->fails, fails);
}

/* Before the first attempt of a call: whether the origin may be asked. Seeding has a back-off of its own, and a tile
 * that is refused at once would count as one that failed. */
static mc_error *
admit_call(const mc_source *source, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_http *http = ctx->process == NULL ? NULL : ctx->process->http;
    if (source->endpoint == NULL || http == NULL || !ctx->process->lasting ||
        mc_http_breakers_admit(mc_http_breakers_of(http), source->endpoint))
        return MC_OK;
    mc_count(ctx->process->metrics, MC_COUNT_origin_rests_total, 1);
    return mc_error_repeats(mc_error_create(
        pool, MC_ERR_UNAVAILABLE, "source \"%s\": the origin has failed several times, and is left alone for a while",
        source->name));
}

static mc_error *
render_once(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count, mc_ctx *ctx,
            apr_pool_t *pool)
{
    mc_source *source = sources[0];
    *map = (mc_rendered){ 0 };
    if (count > 1)
        MC_TRY(source->ops->render_stack(map, sources, wanted, count, ctx, pool));
    else
        MC_TRY(source->ops->render(map, source, wanted, ctx, pool));
    MC_ASSERT((map->data != NULL) != (map->pixels != NULL));
    if (map->data != NULL && !wanted->raw)
        MC_TRY(check_source_image(map->data, source, pool));
    return MC_OK;
}

bool
mc_source_draws(const mc_source *source)
{
    return source != NULL && source->ops->render_stack != NULL;
}

bool
mc_source_stacks(const mc_source *lower, const mc_source *upper)
{
    return lower->ops->render_stack != NULL && lower->ops->render_stack == upper->ops->render_stack &&
           upper->stacks_over;
}

mc_error *
mc_source_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_source_render_stack(map, &source, wanted, 1, ctx, pool);
}

/* The time and the repetitions of a stack are those of its most patient source. */
mc_error *
mc_source_render_stack(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_source_render");
    mc_span_about(&span, sources[0]->name);
    mc_account_mark(ctx, MC_EVENT_RENDERED);
    MC_ASSERT(wanted->width > 0 && wanted->height > 0 && mc_extent_valid(&wanted->box));
    const mc_source *patient = sources[0], *insistent = sources[0];
    for (int i = 1; i < count; i++) {
        patient = sources[i]->deadline > patient->deadline ? sources[i] : patient;
        insistent = sources[i]->retries > insistent->retries ? sources[i] : insistent;
    }
    mc_ctx call_ctx = limit_source_deadline(ctx, patient);
    mc_error *error = MC_OK;
    int attempt = 0;
    MC_TRY(admit_call(sources[0], ctx, pool));
    do {
        error = render_once(map, sources, wanted, count, &call_ctx, pool);
    } while (error != MC_OK && repeat_source_call(insistent, error, attempt++, &call_ctx));
    for (int i = 0; i < count; i++)
        note_source_result(&sources[i]->state, error, ctx);
    if (error != MC_OK) {
        *map = (mc_rendered){ 0 };
        mc_span_note(&span, "ERROR");
    }
    return error;
}

mc_error *
mc_source_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_source_info");
    mc_span_about(&span, source->name);
    *text = NULL;
    if (source->ops->info == NULL || source->info_formats == NULL)
        return mc_error_create(pool, MC_ERR_NOT_QUERYABLE, "source \"%s\" offers no feature info", source->name);
    mc_ctx call_ctx = limit_source_deadline(ctx, source);
    mc_error *error = MC_OK;
    int attempt = 0;
    MC_TRY(admit_call(source, ctx, pool));
    do {
        error = source->ops->info(text, source, wanted, &call_ctx, pool);
    } while (error != MC_OK && repeat_source_call(source, error, attempt++, &call_ctx));
    if (error != MC_OK) {
        *text = NULL;
        mc_span_note(&span, "ERROR");
    }
    return error;
}
