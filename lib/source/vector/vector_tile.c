/* Vector tiles of the sources that draw: the same layers and data as their maps, as features instead of pixels. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "source/tilejson_layers.h"
#include "source/vector/vector_counters.h"
#include "source/vector/vector_tile_rules.h"
#include "text/text.h"
#include "vector/mvt/mvt.h"

/* How far a box may be from a tile's and still count as it, in tiles. */
#define SAME_PLACE 1e-3

/* Coordinates may be a twentieth of that much of a pixel of the grid off, which has MC_SUBPIXELS units: half a unit. */
#define HALF_A_UNIT (10.0 / MC_SUBPIXELS)

/* Tiles of a block that are worth waking another thread for. */
#define TILES_WORTH_A_HELPER 4

/* A block of tiles of the grid. */
typedef struct vector_tile_place {
    int z;
    double x0, y0, width, height; /* of the upper left tile of the level: its corner; units of the CRS */
    int column, row;              /* of the block's upper left tile, from there, to the right and down */
    int columns, rows;
} vector_tile_place;

/* How many tiles a length is; 0 where it is no whole number of them. */
static int
count_vector_tiles(double length, double tile)
{
    double count = length / tile;
    return count < 0.5 || count > MC_MVT_TILES || fabs(count - rint(count)) > SAME_PLACE ? 0 : (int)rint(count);
}

static bool
find_tile_place(vector_tile_place *found, const mc_render *wanted)
{
    const mc_grid *grid = wanted->grid;
    double columns = (double)wanted->width / grid->tile_width;
    for (int z = 0; z < grid->level_count; z++) {
        const mc_vector_tile_lattice at = mc_vector_tile_lattice_of(grid, z);
        double column = (wanted->box.minx - at.x0) / at.width, row = (at.y0 - wanted->box.maxy) / at.height;
        *found = (vector_tile_place){ z,
                                      at.x0,
                                      at.y0,
                                      at.width,
                                      at.height,
                                      (int)rint(column),
                                      (int)rint(row),
                                      count_vector_tiles(wanted->box.maxx - wanted->box.minx, at.width),
                                      count_vector_tiles(wanted->box.maxy - wanted->box.miny, at.height) };
        if (fabs(columns - found->columns) <= SAME_PLACE && found->rows > 0 &&
            fabs(column - rint(column)) <= SAME_PLACE && fabs(row - rint(row)) <= SAME_PLACE)
            return true;
    }
    return false;
}

static void
make_query(mc_feature_query *query, const vector_tile_place *at, const mc_render *wanted)
{
    const mc_mvt_options *options = wanted->vector_tile;
    double unit_x = at->width / options->extent, unit_y = at->height / options->extent;
    double margin_x = (options->buffer + 1) * unit_x, margin_y = (options->buffer + 1) * unit_y;
    double left = at->x0 + at->column * at->width, top = at->y0 - at->row * at->height;
    mc_vector_query(query, wanted, 0);
    query->pixel_grid = mc_mvt_pixel_grid(options, at->x0, at->y0, at->width, at->height, at->column, at->row);
    query->fineness = HALF_A_UNIT;
    query->box = (mc_extent){ left - margin_x, top - at->rows * at->height - margin_y,
                              left + at->columns * at->width + margin_x, top + margin_y };
    /* A feature that ends at the antimeridian would be twice in the tiles beside it: in the buffer once more. */
    query->wrap_margin = margin_x + unit_x;
}

typedef struct numbered {
    mc_mvt *mvt;
    int id; /* the attribute that is the feature's number */
} numbered;

/* Below zero is a number that is not written. */
static mc_error *
take_numbered(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    const numbered *n = baton;
    mc_feature copy = *feature;
    const char *value = copy.values[n->id];
    if (value == mc_value_is_whole)
        copy.id = copy.wholes[n->id];
    else if (value == NULL || !mc_parse_int64(&copy.id, value, INT64_MIN, INT64_MAX))
        copy.id = -1;
    return mc_mvt_visit(n->mvt, &copy, ctx);
}

