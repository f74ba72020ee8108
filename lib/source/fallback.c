/* The source "fallback": the first of several sources that succeeds (docs/reference/configuration.md 3.5; for feature
 * info too, docs/reference/configuration.md 12 row 26).
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/seldom.h"
#include "source/source_base.h"

typedef struct fallback_source {
    mc_source_base base;
    const apr_array_header_t *nodes; /* of const mc_node * */
    int count;
    mc_source **sources;
    double fallback_expires;
    mc_seldom *told; /* of each source: what is said when it fails */
} fallback_source;

/* Its sources repeat their own calls; to repeat all of that is for who asks for it. */
static const mc_key fallback_keys[] = {
    MC_SOURCE_KEYS(fallback_source, "0"),
    MC_KEY_TEXT("source", offsetof(fallback_source, nodes),
                "Name of a source that is declared earlier; tried in the order of the file.",
                .flags = MC_KEY_REQUIRED | MC_KEY_REPEATABLE),
    MC_KEY_NUMBER("fallback_expires", offsetof(fallback_source, fallback_expires),
                  "Seconds for which tiles are good that another source has drawn because one before it failed: kept "
                  "in the memory of a process, at least for a second, and not stored. -1: stored as all others. A "
                  "source without a tile there (404) has not failed.",
                  .flags = MC_KEY_OURS, .min = -1, .max = 86400, .fallback = "-1"),
    MC_KEY_END,
};

static bool
source_offers_info_format(const mc_source *source, const char *format)
{
    if (source->ops->info == NULL || source->info_formats == NULL)
        return false;
    for (int i = 0; i < source->info_formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(source->info_formats, i, const char *), format) == 0)
            return true;
    return false;
}

/* Every format that one of the sources offers, once. NULL if there is none. */
static const apr_array_header_t *
merge_fallback_info_formats(const fallback_source *fallback, apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, 4, sizeof(const char *));
    mc_source seen = { .ops = &mc_source_fallback, .info_formats = formats };
    for (int i = 0; i < fallback->count; i++) {
        const apr_array_header_t *more = fallback->sources[i]->info_formats;
        for (int j = 0; more != NULL && j < more->nelts; j++)
            if (!source_offers_info_format(&seen, APR_ARRAY_IDX(more, j, const char *)))
                APR_ARRAY_PUSH(formats, const char *) = APR_ARRAY_IDX(more, j, const char *);
    }
    return formats->nelts > 0 ? formats : NULL;
}

static mc_source *
fallback_source_from_config(const mc_node *node, mc_build *build)
{
    fallback_source *fallback = apr_pcalloc(build->pool, sizeof(*fallback));
    if (!mc_source_read(&fallback->base, &mc_source_fallback, node, build))
        return NULL;
    bool vector_tiles = true;
    fallback->base.source.tiles_as_sent = true;
    fallback->count = fallback->nodes->nelts;
    fallback->sources = apr_pcalloc(build->pool, sizeof(mc_source *) * (size_t)fallback->count);
    fallback->told = apr_pcalloc(build->pool, sizeof(*fallback->told) * (size_t)fallback->count);
    for (int i = 0; i < fallback->count; i++) {
        const mc_node *name = APR_ARRAY_IDX(fallback->nodes, i, const mc_node *);
        mc_source *source = apr_hash_get(build->sources, name->text, APR_HASH_KEY_STRING);
        if (source == NULL) {
            mc_complain(build->diagnostics, MC_REFUSED, name,
                        "source \"%s\" falls back to \"%s\", which is not declared before it",
                        fallback->base.source.name, name->text);
            return NULL;
        }
        fallback->sources[i] = source;
        fallback->base.source.needs_format |= source->needs_format;
        fallback->base.source.cascades |= source->cascades;
        fallback->base.source.tiles_as_sent &= source->tiles_as_sent;
        if (source->no_vector_tiles != NULL)
            vector_tiles = false;
        if (source->no_images != NULL)
            fallback->base.source.no_images = source->no_images;
    }
    if (vector_tiles)
        fallback->base.source.no_vector_tiles = NULL;
    fallback->base.source.info_formats = merge_fallback_info_formats(fallback, build->pool);
    return &fallback->base.source;
}

/* Each source but the last gets its even share of the time that is left, so that a silent one leaves time for the
 * others. */
static mc_ctx
share_deadline(const mc_ctx *ctx, int sources_left)
{
    mc_ctx copy = *ctx;
    if (ctx->deadline != 0)
        copy.deadline = mc_clock_now() + (ctx->deadline - mc_clock_now()) / sources_left;
    return copy;
}

