/* Looks for many combinations of dimensions that share many tiles: which of them may have a tile there at all. */
#include <errno.h>

#include "footprint/roster.h"
#include "mapcache/trace.h"
#include "memory/clock_cache.h"

/* Wants that stand for all tiles of a combination; series keep their keys. */
static mc_footprint_want *
probe_combinations(const mc_tile_key *key, const mc_dimension_value *const *dimensions, const int *combinations,
                   int count, apr_pool_t *pool)
{
    mc_footprint_want *probes = apr_palloc(pool, sizeof(*probes) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        probes[i].key = *key;
        probes[i].key.dimensions = dimensions[combinations[i]];
    }
    return probes;
}

/* A batch of combinations, sorted; NULL: their tiles may stand in several files. */
static mc_footprints *
sort_combinations(mc_cache *cache, const mc_tile_key *key, const mc_dimension_value *const *dimensions,
                  const int *combinations, int count, apr_pool_t *pool)
{
    mc_footprints *batch = mc_batch_create(cache, pool);
    mc_batch_take(batch, probe_combinations(key, dimensions, combinations, count, pool), count, pool);
    mc_footprints_sort(batch, pool);
    batch->combinations = batch->series_of;
    batch->count = 0;
    for (int i = 0; i < batch->series_count; i++)
        if (batch->series[i].by_tile)
            return NULL;
    return batch;
}

/* Those of the candidates that may have a tile in the range. */
static int
sift_candidates(mc_footprints *batch, int *combinations, int count, const mc_tile_range *range)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (mc_footprints_may_have(batch, i, range)) {
            batch->combinations[kept] = batch->combinations[i];
            combinations[kept++] = combinations[i];
        }
    return kept;
}

mc_error *
mc_footprints_begin(mc_footprints **made, int *combinations, int *kept, mc_cache *cache, const mc_footprint_sift *sift,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_footprints_look");
    static const int first = 0;
    *made = NULL;
    *kept = 0;
    const mc_footprints *one = sort_combinations(cache, &sift->key, sift->dimensions, &first, 1, pool);
    if (one == NULL)
        return MC_OK;
    mc_roster_use use;
    const mc_tile_range *range = &sift->range;
    mc_roster_consult(&use, combinations, &one->series[0], sift->dimensions, sift->count, range, ctx);
    mc_footprints *batch = sort_combinations(cache, &sift->key, sift->dimensions, combinations, use.count, pool);
    if (batch != NULL) {
        mc_roster_prepare(&use, batch, ctx);
        mc_batch_look(batch, ctx);
        mc_roster_learn(&use, batch, ctx);
        batch->skips = use.left_out * (range->maxx - range->minx) * (range->maxy - range->miny);
        *kept = sift_candidates(batch, combinations, use.count, range);
    } else if (use.entry != NULL)
        mc_clock_cache_release(use.entry);
    *made = batch;
    return MC_OK;
}

bool
mc_footprints_may_have(mc_footprints *batch, int index, const mc_tile_range *range)
{
    const mc_batch_series *series = &batch->series[batch->combinations[index]];
    const mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
    if (file == NULL || series->key->renderable)
        return true;
    if (file->missing != 0)
        return (file->missing != ENOENT && file->missing != ENOTDIR) || series->needed;
    const mc_file_facts *facts = atomic_load_explicit(&series->facts, memory_order_relaxed);
    if (!mc_identity_valid(&series->identity) || facts == NULL || facts->coverage == NULL)
        return true;
    int columns = range->maxx - range->minx, rows = range->maxy - range->miny, z = series->key->z;
    bool may = columns == 1 && rows == 1
                   ? mc_coverage_may_have(facts->coverage, z, range->minx, range->miny)
                   : mc_coverage_may_touch(facts->coverage, z, range->minx, range->miny, range->maxx, range->maxy);
    batch->skips += may ? 0 : columns * rows;
    return may;
}

mc_error *
mc_footprints_complete(mc_footprints *batch, mc_footprint_want *wants, const int *indexes, int count, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    mc_batch_take(batch, wants, count, pool);
    for (int i = 0; i < count; i++) {
        batch->series_of[i] = batch->combinations[indexes[i]];
        const mc_batch_series *series = &batch->series[batch->series_of[i]];
        wants[i].file = series->file >= 0 ? series->file : batch->file_count + series->group;
    }
    mc_batch_recall(batch, ctx);
    return MC_OK;
}