/* Takes the encoded tiles of a block. */
static mc_error *
take_encoded(void *baton, int column, int row, const void *bytes, size_t size, mc_ctx *ctx)
{
    return mc_mvt_add_encoded(baton, column, row, bytes, size, ctx->pool);
}

static mc_error *
add_encoded_layer(mc_mvt *mvt, const mc_vector_layer *layer, const vector_tile_place *at, const mc_render *wanted,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    /* The place is counted from the tile at the grid's origin, the block from the upper left one. */
    const mc_tile_block block = { .z = at->z,
                                  .column = mc_grid_from_west(wanted->grid, at->z, 0) + at->column,
                                  .row = mc_grid_flip_y(wanted->grid, at->z, 0) + at->row,
                                  .columns = at->columns,
                                  .rows = at->rows,
                                  .max_bytes = wanted->vector_tile->max_bytes,
                                  .dimensions = wanted->dimensions,
                                  .dimension_count = wanted->dimension_count };
    return layer->data->ops->tiles(layer->data, &block, take_encoded, mvt, ctx, pool);
}

static mc_error *
add_vector_tile_layer(mc_mvt *mvt, const mc_vector_layer *layer, bool wrap, const vector_tile_place *at,
                      const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_vector_tile_rules rules;
    mc_feature_query query = { 0 };
    int64_t skipped = 0;
    if (at->z < layer->minzoom || at->z > layer->maxzoom)
        return MC_OK;
    if (layer->data->ops->tiles != NULL)
        return add_encoded_layer(mvt, layer, at, wanted, ctx, pool);
    MC_TRY(mc_vector_tile_rules_of(&rules, layer, wanted->vector_tile, wanted->grid, ctx, pool));
    make_query(&query, at, wanted);
    query.wrap = wrap;
    query.style = rules.digest;
    query.attributes = rules.names;
    query.attribute_count = rules.fields->nelts;
    query.ids = rules.ids;
    query.wholes = true;
    numbered n = { mvt, rules.id };
    mc_mvt_layer(mvt, layer->name, (const mc_field *)(const void *)rules.fields->elts, rules.fields->nelts,
                 layer->data->has_ids);
    mc_mvt_set_origin(mvt, query.pixel_grid.x0);
    if (n.id >= 0)
        return layer->data->ops->read(layer->data, &query, take_numbered, &n, &skipped, ctx, pool);
    return layer->data->ops->read(layer->data, &query, mc_mvt_visit, mvt, &skipped, ctx, pool);
}

/* Counts and logs what came of a block. */
static void
count_mvt_result(const mc_mvt_result *result, const vector_tile_place *at, const mc_render *wanted, mc_ctx *ctx)
{
    struct mc_metrics *metrics = ctx->process->metrics;
    mc_count(metrics, MC_COUNT_vector_tiles_total, (uint64_t)at->columns * (uint64_t)at->rows);
    mc_count(metrics, MC_COUNT_vector_features_total, (uint64_t)result->features);
    mc_count(metrics, MC_COUNT_vector_dropped_total, (uint64_t)result->dropped);
    mc_count(metrics, MC_COUNT_vector_bytes_total, result->bytes);
    if (result->dropped > 0)
        mc_log_write(ctx, MC_LOG_WARN,
                     "tileset \"%s\": %s of level %d leaves out %" APR_INT64_T_FMT " of %" APR_INT64_T_FMT
                     " features to stay within its budgets",
                     wanted->tileset, at->columns * at->rows > 1 ? "a metatile" : "a vector tile", at->z,
                     (apr_int64_t)result->dropped, (apr_int64_t)(result->dropped + result->features));
}

/* What is made: the tiles of a whole block, row by row, and all of them together. */
typedef struct vector_tile_making {
    const mc_vector_source *source;
    const mc_render *wanted;
    const vector_tile_place *all;
    mc_buf **tiles;
    mc_mvt_result sum;
} vector_tile_making;

static mc_error *
read_block(mc_mvt *mvt, const vector_tile_making *m, const vector_tile_place *at, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < m->source->layer_count; i++)
        MC_TRY(add_vector_tile_layer(mvt, m->source->layers[i], m->source->wrap, at, m->wanted, ctx, pool));
    return MC_OK;
}

