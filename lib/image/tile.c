/* Validators: of a tile, and what a format adds to that of an image. */
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

uint64_t
mc_format_tag(const mc_format *format)
{
    const int numbers[] = { (int)format->type,   format->compression, format->colors,      format->quality,
                            format->photometric, format->optimize,    format->alpha_cutoff };
    uint64_t tag = mc_hash64(numbers, sizeof(numbers), 0);
    if (format->type == MC_FORMAT_MIXED) {
        uint64_t parts[2] = { mc_format_tag(format->transparent), mc_format_tag(format->opaque) };
        tag = mc_hash64(parts, sizeof(parts), tag);
    }
    return tag;
}
