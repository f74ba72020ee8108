/* Rendering a metatile: asked of the source in one piece, cut, watermarked, encoded, stored; by one renderer at a time.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/semaphore.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "tileset/tileset_private.h"

/* Encoding a tile costs 0.2 to 2 ms: below so many tiles nobody is woken. */
#define TILES_WORTH_A_HELPER 4

/* A metatile while it is cut. Jobs write only their own entries of `writes`. */
typedef struct cutting {
    mc_tileset *tileset;
    const mc_tile_key *key;
    mc_metatile metatile;
    mc_extent extent; /* of the metatile without its buffer */
    mc_pixels *map;
    mc_tile_write *writes;
} cutting;

static mc_extent
metatile_extent(const mc_grid *grid, int z, const mc_metatile *metatile)
{
    mc_extent a = mc_grid_tile_extent(grid, z, metatile->x, metatile->y);
    mc_extent b = mc_grid_tile_extent(grid, z, metatile->x + metatile->columns - 1, metatile->y + metatile->rows - 1);
    return mc_extent_union(&a, &b);
}

static void
draw_watermark(mc_pixels *tile, const mc_pixels *watermark)
{
    mc_pixels_over(tile, (tile->width - watermark->width) / 2, (tile->height - watermark->height) / 2, watermark);
}

/* What transparent tiles are made of when the tileset has no format of its own. */
static const mc_format *
render_format_of(const mc_tileset *tileset)
{
    return tileset->format != NULL ? tileset->format : tileset->synthetic_format;
}

/* A tile of one opaque colour: its bytes are made once for all of them. */
static bool
blank_suits(const mc_tile_write *put, const mc_format *format)
{
    return put->uniform && put->bgra[3] == 255 && format->type == MC_FORMAT_PNG;
}

/* The tile as a part of its map: without a copy where nothing is drawn on it. */
static mc_error *
cut_out(mc_pixels **tile, mc_pixels *part, const cutting *cut, int left, int top, mc_ctx *ctx)
{
    const mc_grid *grid = cut->key->grid;
    int width = grid->tile_width, height = grid->tile_height;
    *tile = part;
    if (cut->tileset->watermark == NULL && mc_pixels_part(part, cut->map, left, top, width, height))
        return MC_OK;
    MC_TRY(mc_pixels_create(tile, width, height, true, ctx->pool));
    mc_pixels_attach(*tile, ctx->pool);
    mc_pixels_copy(*tile, -left, -top, cut->map);
    if (cut->tileset->watermark != NULL)
        draw_watermark(*tile, cut->tileset->watermark);
    return MC_OK;
}

/* Cuts and encodes one tile: a job for any thread. */
static mc_error *
cut_tile(void *baton, int index, mc_ctx *ctx)
{
    cutting *cut = baton;
    const mc_grid *grid = cut->key->grid;
    const mc_format *format = render_format_of(cut->tileset);
    mc_tile_write *put = &cut->writes[index];
    double resolution = grid->levels[cut->key->z].resolution;
    mc_extent box = mc_grid_tile_extent(grid, cut->key->z, put->key.x, put->key.y);
    int left = cut->tileset->metabuffer + (int)lround((box.minx - cut->extent.minx) / resolution);
    int top = cut->tileset->metabuffer + (int)lround((cut->extent.maxy - box.maxy) / resolution);
    mc_pixels part, *tile;
    mc_buf *data;
    MC_TRY(cut_out(&tile, &part, cut, left, top, ctx));
    put->uniform = mc_pixels_uniform(tile, put->bgra);
    if (blank_suits(put, format))
        MC_TRY(mc_image_blank(&data, tile->width, tile->height, put->bgra, ctx->pool));
    else
        MC_TRY(mc_format_encode(&data, format, tile, MC_FOR_STORE, ctx, ctx->pool));
    put->data = mc_buf_ref(data);
    return MC_OK;
}

static void
release_writes(mc_tile_write *writes, int count)
{
    for (int i = 0; i < count; i++)
        mc_buf_unref(writes[i].data);
}