/* Not what is refused because of this request, or of all others: another source's answer would be stored for good. */
static bool
is_trouble_of_source(const mc_error *error, mc_ctx *ctx)
{
    for (const mc_error *at = error; at != NULL; at = at->cause)
        if (at->kind == MC_ERR_BUSY || at->kind == MC_ERR_NO_MEMORY || at->kind == MC_ERR_BAD_REQUEST)
            return false;
    return mc_ctx_check(ctx, ctx->pool) == MC_OK;
}

/* Logs why one did not do, where everybody looks once a minute; the first error is the one that the caller gets
 * (docs/reference/configuration.md 3.5). */
static mc_error *
note_failure(mc_error *first, mc_error *error, fallback_source *fallback, int failed, mc_ctx *ctx)
{
    unsigned unsaid;
    mc_log_level level = mc_seldom_due(&fallback->told[failed], &unsaid) ? MC_LOG_WARN : MC_LOG_INFO;
    mc_log_write(ctx, level, "source \"%s\" failed, its fallback is tried%s: %s", fallback->sources[failed]->name,
                 unsaid > 0 ? apr_psprintf(ctx->pool, " (%u times more since it was said)", unsaid) : "",
                 mc_error_chain(error, ctx->pool));
    return first == MC_OK ? error : first;
}

/* A map that is drawn in place of a better one. */
static void
limit_life(mc_rendered *map, double seconds)
{
    if (seconds < 0)
        return;
    double life = fmax(seconds, 1);
    map->provisional = map->provisional > 0 ? fmin(map->provisional, life) : life;
}

static mc_error *
fallback_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    fallback_source *fallback = (fallback_source *)source;
    mc_error *first = MC_OK;
    bool failed = false;
    for (int i = 0; i < fallback->count; i++) {
        mc_ctx call_ctx = share_deadline(ctx, fallback->count - i);
        mc_error *error = mc_source_render(map, fallback->sources[i], wanted, &call_ctx, pool);
        if (error == MC_OK && failed)
            limit_life(map, fallback->fallback_expires);
        if (error == MC_OK || !is_trouble_of_source(error, ctx))
            return error;
        failed = failed || error->kind != MC_ERR_NOT_FOUND;
        first = note_failure(first, error, fallback, i, ctx);
    }
    return first;
}

static mc_error *
fallback_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    fallback_source *fallback = (fallback_source *)source;
    mc_error *first = MC_OK;
    for (int i = 0; i < fallback->count; i++) {
        if (!source_offers_info_format(fallback->sources[i], wanted->format))
            continue;
        mc_ctx call_ctx = share_deadline(ctx, fallback->count - i);
        mc_error *error = mc_source_info(text, fallback->sources[i], wanted, &call_ctx, pool);
        if (error == MC_OK || !is_trouble_of_source(error, ctx))
            return error;
        first = note_failure(first, error, fallback, i, ctx);
    }
    if (first == MC_OK)
        return mc_error_create(pool, MC_ERR_INVALID_FORMAT, "source \"%s\" has no feature info in that format",
                               source->name);
    return first;
}

/* Those of the first one: that is the one whose tiles are had as a rule. */
static mc_error *
fallback_vector_layers(apr_array_header_t **layers, mc_source *source, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_source *first = ((fallback_source *)source)->sources[0];
    *layers = NULL;
    return first->ops->vector_layers == NULL ? MC_OK : first->ops->vector_layers(layers, first, ctx, pool);
}

static const char *
fallback_no_vector_tiles(mc_source *source, const mc_grid *grid, mc_build *build)
{
    const fallback_source *fallback = (const fallback_source *)source;
    for (int i = 0; i < fallback->count; i++) {
        mc_source *part = fallback->sources[i];
        const char *why = part->ops->no_vector_tiles == NULL ? NULL : part->ops->no_vector_tiles(part, grid, build);
        if (why != NULL)
            return apr_psprintf(build->pool, "source \"%s\": %s", part->name, why);
    }
    return NULL;
}

static void
visit_fallback_parts(mc_source *source, void (*visit)(void *baton, mc_source *part), void *baton)
{
    const fallback_source *fallback = (const fallback_source *)source;
    for (int i = 0; i < fallback->count; i++)
        visit(baton, fallback->sources[i]);
}

const mc_source_ops mc_source_fallback = {
    MC_KIND("fallback", fallback_keys, fallback_source_from_config, "The first of several sources that succeeds."),
    .no_vector_tiles = fallback_no_vector_tiles,
    .parts = visit_fallback_parts,
    .render = fallback_render,
    .info = fallback_info,
    .vector_layers = fallback_vector_layers,
};
