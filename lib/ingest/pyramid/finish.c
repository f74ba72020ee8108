/* A tile that is final: completed from what is stored, halved into the one above, encoded. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "cache/cache_base.h"
#include "ingest/pyramid/ingest_private.h"
#include "ingest/pyramid/mask.h"
#include "mapcache/upkeep.h"

static mc_tile_key
ingest_tile_key(const mc_ingest *ingest, int z, int x, int y)
{
    const mc_tileset *tileset = ingest->plan.tileset;
    return (mc_tile_key){ .tileset = tileset->name,
                          .grid = ingest->plan.link->grid,
                          .z = z,
                          .x = x,
                          .y = y,
                          .dimension_count = tileset->dimension_count,
                          .dimensions = ingest->dimensions,
                          .extension = mc_tileset_extension(tileset),
                          .mime = tileset->format == NULL ? NULL : tileset->format->mime,
                          .renderable = true }; /* that there is no store yet is no error */
}

int
mc_ingest_quarter(const mc_grid *grid, int x, int y)
{
    bool from_right = grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
    bool from_top = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    return (((x & 1) != 0) != from_right ? 1 : 0) + (((y & 1) != 0) == from_top ? 2 : 0);
}

/* The pixels that are stored; NULL where nothing is. They live in ctx->pool. */
static mc_error *
read_stored(mc_pixels **pixels, const mc_ingest *ingest, int z, int x, int y, mc_ctx *ctx)
{
    const mc_grid *grid = ingest->plan.link->grid;
    mc_tile_key key = ingest_tile_key(ingest, z, x, y);
    mc_tile *tile;
    *pixels = NULL;
    mc_error *error = mc_cache_get(&tile, ingest->plan.tileset->cache, &key, ctx, ctx->pool);
    if (error == MC_OK && tile != NULL)
        error = mc_tile_decode(pixels, tile, grid, ctx, ctx->pool);
    if (error == MC_OK && *pixels != NULL) {
        mc_pixels_attach(*pixels, ctx->pool);
        if ((*pixels)->width != grid->tile_width || (*pixels)->height != grid->tile_height ||
            !mc_mask_apply(*pixels, tile->data->data, tile->data->size))
            error = mc_error_create(ctx->pool, MC_ERR_CORRUPT, "it is no tile of this grid");
    }
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(ctx->pool, error, error->kind, "the stored tile z%d x%d y%d cannot be read", z, x, y);
}

/* A tile, halved, in the one above it. */
static void
draw_above(const mc_ingest *ingest, mc_pixels *above, int quarter, mc_pixels *pixels)
{
    const mc_grid *grid = ingest->plan.link->grid;
    mc_draw_half(above, quarter % 2 * grid->tile_width / 2, quarter / 2 * grid->tile_height / 2, pixels,
                 ingest->plan.resample == MC_INGEST_NEAREST);
}

/* Quarters that no image has changed, from the tiles below as they are stored. */
static mc_error *
add_quarters(const mc_ingest *ingest, mc_partial *tile, mc_ctx *ctx)
{
    const mc_grid *grid = ingest->plan.link->grid;
    const mc_level *below = &grid->levels[tile->at.z + 1];
    for (int i = 0; i < 4; i++) {
        int x = tile->at.x * 2 + i % 2, y = tile->at.y * 2 + i / 2, quarter = mc_ingest_quarter(grid, x, y);
        mc_pixels *stored;
        if ((tile->quarters >> quarter & 1) != 0 || x >= below->columns || y >= below->rows)
            continue;
        MC_TRY(read_stored(&stored, ingest, tile->at.z + 1, x, y, ctx));
        if (stored != NULL)
            draw_above(ingest, tile->pixels, quarter, stored);
    }
    tile->pixels->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}

static mc_error *
complete_partial_tile(const mc_ingest *ingest, mc_partial *tile, mc_ctx *ctx)
{
    mc_pixels *stored;
    if (tile->at.z != mc_ingest_chain_of(ingest, tile->at.z)->direct && tile->quarters != 15)
        MC_TRY(add_quarters(ingest, tile, ctx));
    tile->pixels->opacity = MC_OPACITY_UNKNOWN;
    if (mc_pixels_opacity(tile->pixels) == MC_OPAQUE)
        return MC_OK;
    MC_TRY(read_stored(&stored, ingest, tile->at.z, tile->at.x, tile->at.y, ctx));
    if (stored != NULL)
        mc_draw_under(tile->pixels, stored);
    mc_pixels_opacity(tile->pixels);
    return MC_OK;
}

