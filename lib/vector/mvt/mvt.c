/* Vector tiles: features in, a tile out, within its budgets. */
#include "vector/mvt/mvt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/slices.h"
#include "compress/packing.h"
#include "mapcache/trace.h"
#include "vector/geometry/simplify.h"
#include "vector/mvt/mvt_budget.h"
#include "vector/mvt/mvt_mend.h"
#include "vector/mvt/mvt_shape.h"
#include "vector/mvt/mvt_star.h"

enum {
    BETWEEN_LOOKS = 1 << 17, /* vertices, in each tile again, from one look at the clock to the next */
    FEATURE = 512,           /* as many as a feature costs besides */
    BETWEEN_CLEARS = 64,
    CROWDED = 8, /* full tiles of which the bytes are too much at once */
};

struct mc_mvt {
    mc_mvt_options options;
    int columns, rows;
    mc_mvt_tile *tiles; /* row by row */
    int layer_count, layer_room;
    const mc_shape *now; /* the shape of a feature that is added, simplified */
    mc_shape simple, shifted, work[2];
    mc_mvt_clipper *clipper;
    mc_mvt_mender *mender;
    bool beyond;          /* the shape that was made last is left out: it would have taken too much to make it valid */
    double x0;            /* of the world in the middle; NAN: not known */
    int64_t seen, worked; /* worked: since the last look at the clock */
    uint64_t cost;        /* of all tiles */
    bool crowded;
    apr_pool_t *scratch;
};

static apr_status_t
free_mvt(void *data)
{
    mc_mvt *mvt = data;
    for (int i = 0; i < mvt->columns * mvt->rows; i++) {
        for (int layer = 0; layer < mvt->layer_count; layer++)
            mc_mvt_layer_free(&mvt->tiles[i].layers[layer]);
        mc_mvt_parts_free(&mvt->tiles[i].parts);
    }
    mc_shape_free(&mvt->simple);
    mc_shape_free(&mvt->shifted);
    for (int i = 0; i < 2; i++)
        mc_shape_free(&mvt->work[i]);
    return APR_SUCCESS;
}

mc_mvt *
mc_mvt_create(const mc_mvt_options *options, int columns, int rows, int layers, apr_pool_t *pool)
{
    mc_mvt *made = apr_pcalloc(pool, sizeof(*made));
    size_t count = (size_t)columns * (size_t)rows;
    made->options = *options;
    made->columns = columns;
    made->rows = rows;
    made->layer_room = layers;
    made->x0 = NAN;
    made->worked = BETWEEN_LOOKS; /* the first feature is looked at */
    made->tiles = apr_pcalloc(pool, sizeof(*made->tiles) * count);
    mc_mvt_layer_data *data = apr_palloc(pool, sizeof(*data) * count * (size_t)layers);
    for (size_t i = 0; i < count; i++)
        made->tiles[i].layers = data + i * (size_t)layers;
    made->clipper = mc_mvt_clipper_create(pool);
    made->mender = mc_mvt_mender_create(pool);
    apr_pool_create(&made->scratch, pool);
    apr_pool_cleanup_register(pool, made, free_mvt, apr_pool_cleanup_null);
    return made;
}

mc_pixel_grid
mc_mvt_pixel_grid(const mc_mvt_options *options, double x0, double y0, double width, double height, int column, int row)
{
    int pixels = options->extent / MC_SUBPIXELS;
    return (mc_pixel_grid){ .x0 = x0,
                            .y0 = y0,
                            .per_x = pixels / width,
                            .per_y = pixels / height,
                            .left = (int64_t)column * pixels,
                            .top = (int64_t)row * pixels };
}

void
mc_mvt_layer(mc_mvt *mvt, const char *name, const mc_field *fields, int count, bool ids)
{
    MC_ASSERT(mvt->layer_count < mvt->layer_room);
    for (int i = 0; i < mvt->columns * mvt->rows; i++)
        mvt->tiles[i].layers[mvt->layer_count] =
            (mc_mvt_layer_data){ .name = name, .fields = fields, .field_count = count, .ids = ids };
    mvt->layer_count++;
}

void
mc_mvt_set_origin(mc_mvt *mvt, double x0)
{
    mvt->x0 = x0;
}

bool
mc_mvt_crowded(const mc_mvt *mvt)
{
    return mvt->crowded;
}

int
mc_mvt_count(const mc_mvt *mvt, int column, int row)
{
    return mvt->tiles[row * mvt->columns + column].count;
}

static mc_error *
out_of_memory(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for a vector tile of this size");
}

/* --- features --------------------------------------------------------------------------------------------------- */

