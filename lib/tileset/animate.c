/* Tiles whose sub-tiles are shown one after the other: an animated PNG (lossless with alpha, as the sub-tiles are). */
#include <apr_strings.h>

#include "mapcache/trace.h"
#include "tileset/assembly.h"
#include "tileset/tileset_private.h"

/* The last value of a frame without a part is nothing: frames of neighbouring tiles stay in step. */
static mc_error *
draw_frames(mc_pixels **frames, const mc_assembled *made, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *empty;
    MC_TRY(mc_pixels_create(&empty, grid->tile_width, grid->tile_height, true, pool));
    mc_pixels_attach(empty, pool);
    for (int i = 0; i < made->frames; i++)
        frames[i] = empty;
    for (int i = 0; i < made->count; i++) {
        int place = made->parts[i].place;
        MC_TRY(mc_pixels_create(&frames[place], grid->tile_width, grid->tile_height, true, pool));
        mc_pixels_attach(frames[place], pool);
        mc_assembled_draw(frames[place], 0, 0, made, place, ctx);
    }
    return MC_OK;
}

mc_error *
mc_tile_animate(mc_tile **tile, const mc_assembled *made, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid *grid = wanted->link->grid;
    if (made->frames > mc_frames_max ||
        (apr_int64_t)made->count * grid->tile_width * grid->tile_height > MC_FRAMES_PIXELS)
        return mc_error_create(pool, MC_ERR_LIMIT, "an animated tile of layer %s would have %d frames, too many",
                               wanted->tileset->name, made->frames);
    mc_pixels **frames = apr_palloc(pool, sizeof(*frames) * (size_t)made->frames);
    MC_TRY(draw_frames(frames, made, grid, ctx, pool));
    mc_animation animation = { .frames = frames, .count = made->frames, .delay = MC_FRAME_DELAY };
    *tile = apr_pcalloc(pool, sizeof(**tile));
    (*tile)->coding = MC_CODING_PNG;
    return mc_apng_encode(&(*tile)->data, &animation, wanted->tileset->store_assemblies ? MC_FOR_STORE : MC_ON_THE_FLY,
                          ctx, pool);
}