/* Puts of all tiles of a metatile, with references that the caller drops by release_puts. */
static mc_error *
cut_metatile(cutting *cut, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        cut->writes[i].key = *cut->key;
        cut->writes[i].key.x = cut->metatile.x + i % cut->metatile.columns;
        cut->writes[i].key.y = cut->metatile.y + i / cut->metatile.columns;
    }
    int helpers =
        count >= TILES_WORTH_A_HELPER && ctx->process->workers != NULL ? mc_workers_count(ctx->process->workers) : 0;
    if (helpers > 0)
        return mc_workers_run(ctx->process->workers, cut_tile, cut, count, helpers, ctx, pool);
    for (int i = 0; i < count; i++)
        MC_TRY(cut_tile(cut, i, ctx));
    return MC_OK;
}

static mc_error *
render_from_source(mc_rendered *map, mc_tileset *tileset, const mc_tile_key *key, const mc_metatile *metatile,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid *grid = key->grid;
    mc_extent box = metatile_extent(grid, key->z, metatile);
    double margin = tileset->metabuffer * grid->levels[key->z].resolution;
    mc_render wanted = { .tileset = tileset->name,
                         .grid = grid,
                         .box = { box.minx - margin, box.miny - margin, box.maxx + margin, box.maxy + margin },
                         .width = metatile->columns * grid->tile_width + 2 * tileset->metabuffer,
                         .height = metatile->rows * grid->tile_height + 2 * tileset->metabuffer,
                         .density = grid->density,
                         .dimension_count = key->dimension_count,
                         .dimensions = key->dimensions };
    mc_tileset_ask_format(&wanted, tileset);
    apr_time_t outer = ctx->deadline;
    if (tileset->deadline > 0) {
        apr_time_t own = mc_clock_now() + (apr_interval_time_t)(tileset->deadline * APR_USEC_PER_SEC);
        ctx->deadline = outer == 0 || own < outer ? own : outer;
    }
    mc_count(ctx->process->metrics, MC_COUNT_renders_total, 1);
    mc_error *error = mc_source_render(map, tileset->source, &wanted, ctx, pool);
    ctx->deadline = outer;
    return error;
}

/* The tile that the caller wanted, out of what has just been made. */
static mc_error *
pick_rendered_tile(mc_tile **tile, const mc_tile_write *writes, int count, const mc_tile_key *key, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++)
        if (writes[i].key.x == key->x && writes[i].key.y == key->y) {
            *tile = apr_pcalloc(pool, sizeof(**tile));
            (*tile)->data = mc_buf_attach(mc_buf_ref(writes[i].data), pool);
            (*tile)->coding = mc_image_sniff(writes[i].data->data, writes[i].data->size);
            (*tile)->mtime = apr_time_from_sec(apr_time_sec(apr_time_now()));
            (*tile)->blank = writes[i].uniform;
            (*tile)->no_data = writes[i].uniform && writes[i].bgra[3] == 0;
            memcpy((*tile)->bgra, writes[i].bgra, sizeof((*tile)->bgra));
            return MC_OK;
        }
    return mc_error_create(pool, MC_ERR_IO, "the tile is not part of its metatile");
}

static mc_error *
wrong_size_error(int sent_width, int sent_height, int width, int height, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UPSTREAM, "the source sent an image of %dx%d pixels instead of %dx%d",
                           sent_width, sent_height, width, height);
}

static mc_error *
check_map_size(const mc_pixels *map, int width, int height, apr_pool_t *pool)
{
    if (map->width == width && map->height == height)
        return MC_OK;
    return wrong_size_error(map->width, map->height, width, height, pool);
}

/* Decodes the image that a source sent; one that is stored as it came may be larger than what was asked for, as stored
 * tiles may. */
static mc_error *
decode_map(mc_rendered *map, int width, int height, bool as_sent, mc_ctx *ctx, apr_pool_t *pool)
{
    int sent_width, sent_height, times = as_sent ? mc_tile_oversize : 1;
    MC_TRY(mc_image_size(&sent_width, &sent_height, map->data->data, map->data->size, pool));
    if (sent_width > times * width || sent_height > times * height)
        return wrong_size_error(sent_width, sent_height, width, height, pool);
    MC_TRY(mc_image_decode(&map->pixels, map->data->data, map->data->size, ctx, pool));
    mc_pixels_attach(map->pixels, pool);
    return MC_OK;
}

static mc_error *
store_metatile(mc_tile_write *writes, int count, mc_tile **tile, mc_error **store_error, mc_tileset *tileset,
               const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++)
        writes[i].lifetime = tileset->auto_expire;
    *store_error = mc_cache_put(tileset->cache, writes, count, ctx);
    return tile == NULL ? MC_OK : pick_rendered_tile(tile, writes, count, key, pool);
}