/* A feature's shape, the box around it, and from which tile to which it reaches. */
typedef struct reach {
    int32_t minx, miny, maxx, maxy;
    int left, top, right, bottom; /* columns and rows, the last ones included */
    double away;                  /* units to the right of where the data has it */
} reach;

/* A whole turn or more; 0 in the world in the middle. */
static double
distance_from_data(const mc_mvt *mvt, const mc_feature *feature)
{
    if (feature->query == NULL || isnan(mvt->x0))
        return 0;
    const mc_pixel_grid *pixel_grid = &feature->query->pixel_grid;
    return (mvt->x0 - pixel_grid->x0) * pixel_grid->per_x * MC_SUBPIXELS;
}

/* Whether the tile at x shows the feature also where the data has it, as far as boxes tell. */
static bool
is_shown_twice(const mc_mvt *mvt, const reach *r, int32_t x)
{
    double left = r->minx - r->away, right = r->maxx - r->away;
    return r->away != 0 && right >= x - mvt->options.buffer && left <= x + mvt->options.extent + mvt->options.buffer;
}

/* The first of `count` tiles, with their buffers, that does not end before `value`. */
static int
first_tile(const mc_mvt_options *options, int64_t value, int count)
{
    int64_t beyond = value - options->extent - options->buffer;
    if (beyond <= 0 || count == 1)
        return beyond > 0;
    return (int)((beyond + options->extent - 1) / options->extent);
}

/* The last one that does not begin behind it; below zero: none. */
static int
last_tile(const mc_mvt_options *options, int64_t value, int count)
{
    int64_t from = value + options->buffer;
    if (from < 0 || count == 1)
        return from < 0 ? -1 : 0;
    int64_t last = from / options->extent;
    return last < count ? (int)last : count - 1;
}

/* False where a shape is beside all tiles. */
static bool
find_reach(reach *found, const mc_mvt *mvt, const mc_shape *shape)
{
    if (!mc_shape_bounds(shape, &found->minx, &found->miny, &found->maxx, &found->maxy))
        return false;
    found->left = first_tile(&mvt->options, found->minx, mvt->columns);
    found->top = first_tile(&mvt->options, found->miny, mvt->rows);
    found->right = last_tile(&mvt->options, found->maxx, mvt->columns);
    found->bottom = last_tile(&mvt->options, found->maxy, mvt->rows);
    return found->left <= found->right && found->top <= found->bottom;
}

/* In units of the tile whose upper left corner is at (x, y): each tile is then cut as if it were alone. */
static void
shift_to_tile(mc_shape *out, const mc_shape *in, int32_t x, int32_t y)
{
    mc_shape_clear(out, in->kind);
    if (!mc_shape_reserve(out, in->point_count))
        return;
    for (int part = 0, i = 0; part < in->part_count; part++) {
        for (; i < in->ends[part]; i++)
            out->points[i] = (mc_shape_point){ in->points[i].x - x, in->points[i].y - y };
        out->point_count = i;
        mc_shape_end_part(out);
    }
}

/* Valid polygons of the rings in `clean`; NULL for nothing. */
static const mc_shape *
finish_rings(mc_mvt *mvt, mc_shape *clean, mc_shape *other)
{
    mc_mvt_mending mending = mc_mvt_mend(other, clean, mvt->mender);
    mvt->worked += (int)mc_mvt_mender_take_work(mvt->mender);
    mvt->beyond = mending == MC_MVT_BEYOND;
    if (mvt->beyond)
        return NULL;
    if (mending == MC_MVT_MENDED)
        mc_mvt_clean_rings(clean, other);
    return mc_mvt_order_rings(other, clean, mending == MC_MVT_MENDED, mvt->scratch);
}

/* What a tile shows of the shape; NULL for nothing. */
static const mc_shape *
clip_to_tile(mc_mvt *mvt, int32_t x, int32_t y)
{
    int low = -mvt->options.buffer, high = mvt->options.extent + mvt->options.buffer;
    mc_shape *in = &mvt->shifted, *a = &mvt->work[0], *b = &mvt->work[1];
    shift_to_tile(in, mvt->now, x, y);
    if (in->kind == MC_SHAPE_POINTS)
        mc_mvt_clip_points(a, in, low, high);
    else if (in->kind == MC_SHAPE_LINES)
        mc_mvt_clip_lines(a, in, low, high);
    if (in->kind != MC_SHAPE_POLYGONS)
        return a->part_count > 0 ? a : NULL;
    mc_mvt_clip_rings(a, in, low, high, mvt->clipper);
    if (mc_mvt_is_star(a))
        return a;
    mc_mvt_clean_rings(b, a);
    return finish_rings(mvt, b, a);
}

