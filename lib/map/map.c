/* A WMS map: planned, fetched, and joined, composed or forwarded; with a tag that is known before anything is drawn. */
#include "mapcache/map.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/semaphore.h"
#include "base/workers.h"
#include "cache/marked.h"
#include "map/map_private.h"
#include "map/plan.h"
#include "mapcache/trace.h"

static mc_error *
no_data(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "none of the layers has anything stored or a source for this map");
}

static uint64_t
tile_tag(mc_plan_tile *entry)
{
    if (!mc_plan_tile_shows(entry))
        return 0;
    return entry->assembled != NULL ? entry->assembled->tag : mc_tile_tag(&entry->tile);
}

/* The hash of the tiles' tags and of all that decides what is made of them. */
static uint64_t
plan_tag(mc_plan *plan)
{
    const mc_map_request *wanted = plan->wanted;
    struct {
        double box[4];
        int numbers[10];
    } head = { { wanted->box.minx, wanted->box.miny, wanted->box.maxx, wanted->box.maxy }, { 0 } };
    const int numbers[] = {
        wanted->width,         wanted->height,
        (int)wanted->resample, wanted->background_set,
        wanted->transparent,   wanted->background[0] << 16 | wanted->background[1] << 8 | wanted->background[2]
    };
    memcpy(head.numbers, numbers, sizeof(numbers));
    uint64_t tag = mc_hash64(&head, sizeof(head), mc_format_tag(wanted->format));
    if (wanted->beyond != NULL) {
        const uint8_t *rgb = wanted->beyond->rgb, parts[4] = { wanted->beyond->transparent, rgb[0], rgb[1], rgb[2] };
        tag = mc_hash64(parts, sizeof(parts), tag);
    }
    for (int i = 0; i < plan->tile_count; i++) {
        mc_plan_tile *entry = &plan->tiles[i];
        uint64_t parts[4] = { (uint64_t)entry->layer, (uint64_t)entry->left << 32 ^ (uint64_t)(unsigned)entry->top,
                              tile_tag(entry), (uint64_t)entry->request.z };
        tag = mc_hash64(parts, sizeof(parts), tag);
    }
    return tag == 0 ? 1 : tag;
}

/* Newest time and shortest lifetime of what contributes (docs/reference/services.md 2.1). */
static int
describe_map_freshness(mc_result *result, mc_plan *plan)
{
    int showing = 0;
    apr_time_t now = apr_time_now();
    for (int i = 0; i < plan->tile_count; i++) {
        const mc_plan_tile *entry = &plan->tiles[i];
        mc_tile tile = entry->tile;
        if (entry->assembled != NULL) {
            tile.mtime = entry->assembled->oldest;
            tile.stale = mc_is_marked_time(tile.mtime); /* marked times are the oldest ones */
            tile.provisional = entry->assembled->provisional;
        }
        mc_result_take_lifetime(result, entry->request.tileset, &tile, now);
        if (!mc_plan_tile_shows(entry))
            continue;
        showing++;
        apr_time_t newest = mc_time_made(entry->assembled != NULL ? entry->assembled->newest : entry->tile.mtime);
        result->mtime = newest > result->mtime ? newest : result->mtime;
    }
    return showing;
}

/* Splicing never changes the quality of the tiles: where the service names one, theirs must be the same. */
static bool
quality_fits(const mc_map_request *wanted, const mc_format *jpeg)
{
    if (!wanted->format_named)
        return true;
    const mc_format *stored = wanted->layers[0].tileset->format;
    if (stored != NULL && stored->type == MC_FORMAT_MIXED)
        stored = stored->opaque;
    return stored != NULL && stored->type == MC_FORMAT_JPEG && stored->quality == jpeg->quality;
}

/* Whether the first of the tiles has its grid's size: only tiles of one size are joined. */
static bool
has_size_of_tile(mc_buf *const *tiles, int count, const mc_grid *grid, apr_pool_t *pool)
{
    int i = 0, width, height;
    while (i < count && tiles[i] == NULL)
        i++;
    return i < count && mc_image_size(&width, &height, tiles[i]->data, tiles[i]->size, pool) == MC_OK &&
           width == grid->tile_width && height == grid->tile_height;
}

/* JPEG tiles whose outer edges are the map's: joined without decoding. *answer->data stays NULL where that cannot be.
 */
