/*
 * All tiles of a map from an archive behind HTTP: neighbours stand close together in an archive, so that a few requests
 * bring them all. What stands between two tiles is fetched along where it is less than a request is worth.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/pmtiles/far.h"

enum { GAP_WORTH_A_REQUEST = 64 << 10, FETCHED_MAX = 8 << 20 };

static int
compare_wanted(const void *a, const void *b)
{
    const mc_pmtiles_wanted *one = a, *other = b;
    return one->entry.offset < other->entry.offset ? -1 : one->entry.offset > other->entry.offset;
}

static uint64_t
end_of_entry(const mc_pmtiles_entry *entry)
{
    return entry->offset + entry->length;
}

/* The tiles from `first` on that are fetched together; returns the one behind them. *end: of the last one. */
static int
join_wanted(uint64_t *end, const mc_pmtiles_wanted *wanted, int first, int count)
{
    int next = first + 1;
    *end = end_of_entry(&wanted[first].entry);
    for (; next < count; next++) {
        const mc_pmtiles_entry *entry = &wanted[next].entry;
        uint64_t further = end_of_entry(entry) > *end ? end_of_entry(entry) : *end;
        if (entry->offset > *end + GAP_WORTH_A_REQUEST || further - wanted[first].entry.offset > FETCHED_MAX)
            break;
        *end = further;
    }
    return next;
}

/* Tiles first to next - 1, whose bytes end at `end` in the section of tiles. */
static mc_error *
fetch_joined(mc_pmtiles_wanted *wanted, int first, int next, uint64_t end, mc_pmtiles_archive *archive,
             apr_pool_t *pool)
{
    const mc_pmtiles_section *tiles = &archive->header.tiles;
    uint64_t begin = wanted[first].entry.offset;
    mc_buf *joined;
    if (next == first + 1)
        return mc_pmtiles_read(&wanted[first].data, archive, &wanted[first].entry, pool);
    MC_TRY(mc_ranges_read_buf(&joined, &archive->file, tiles->offset + begin, (size_t)(end - begin), pool));
    for (int i = first; i < next; i++) {
        const mc_pmtiles_entry *entry = &wanted[i].entry;
        MC_TRY(mc_buf_duplicate(&wanted[i].data, joined->data + (entry->offset - begin), entry->length, pool));
        MC_TRY(mc_pmtiles_unpack(&wanted[i].data, archive, pool));
    }
    return MC_OK;
}

mc_error *
mc_pmtiles_fetch(mc_pmtiles_wanted *wanted, int count, mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    const mc_pmtiles_section *tiles = &archive->header.tiles;
    for (int i = 0; i < count; i++)
        if (wanted[i].entry.offset > tiles->size || wanted[i].entry.length > tiles->size - wanted[i].entry.offset)
            return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a PMTiles archive lies outside of its section");
    qsort(wanted, (size_t)count, sizeof(*wanted), compare_wanted);
    for (int first = 0; first < count;) {
        uint64_t end;
        int next = join_wanted(&end, wanted, first, count);
        MC_TRY(fetch_joined(wanted, first, next, end, archive, pool));
        first = next;
    }
    return MC_OK;
}