typedef struct block_finishing {
    const mc_mvt *mvt;
    int columns;
    mc_mvt_result *results;
} block_finishing;

/* Encodes and packs a tile: a job for any thread. The caller drops the reference to its bytes. */
static mc_error *
finish_tile_of_block(void *baton, int index, mc_ctx *ctx)
{
    const block_finishing *f = baton;
    mc_mvt_result made;
    MC_TRY(mc_mvt_finish(&made, f->mvt, index % f->columns, index / f->columns, ctx, ctx->pool));
    mc_buf_ref(made.packed);
    f->results[index] = made;
    return MC_OK;
}

static mc_error *
finish_tiles_of_block(block_finishing *f, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_workers *workers = ctx->process->workers;
    int helpers = count >= TILES_WORTH_A_HELPER && workers != NULL ? mc_workers_spare(workers) : 0;
    if (helpers > 0)
        return mc_workers_run(workers, finish_tile_of_block, f, count, helpers, ctx, pool);
    mc_ctx own = *ctx;
    own.pool = pool;
    for (int i = 0; i < count; i++)
        MC_TRY(finish_tile_of_block(f, i, &own));
    return MC_OK;
}

static mc_error *
finish_block(vector_tile_making *m, const mc_mvt *mvt, const vector_tile_place *at, mc_ctx *ctx, apr_pool_t *pool)
{
    int count = at->columns * at->rows;
    block_finishing f = { mvt, at->columns, apr_pcalloc(pool, sizeof(*f.results) * (size_t)count) };
    mc_error *error = finish_tiles_of_block(&f, count, ctx, pool);
    for (int i = 0; i < count; i++) {
        if (f.results[i].packed == NULL)
            continue;
        int row = at->row - m->all->row + i / at->columns, column = at->column - m->all->column + i % at->columns;
        m->sum.features += f.results[i].features;
        m->sum.dropped += f.results[i].dropped;
        m->sum.bytes += f.results[i].bytes;
        m->tiles[row * m->all->columns + column] = mc_buf_attach(f.results[i].packed, pool);
    }
    return error;
}

static mc_error *make_block(vector_tile_making *m, const vector_tile_place *at, mc_ctx *ctx, apr_pool_t *pool);

/* What needs too much memory at once, one half after the other. */
static mc_error *
make_halves(vector_tile_making *m, const vector_tile_place *at, mc_ctx *ctx, apr_pool_t *pool)
{
    vector_tile_place first = *at, second = *at;
    if (at->columns >= at->rows) {
        first.columns = at->columns / 2;
        second.column += first.columns;
        second.columns -= first.columns;
    } else {
        first.rows = at->rows / 2;
        second.row += first.rows;
        second.rows -= first.rows;
    }
    MC_TRY(make_block(m, &first, ctx, pool));
    return make_block(m, &second, ctx, pool);
}

static mc_error *
make_block(vector_tile_making *m, const vector_tile_place *at, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    mc_mvt *mvt = mc_mvt_create(m->wanted->vector_tile, at->columns, at->rows, m->source->layer_count, scratch);
    mc_error *error = read_block(mvt, m, at, ctx, scratch);
    bool crowded = error != MC_OK && mc_mvt_crowded(mvt);
    if (error == MC_OK)
        error = finish_block(m, mvt, at, ctx, pool);
    error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    if (!crowded)
        return error;
    mc_error_ignore(error);
    return make_halves(m, at, ctx, pool);
}

/* An error after the end of the time budget becomes MC_ERR_UNAVAILABLE, which does not blame the data: the next request
 * may succeed. */
static mc_error *
explain_late_tile(mc_error *error, apr_time_t end, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    bool late =
        error != MC_OK && (error->kind == MC_ERR_TIMEOUT || error->kind == MC_ERR_UNAVAILABLE) && mc_clock_now() >= end;
    if (!late)
        return error;
    mc_count(ctx->process->metrics, MC_COUNT_vector_late_total, 1);
    return mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE,
                         "a vector tile of layer %s takes longer than its budget of time", wanted->tileset);
}