/* All of it. */
static const mc_shape *
clean_whole_shape(mc_mvt *mvt)
{
    if (mvt->now->kind != MC_SHAPE_POLYGONS || mc_mvt_is_star(mvt->now))
        return mvt->now->part_count > 0 ? mvt->now : NULL;
    mc_mvt_clean_rings(&mvt->work[0], mvt->now);
    return finish_rings(mvt, &mvt->work[0], &mvt->work[1]);
}

static void
add_to_tile(mc_mvt *mvt, int column, int row, const mc_feature *feature, const reach *r)
{
    mc_mvt_tile *t = &mvt->tiles[row * mvt->columns + column];
    mc_mvt_layer_data *layer = &t->layers[mvt->layer_count - 1];
    int32_t x = column * mvt->options.extent, y = row * mvt->options.extent, margin = mvt->options.buffer;
    bool within = r->minx >= x - margin && r->maxx <= x + mvt->options.extent + margin && r->miny >= y - margin &&
                  r->maxy <= y + mvt->options.extent + margin;
    uint32_t width = (uint32_t)r->maxx - (uint32_t)r->minx, height = (uint32_t)r->maxy - (uint32_t)r->miny;
    mvt->beyond = false;
    const mc_shape *shape = within ? clean_whole_shape(mvt) : clip_to_tile(mvt, x, y);
    t->dropped += mvt->beyond;
    layer->failed |= mvt->simple.failed || mvt->shifted.failed || mvt->work[0].failed || mvt->work[1].failed;
    if (shape == NULL)
        return;
    const mc_mvt_added added = { .id = is_shown_twice(mvt, r, x) ? -1 : feature->id,
                                 .size = width > height ? width : height,
                                 .shape = shape,
                                 .origin = within ? (mc_shape_point){ x, y } : (mc_shape_point){ 0, 0 },
                                 .values = feature->values,
                                 .wholes = feature->wholes };
    const uint32_t cost = mc_mvt_layer_add(layer, &added);
    t->count++;
    t->cost += cost;
    mvt->cost += cost;
}

/* All tiles below what memory is meant for. */
static mc_error *
check_crowd(mc_mvt *mvt, apr_pool_t *pool)
{
    mvt->crowded = mvt->cost / CROWDED > (uint64_t)mvt->options.max_bytes && mvt->columns * mvt->rows > 1;
    if (mvt->crowded)
        return mc_error_create(pool, MC_ERR_LIMIT, "%d vector tiles are too much at once", mvt->columns * mvt->rows);
    return MC_OK;
}

/* Keeps a tile below twice its budgets, and all of them below what memory is meant for. */
static mc_error *
enforce_tile_limits(mc_mvt_tile *t, mc_mvt *mvt, apr_pool_t *pool)
{
    if (mc_mvt_layer_has_failed(&t->layers[mvt->layer_count - 1])) /* then what is in it does not fit together */
        return out_of_memory(pool);
    mvt->cost -= t->cost;
    bool done = mc_mvt_tile_prune(t, mvt->layer_count, &mvt->options);
    mvt->cost += t->cost;
    if (!done)
        return out_of_memory(pool);
    return check_crowd(mvt, pool);
}

/* A block may have a large shape in each of its tiles. */
static mc_error *
look_at_the_clock(mc_mvt *mvt, int work, mc_ctx *ctx)
{
    mvt->worked += work;
    if (mvt->worked < BETWEEN_LOOKS)
        return MC_OK;
    mvt->worked = 0;
    if (mvt->seen > 0)
        mc_slices_not_small();
    return mc_ctx_check(ctx, ctx->pool);
}

static mc_error *
take_shape(mc_mvt *mvt, const mc_feature *feature, const mc_shape *shape, mc_ctx *ctx)
{
    reach r;
    if (shape->part_count == 0 || !find_reach(&r, mvt, shape))
        return MC_OK;
    r.away = distance_from_data(mvt, feature);
    mvt->now = shape;
    if (shape->kind != MC_SHAPE_POINTS) {
        mc_shape_simplify(&mvt->simple, shape, mvt->options.simplification);
        mvt->now = &mvt->simple;
        if (mvt->simple.part_count == 0 && !mvt->simple.failed) /* too small to be seen: in no tile */
            return MC_OK;
    }
    for (int row = r.top; row <= r.bottom; row++)
        for (int column = r.left; column <= r.right; column++) {
            MC_TRY(look_at_the_clock(mvt, mvt->now->point_count, ctx));
            add_to_tile(mvt, column, row, feature, &r);
            MC_TRY(enforce_tile_limits(&mvt->tiles[row * mvt->columns + column], mvt, ctx->pool));
        }
    return MC_OK;
}

