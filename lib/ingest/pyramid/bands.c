/* See bands.h. */
#include "ingest/pyramid/bands.h"

#include <stdlib.h>

static int
by_rows(const void *a, const void *b)
{
    const mc_ingest_band *left = a, *right = b;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return left->first < right->first ? -1 : left->first > right->first;
}

/* The rows of an image that a row of tiles needs. */
static void
find_rows(mc_ingest_band *band, const mc_image_placement *placement, const mc_tile_range *range,
          const mc_projection *projection)
{
    band->first = placement->image->height;
    band->end = 0;
    for (int x = range->minx; x < range->maxx; x++) {
        int first, end;
        mc_image_placement_rows(&first, &end, placement, projection, band->chain->direct, x, band->y);
        if (first < end) {
            band->first = first < band->first ? first : band->first;
            band->end = end > band->end ? end : band->end;
        }
        if (placement->upright)
            break;
    }
    if (band->first > band->end)
        band->first = band->end;
}

mc_error *
mc_ingest_bands(apr_array_header_t **bands, const mc_ingest *ingest, int number, apr_pool_t *pool)
{
    const mc_ingest_image *image = &ingest->images[number];
    const mc_grid *grid = ingest->plan.link->grid;
    mc_projection *projection = NULL;
    if (image->info.srs != NULL && !mc_grid_has_srs(grid, image->info.srs))
        MC_TRY(mc_projection_open(&projection, grid->srs, image->info.srs, pool));
    *bands = apr_array_make(pool, 16, sizeof(mc_ingest_band));
    for (int c = 0; c < ingest->chain_count; c++) {
        const mc_tile_range *range = &ingest->chains[c].ranges[number];
        for (int y = range->miny; y < range->maxy && range->minx < range->maxx; y++) {
            mc_ingest_band band = { .chain = &ingest->chains[c], .y = y };
            find_rows(&band, &image->placement, range, projection);
            APR_ARRAY_PUSH(*bands, mc_ingest_band) = band;
        }
    }
    qsort((*bands)->elts, (size_t)(*bands)->nelts, sizeof(mc_ingest_band), by_rows);
    int keep = image->info.height;
    for (int i = (*bands)->nelts - 1; i >= 0; i--) {
        mc_ingest_band *band = &APR_ARRAY_IDX(*bands, i, mc_ingest_band);
        if (band->first < band->end && band->first < keep)
            keep = band->first;
        band->keep = keep;
    }
    return MC_OK;
}