/* Puts the background behind pixels that are not opaque. */
static void
flatten_on_background(mc_pixels *pixels, const uint8_t background[3])
{
    for (int y = 0; y < pixels->height; y++) {
        uint8_t *pixel = pixels->data + (size_t)y * pixels->stride;
        for (int x = 0; x < pixels->width; x++, pixel += 4) {
            unsigned rest = 255U - pixel[3];
            for (int c = 0; c < 3 && rest > 0; c++)
                pixel[c] = (uint8_t)(pixel[c] + (background[2 - c] * rest + 127) / 255);
            pixel[3] = 255;
        }
    }
    pixels->opacity = MC_OPAQUE;
}

/* What a store may keep as a colour alone would lose its mask: that is a picture. */
static mc_error *
encode_ingested_tile(mc_tile_write *put, const mc_ingest *ingest, mc_pixels *pixels, mc_ctx *ctx)
{
    const mc_format *format = ingest->format;
    mc_mask *mask = NULL;
    if (format->type == MC_FORMAT_JPEG && pixels->opacity != MC_OPAQUE) {
        mask = mc_mask_create(pixels, ctx->pool);
        flatten_on_background(pixels, ingest->plan.background);
    }
    MC_TRY(mc_format_encode(&put->data, format, pixels, MC_FOR_STORE, ctx, ctx->pool));
    put->uniform = mask == NULL && mc_pixels_uniform(pixels, put->bgra);
    return mask == NULL ? MC_OK : mc_mask_insert(&put->data, put->data, mask, ctx->pool);
}

mc_error *
mc_ingest_finish(mc_tile_write *put, const mc_ingest *ingest, mc_partial *tile, mc_partial *above, mc_ctx *ctx)
{
    mc_tile_write made = { .key = ingest_tile_key(ingest, tile->at.z, tile->at.x, tile->at.y),
                           .lifetime = mc_tileset_store_lifetime(ingest->plan.tileset) };
    MC_TRY(complete_partial_tile(ingest, tile, ctx));
    if (above != NULL)
        draw_above(ingest, above->pixels, mc_ingest_quarter(ingest->plan.link->grid, tile->at.x, tile->at.y),
                   tile->pixels);
    MC_TRY(encode_ingested_tile(&made, ingest, tile->pixels, ctx));
    mc_buf_ref(made.data);
    *put = made;
    return MC_OK;
}

/* Microseconds for looking through the files of a directory. */
#define LOOK_TIME (APR_USEC_PER_SEC / 2)

typedef struct sizes {
    const mc_ingest *ingest;
    apr_int64_t bytes;
    int told; /* stores */
    bool unknown;
    mc_ctx *ctx;
} sizes;

static void
add_store_bytes(sizes *found, apr_int64_t bytes, const mc_error *error)
{
    found->unknown = found->unknown || error != MC_OK || bytes < 0;
    found->bytes += bytes;
    found->told++;
}

static void
add_store(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    (void)after;
    add_store_bytes(baton, before->bytes, error);
}

static void
add_cache_part_size(void *baton, mc_cache *part)
{
    sizes *found = baton;
    const mc_upkeep look = { .report = add_store, .baton = found };
    int64_t bytes = part->ops->upkeep == NULL ? -1 : 0, tiles;
    int before = found->told;
    mc_error *error = mc_cache_upkeep(part, &look, found->ctx);
    if (error == MC_OK && found->told == before && part->ops->measure != NULL) {
        mc_tile_key key = ingest_tile_key(found->ingest, 0, 0, 0);
        mc_ctx own = *found->ctx;
        own.deadline = mc_clock_now() + mc_ctx_remaining(found->ctx, LOOK_TIME);
        error = part->ops->measure(&bytes, &tiles, part, &key, &own);
    }
    if (error != MC_OK || found->told == before)
        add_store_bytes(found, bytes, error);
}

apr_int64_t
mc_ingest_store_bytes(const mc_ingest *ingest, mc_ctx *ctx)
{
    sizes found = { .ingest = ingest, .ctx = ctx };
    mc_cache_parts(ingest->plan.tileset->cache, add_cache_part_size, &found);
    return found.unknown ? -1 : found.bytes;
}