static mc_error *
join_jpeg_map(mc_result *result, const mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_map_request *wanted = plan->wanted;
    const mc_plan_layer *layer = &plan->layers[0];
    const mc_format *format = wanted->format->type == MC_FORMAT_MIXED ? wanted->format->opaque : wanted->format;
    if (wanted->beyond != NULL || plan->layer_count != 1 || layer->assembly != NULL || !layer->exact ||
        layer->count == 0 || format->type != MC_FORMAT_JPEG || layer->width != wanted->width ||
        layer->height != wanted->height || lround(layer->x0) != 0 || lround(layer->y0) != 0 ||
        !quality_fits(wanted, format))
        return MC_OK;
    int width = layer->link->grid->tile_width, height = layer->link->grid->tile_height;
    int columns = layer->width / width, rows = layer->height / height;
    mc_buf **tiles = apr_pcalloc(pool, sizeof(*tiles) * (size_t)layer->count);
    for (int i = 0; i < layer->count; i++) {
        const mc_plan_tile *entry = &plan->tiles[layer->first + i];
        if (!mc_plan_tile_shows(entry)) {
            if (wanted->format->type == MC_FORMAT_MIXED)
                return MC_OK;
            continue;
        }
        if (entry->tile.coding != MC_CODING_JPEG)
            return MC_OK;
        tiles[entry->top / height * columns + entry->left / width] = entry->tile.data;
    }
    if (!has_size_of_tile(tiles, layer->count, layer->link->grid, pool))
        return MC_OK;
    static const uint8_t white[3] = { 255, 255, 255 };
    MC_SPAN(ctx, "mapcache_jpeg_join");
    MC_TRY(mc_jpeg_join(&result->data, tiles, columns, rows, wanted->background_set ? wanted->background : white, ctx,
                        pool));
    if (result->data != NULL)
        result->mime = "image/jpeg";
    return MC_OK;
}

static mc_error *
encode_map_canvas(mc_result *result, mc_pixels *canvas, const mc_map_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_format *format = wanted->format;
    mc_map_mark_beyond(canvas, wanted);
    MC_TRY(mc_format_encode(&result->data, format, canvas, MC_ON_THE_FLY, ctx, pool));
    result->mime =
        format->mime != NULL ? format->mime : mc_coding_mime(mc_image_sniff(result->data->data, result->data->size));
    return MC_OK;
}

static mc_error *
draw_and_encode(mc_result *result, mc_plan *plan, mc_ctx *ctx, apr_pool_t *scratch, apr_pool_t *pool)
{
    mc_pixels *canvas;
    if (plan->frames > 1 && plan->wanted->format->type != MC_FORMAT_JPEG && plan->wanted->beyond == NULL) {
        result->mime = "image/png";
        return mc_plan_animate(&result->data, plan, ctx, scratch, pool);
    }
    MC_TRY(mc_map_canvas(&canvas, plan->wanted, scratch));
    MC_TRY(mc_plan_draw(canvas, plan, ctx, scratch));
    return encode_map_canvas(result, canvas, plan->wanted, ctx, pool);
}

/* Composing needs processors and megabytes, no waiting: more maps at a time than processors would only take more
 * memory. */
static mc_error *
compose_map_plan(mc_result *result, mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    MC_TRY(mc_semaphore_acquire(ctx->process->drawing, ctx, pool));
    apr_pool_create(&scratch, pool);
    mc_workers_enter(ctx->process->workers);
    mc_error *error = mc_error_copy(draw_and_encode(result, plan, ctx, scratch, pool), pool);
    mc_workers_leave(ctx->process->workers);
    apr_pool_destroy(scratch);
    mc_semaphore_release(ctx);
    return error;
}

/* Maps without data: 404 as MapCache, or an image where the box lies elsewhere or the service is strict
 * (docs/reference/conformance.md 1). */
