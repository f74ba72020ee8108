/* See raster_strip.h. */
#include "ingest/pyramid/raster_strip.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_PIXELS ((int64_t)1 << 24)
#define WINDOW_BYTES ((size_t)1 << 30)

int64_t
mc_raster_strip_bytes(const mc_raster_info *info)
{
    int64_t pixels = (int64_t)info->width * info->height;
    return info->width <= mc_pixels_max && info->height <= mc_pixels_max && pixels <= WHOLE_PIXELS ? pixels * 4 : 0;
}

static mc_error *
read_whole(mc_raster_strip *strip, apr_pool_t *pool)
{
    MC_TRY(mc_raster_read(&strip->whole, strip->raster, pool));
    strip->rows = *strip->whole;
    return MC_OK;
}

mc_error *
mc_raster_strip_open(mc_raster_strip *strip, const mc_raster_info *info, const mc_raster_options *options,
                     apr_pool_t *pool)
{
    *strip = (mc_raster_strip){ .raster = NULL };
    MC_TRY(mc_raster_open(&strip->raster, info->path, options, pool));
    const mc_raster_info *now = mc_raster_about(strip->raster);
    bool same = now->width == info->width && now->height == info->height;
    for (int i = 0; i < 6; i++)
        same = same && now->affine[i] == info->affine[i];
    if (!same)
        return mc_error_create(pool, MC_ERR_CORRUPT, "%s: it has changed since its header was read", info->path);
    strip->rows.width = now->width;
    strip->rows.stride = (size_t)now->width * 4;
    strip->rows.opacity = now->opaque ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
    return mc_raster_strip_bytes(now) > 0 ? read_whole(strip, pool) : MC_OK;
}

mc_error *
mc_raster_strip_move(mc_raster_strip *strip, int first, int end, apr_pool_t *pool)
{
    if (strip->whole != NULL || first >= end)
        return MC_OK;
    mc_pixels *rows = &strip->rows;
    int last = strip->first + rows->height;
    MC_ASSERT(first >= strip->first);
    int kept = last > first ? last - first : 0, wanted = end - first;
    size_t size = (size_t)(wanted > kept ? wanted : kept) * rows->stride;
    if (size > WINDOW_BYTES)
        return mc_error_create(pool, MC_ERR_LIMIT,
                               "%s: %d of its rows are needed at once: turn it to the grid's CRS first (gdalwarp)",
                               mc_raster_about(strip->raster)->path, wanted);
    if (kept > 0 && first > strip->first)
        memmove(strip->memory, strip->memory + (size_t)(first - strip->first) * rows->stride,
                (size_t)kept * rows->stride);
    if (strip->room < size) {
        uint8_t *grown = realloc(strip->memory, size);
        if (grown == NULL)
            return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for %d rows", wanted);
        strip->memory = grown;
        strip->room = size;
    }
    strip->first = first;
    rows->data = strip->memory;
    rows->height = kept;
    for (int row = mc_raster_row(strip->raster); row < first; row++) /* skipped: of no tile */
        MC_TRY(mc_raster_rows(strip->raster, rows->data + (size_t)kept * rows->stride, rows->stride, 1, pool));
    if (wanted > kept)
        MC_TRY(
            mc_raster_rows(strip->raster, rows->data + (size_t)kept * rows->stride, rows->stride, wanted - kept, pool));
    rows->height = wanted > kept ? wanted : kept;
    return MC_OK;
}

void
mc_raster_strip_close(mc_raster_strip *strip)
{
    mc_pixels_unref(strip->whole);
    free(strip->memory);
    if (strip->raster != NULL)
        mc_raster_close(strip->raster);
    *strip = (mc_raster_strip){ .raster = NULL };
}
