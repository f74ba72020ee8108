/* Which wants of a batch stand in the same file. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "footprint/footprint_private.h"

/* Numbers by hash, open addressing; a slot holds the number + 1. */
typedef struct numbers {
    int *slots;
    unsigned size; /* a power of two, more than twice the numbers */
} numbers;

/* Wants of equal tileset, grid and dimensions. */
typedef struct footprint_sort_group {
    const mc_tile_key *key;
    bool by_tile; /* each tile has a place of its own; else all are of one series */
    int series;
} footprint_sort_group;

typedef struct sorting {
    mc_footprints *batch;
    footprint_sort_group *groups;
    int group_count;
    numbers by_key, by_path, by_group; /* groups; files; series where places are by tile */
    int group_room, series_room, file_room;
    apr_pool_t *pool;
    mc_store_location location; /* of the want at hand; its cache is NULL where it has no file */
} sorting;

static numbers
create_numbers(unsigned size, apr_pool_t *pool)
{
    return (numbers){ apr_pcalloc(pool, sizeof(int) * size), size };
}

static void *
double_footprint_array(void *old, int *room, size_t size, apr_pool_t *pool)
{
    void *grown = apr_palloc(pool, size * (size_t)*room * 2);
    memcpy(grown, old, size * (size_t)*room);
    *room *= 2;
    return grown;
}

/* Equal names or values at different addresses make two groups; that costs, but is not wrong. The wants of a map come
 * by the ten thousand and share their values: reading these would be half of the work. */
static bool
same_footprint_group(const mc_tile_key *a, const mc_tile_key *b)
{
    return a->grid == b->grid && a->tileset == b->tileset && a->renderable == b->renderable &&
           a->dimension_count == b->dimension_count && a->dimensions == b->dimensions;
}

static uint64_t
hash_group(const mc_tile_key *key)
{
    uint64_t sum = (uint64_t)(uintptr_t)key->dimensions ^ (uint64_t)(uintptr_t)key->grid << 20 ^
                   (uint64_t)(uintptr_t)key->tileset << 40;
    sum *= 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 32;
}

/* Where in the table a search goes on; *at is advanced by the caller. */
static int
probe_number_slot(const numbers *from, unsigned *at)
{
    *at &= from->size - 1;
    return from->slots[*at] - 1;
}

/* What cannot have a file, or none that can be named, is read one by one: its fetch says what is wrong. */
static void
find_footprint_place(sorting *sorting, const mc_tile_key *key)
{
    mc_cache *cache = sorting->batch->cache;
    mc_store_location *location = &sorting->location;
    location->cache = NULL;
    location->by_tile = false;
    if (cache->ops->location != NULL && cache->ops->location(location, cache, key, sorting->pool) != MC_OK)
        location->cache = NULL;
}

/* The number of the file at the place; -1 where there is none. */
static int
find_footprint_file(sorting *sorting)
{
    mc_footprints *batch = sorting->batch;
    const char *path = sorting->location.path;
    if (sorting->location.cache == NULL)
        return -1;
    unsigned at = (unsigned)mc_hash64(path, strlen(path), 0);
    for (int number; (number = probe_number_slot(&sorting->by_path, &at)) >= 0; at++)
        if (strcmp(batch->files[number].path, path) == 0)
            return number;
    if (batch->file_count == sorting->file_room)
        batch->files = double_footprint_array(batch->files, &sorting->file_room, sizeof(*batch->files), sorting->pool);
    batch->files[batch->file_count] = (mc_batch_file){ .path = apr_pstrdup(sorting->pool, path) };
    sorting->by_path.slots[at] = ++batch->file_count;
    return batch->file_count - 1;
}

static int
add_footprint_series(sorting *sorting, const mc_tile_key *key, int group, int file)
{
    mc_footprints *batch = sorting->batch;
    if (batch->series_count == sorting->series_room)
        batch->series =
            double_footprint_array(batch->series, &sorting->series_room, sizeof(*batch->series), sorting->pool);
    mc_batch_series *made = &batch->series[batch->series_count];
    memset(made, 0, sizeof(*made));
    atomic_init(&made->facts, NULL);
    made->key = key;
    made->group = group;
    made->file = file;
    made->cache = sorting->location.cache;
    made->coverage = sorting->location.coverage;
    made->how = sorting->location.identity;
    made->paths = sorting->location.paths;
    made->needed = sorting->location.needed;
    made->by_tile = sorting->location.by_tile;
    return batch->series_count++;
}

/* The series of a group in a file, where a group has several. */
static int
find_series(sorting *sorting, const mc_tile_key *key, int group, int file)
{
    unsigned at = (unsigned)group * 2654435761u + (unsigned)(file + 1) * 40503u;
    for (int number; (number = probe_number_slot(&sorting->by_group, &at)) >= 0; at++)
        if (sorting->batch->series[number].group == group && sorting->batch->series[number].file == file)
            return number;
    int made = add_footprint_series(sorting, key, group, file);
    sorting->by_group.slots[at] = made + 1;
    return made;
}

static int
series_of(sorting *sorting, const mc_tile_key *key)
{
    unsigned at = (unsigned)hash_group(key);
    int number;
    for (; (number = probe_number_slot(&sorting->by_key, &at)) >= 0; at++)
        if (same_footprint_group(sorting->groups[number].key, key))
            break;
    if (number >= 0 && !sorting->groups[number].by_tile)
        return sorting->groups[number].series;
    find_footprint_place(sorting, key);
    if (number < 0) {
        if (sorting->group_count == sorting->group_room)
            sorting->groups = double_footprint_array(sorting->groups, &sorting->group_room,
                                                     sizeof(footprint_sort_group), sorting->pool);
        number = sorting->group_count++;
        sorting->by_key.slots[at] = number + 1;
        sorting->groups[number] = (footprint_sort_group){ key, sorting->location.by_tile, -1 };
    }
    int file = find_footprint_file(sorting);
    if (sorting->groups[number].by_tile)
        return find_series(sorting, key, number, file);
    return sorting->groups[number].series = add_footprint_series(sorting, key, number, file);
}

void
mc_footprints_sort(mc_footprints *batch, apr_pool_t *pool)
{
    sorting sorting = { .batch = batch, .group_room = 16, .series_room = 16, .file_room = 16, .pool = pool };
    unsigned size = 64;
    while (size < (unsigned)batch->count * 2)
        size *= 2;
    sorting.by_key = create_numbers(size, pool);
    sorting.by_path = create_numbers(size, pool);
    sorting.by_group = create_numbers(size, pool);
    sorting.groups = apr_palloc(pool, sizeof(footprint_sort_group) * 16);
    batch->series = apr_palloc(pool, sizeof(*batch->series) * 16);
    batch->files = apr_palloc(pool, sizeof(*batch->files) * 16);
    for (int i = 0; i < batch->count; i++) {
        batch->series_of[i] = series_of(&sorting, &batch->wants[i].key);
        const mc_batch_series *series = &batch->series[batch->series_of[i]];
        /* Wants without files keep to numbers behind those of the files, which are not all known yet. */
        batch->wants[i].file = series->file >= 0 ? series->file : batch->count + series->group;
    }
}
