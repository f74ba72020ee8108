/* All tiles of a map from an archive behind HTTP, by as few requests as bring them. */
#include "cache/pmtiles/far.h"

mc_error *
mc_pmtiles_fetch(mc_pmtiles_wanted *wanted, int count, mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    const mc_pmtiles_section *tiles = &archive->header.tiles;
    mc_range_part *parts = apr_pcalloc(pool, sizeof(*parts) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        const mc_pmtiles_entry *entry = &wanted[i].entry;
        if (entry->offset > tiles->size || entry->length > tiles->size - entry->offset)
            return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a PMTiles archive lies outside of its section");
        if (entry->length > MC_TILE_BYTES_MAX)
            return mc_error_create(pool, MC_ERR_LIMIT, "a tile of a PMTiles archive has more than %d bytes",
                                   MC_TILE_BYTES_MAX);
        parts[i] = (mc_range_part){ .offset = tiles->offset + entry->offset, .size = entry->length };
    }
    MC_TRY(mc_ranges_fetch_near(parts, count, &archive->file, pool));
    for (int i = 0; i < count; i++) {
        wanted[i].data = parts[i].data;
        MC_TRY(mc_pmtiles_unpack(&wanted[i].data, archive, pool));
    }
    return MC_OK;
}
