/* See cover.h. */
#include "feature/cover.h"

#include <string.h>

void
mc_cover_create(mc_cover *cover, int width, int height, apr_pool_t *pool)
{
    *cover = (mc_cover){ .width = width, .height = height };
    cover->stride = (width + 2 * MC_COVER_MARGIN) / 64 + 2; /* two words are looked at wherever a row begins */
    cover->words = apr_palloc(pool, sizeof(*cover->words) * (size_t)cover->stride * (size_t)height);
    mc_cover_clear(cover);
}

void
mc_cover_clear(mc_cover *cover)
{
    size_t row_size = sizeof(*cover->words) * (size_t)cover->stride;
    if (cover->height == 0)
        return;
    memset(cover->words, 0xff, row_size);
    memset(cover->words + MC_COVER_MARGIN / 64, 0, sizeof(*cover->words) * (size_t)(cover->width / 64));
    cover->words[(MC_COVER_MARGIN + cover->width) / 64] = UINT64_MAX << cover->width % 64;
    for (int y = 1; y < cover->height; y++)
        memcpy(cover->words + (size_t)y * (size_t)cover->stride, cover->words, row_size);
}
