/* Rendering a metatile: asked of the source in one piece, cut, watermarked, encoded, stored. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/account.h"
#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/semaphore.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "tileset/tileset_counters.h"
#include "tileset/variant.h"

/* Encoding a tile costs 0.2 to 2 ms: below so many tiles nobody is woken. */
#define TILES_WORTH_A_HELPER 4

/* A metatile while it is cut. Jobs write only their own entries of `writes`: all tiles in the first format, then all in
 * each further format that is stored with it. */
typedef struct cutting {
    mc_tileset *tileset;
    const mc_tile_key *key;
    mc_metatile metatile;
    mc_extent extent; /* of the metatile without its buffer */
    mc_pixels *map;
    mc_tile_write *writes;
    int count;        /* of tiles */
    apr_time_t begun; /* when the render began, or 0 */
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
    const mc_tileset *variant = index < cut->count ? NULL : cut->tileset->variants[index / cut->count - 1];
    const mc_format *format = variant != NULL ? variant->format : render_format_of(cut->tileset);
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
    else if (variant != NULL)
        MC_TRY(mc_variant_encode(&data, variant, tile, MC_FOR_STORE, ctx, ctx->pool));
    else
        MC_TRY(mc_format_encode(&data, format, tile, MC_FOR_STORE, ctx, ctx->pool));
    put->data = mc_buf_ref(data);
    put->uniform = put->uniform && variant == NULL; /* a colour that a store keeps instead would come back as PNG */
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
        int place = i % cut->count;
        mc_tile_key *key = &cut->writes[i].key;
        *key = i < cut->count ? *cut->key : mc_variant_key(cut->tileset->variants[i / cut->count - 1], cut->key);
        key->x = cut->metatile.x + place % cut->metatile.columns;
        key->y = cut->metatile.y + place / cut->metatile.columns;
        cut->writes[i].made = cut->begun;
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

/* That of the tile that the caller wants; NULL: there is none. */
static mc_tile_write *
find_write(mc_tile_write *writes, int count, const mc_tile_key *key)
{
    for (int i = 0; i < count; i++)
        if (writes[i].key.x == key->x && writes[i].key.y == key->y)
            return &writes[i];
    return NULL;
}

/* The tile of a write that has just been made; read_as: its time in the store, in which the tile is no more than its
 * bytes; 0: not known. */
static mc_tile *
make_written_tile(const mc_tile_write *write, apr_time_t read_as, apr_pool_t *pool)
{
    mc_tile *tile = apr_pcalloc(pool, sizeof(*tile));
    tile->data = mc_buf_attach(mc_buf_ref(write->data), pool);
    tile->coding = mc_image_sniff(write->data->data, write->data->size);
    tile->as_stored = read_as != 0;
    tile->mtime = tile->as_stored    ? read_as
                  : write->made != 0 ? write->made
                                     : apr_time_from_sec(apr_time_sec(apr_time_now()));
    tile->blank = write->uniform && !tile->as_stored;
    tile->no_data = tile->blank && write->bgra[3] == 0;
    memcpy(tile->bgra, write->bgra, sizeof(tile->bgra));
    return tile;
}

/* ---- what is kept for who waits */

struct mc_made_tiles {
    const mc_tileset *tileset;
    const mc_tile_key *key; /* of the render; other ones may go on within it */
    int count;
    mc_tile_write *writes; /* of `key` no more than level, column and row */
};

mc_made_tiles *
mc_made_tiles_create(const mc_tileset *tileset, const mc_tile_key *key)
{
    mc_made_tiles *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    made->tileset = tileset;
    made->key = key;
    return made;
}

void
mc_made_tiles_forget(mc_made_tiles *made)
{
    for (int i = 0; made != NULL && i < made->count; i++)
        mc_buf_unref(made->writes[i].data);
    if (made != NULL)
        made->count = 0;
}

void
mc_made_tiles_drop(void *data)
{
    mc_made_tiles *made = data;
    mc_made_tiles_forget(made);
    free(made->writes);
    free(made);
}

static void
note_made_tiles(mc_made_tiles *made, const mc_tile_write *writes, int count, const mc_tileset *tileset,
                const mc_tile_key *key)
{
    if (made == NULL || made->tileset != tileset || made->key != key || made->count > 0)
        return;
    free(made->writes);
    made->writes = calloc((size_t)count, sizeof(*made->writes));
    MC_ASSERT(made->writes != NULL);
    for (int i = 0; i < count; i++) {
        made->writes[i] = writes[i];
        made->writes[i].read_as = NULL;
        made->writes[i].key = (mc_tile_key){ .x = writes[i].key.x, .y = writes[i].key.y, .z = writes[i].key.z };
        made->writes[i].data = mc_buf_ref(writes[i].data);
    }
    made->count = count;
}

mc_tile *
mc_made_tiles_find(const mc_made_tiles *made, const mc_tile_key *key, apr_pool_t *pool)
{
    const mc_tile_write *found = made == NULL ? NULL : find_write(made->writes, made->count, key);
    return found == NULL ? NULL : make_written_tile(found, 0, pool);
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

/* Further formats before the first one: where that cannot be stored, the next render stores all of them again. Where
 * tiles expire they come after it, as one that is older than the first one is made anew of that. */
static mc_error *
put_rendered(mc_tile_write *writes, int count, int formats, mc_tileset *tileset, mc_ctx *ctx)
{
    const int lifetime = mc_tileset_store_lifetime(tileset);
    for (int i = 0; i < count * formats; i++)
        writes[i].lifetime = lifetime;
    for (int i = 0; i < formats; i++) {
        int format = mc_tileset_may_be_stale(tileset) ? i : formats - 1 - i;
        mc_cache *cache = format == 0 ? tileset->cache : tileset->variants[format - 1]->cache;
        MC_TRY(mc_cache_put(cache, &writes[format * count], count, ctx));
    }
    return formats > 1 ? MC_OK : mc_tileset_forget_formats(tileset, writes, count, ctx);
}

/* Whether the store may be asked for the time of a tile while it is put. Puts that wait are over too late; bytes that
 * begin as a colour does are read as one. */
static bool
may_tell_time(const mc_tileset *tileset, const mc_tile_write *write, const mc_ctx *ctx)
{
    return tileset->cache->ops->tells_time && ctx->writes == NULL && write->data != NULL && write->data->size > 0 &&
           write->data->data[0] != '#';
}

static mc_error *
store_formats(mc_tile_write *writes, int count, int formats, mc_tile **tile, mc_error **store_error, double provisional,
              mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_write *wanted = tile == NULL ? NULL : find_write(writes, count, key);
    apr_time_t read_as = 0;
    if (wanted != NULL && may_tell_time(tileset, wanted, ctx))
        wanted->read_as = &read_as;
    if (provisional <= 0)
        *store_error = put_rendered(writes, count, formats, tileset, ctx);
    if (provisional <= 0 && *store_error == MC_OK) {
        mc_account_mark(ctx, MC_EVENT_STORED);
        mc_tileset_note_render(tileset, key, writes[0].made);
    } else if (provisional > 0 && tile == NULL) { /* a seeder, for which it has to be stored */
        *store_error = mc_provisional_error(tileset, pool);
    } else if (provisional > 0) {
        mc_tileset_keep_provisional(writes, count, provisional, tileset, ctx);
    }
    if (tile == NULL)
        return MC_OK;
    if (provisional <= 0)
        note_made_tiles(ctx->made, writes, count, tileset, key);
    if (wanted == NULL)
        return mc_error_create(pool, MC_ERR_IO, "the tile is not part of its metatile");
    wanted->read_as = NULL;
    *tile = make_written_tile(wanted, read_as, pool);
    (*tile)->provisional = provisional;
    return MC_OK;
}

mc_error *
mc_metatile_store(mc_tile_write *writes, int count, mc_tile **tile, mc_error **store_error, double provisional,
                  mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    return store_formats(writes, count, 1, tile, store_error, provisional, tileset, key, ctx, pool);
}

/* Tiles of the metatile, row by row from its upper left corner on the ground. */
static mc_error *
store_vector_tiles(const mc_rendered *map, apr_time_t begun, const mc_metatile *metatile, mc_tile **tile,
                   mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    int count = metatile->columns * metatile->rows;
    mc_tile_write *writes = apr_pcalloc(pool, sizeof(*writes) * (size_t)count);
    mc_extent whole = metatile_extent(key->grid, key->z, metatile);
    for (int i = 0; i < count; i++) {
        writes[i] =
            (mc_tile_write){ .key = *key, .made = begun, .layers = mc_tileset_vector_layers, .layers_baton = tileset };
        writes[i].key.x = metatile->x + i % metatile->columns;
        writes[i].key.y = metatile->y + i / metatile->columns;
        mc_extent box = mc_grid_tile_extent(key->grid, key->z, writes[i].key.x, writes[i].key.y);
        int column = (int)lround((box.minx - whole.minx) / (box.maxx - box.minx));
        int row = (int)lround((whole.maxy - box.maxy) / (box.maxy - box.miny));
        writes[i].data = map->tiles[row * metatile->columns + column];
    }
    return mc_metatile_store(writes, count, tile, store_error, map->provisional, tileset, key, ctx, pool);
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
           (coding == MC_CODING_WEBP && format->type == MC_FORMAT_WEBP) ||
           (coding != MC_CODING_UNKNOWN && format->type == MC_FORMAT_MIXED);
}

mc_error *
mc_metatile_render(mc_tile **tile, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_tileset_render_metatile", tileset->name);
    if (tileset->own != NULL)
        return tileset->own->render(tile, store_error, tileset, key, ctx, pool);
    mc_metatile metatile = mc_tileset_metatile(tileset, key->grid, key->z, key->x, key->y);
    mc_rendered map = { 0 };
    const apr_time_t begun = mc_tileset_time_of_render(tileset, ctx);
    MC_TRY(render_from_source(&map, tileset, key, &metatile, ctx, pool));
    bool raw = mc_tileset_keeps_bytes(tileset);
    int width = metatile.columns * key->grid->tile_width + 2 * tileset->metabuffer;
    int height = metatile.rows * key->grid->tile_height + 2 * tileset->metabuffer;
    if (map.pixels == NULL && !raw)
        MC_TRY(decode_map(&map, width, height, tileset->format == NULL, ctx, pool));
    if (map.tiles != NULL)
        return store_vector_tiles(&map, begun, &metatile, tile, store_error, tileset, key, ctx, pool);
    if (suits_as_sent(&map, tileset, &metatile, key->grid)) {
        mc_tile_write as_sent = {
            .key = *key, .data = map.data, .made = begun, .layers = mc_tileset_vector_layers, .layers_baton = tileset
        };
        as_sent.uniform = map.pixels != NULL && mc_pixels_uniform(map.pixels, as_sent.bgra);
        return mc_metatile_store(&as_sent, 1, tile, store_error, map.provisional, tileset, key, ctx, pool);
    }
    MC_TRY(check_map_size(map.pixels, width, height, pool));
    int count = metatile.columns * metatile.rows, formats = 1 + mc_variants_rendered(tileset);
    cutting cut = { tileset,    key,
                    metatile,   metatile_extent(key->grid, key->z, &metatile),
                    map.pixels, apr_pcalloc(pool, sizeof(mc_tile_write) * (size_t)(count * formats)),
                    count,      begun };
    mc_error *error = cut_metatile(&cut, count * formats, ctx, pool);
    if (error == MC_OK)
        error = store_formats(cut.writes, count, formats, tile, store_error, map.provisional, tileset, key, ctx, pool);
    release_writes(cut.writes, count * formats);
    return error;
}
