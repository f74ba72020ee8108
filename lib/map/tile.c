/* A tile request: the stored bytes of one tileset, or several merged; and images of one colour. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "cache/marked.h"
#include "compress/packing.h"
#include "map/map_private.h"
#include "mapcache/trace.h"

int
mc_map_stack(const mc_map_request *wanted, int first)
{
    int end = first + 1;
    for (; end < wanted->count; end++) {
        const mc_source *lower = wanted->layers[end - 1].tileset->source, *upper = wanted->layers[end].tileset->source;
        if (lower == NULL || upper == NULL || !mc_source_stacks(lower, upper))
            break;
    }
    return end - first;
}

bool
mc_map_is_drawn(const mc_map_request *wanted)
{
    bool drawn = false;
    for (int i = 0; i < wanted->count && wanted->mode == MC_WMS_FORWARD; i++)
        drawn = drawn || mc_source_draws(wanted->layers[i].tileset->source);
    return drawn;
}

static mc_render
map_of_layer(const mc_map_layer *layer, const mc_map_request *wanted, apr_pool_t *pool)
{
    const mc_tileset *tileset = layer->tileset;
    mc_dimension_value *dimensions = apr_pcalloc(pool, sizeof(*dimensions) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, layer->values[i], false };
    return (mc_render){ .tileset = tileset->name,
                        .grid = layer->link->grid,
                        .box = wanted->box,
                        .width = wanted->width,
                        .height = wanted->height,
                        .density = wanted->density,
                        .dimension_count = tileset->dimension_count,
                        .dimensions = dimensions,
                        .whole = true };
}

mc_error *
mc_map_ask_sources(mc_rendered *rendered, const mc_map_request *wanted, int first, int count, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    uint8_t *background = apr_palloc(pool, 4);
    bool grounded = mc_map_ground(background, wanted);
    mc_source **sources = apr_palloc(pool, sizeof(*sources) * (size_t)count);
    mc_render *maps = apr_palloc(pool, sizeof(*maps) * (size_t)count);
    for (int i = 0; i < count; i++) {
        const mc_map_layer *layer = &wanted->layers[first + i];
        if (layer->tileset->source == NULL)
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer %s has no source that could draw this map",
                                   layer->tileset->name);
        sources[i] = layer->tileset->source;
        maps[i] = map_of_layer(layer, wanted, pool);
        maps[i].format = count == wanted->count && wanted->beyond == NULL ? wanted->format : NULL;
        maps[i].background = grounded ? background : NULL;
    }
    return mc_source_render_stack(rendered, sources, maps, count, ctx, pool);
}

static const char *
mime_of(const mc_tileset *tileset, const mc_tile *tile)
{
    if (tile->raw && !tile->no_data)
        return tileset->format->mime;
    return mc_coding_mime(tile->coding);
}

/* The shortest of all that contribute. */
static void
take_error_grace(mc_result *result, int64_t seconds)
{
    if (seconds <= 0)
        result->grace = -1;
    else if (result->grace == 0 || (result->grace > 0 && seconds < result->grace))
        result->grace = seconds;
}

void
mc_result_take_lifetime(mc_result *result, const mc_tileset *tileset, const mc_tile *tile, apr_time_t now)
{
    int lifetime = mc_tileset_lifetime(tileset, tile, now);
    int64_t age = mc_tileset_expired_age(tileset, tile, now);
    if (lifetime > 0 && (result->lifetime == 0 || lifetime < result->lifetime))
        result->lifetime = lifetime;
    if (age > result->age)
        result->age = age;
    int64_t overdue = age > 0 ? mc_tileset_overdue(tileset, tile, now) : 0;
    if (overdue > result->overdue)
        result->overdue = overdue;
    if (tileset->stale_if_error > 0 && tile->provisional <= 0)
        take_error_grace(result, (int64_t)tileset->stale_if_error - overdue);
    else
        result->grace = -1;
}

