/*
 * PMTiles archives of any bytes: tiles are read or refused, walks end, and what a walk has told a seek finds.
 * Input: the file.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/pmtiles/archive.h"
#include "fuzz_support.h"
#include "grid/tile_id.h"

typedef struct told {
    mc_pmtiles_archive *archive;
    apr_pool_t *pool;
    int count;
} told;

static mc_error *
check_told_entry(void *baton, const mc_pmtiles_entry *entry)
{
    told *all = baton;
    mc_pmtiles_entry found;
    mc_buf *data;
    MC_ASSERT(entry->run > 0 && entry->length > 0);
    MC_TRY(mc_pmtiles_seek(&found, all->archive, entry->id + entry->run - 1, all->pool));
    MC_ASSERT(found.id == entry->id && found.offset == entry->offset);
    if (all->count < 20)
        mc_error_ignore(mc_pmtiles_read(&data, all->archive, entry, all->pool));
    return ++all->count > 1000 ? mc_error_create(all->pool, MC_ERR_LIMIT, "enough") : MC_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    char path[64];
    mc_pmtiles_archive archive;
    mc_pmtiles_entry entry;
    mc_buf *metadata;
    int file = memfd_create("archive", 0);
    if (file < 0 || !mc_files_write(file, data, size))
        abort();
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    mc_ranges_look(&archive.file, path);
    if (mc_pmtiles_open(&archive, &ctx, pool) == MC_OK) {
        told all = { &archive, pool, 0 };
        mc_error_ignore(mc_pmtiles_walk(&archive, 0, UINT64_MAX, check_told_entry, &all, pool));
        for (uint64_t id = 0; id < 30; id++)
            mc_error_ignore(mc_pmtiles_seek(&entry, &archive, id * id * id, pool));
        mc_error_ignore(mc_pmtiles_read_metadata(&metadata, &archive, pool));
    }
    mc_pmtiles_close(&archive);
    close(file);
    apr_pool_destroy(pool);
    return 0;
}