mc_error *
mc_mvt_visit(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_mvt *mvt = baton;
    MC_TRY(look_at_the_clock(mvt, FEATURE, ctx));
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(take_shape(mvt, feature, &feature->geometry->shapes[kind], ctx));
    if (++mvt->seen % BETWEEN_CLEARS == 0)
        apr_pool_clear(mvt->scratch);
    return MC_OK;
}

mc_error *
mc_mvt_add_encoded(mc_mvt *mvt, int column, int row, const void *bytes, size_t size, apr_pool_t *pool)
{
    mc_mvt_parts *parts = &mvt->tiles[row * mvt->columns + column].parts;
    size_t before = parts->layers.size;
    const char *wrong = mc_mvt_parts_add(parts, bytes, size, pool);
    if (wrong != NULL)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "it is no vector tile: %s", wrong);
    if (parts->layers.failed || parts->names.failed)
        return out_of_memory(pool);
    if (parts->layers.size > (size_t)mvt->options.max_bytes)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "it is larger than the <max_bytes> of the tileset's format");
    mvt->cost += parts->layers.size - before;
    return check_crowd(mvt, pool);
}

/* --- the tile --------------------------------------------------------------------------------------------------- */

/* Bytes of a tile that lie nowhere before it is written: what stands around features and values. */
static size_t
count_new_bytes(size_t size, const mc_mvt_tile *t, const mc_mvt *mvt)
{
    for (int i = 0; i < mvt->layer_count; i++)
        if (mc_mvt_record_count(&t->layers[i]) > 0)
            size -= t->layers[i].features.size + t->layers[i].texts.size;
    return size - t->parts.layers.size;
}

static mc_error *
pack_vector_tile(mc_buf **packed, size_t size, const mc_mvt_tile *t, const mc_mvt *mvt, apr_pool_t *pool)
{
    const size_t fresh = count_new_bytes(size, t, mvt);
    mc_mvt_pieces pieces = { .at = apr_palloc(pool, fresh + 1) };
    const uint8_t *end = pieces.at + fresh;
    pieces.parts = apr_palloc(pool, sizeof(*pieces.parts) * ((size_t)mvt->layer_count * MC_MVT_LAYER_PIECES + 1));
    for (int i = 0; i < mvt->layer_count; i++)
        if (mc_mvt_record_count(&t->layers[i]) > 0)
            mc_mvt_layer_pieces(&pieces, &t->layers[i], mvt->options.extent);
    MC_ASSERT(pieces.at == end);
    mc_mvt_add_piece(&pieces, t->parts.layers.data, t->parts.layers.size);
    return mc_pack_parts(packed, pieces.parts, pieces.count, (mc_packing)mvt->options.encoding,
                         (mc_gzip_level)mvt->options.compression, pool);
}

/* Layers of a tile are told apart by their names (MVT 2.1, 4.1). */
static mc_error *
check_layer_names(const mc_mvt_tile *t, const mc_mvt *mvt, apr_pool_t *pool)
{
    for (int i = 0; i < mvt->layer_count && t->parts.layers.size > 0; i++)
        if (mc_mvt_record_count(&t->layers[i]) > 0 && mc_mvt_parts_have(&t->parts, t->layers[i].name))
            return mc_error_create(pool, MC_ERR_UPSTREAM,
                                   "a vector tile would have two layers \"%s\": one of its own, one that a function "
                                   "has made",
                                   t->layers[i].name);
    return MC_OK;
}

mc_error *
mc_mvt_finish(mc_mvt_result *result, const mc_mvt *mvt, int column, int row, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_mvt_finish");
    mc_mvt_tile *t = &mvt->tiles[row * mvt->columns + column];
    size_t size = 0;
    MC_TRY(check_layer_names(t, mvt, pool));
    for (int i = 0; i < mvt->layer_count; i++)
        if (mc_mvt_layer_has_failed(&t->layers[i]))
            return out_of_memory(pool);
    if (!mc_mvt_tile_fit(&size, t, mvt->layer_count, &mvt->options))
        return out_of_memory(pool);
    *result = (mc_mvt_result){ .features = t->count + t->parts.features, .dropped = t->dropped, .bytes = size };
    return pack_vector_tile(&result->packed, size, t, mvt, pool);
}

mc_error *
mc_mvt_empty(mc_buf **gzip, apr_pool_t *pool)
{
    return mc_gzip(gzip, "", 0, MC_GZIP_GOOD, pool);
}
