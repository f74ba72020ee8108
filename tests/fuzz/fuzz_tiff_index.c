/* Tiled TIFFs of any bytes: what leads to a tile is read or refused. Input: the file. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/archive/tiff_index.h"
#include "fuzz_support.h"
#include "memory/clock_cache.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    char path[64];
    mc_ranged_file ranged;
    mc_tiff_index index;
    mc_buf *tile;
    int file = memfd_create("tiff", 0);
    if (file < 0 || !mc_files_write(file, data, size))
        abort();
    apr_pool_create(&pool, NULL);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    mc_ranges_look(&ranged, path);
    if (mc_tiff_read_index(&index, &ranged, pool) == MC_OK) {
        uint64_t all = (uint64_t)index.columns * index.rows;
        MC_ASSERT(all > 0 && index.offsets.count >= all && index.tables_size <= MC_TIFF_TABLES_MAX);
        for (uint64_t i = 0; i < 20; i++)
            mc_error_ignore(mc_tiff_read_tile(&tile, &index, &ranged, i < 10 ? i : all - i, pool));
    }
    const mc_tiff_levels *levels;
    mc_clock_cache_entry *held;
    mc_ctx ctx = { .pool = pool };
    if (mc_tiff_find_levels(&levels, &held, &ranged, &ctx, pool) == MC_OK) {
        const int64_t numbers[] = { -1, 0, 1, 5 };
        mc_range_part parts[4];
        for (int i = 0; i < levels->count; i++)
            mc_error_ignore(mc_tiff_find_tiles(parts, &levels->indexes[i], &ranged, numbers, 4, pool));
        mc_clock_cache_release(held);
    }
    mc_ranges_close(&ranged);
    close(file);
    apr_pool_destroy(pool);
    return 0;
}