static void
answer_tile(mc_result *result, const mc_tileset *tileset, mc_tile *tile, uint64_t if_tag)
{
    result->tag = mc_tile_tag(tile);
    result->unmodified = if_tag != 0 && if_tag == result->tag;
    result->data = tile->data;
    result->mime = mime_of(tileset, tile);
    result->packing = tile->raw && tile->data != NULL && mc_format_is_vector(tileset->format)
                          ? (int)mc_packing_of(tile->data->data, tile->data->size)
                          : MC_NOT_PACKED;
    result->negotiated = result->packing != MC_NOT_PACKED;
    result->mtime = mc_time_made(tile->mtime);
    mc_result_take_lifetime(result, tileset, tile, apr_time_now());
    result->cache_control = tileset->cache_control;
}

/* Fetches the stack. *only is the index of the one tile with data, -1 where there are several; without any it is the
 * last one. */
static mc_error *
fetch_stack(mc_tile **tiles, int *only, const mc_tile_stack *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_prefetch_tiles");
    int showing = 0;
    *only = wanted->count - 1;
    for (int i = 0; i < wanted->count; i++) {
        MC_TRY(mc_tileset_get_unless(&tiles[i], &wanted->tiles[i], wanted->count == 1 ? if_tag : 0, ctx, pool));
        if (tiles[i]->no_data)
            continue;
        *only = i;
        showing++;
    }
    if (showing > 1)
        *only = -1;
    return MC_OK;
}

/* Oldest time, shortest lifetime (docs/reference/services.md 2.1, several layers merged). */
static void
describe_stack(mc_result *result, mc_tile **tiles, const mc_tile_stack *wanted)
{
    apr_time_t now = apr_time_now();
    result->tag = mc_format_tag(wanted->format);
    for (int i = 0; i < wanted->count; i++) {
        mc_result_take_lifetime(result, wanted->tiles[i].tileset, tiles[i], now);
        if (tiles[i]->no_data)
            continue;
        uint64_t tag = mc_tile_tag(tiles[i]);
        result->tag = mc_hash64(&tag, sizeof(tag), result->tag);
        apr_time_t made = mc_time_made(tiles[i]->mtime);
        if (made != 0 && (result->mtime == 0 || made < result->mtime))
            result->mtime = made;
    }
}

/* The one tile as an image of the coding that was asked for: JPEG over white. */
static mc_error *
convert_tile(mc_result *result, const mc_tile *tile, const mc_tile_stack *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *pixels, *canvas;
    const uint8_t white[4] = { 255, 255, 255, 255 };
    MC_TRY(mc_tileset_decode(&pixels, tile, &wanted->tiles[0], ctx, pool));
    mc_pixels_attach(pixels, pool);
    MC_TRY(mc_pixels_create(&canvas, pixels->width, pixels->height, true, pool));
    mc_pixels_attach(canvas, pool);
    if (wanted->exact->type == MC_FORMAT_JPEG)
        mc_pixels_fill(canvas, white);
    mc_pixels_over(canvas, 0, 0, pixels);
    return mc_format_encode(&result->data, wanted->exact, canvas, MC_ON_THE_FLY, ctx, pool);
}

/* Whoever asked for a type gets that type (docs/reference/requests.md). */
static mc_error *
settle_coding(mc_result *result, const mc_tile *tile, const mc_tile_stack *wanted, uint64_t if_tag, mc_ctx *ctx,
              apr_pool_t *pool)
{
    if (wanted->exact == NULL || tile->raw)
        return MC_OK;
    const char *mime = mc_coding_mime(mc_format_coding(wanted->exact));
    if (mime != NULL && (result->mime == NULL || strcmp(result->mime, mime) != 0)) {
        uint64_t parts[2] = { result->tag, mc_format_tag(wanted->exact) };
        result->tag = result->tag == 0 ? 0 : mc_hash64(parts, sizeof(parts), 0);
        result->unmodified = if_tag != 0 && if_tag == result->tag;
        result->mime = mime;
        if (!result->unmodified)
            MC_TRY(convert_tile(result, tile, wanted, ctx, pool));
    }
    if (wanted->mime != NULL)
        result->mime = wanted->mime;
    return MC_OK;
}