/* `tiles`: of the metatile, row by row from its upper left corner on the ground. */
static mc_error *
store_vector_tiles(mc_buf *const *tiles, const mc_metatile *metatile, mc_tile **tile, mc_error **store_error,
                   mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    int count = metatile->columns * metatile->rows;
    mc_tile_write *writes = apr_pcalloc(pool, sizeof(*writes) * (size_t)count);
    mc_extent whole = metatile_extent(key->grid, key->z, metatile);
    for (int i = 0; i < count; i++) {
        writes[i] = (mc_tile_write){ .key = *key, .layers = mc_tileset_vector_layers, .layers_baton = tileset };
        writes[i].key.x = metatile->x + i % metatile->columns;
        writes[i].key.y = metatile->y + i / metatile->columns;
        mc_extent box = mc_grid_tile_extent(key->grid, key->z, writes[i].key.x, writes[i].key.y);
        int column = (int)lround((box.minx - whole.minx) / (box.maxx - box.minx));
        int row = (int)lround((whole.maxy - box.maxy) / (box.maxy - box.miny));
        writes[i].data = tiles[row * metatile->columns + column];
    }
    return store_metatile(writes, count, tile, store_error, tileset, key, ctx, pool);
}

/* Whether the image of one tile is stored as the source sent it: always without a format; of a server of tiles also in
 * the format that is wanted, so that nothing is lost by a second compression. */
static bool
suits_as_sent(const mc_rendered *map, const mc_tileset *tileset, const mc_metatile *metatile, const mc_grid *grid)
{
    const mc_format *format = tileset->format;
    if (map->data == NULL || format == NULL || !mc_format_is_image(format))
        return map->data != NULL;
    if (!tileset->source->tiles_as_sent || metatile->columns * metatile->rows != 1 || tileset->metabuffer > 0 ||
        tileset->watermark != NULL || map->pixels->width != grid->tile_width ||
        map->pixels->height != grid->tile_height)
        return false;
    mc_coding coding = mc_image_sniff(map->data->data, map->data->size);
    return (coding == MC_CODING_PNG && format->type == MC_FORMAT_PNG && format->colors == 0) ||
           (coding == MC_CODING_JPEG && format->type == MC_FORMAT_JPEG) ||
           (coding != MC_CODING_UNKNOWN && format->type == MC_FORMAT_MIXED);
}

mc_error *
mc_metatile_render(mc_tile **tile, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_render_metatile");
    mc_metatile metatile = mc_tileset_metatile(tileset, key->grid, key->z, key->x, key->y);
    mc_rendered map = { 0 };
    MC_TRY(render_from_source(&map, tileset, key, &metatile, ctx, pool));
    bool raw = mc_tileset_keeps_bytes(tileset);
    int width = metatile.columns * key->grid->tile_width + 2 * tileset->metabuffer;
    int height = metatile.rows * key->grid->tile_height + 2 * tileset->metabuffer;
    if (map.pixels == NULL && !raw)
        MC_TRY(decode_map(&map, width, height, tileset->format == NULL, ctx, pool));
    if (map.tiles != NULL)
        return store_vector_tiles(map.tiles, &metatile, tile, store_error, tileset, key, ctx, pool);
    if (suits_as_sent(&map, tileset, &metatile, key->grid)) {
        mc_tile_write as_sent = {
            .key = *key, .data = map.data, .layers = mc_tileset_vector_layers, .layers_baton = tileset
        };
        as_sent.uniform = map.pixels != NULL && mc_pixels_uniform(map.pixels, as_sent.bgra);
        return store_metatile(&as_sent, 1, tile, store_error, tileset, key, ctx, pool);
    }
    MC_TRY(check_map_size(map.pixels, width, height, pool));
    int count = metatile.columns * metatile.rows;
    cutting cut = { tileset,    key,
                    metatile,   metatile_extent(key->grid, key->z, &metatile),
                    map.pixels, apr_pcalloc(pool, sizeof(mc_tile_write) * (size_t)count) };
    mc_error *error = cut_metatile(&cut, count, ctx, pool);
    if (error == MC_OK)
        error = store_metatile(cut.writes, count, tile, store_error, tileset, key, ctx, pool);
    release_writes(cut.writes, count);
    return error;
}

/* Z-MY-MX-tileset, the grid where there are several, and each dimension's value (docs/reference/configuration.md 6.3).
 */
