/* Vector tiles: features in, a tile out, within its budgets. */
#include "feature/mvt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/metrics.h"
#include "feature/mvt_layer.h"
#include "feature/mvt_shape.h"
#include "mapcache/trace.h"

enum {
    BETWEEN_LOOKS = 256, /* features from one look at the clock to the next */
    BETWEEN_CLEARS = 64,
    OVERFLOW = 2, /* so many times its budget is gathered before the least important part is thrown away */
    TRIES = 8,    /* to come under the budget of bytes */
};

struct mc_mvt {
    mc_mvt_options options;
    mc_mvt_layer_data layers[MC_MVT_LAYERS];
    int layer_count;
    mc_shape work[3]; /* the shapes of a feature on their way */
    mc_mvt_clipper *clipper;
    int64_t seen, dropped;
    int count;     /* features that are kept so far */
    uint64_t cost; /* of them */
    apr_pool_t *scratch;
};

static apr_status_t
free_mvt(void *data)
{
    mc_mvt *mvt = data;
    for (int i = 0; i < mvt->layer_count; i++)
        mc_mvt_layer_free(&mvt->layers[i]);
    for (int i = 0; i < 3; i++)
        mc_shape_free(&mvt->work[i]);
    return APR_SUCCESS;
}

mc_mvt *
mc_mvt_create(const mc_mvt_options *options, apr_pool_t *pool)
{
    mc_mvt *made = apr_pcalloc(pool, sizeof(*made));
    made->options = *options;
    made->clipper = mc_mvt_clipper_create(pool);
    apr_pool_create(&made->scratch, pool);
    apr_pool_cleanup_register(pool, made, free_mvt, apr_pool_cleanup_null);
    return made;
}

mc_lattice
mc_mvt_lattice(const mc_mvt_options *options, double x0, double y0, double width, double height, int column, int row)
{
    int pixels = options->extent / MC_SUBPIXELS;
    return (mc_lattice){ .x0 = x0,
                         .y0 = y0,
                         .per_x = pixels / width,
                         .per_y = pixels / height,
                         .left = (int64_t)column * pixels,
                         .top = (int64_t)row * pixels };
}

void
mc_mvt_layer(mc_mvt *mvt, const char *name, const mc_field *fields, int count, bool ids)
{
    MC_ASSERT(mvt->layer_count < MC_MVT_LAYERS);
    mvt->layers[mvt->layer_count++] =
        (mc_mvt_layer_data){ .name = name, .fields = fields, .field_count = count, .ids = ids };
}

/* --- budgets ---------------------------------------------------------------------------------------------------- */

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

/* Keeps those with the best claims, at most `features` of together at most `bytes`. False without memory. */
static bool
keep_best(mc_mvt *mvt, int features, uint64_t bytes)
{
    claim *claims = malloc(sizeof(*claims) * (size_t)(mvt->count + 1));
    bool *keep = calloc((size_t)mvt->count + 1, sizeof(*keep));
    int count = 0, first[MC_MVT_LAYERS];
    bool done = claims != NULL && keep != NULL;
    for (int layer = 0; done && layer < mvt->layer_count; layer++) {
        const mc_mvt_record *records = (const mc_mvt_record *)(const void *)mvt->layers[layer].records.data;
        first[layer] = count;
        for (int i = 0; i < mc_mvt_record_count(&mvt->layers[layer]); i++)
            claims[count++] = (claim){ records[i].size, records[i].cost, layer, i };
    }
    if (done) {
        qsort(claims, (size_t)count, sizeof(*claims), by_claim);
        mvt->count = 0;
        mvt->cost = 0;
        for (int i = 0; i < count && i < features && mvt->cost + claims[i].cost <= bytes; i++) {
            keep[first[claims[i].layer] + claims[i].index] = true;
            mvt->cost += claims[i].cost;
            mvt->count++;
        }
        mvt->dropped += count - mvt->count;
        for (int layer = 0; layer < mvt->layer_count; layer++)
            mc_mvt_layer_keep(&mvt->layers[layer], keep + first[layer]);
    }
    free(claims);
    free(keep);
    return done;
}

static mc_error *
out_of_memory(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for a vector tile of this size");
}

static bool
failed(const mc_mvt_layer_data *layer)
{
    return layer->failed || layer->geometry.failed || layer->tags.failed || layer->records.failed ||
           layer->values.failed || layer->texts.failed;
}

/* --- features --------------------------------------------------------------------------------------------------- */

/* Where a shape lies. */
typedef enum where { BESIDE, ACROSS, WITHIN } where;

/* *size: the longer side of the bounds. */
static where
measure(uint32_t *size, const mc_shape *shape, int low, int high)
{
    int32_t minx, miny, maxx, maxy;
    if (!mc_shape_bounds(shape, &minx, &miny, &maxx, &maxy) || minx > high || maxx < low || miny > high || maxy < low)
        return BESIDE;
    uint32_t width = (uint32_t)maxx - (uint32_t)minx, height = (uint32_t)maxy - (uint32_t)miny;
    *size = width > height ? width : height;
    return minx >= low && maxx <= high && miny >= low && maxy <= high ? WITHIN : ACROSS;
}

