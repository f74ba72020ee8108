/* The strong validator of a tile. */
#include "mapcache/tile.h"

#include "base/hash.h"

uint64_t
mc_tile_tag(mc_tile *tile)
{
    if (tile->tag == 0 && tile->data != NULL) {
        tile->tag = mc_hash64(tile->data->data, tile->data->size, 0);
        /* Zero means "not computed yet". */
        if (tile->tag == 0)
            tile->tag = 1;
    }
    return tile->tag;
}
