/* What a level has of a geometry. */
#include <stdlib.h>

#include "overview/overview_blocks.h"

enum { CELLS = 16 /* cells of thinning for a pixel */ };

mc_error *
mc_overview_pack(mc_overview_feature *feature, mc_overview_packing *packing, const mc_overview_level *level,
                 const mc_overview_job *job)
{
    const mc_extent first = mc_grid_tile_extent(job->grid, 0, 0, 0);
    const mc_wkb_cells cells = { first.minx, first.maxy, level->resolution / CELLS };
    mc_wkb_buffer *thinned = &packing->thinned, *packed = &packing->packed;
    thinned->size = packed->size = 0;
    if (mc_wkb_thin(thinned, feature->geometry, feature->size, 0, &cells)) {
        feature->packed = mc_wkb_pack(packed, thinned->data, thinned->size, level->digits);
        feature->geometry = feature->packed ? packed->data : thinned->data;
        feature->size = feature->packed ? packed->size : thinned->size;
    }
    if (thinned->failed || packed->failed)
        return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "there is no memory for a feature of a level");
    return MC_OK;
}

void
mc_overview_free_packing(mc_overview_packing *packing)
{
    free(packing->thinned.data);
    free(packing->packed.data);
}
