/* Reading and decoding what a batch wants and memory does not know. */
#include <apr_strings.h>

#include "base/hash.h"
#include "base/metrics.h"
#include "cache/cache_counters.h"
#include "cache/sqlite/sqlite_base.h"
#include "cache/uses.h"
#include "footprint/footprint_counters.h"
#include "footprint/footprint_private.h"
#include "mapcache/trace.h"

/* So many wants of a file that are not known pay for asking it for its coverage, even if that serves this batch only.
 */
enum { WORTH_ASKING = 8 };

static mc_metrics *
footprint_metrics(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->metrics;
}

static void
settle_footprint(mc_footprints *batch, int index, mc_footprint *footprint)
{
    batch->held[index] = footprint;
    batch->wants[index].footprint = footprint;
    batch->wants[index].known = true;
}

static mc_error *
decode_footprint_tile(mc_footprint **footprint, mc_tile *tile, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_error *error = mc_cache_expand(tile, key, ctx->pool);
    if (error == MC_OK)
        error = mc_footprint_decode(footprint, tile, key->grid, ctx, ctx->pool);
    if (error != MC_OK)
        return mc_error_wrap(ctx->pool, error, error->kind,
                             "the stored tile %d/%d/%d of tileset \"%s\" is no usable image", key->z, key->x, key->y,
                             key->tileset);
    mc_count(footprint_metrics(ctx), MC_COUNT_footprint_misses_total, 1);
    return MC_OK;
}

/* A store without files that can be looked at: what memory holds is named by the bytes that were read. */
static mc_error *
fetch_by_content(mc_footprints *batch, int index, mc_ctx *ctx)
{
    const mc_tile_key *key = &batch->wants[index].key;
    mc_tile *tile;
    MC_TRY(mc_cache_get(&tile, batch->cache, key, ctx, ctx->pool));
    mc_footprint *footprint = NULL;
    if (tile == NULL) {
        settle_footprint(batch, index, NULL);
        return MC_OK;
    }
    mc_identity identity = { 0, 0 };
    static const mc_tile_key whole = { 0 };
    if (batch->cache->remember) {
        uint64_t tag = mc_tile_tag(tile);
        identity = mc_identity_first();
        identity = mc_identity_of(&identity, &tag, sizeof(tag));
        identity = mc_identity_of(&identity, tile->data->data, tile->data->size);
        if (mc_footprint_find(&footprint, &identity, &whole, ctx) && footprint != NULL) {
            mc_count(footprint_metrics(ctx), MC_COUNT_footprint_hits_total, 1);
            settle_footprint(batch, index, footprint);
            return MC_OK;
        }
    }
    MC_TRY(decode_footprint_tile(&footprint, tile, key, ctx));
    if (batch->cache->remember)
        mc_footprint_keep(&identity, &whole, footprint, ctx);
    settle_footprint(batch, index, footprint);
    return MC_OK;
}

/* Facts of the file; what another request has learnt since the batch looked counts, too. */
static const mc_file_facts *
facts_by_now(mc_footprints *batch, mc_batch_series *series, mc_ctx *ctx)
{
    const mc_file_facts *facts = atomic_load_explicit(&series->facts, memory_order_acquire);
    if ((facts != NULL && facts->asked) || !mc_identity_valid(&series->identity))
        return facts;
    mc_file_facts *found = mc_file_facts_find(&series->identity, ctx);
    if (found == NULL || (facts != NULL && !found->asked)) {
        mc_file_facts_unref(found);
        return facts;
    }
    mc_batch_learn(batch, series, found);
    return found;
}

/* What somebody has learnt since the batch looked. */
static bool
known_meanwhile(mc_footprints *batch, int index, mc_batch_series *series, mc_ctx *ctx)
{
    const mc_tile_key *key = &batch->wants[index].key;
    const mc_file_facts *facts = facts_by_now(batch, series, ctx);
    if (facts != NULL && facts->coverage != NULL && !key->renderable &&
        !mc_coverage_may_have(facts->coverage, key->z, key->x, key->y)) {
        mc_count(footprint_metrics(ctx), MC_COUNT_coverage_skips_total, 1);
        settle_footprint(batch, index, NULL);
        return true;
    }
    mc_footprint *footprint;
    if (!mc_identity_valid(&series->identity) || !mc_footprint_find(&footprint, &series->identity, key, ctx) ||
        (footprint == NULL && key->renderable))
        return false;
    mc_count(footprint_metrics(ctx),
             footprint == NULL ? MC_COUNT_footprint_absences_total : MC_COUNT_footprint_hits_total, 1);
    settle_footprint(batch, index, footprint);
    return true;
}

static void
learn_series_facts(mc_footprints *batch, mc_batch_series *series, bool rollback, bool asked, mc_coverage *coverage,
                   mc_ctx *ctx)
{
    mc_file_facts *facts = mc_file_facts_create(rollback, asked, coverage);
    if (mc_identity_valid(&series->identity))
        mc_file_facts_keep(&series->identity, facts, ctx);
    mc_batch_learn(batch, series, facts);
}

