/* Tiles made of sub-tiles, once these are gathered: their keys, and their pixels. */
#include "mapcache/trace.h"
#include "tileset/assembly.h"
#include "tileset/tileset_private.h"

mc_pixels
mc_footprint_view(const mc_footprint *footprint)
{
    return (mc_pixels){ .width = footprint->width,
                        .height = footprint->height,
                        .stride = footprint->stride,
                        .data = (uint8_t *)(uintptr_t)footprint->pixels,
                        .opacity = footprint->opacity };
}

/* The parts of one frame, or all: from the back to the front. */
void
mc_assembled_draw(mc_pixels *target, int left, int top, const mc_assembled *tile, int frame, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_image_merge");
    if (tile->drawn != NULL)
        mc_pixels_over(target, left, top, tile->drawn);
    for (int i = tile->count - 1; i >= 0; i--) {
        const mc_footprint *footprint = tile->parts[i].footprint;
        if (frame >= 0 && tile->parts[i].place != frame)
            continue;
        mc_pixels pixels = mc_footprint_view(footprint);
        mc_pixels_over(target, left + footprint->left, top + footprint->top, &pixels);
    }
}

/* Half a nanosecond for each pixel that is blended, and the call. */
int
mc_assembled_cost(const mc_assembled *tile)
{
    apr_int64_t pixels = tile->drawn == NULL ? 0 : (apr_int64_t)tile->drawn->width * tile->drawn->height;
    for (int i = 0; i < tile->count; i++)
        pixels += 200 + (apr_int64_t)tile->parts[i].footprint->width * tile->parts[i].footprint->height;
    return (int)(pixels / 2000);
}
