/* Which tiles stand in a file of the cache "tiff" (docs/reference/configuration.md 5.10). */
#include "cache/blocks/tiff_cache.h"

mc_tiff_block
mc_tiff_block_of(const tiff_cache *cache, const mc_tile_key *key)
{
    const mc_level *level = &key->grid->levels[key->z];
    mc_tiff_block block = { .columns = cache->columns < level->columns ? cache->columns : level->columns,
                            .rows = cache->rows < level->rows ? cache->rows : level->rows };
    int column = key->x % block.columns, row = key->y % block.rows;
    block.x = key->x - column;
    block.y = key->y - row;
    block.number = (uint64_t)(block.rows - row - 1) * (uint64_t)block.columns + (uint64_t)column;
    return block;
}

bool
mc_tiff_block_fits(const mc_tiff_index *index, const mc_tiff_block *block, const mc_grid *grid)
{
    return index->compression == MC_TIFF_JPEG && index->planes == 1 && (int)index->tile_width == grid->tile_width &&
           (int)index->tile_height == grid->tile_height && (int)index->columns == block->columns &&
           (int)index->rows == block->rows;
}