static mc_error *
merge_tile_stack(mc_result *result, mc_tile **tiles, const mc_tile_stack *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid *grid = wanted->tiles[0].link->grid;
    mc_pixels *canvas;
    const uint8_t white[4] = { 255, 255, 255, 255 };
    MC_TRY(mc_pixels_create(&canvas, grid->tile_width, grid->tile_height, true, pool));
    mc_pixels_attach(canvas, pool);
    if (wanted->format->type == MC_FORMAT_JPEG)
        mc_pixels_fill(canvas, white);
    for (int i = 0; i < wanted->count; i++) {
        if (tiles[i]->no_data || tiles[i]->raw)
            continue;
        mc_pixels *pixels;
        MC_TRY(mc_tileset_decode(&pixels, tiles[i], &wanted->tiles[i], ctx, pool));
        MC_SPAN(ctx, "mapcache_image_merge");
        mc_pixels_over(canvas, 0, 0, pixels);
        mc_pixels_unref(pixels);
    }
    MC_TRY(mc_format_encode(&result->data, wanted->format, canvas, MC_ON_THE_FLY, ctx, pool));
    result->mime = wanted->format->mime;
    if (result->mime == NULL)
        result->mime = mc_coding_mime(mc_image_sniff(result->data->data, result->data->size));
    return MC_OK;
}

/* Whether the store has tiles of the type that was asked for. */
static bool
is_stored_so(const mc_tile_stack *wanted)
{
    const mc_format *stored = wanted->tiles[0].tileset->format;
    return wanted->exact == NULL || (stored != NULL && mc_format_coding(stored) == mc_format_coding(wanted->exact));
}

/* <use_redirects>: the client gets the tile from the store itself. */
static mc_error *
send_to_store(mc_result *result, const mc_tile_stack *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *url = NULL;
    if (wanted->count == 1 && is_stored_so(wanted))
        MC_TRY(mc_tileset_redirect(&url, &wanted->tiles[0], ctx, pool));
    if (url == NULL)
        return MC_OK;
    apr_table_t *headers = apr_table_make(pool, 1);
    apr_table_setn(headers, "Location", url);
    result->headers = headers;
    result->status = 302;
    return MC_OK;
}

mc_error *
mc_map_tile(mc_result *result, const mc_tile_stack *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_core_get_tile");
    mc_tile **tiles = apr_pcalloc(pool, sizeof(*tiles) * (size_t)wanted->count);
    int only;
    *result = (mc_result){ .vary = wanted->vary };
    MC_TRY(send_to_store(result, wanted, ctx, pool));
    if (result->status != 0)
        return MC_OK;
    bool by_latitude = wanted->by_latitude || wanted->within_poles, as_stored = wanted->exact == NULL && !by_latitude;
    MC_TRY(fetch_stack(tiles, &only, wanted, as_stored ? if_tag : 0, ctx, pool));
    if (only >= 0) {
        answer_tile(result, wanted->tiles[only].tileset, tiles[only], if_tag);
        if (by_latitude && !tiles[only]->no_data)
            return mc_map_by_latitude(result, tiles[only], wanted, if_tag, ctx, pool);
        return settle_coding(result, tiles[only], wanted, if_tag, ctx, pool);
    }
    describe_stack(result, tiles, wanted);
    if (if_tag != 0 && if_tag == result->tag) {
        result->unmodified = true;
        return MC_OK;
    }
    return merge_tile_stack(result, tiles, wanted, ctx, pool);
}

mc_error *
mc_map_empty(mc_result *result, int width, int height, const mc_format *format, bool transparent, const uint8_t rgb[3],
             mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *pixels;
    *result = (mc_result){ 0 };
    MC_TRY(mc_pixels_create(&pixels, width, height, true, pool));
    mc_pixels_attach(pixels, pool);
    if (!transparent || format->type == MC_FORMAT_JPEG) {
        const uint8_t bgra[4] = { rgb[2], rgb[1], rgb[0], 255 };
        mc_pixels_fill(pixels, bgra);
    }
    MC_TRY(mc_format_encode(&result->data, format, pixels, MC_ON_THE_FLY, ctx, pool));
    result->mime = format->mime;
    if (result->mime == NULL)
        result->mime = mc_coding_mime(mc_image_sniff(result->data->data, result->data->size));
    return MC_OK;
}
