/* See mvt_budget.h. */
#include "vector/mvt/mvt_budget.h"

#include <stdlib.h>

enum {
    OVERFLOW = 2, /* so many times its budget is gathered before the least important part is thrown away */
    TRIES = 8,    /* to come under the budget of bytes */
};

/* A feature's claim to be kept: the larger one first, then the layer and the feature that came first. */
typedef struct claim {
    uint32_t size, cost;
    int layer, index;
} claim;

static int
by_claim(const void *left, const void *right)
{
    const claim *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->layer != b->layer ? a->layer - b->layer : a->index - b->index;
}

/* Keeps those of a tile with the best claims, at most `features` of together at most `bytes`. False without memory. */
static bool
keep_best(mc_mvt_tile *t, int layers, int features, uint64_t bytes)
{
    claim *claims = malloc(sizeof(*claims) * (size_t)(t->count + 1));
    bool *keep = calloc((size_t)t->count + 1, sizeof(*keep));
    int count = 0, first[MC_MVT_LAYERS];
    bool done = claims != NULL && keep != NULL;
    for (int layer = 0; done && layer < layers; layer++) {
        const mc_mvt_record *records = (const mc_mvt_record *)(const void *)t->layers[layer].records.data;
        first[layer] = count;
        for (int i = 0; i < mc_mvt_record_count(&t->layers[layer]); i++)
            claims[count++] = (claim){ records[i].size, records[i].cost, layer, i };
    }
    if (done) {
        qsort(claims, (size_t)count, sizeof(*claims), by_claim);
        t->count = 0;
        t->cost = 0;
        for (int i = 0; i < count && i < features && t->cost + claims[i].cost <= bytes; i++) {
            keep[first[claims[i].layer] + claims[i].index] = true;
            t->cost += claims[i].cost;
            t->count++;
        }
        t->dropped += count - t->count;
        for (int layer = 0; done && layer < layers; layer++) {
            mc_mvt_layer_keep(&t->layers[layer], keep + first[layer]);
            done = !mc_mvt_layer_has_failed(&t->layers[layer]); /* then the layer has more features than are counted */
        }
    }
    free(claims);
    free(keep);
    return done;
}

bool
mc_mvt_tile_prune(mc_mvt_tile *t, int layers, const mc_mvt_options *options)
{
    const uint64_t bytes = (uint64_t)options->max_bytes;
    return (t->count / OVERFLOW <= options->max_features && t->cost / OVERFLOW <= bytes) ||
           keep_best(t, layers, options->max_features, bytes);
}

static size_t
tile_size(const mc_mvt_tile *t, int layers, int extent)
{
    size_t size = t->parts.layers.size;
    for (int i = 0; i < layers; i++) {
        if (mc_mvt_record_count(&t->layers[i]) == 0)
            continue;
        const size_t own = mc_mvt_layer_size(&t->layers[i], extent);
        size += mc_mvt_head_size(own) + own;
    }
    return size;
}

/* What a feature costs is an estimate, so the budgets may need several tries. */
bool
mc_mvt_tile_fit(size_t *size, mc_mvt_tile *t, int layers, const mc_mvt_options *options)
{
    if (t->count > options->max_features && !keep_best(t, layers, options->max_features, UINT64_MAX))
        return false;
    *size = tile_size(t, layers, options->extent);
    for (int i = 0; i<TRIES && * size>(uint64_t) options->max_bytes; i++) {
        double room = (double)options->max_bytes - (double)t->parts.layers.size;
        double share = room / (double)(*size - t->parts.layers.size) * 0.98;
        if (!keep_best(t, layers, options->max_features, i == TRIES - 1 ? 0 : (uint64_t)((double)t->cost * share)))
            return false;
        *size = tile_size(t, layers, options->extent);
    }
    return true;
}