static const char *
lock_name(const mc_tileset *tileset, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_metatile metatile = mc_tileset_metatile(tileset, key->grid, key->z, key->x, key->y);
    bool dense = key->grid->density > 0; /* its metatiles may be smaller ones */
    char *name = apr_psprintf(pool, "%d-%d-%d-%s", key->z, dense ? metatile.y : metatile.y / tileset->metatile_rows,
                              dense ? metatile.x : metatile.x / tileset->metatile_columns, tileset->name);
    if (tileset->link_count > 1 || dense)
        name = apr_pstrcat(pool, name, "-", key->grid->name, NULL);
    for (int i = 0; i < key->dimension_count; i++)
        name = apr_pstrcat(pool, name, "/", key->dimensions[i].value, NULL);
    return name;
}

/* The stored form is what later requests get: its bytes and times are served from the start. */
static void
prefer_stored(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *stored = NULL;
    mc_error *error = mc_cache_get(&stored, tileset->cache, key, ctx, pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    else if (stored != NULL)
        *tile = stored;
}

/*
 * Under the lock: looks again, renders. `stale` is what the caller has seen, or NULL. What could be rendered but not
 * stored is no error here: *store_error says so.
 */
static mc_error *
render_unless_there(mc_tile **tile, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key,
                    const mc_tile *stale, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *found = NULL;
    mc_tile *fresh = NULL;
    MC_TRY(mc_cache_get(&found, tileset->cache, key, ctx, pool));
    if (found != NULL && (stale == NULL || found->mtime > stale->mtime)) {
        *tile = found;
        return MC_OK;
    }
    MC_TRY(mc_metatile_render(&fresh, store_error, tileset, key, ctx, pool));
    if (*store_error == MC_OK)
        prefer_stored(&fresh, tileset, key, ctx, pool);
    else
        mc_log_error(ctx, MC_LOG_ERROR, *store_error);
    *tile = fresh;
    return MC_OK;
}

/* As the leader of its flight, which it lands. Others wait for the tile, and it is stored: a client that leaves does
 * not end it. */
static mc_error *
lead_render(mc_tile **tile, mc_flight *flight, mc_tileset *tileset, const mc_tile_key *key, const mc_tile *stale,
            mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *store_error = MC_OK;
    bool (*abandoned)(void *) = ctx->abandoned;
    ctx->abandoned = NULL;
    mc_error *error = render_unless_there(tile, &store_error, tileset, key, stale, ctx, pool);
    ctx->abandoned = abandoned;
    /* who waits would look into the store and take what is not there for an empty tile */
    if (error != MC_OK)
        mc_flight_land_for(flight, error, tileset->failure_expires);
    else
        mc_flight_land(flight, store_error);
    return error;
}

/* With the lock across processes, for which it waits. */
static mc_error *
lead_locked(mc_tile **tile, mc_flight *flight, mc_tileset *tileset, const mc_tile_key *key, const char *name,
            mc_ctx *ctx, apr_pool_t *pool)
{
    mc_lock *lock = NULL;
    bool waited;
    mc_error *error =
        tileset->locker == NULL ? MC_OK : mc_locker_acquire(&lock, &waited, tileset->locker, name, ctx, pool);
    if (error != MC_OK) {
        mc_flight_land(flight, error);
        return error;
    }
    error = lead_render(tile, flight, tileset, key, NULL, ctx, pool);
    mc_lock_release(lock);
    return error;
}

/* After another one's render: what it stored, or nothing where it stored nothing (transparent tiles may be left out).
 */
static mc_error *
follow_render(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_count(ctx->process->metrics, MC_COUNT_render_waits_total, 1);
    MC_TRY(mc_cache_get(tile, tileset->cache, key, ctx, pool));
    return *tile != NULL ? MC_OK : mc_tile_nothing(tile, key->grid, pool);
}

/*
 * An old tile at once is better than a new one after a while: whoever gets lock and flight without waiting renders, all
 * others keep *tile. The lock comes first, as it also tells of other processes, and a flight that ends without a render
 * would mislead those on it who have no tile at all. An error: rendering fails, now or a moment ago.
 */
static mc_error *
refresh_stale_tile(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, const char *name, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_lock *lock = NULL;
    mc_flight_role role;
    mc_flight *flight = NULL;
    if (tileset->locker != NULL) {
        MC_TRY(mc_locker_try(&lock, tileset->locker, name, ctx, pool));
        if (lock == NULL)
            return MC_OK;
    }
    mc_error *error = mc_flight_try(&role, &flight, ctx->process->flights, name, ctx, pool);
    if (error == MC_OK && role == MC_LEAD)
        error = lead_render(tile, flight, tileset, key, *tile, ctx, pool);
    else if (error == MC_OK && role == MC_FAILED)
        error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "rendering the tile has failed a moment before");
    mc_lock_release(lock);
    return error;
}