/* The shape as the tile shows it; NULL for nothing. */
static const mc_shape *
prepare(mc_mvt *mvt, const mc_shape *shape, where at, int low, int high)
{
    mc_shape *a = &mvt->work[0], *b = &mvt->work[1], *c = &mvt->work[2];
    if (shape->kind == MC_SHAPE_POINTS) {
        mc_mvt_clip_points(a, shape, low, high);
        return a->part_count > 0 ? a : NULL;
    }
    mc_mvt_simplify(a, shape, mvt->options.simplification);
    if (shape->kind == MC_SHAPE_LINES) {
        if (at == ACROSS)
            mc_mvt_clip_lines(b, a, low, high);
        const mc_shape *kept = at == ACROSS ? b : a;
        return kept->part_count > 0 ? kept : NULL;
    }
    if (at == ACROSS)
        mc_mvt_clip_rings(b, a, low, high, mvt->clipper);
    mc_mvt_clean_rings(c, at == ACROSS ? b : a);
    return mc_mvt_order_rings(a, c, mvt->scratch);
}

static void
take_shape(mc_mvt *mvt, mc_mvt_layer_data *layer, const mc_feature *feature, const mc_shape *shape)
{
    int low = -mvt->options.buffer, high = mvt->options.extent + mvt->options.buffer;
    mc_mvt_record record = { .id = feature->id };
    where at = shape->part_count == 0 ? BESIDE : measure(&record.size, shape, low, high);
    const mc_shape *prepared = at == BESIDE ? NULL : prepare(mvt, shape, at, low, high);
    layer->failed |= mvt->work[0].failed || mvt->work[1].failed || mvt->work[2].failed;
    if (prepared == NULL)
        return;
    mc_mvt_layer_geometry(layer, &record, prepared);
    record.cost = record.geometry_size + 16;
    mc_mvt_layer_tags(layer, &record, feature->values, &record.cost);
    mc_bytes_add(&layer->records, &record, sizeof(record));
    mvt->count++;
    mvt->cost += record.cost;
}

mc_error *
mc_mvt_take(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_mvt *mvt = baton;
    mc_mvt_layer_data *layer = &mvt->layers[mvt->layer_count - 1];
    if (mvt->seen++ % BETWEEN_LOOKS == 0)
        MC_TRY(mc_ctx_check(ctx, ctx->pool));
    for (int kind = 0; kind < 3; kind++)
        take_shape(mvt, layer, feature, &feature->geometry->shapes[kind]);
    if (mvt->seen % BETWEEN_CLEARS == 0)
        apr_pool_clear(mvt->scratch);
    if (mvt->count / OVERFLOW > mvt->options.max_features || mvt->cost / OVERFLOW > (uint64_t)mvt->options.max_bytes)
        if (!keep_best(mvt, mvt->options.max_features, (uint64_t)mvt->options.max_bytes))
            return out_of_memory(ctx->pool);
    return failed(layer) ? out_of_memory(ctx->pool) : MC_OK;
}

/* --- the tile --------------------------------------------------------------------------------------------------- */

static size_t
tile_size(const mc_mvt *mvt)
{
    size_t size = 0;
    for (int i = 0; i < mvt->layer_count; i++) {
        if (mc_mvt_record_count(&mvt->layers[i]) == 0)
            continue;
        size_t layer = mc_mvt_layer_size(&mvt->layers[i], mvt->options.extent);
        size += 1 + mc_varint_size(layer) + layer;
    }
    return size;
}

/* Within both budgets. What a feature costs is an estimate, so the bytes may need several tries. */
static mc_error *
fit(mc_mvt *mvt, apr_pool_t *pool)
{
    if (mvt->count > mvt->options.max_features && !keep_best(mvt, mvt->options.max_features, UINT64_MAX))
        return out_of_memory(pool);
    for (int i = 0; i < TRIES && tile_size(mvt) > (uint64_t)mvt->options.max_bytes; i++) {
        size_t size = tile_size(mvt);
        uint64_t bytes =
            i == TRIES - 1 ? 0 : (uint64_t)((double)mvt->cost * (double)mvt->options.max_bytes / (double)size * 0.98);
        if (!keep_best(mvt, mvt->options.max_features, bytes))
            return out_of_memory(pool);
    }
    return MC_OK;
}

static uint8_t *
write_tile(uint8_t *at, const mc_mvt *mvt)
{
    enum { TILE_LAYER = 3 << 3 | 2 };
    for (int i = 0; i < mvt->layer_count; i++) {
        if (mc_mvt_record_count(&mvt->layers[i]) == 0)
            continue;
        *at++ = TILE_LAYER;
        at = mc_varint(at, mc_mvt_layer_size(&mvt->layers[i], mvt->options.extent));
        at = mc_mvt_layer_write(at, &mvt->layers[i], mvt->options.extent);
    }
    return at;
}

mc_error *
mc_mvt_finish(mc_mvt_result *result, mc_mvt *mvt, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_mvt_finish");
    MC_TRY(fit(mvt, pool));
    for (int i = 0; i < mvt->layer_count; i++)
        if (failed(&mvt->layers[i]))
            return out_of_memory(pool);
    size_t size = tile_size(mvt);
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        return out_of_memory(pool);
    MC_ASSERT(write_tile(bytes, mvt) == bytes + size);
    *result = (mc_mvt_result){ .features = mvt->count, .dropped = mvt->dropped, .bytes = size };
    mc_error *error = mc_gzip(&result->gzip, bytes, size, (mc_gzip_level)mvt->options.compression, pool);
    free(bytes);
    return error;
}

mc_error *
mc_mvt_empty(mc_buf **gzip, apr_pool_t *pool)
{
    return mc_gzip(gzip, "", 0, MC_GZIP_GOOD, pool);
}