mc_error *
mc_vector_tile(mc_rendered *map, const mc_vector_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_vector_tile");
    vector_tile_place at;
    if (!find_tile_place(&at, wanted))
        return mc_error_create(pool, MC_ERR_CONFIG, "vector tiles are wanted that are no tiles of their grid");
    size_t count = (size_t)at.columns * (size_t)at.rows;
    vector_tile_making m = {
        .source = source, .wanted = wanted, .all = &at, .tiles = apr_pcalloc(pool, sizeof(mc_buf *) * count)
    };
    mc_ctx bounded = *ctx;
    apr_time_t end = mc_clock_now() + (apr_interval_time_t)(wanted->vector_tile->max_time * APR_USEC_PER_SEC);
    if (bounded.deadline == 0 || end < bounded.deadline)
        bounded.deadline = end;
    MC_TRY(explain_late_tile(make_block(&m, &at, &bounded, pool), end, wanted, ctx, pool));
    count_mvt_result(&m.sum, &at, wanted, ctx);
    map->data = m.tiles[0];
    map->tiles = m.tiles;
    return MC_OK;
}

static mc_attribute_kind
tile_attribute_kind(mc_field_type type)
{
    if (type == MC_FIELD_BOOLEAN)
        return MC_ATTRIBUTE_BOOLEAN;
    return type == MC_FIELD_TEXT ? MC_ATTRIBUTE_TEXT : MC_ATTRIBUTE_NUMBER;
}

/* A layer whose data is away for the moment has no attributes known. */
static void
describe_layer(apr_array_header_t *layers, const mc_vector_layer *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_vector_layer_info info = { layer->name, layer->minzoom, layer->maxzoom,
                                  apr_array_make(pool, 8, sizeof(mc_vector_attribute)) };
    apr_array_header_t *fields = NULL;
    const char **names;
    mc_error *error = mc_vector_fields(&fields, &names, layer, ctx, pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    for (int j = 0; error == MC_OK && j < fields->nelts; j++) {
        mc_field field = APR_ARRAY_IDX(fields, j, mc_field);
        APR_ARRAY_PUSH(info.attributes, mc_vector_attribute) =
            (mc_vector_attribute){ field.name, tile_attribute_kind(field.type) };
    }
    APR_ARRAY_PUSH(layers, mc_vector_layer_info) = info;
}

/* What the data says of its encoded layers; false where it says nothing. */
static bool
describe_encoded_layers(apr_array_header_t *layers, const mc_vector_layer *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *told = NULL;
    const char *json = NULL;
    mc_error *error = layer->data->ops->describe(&json, layer->data, ctx, pool);
    if (error == MC_OK && json != NULL)
        error = mc_tilejson_layers(&told, json, strlen(json), layer->maxzoom, pool);
    if (error != MC_OK) {
        mc_log_error(ctx, MC_LOG_WARN,
                     mc_error_wrap(pool, error, error->kind, "what layer \"%s\" holds is not known", layer->name));
        return false;
    }
    for (int i = 0; told != NULL && i < told->nelts; i++) {
        mc_vector_layer_info *info = &APR_ARRAY_IDX(told, i, mc_vector_layer_info);
        if (info->minzoom < layer->minzoom)
            info->minzoom = layer->minzoom;
        APR_ARRAY_PUSH(layers, mc_vector_layer_info) = *info;
    }
    return told != NULL && told->nelts > 0;
}

mc_error *
mc_vector_tile_layers(apr_array_header_t **layers, mc_source *source, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    *layers = apr_array_make(pool, vector->layer_count + 1, sizeof(mc_vector_layer_info));
    for (int i = 0; i < vector->layer_count; i++) {
        const mc_vector_layer *layer = vector->layers[i];
        if (layer->data->ops->tiles == NULL || !describe_encoded_layers(*layers, layer, ctx, pool))
            describe_layer(*layers, layer, ctx, pool);
    }
    return MC_OK;
}