/* Whether an expired tile is better than an error: at worst *tile still is the old one
 * (docs/reference/configuration.md 6.3). */
static bool
serves_stale(const mc_tile *tile, const mc_tileset *tileset)
{
    double age = (double)(apr_time_now() - tile->mtime) / APR_USEC_PER_SEC;
    return tileset->stale_if_error < 0 || age <= (double)tileset->auto_expire + tileset->stale_if_error;
}

/* Whether the request may render, and its turn to draw will come in time. */
static mc_error *
expect_place(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    if (mc_source_draws(tileset->source))
        MC_TRY(mc_semaphore_expect(ctx->process->drawing, ctx, pool));
    return mc_admission_enter(ctx, pool);
}

/* For this request alone: nothing is kept that others could have. */
static mc_error *
render_unkept(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *store_error = MC_OK;
    MC_TRY(expect_place(tileset, ctx, pool));
    MC_SLOW(ctx);
    return mc_metatile_render(tile, &store_error, tileset, key, ctx, pool);
}

/* Renders the metatile of a key by one renderer at a time, in this process and others; the tile is looked up again
 * first. Where *tile is an expired one, it is kept if anybody else renders or if rendering fails: then nobody waits. */
static mc_error *
render_metatile_once(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    if (tileset->cache->ops->keeps_nothing)
        return render_unkept(tile, tileset, key, ctx, pool);
    const char *name = lock_name(tileset, key, pool);
    if (*tile != NULL) {
        if (expect_place(tileset, ctx, pool) != MC_OK)
            return MC_OK;
        MC_SLOW(ctx);
        mc_error *error = refresh_stale_tile(tile, tileset, key, name, ctx, pool);
        if (error == MC_OK)
            return MC_OK;
        mc_log_error(ctx, error->kind == MC_ERR_UNAVAILABLE ? MC_LOG_DEBUG : MC_LOG_WARN, error); /* said already */
        if (!serves_stale(*tile, tileset))
            return error;
        mc_count(ctx->process->metrics, MC_COUNT_stale_tiles_total, 1);
        return MC_OK;
    }
    mc_flight_role role;
    mc_flight *flight = NULL;
    mc_error *shared = MC_OK;
    MC_TRY(mc_flight_try(&role, &flight, ctx->process->flights, name, ctx, pool));
    if (role == MC_LEAD) { /* refused before the thread gives way to others: that is what costs time */
        mc_error *busy = expect_place(tileset, ctx, pool);
        if (busy != MC_OK) {
            mc_flight_land(flight, busy);
            return busy;
        }
        MC_SLOW(ctx);
        return lead_locked(tile, flight, tileset, key, name, ctx, pool);
    }
    MC_TRY(mc_admission_enter(ctx, pool));
    double timeout = tileset->locker == NULL ? 120 : mc_locker_timeout(tileset->locker);
    {
        MC_SLOW(ctx);
        MC_TRY(mc_flight_board(&role, &flight, &shared, ctx->process->flights, name,
                               (apr_interval_time_t)(timeout * APR_USEC_PER_SEC), ctx, pool));
    }
    if (role == MC_FAILED) {
        mc_count(ctx->process->metrics, MC_COUNT_remembered_failures_total, 1);
        return shared;
    }
    if (role == MC_FOLLOW)
        return follow_render(tile, tileset, key, ctx, pool);
    MC_SLOW(ctx);
    return lead_locked(tile, flight, tileset, key, name, ctx, pool);
}

mc_error *
mc_tileset_get_sub(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_tileset_tile_get_without_subdimensions");
    MC_TRY(mc_cache_get(tile, tileset->cache, key, ctx, pool));
    if (*tile != NULL && !(key->renderable && mc_tileset_too_old(tileset, (*tile)->mtime)))
        return MC_OK;
    if (key->renderable)
        return render_metatile_once(tile, tileset, key, ctx, pool);
    if (*tile != NULL)
        return MC_OK;
    mc_span_note(&span, "CACHE_MISS");
    return mc_tile_nothing(tile, key->grid, pool);
}
