/* See window.h. */
#include "ingest/pyramid/window.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_PIXELS ((int64_t)1 << 24)
#define WINDOW_BYTES ((size_t)1 << 30)

int64_t
mc_window_bytes(const mc_raster_info *info)
{
    int64_t pixels = (int64_t)info->width * info->height;
    return info->width <= mc_pixels_max && info->height <= mc_pixels_max && pixels <= WHOLE_PIXELS ? pixels * 4 : 0;
}

static mc_error *
read_whole(mc_window *window, apr_pool_t *pool)
{
    MC_TRY(mc_raster_read(&window->whole, window->raster, pool));
    window->rows = *window->whole;
    return MC_OK;
}

mc_error *
mc_window_open(mc_window *window, const mc_raster_info *info, const mc_raster_options *options, apr_pool_t *pool)
{
    *window = (mc_window){ .raster = NULL };
    MC_TRY(mc_raster_open(&window->raster, info->path, options, pool));
    const mc_raster_info *now = mc_raster_about(window->raster);
    bool same = now->width == info->width && now->height == info->height;
    for (int i = 0; i < 6; i++)
        same = same && now->affine[i] == info->affine[i];
    if (!same)
        return mc_error_create(pool, MC_ERR_CORRUPT, "%s: it has changed since its header was read", info->path);
    window->rows.width = now->width;
    window->rows.stride = (size_t)now->width * 4;
    window->rows.opacity = now->opaque ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
    return mc_window_bytes(now) > 0 ? read_whole(window, pool) : MC_OK;
}

mc_error *
mc_window_move(mc_window *window, int first, int end, apr_pool_t *pool)
{
    if (window->whole != NULL || first >= end)
        return MC_OK;
    mc_pixels *rows = &window->rows;
    int last = window->first + rows->height;
    MC_ASSERT(first >= window->first);
    int kept = last > first ? last - first : 0, wanted = end - first;
    size_t size = (size_t)(wanted > kept ? wanted : kept) * rows->stride;
    if (size > WINDOW_BYTES)
        return mc_error_create(pool, MC_ERR_LIMIT,
                               "%s: %d of its rows are needed at once: turn it to the grid's CRS first (gdalwarp)",
                               mc_raster_about(window->raster)->path, wanted);
    if (kept > 0 && first > window->first)
        memmove(window->memory, window->memory + (size_t)(first - window->first) * rows->stride,
                (size_t)kept * rows->stride);
    if (window->room < size) {
        uint8_t *grown = realloc(window->memory, size);
        if (grown == NULL)
            return mc_error_create(pool, MC_ERR_LIMIT, "no memory for %d rows", wanted);
        window->memory = grown;
        window->room = size;
    }
    window->first = first;
    rows->data = window->memory;
    rows->height = kept;
    for (int row = mc_raster_row(window->raster); row < first; row++) /* skipped: of no tile */
        MC_TRY(mc_raster_rows(window->raster, rows->data + (size_t)kept * rows->stride, rows->stride, 1, pool));
    if (wanted > kept)
        MC_TRY(mc_raster_rows(window->raster, rows->data + (size_t)kept * rows->stride, rows->stride, wanted - kept,
                              pool));
    rows->height = wanted > kept ? wanted : kept;
    return MC_OK;
}

void
mc_window_close(mc_window *window)
{
    mc_pixels_unref(window->whole);
    free(window->memory);
    if (window->raster != NULL)
        mc_raster_close(window->raster);
    *window = (mc_window){ .raster = NULL };
}