static mc_error *
answer_empty_map(mc_result *result, const mc_map_request *wanted, bool overlaps, mc_ctx *ctx, apr_pool_t *pool)
{
    if (overlaps && !wanted->empty_is_map)
        return no_data(pool);
    static const uint8_t white[3] = { 255, 255, 255 };
    int lifetime = result->lifetime;
    if (wanted->beyond != NULL) {
        mc_pixels *canvas;
        MC_TRY(mc_map_canvas(&canvas, wanted, pool));
        return encode_map_canvas(result, canvas, wanted, ctx, pool);
    }
    MC_TRY(mc_map_empty(result, wanted->width, wanted->height, wanted->format,
                        !wanted->background_set || wanted->transparent,
                        wanted->background_set ? wanted->background : white, ctx, pool));
    result->lifetime = lifetime;
    return MC_OK;
}

static mc_error *
assemble_map_answer(mc_result *result, const mc_map_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_assemble_maps");
    mc_plan *plan = apr_pcalloc(pool, sizeof(*plan));
    MC_TRY(mc_plan_make(plan, wanted, ctx, pool));
    MC_TRY(mc_plan_fetch(plan, ctx, pool));
    if (describe_map_freshness(result, plan) == 0) {
        mc_span_note(&span, "ERROR");
        return answer_empty_map(result, wanted, plan->overlaps, ctx, pool);
    }
    result->tag = plan_tag(plan);
    if (if_tag != 0 && if_tag == result->tag) {
        result->unmodified = true;
        return MC_OK;
    }
    MC_TRY(join_jpeg_map(result, plan, ctx, pool));
    return result->data != NULL ? MC_OK : compose_map_plan(result, plan, ctx, pool);
}

/* Lays what a source has drawn over the map, which is made when it is first needed. */
static mc_error *
lay_source_image(mc_pixels **canvas, mc_rendered *rendered, const mc_map_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    if (*canvas == NULL)
        MC_TRY(mc_map_canvas(canvas, wanted, pool));
    if (rendered->pixels == NULL) {
        int width, height;
        MC_TRY(mc_image_size(&width, &height, rendered->data->data, rendered->data->size, pool));
        if (width > mc_tile_oversize * wanted->width || height > mc_tile_oversize * wanted->height)
            return mc_error_create(pool, MC_ERR_UPSTREAM, "the source sent an image of %dx%d pixels instead of %dx%d",
                                   width, height, wanted->width, wanted->height);
        MC_TRY(mc_image_decode(&rendered->pixels, rendered->data->data, rendered->data->size, ctx, pool));
        mc_pixels_attach(rendered->pixels, pool);
    }
    MC_SPAN(ctx, "mapcache_image_merge");
    mc_pixels_over(*canvas, 0, 0, rendered->pixels);
    return MC_OK;
}

/* full_wms forward: one request to each layer's source, drawn over each other; layers that are drawn here, in one go.
 * A single answer's bytes go out as they are (docs/reference/services.md 4.3). */
static mc_error *
forward_map_request(mc_result *result, const mc_map_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *canvas = NULL;
    uint8_t ground[4];
    for (int i = 0, count; i < wanted->count; i += count) {
        mc_rendered rendered = { 0 };
        count = mc_map_stack(wanted, i);
        bool alone = count == wanted->count;
        MC_TRY(mc_map_ask_sources(&rendered, wanted, i, count, ctx, pool));
        if (rendered.final || (alone && rendered.data != NULL && !wanted->background_set)) {
            result->data = rendered.data;
            result->mime = mc_coding_mime(mc_image_sniff(rendered.data->data, rendered.data->size));
            return MC_OK;
        }
        if (alone && rendered.pixels != NULL && !mc_map_ground(ground, wanted)) {
            canvas = rendered.pixels;
            break;
        }
        MC_TRY(lay_source_image(&canvas, &rendered, wanted, ctx, pool));
    }
    return encode_map_canvas(result, canvas, wanted, ctx, pool);
}

mc_error *
mc_map_draw(mc_result *result, const mc_map_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_core_get_map");
    *result = (mc_result){ 0 };
    mc_error *error = MC_OK;
    switch (wanted->mode) {
    case MC_WMS_ASSEMBLE:
        error = assemble_map_answer(result, wanted, if_tag, ctx, pool);
        break;
    case MC_WMS_FORWARD:
        error = forward_map_request(result, wanted, ctx, pool);
        break;
    case MC_WMS_ERROR:
        error = mc_error_create(pool, MC_ERR_NOT_FOUND, "maps that are not exactly one tile are switched off here");
        break;
    }
    if (error != MC_OK)
        mc_span_note(&span, "ERROR");
    return error;
}