/* Asks the file for all that it has. NULL: it does not tell. */
static const mc_coverage *
ask_for_coverage(mc_footprints *batch, mc_batch_series *series, const mc_sqlite_look *look, bool rollback,
                 const mc_tile_key *key, mc_ctx *ctx)
{
    mc_coverage *coverage = NULL;
    mc_error *error = mc_sqlite_coverage(&coverage, series->cache, look, key, ctx, ctx->pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_INFO, error);
    if (error == MC_OK && coverage == NULL && mc_identity_valid(&series->identity))
        mc_coverage_give_up(&series->stampless, ctx);
    learn_series_facts(batch, series, rollback, true, coverage, ctx);
    return coverage;
}

void
mc_batch_learn_coverage(mc_footprints *batch, mc_batch_series *series, mc_ctx *ctx)
{
    const mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
    if (file == NULL || file->missing != 0 || series->by_tile || series->coverage == NULL || series->key->renderable ||
        !mc_identity_valid(&series->identity) || mc_coverage_is_hopeless(&series->stampless, ctx))
        return;
    const mc_file_facts *facts = facts_by_now(batch, series, ctx);
    if (facts != NULL && facts->asked)
        return;
    mc_sqlite_look look = { file->path, file->stamp, batch->taken };
    mc_tile *tile;
    bool rollback;
    mc_error *error = mc_sqlite_get_stamped(&tile, &rollback, series->cache, &look, series->key, ctx, ctx->pool);
    if (error != MC_OK) {
        mc_error_ignore(error); /* whoever wants a tile of it is told */
        return;
    }
    (void)ask_for_coverage(batch, series, &look, rollback, series->key, ctx);
}

/* The first absence tells that there may be more of them: the file is asked for all that it has. */
static void
note_absence(mc_footprints *batch, int index, mc_batch_series *series, const mc_sqlite_look *look, bool rollback,
             mc_ctx *ctx)
{
    const mc_tile_key *key = &batch->wants[index].key;
    const mc_file_facts *facts = atomic_load_explicit(&series->facts, memory_order_acquire);
    bool kept = mc_identity_valid(&series->identity);
    bool ask = series->coverage != NULL && (facts == NULL || !facts->asked) &&
               (kept ? !mc_coverage_is_hopeless(&series->stampless, ctx) : series->unknown >= WORTH_ASKING);
    if (ask) {
        const mc_coverage *coverage = ask_for_coverage(batch, series, look, rollback, key, ctx);
        if (coverage != NULL && !mc_coverage_may_have(coverage, key->z, key->x, key->y))
            return;
    }
    if (kept)
        mc_footprint_keep(&series->identity, key, NULL, ctx);
}

static mc_error *
fetch_from_file(mc_footprints *batch, int index, mc_batch_series *series, const mc_batch_file *file, mc_ctx *ctx)
{
    MC_SPAN_AS(span, ctx, "mapcache_cache_tile_get");
    const mc_tile_key *key = &batch->wants[index].key;
    mc_sqlite_look look = { file->path, file->stamp, batch->taken };
    mc_tile *tile;
    bool rollback;
    mc_error *error = mc_sqlite_get_stamped(&tile, &rollback, series->cache, &look, key, ctx, ctx->pool);
    if (error != MC_OK) {
        mc_span_note(&span, "ERROR");
        mc_count(footprint_metrics(ctx), MC_COUNT_cache_errors_total, 1);
        return series->cache->retries > 0 ? fetch_by_content(batch, index, ctx) : error;
    }
    mc_count(footprint_metrics(ctx), tile == NULL ? MC_COUNT_cache_misses_total : MC_COUNT_cache_hits_total, 1);
    if (tile == NULL) {
        mc_span_note(&span, "CACHE_MISS");
        if (!key->renderable)
            note_absence(batch, index, series, &look, rollback, ctx);
        settle_footprint(batch, index, NULL);
        return MC_OK;
    }
    if (series->cache->uses != NULL)
        mc_uses_note(series->cache->uses, key, ctx);
    mc_footprint *footprint = NULL;
    MC_TRY(decode_footprint_tile(&footprint, tile, key, ctx));
    settle_footprint(batch, index, footprint);
    if (!mc_identity_valid(&series->identity))
        return MC_OK;
    mc_footprint_keep(&series->identity, key, footprint, ctx);
    if (rollback && atomic_load_explicit(&series->facts, memory_order_relaxed) == NULL)
        learn_series_facts(batch, series, true, false, NULL, ctx);
    return MC_OK;
}

mc_error *
mc_footprints_fetch(mc_footprints *batch, int index, mc_ctx *ctx)
{
    MC_ASSERT(index >= 0 && index < batch->count);
    if (batch->wants[index].known)
        return MC_OK;
    mc_batch_series *series = &batch->series[batch->series_of[index]];
    const mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
    if (file == NULL || file->missing != 0)
        return fetch_by_content(batch, index, ctx);
    if (known_meanwhile(batch, index, series, ctx))
        return MC_OK;
    return fetch_from_file(batch, index, series, file, ctx);
}
