/*
 * All tiles of a map from an archive behind HTTP: neighbours stand close together in an archive, so that a few requests
 * bring them all, sent together. What stands between two tiles is fetched along where it is less than a request is
 * worth.
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

/* Tiles that are fetched together: wanted[first] to wanted[next - 1]. */
typedef struct wanted_group {
    int first, next;
} wanted_group;

/* Groups of what is sorted, and their parts of the file. Returns how many there are. */
static int
group_wanted(wanted_group *groups, mc_range_part *parts, const mc_pmtiles_wanted *wanted, int count, uint64_t tiles)
{
    int made = 0;
    for (int first = 0; first < count;) {
        uint64_t end, begin = wanted[first].entry.offset;
        int next = join_wanted(&end, wanted, first, count);
        groups[made] = (wanted_group){ first, next };
        parts[made++] = (mc_range_part){ .offset = tiles + begin, .size = (size_t)(end - begin) };
        first = next;
    }
    return made;
}

/* The tiles of a group out of its part. */
static mc_error *
cut_group(mc_pmtiles_wanted *wanted, const wanted_group *group, const mc_range_part *part,
          const mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    uint64_t begin = wanted[group->first].entry.offset;
    for (int i = group->first; i < group->next; i++) {
        const mc_pmtiles_entry *entry = &wanted[i].entry;
        if (group->next == group->first + 1)
            wanted[i].data = part->data;
        else
            MC_TRY(mc_buf_duplicate(&wanted[i].data, part->data->data + (entry->offset - begin), entry->length, pool));
        MC_TRY(mc_pmtiles_unpack(&wanted[i].data, archive, pool));
    }
    return MC_OK;
}

mc_error *
mc_pmtiles_fetch(mc_pmtiles_wanted *wanted, int count, mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    const mc_pmtiles_section *tiles = &archive->header.tiles;
    for (int i = 0; i < count; i++) {
        if (wanted[i].entry.offset > tiles->size || wanted[i].entry.length > tiles->size - wanted[i].entry.offset)
            return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a PMTiles archive lies outside of its section");
        if (wanted[i].entry.length > MC_TILE_BYTES_MAX)
            return mc_error_create(pool, MC_ERR_LIMIT, "a tile of a PMTiles archive has more than %d bytes",
                                   MC_TILE_BYTES_MAX);
    }
    qsort(wanted, (size_t)count, sizeof(*wanted), compare_wanted);
    wanted_group *groups = apr_pcalloc(pool, sizeof(*groups) * (size_t)(count + 1));
    mc_range_part *parts = apr_pcalloc(pool, sizeof(*parts) * (size_t)(count + 1));
    int made = group_wanted(groups, parts, wanted, count, tiles->offset);
    MC_TRY(mc_ranges_fetch_all(parts, made, &archive->file, pool));
    for (int i = 0; i < made; i++)
        MC_TRY(cut_group(wanted, &groups[i], &parts[i], archive, pool));
    return MC_OK;
}
