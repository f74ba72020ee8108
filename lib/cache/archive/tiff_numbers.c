/* See tiff_numbers.h. The numbers of an array are remembered in chunks, under the stamp of the file. */
#include "cache/archive/tiff_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "cache/memory.h"

enum { NUMBERS_OF_TIFF = 8, CHUNK_NUMBERS = 512 };

static struct mc_memory *
memory_of_file(const mc_ranged_file *file)
{
    return file->ctx == NULL || file->ctx->process == NULL ? NULL : file->ctx->process->memory;
}

/* The chunk that has number `at`. */
static mc_range_part
chunk_of_number(const mc_tiff_array *array, uint64_t at, const mc_tiff_index *index)
{
    uint64_t all = (uint64_t)index->columns * index->rows, first = at - at % CHUNK_NUMBERS;
    uint64_t count = all - first < CHUNK_NUMBERS ? all - first : CHUNK_NUMBERS;
    return (mc_range_part){ .offset = array->offset + first * (unsigned)array->width,
                            .size = (size_t)count * (unsigned)array->width };
}

static const uint8_t *
find_chunk(mc_clock_cache_entry **held, const mc_range_part *chunk, const mc_ranged_file *file)
{
    mc_range_key key;
    mc_ranges_key(&key, file, NUMBERS_OF_TIFF, chunk->offset, chunk->size);
    return mc_memory_find(memory_of_file(file), MC_SHARE_LARGE, held, key.bytes, key.size);
}

bool
mc_tiff_remembered_number(uint8_t bytes[8], const mc_tiff_array *array, uint64_t at, const mc_tiff_index *index,
                          const mc_ranged_file *file)
{
    mc_clock_cache_entry *held;
    const mc_range_part chunk = chunk_of_number(array, at, index);
    const uint8_t *known = find_chunk(&held, &chunk, file);
    if (known == NULL)
        return false;
    memcpy(bytes, known + at % CHUNK_NUMBERS * (unsigned)array->width, (size_t)array->width);
    mc_clock_cache_release(held);
    return true;
}

/* Adds a chunk that is neither known nor in the list. */
static void
want_chunk(mc_range_part *chunks, int *count, const mc_range_part *chunk, const mc_ranged_file *file)
{
    mc_clock_cache_entry *held;
    for (int i = 0; i < *count; i++)
        if (chunks[i].offset == chunk->offset)
            return;
    if (find_chunk(&held, chunk, file) != NULL) {
        mc_clock_cache_release(held);
        return;
    }
    chunks[(*count)++] = *chunk;
}

mc_error *
mc_tiff_prepare_numbers(const mc_tiff_index *index, mc_ranged_file *file, const int64_t *numbers, int count,
                        apr_pool_t *pool)
{
    mc_range_part *chunks = apr_palloc(pool, sizeof(*chunks) * 2 * (size_t)(count + 1));
    int wanted = 0;
    if (memory_of_file(file) == NULL || index->offsets.offset > (uint64_t)1 << 62 ||
        index->counts.offset > (uint64_t)1 << 62)
        return MC_OK; /* each number alone, which says what is wrong */
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 0 || (uint64_t)numbers[i] >= (uint64_t)index->columns * index->rows)
            continue;
        const mc_range_part offsets = chunk_of_number(&index->offsets, (uint64_t)numbers[i], index);
        const mc_range_part counts = chunk_of_number(&index->counts, (uint64_t)numbers[i], index);
        want_chunk(chunks, &wanted, &offsets, file);
        want_chunk(chunks, &wanted, &counts, file);
    }
    MC_TRY(mc_ranges_fetch_near(chunks, wanted, file, pool));
    for (int i = 0; i < wanted; i++) {
        mc_range_key key;
        void *kept = malloc(chunks[i].size);
        if (kept == NULL)
            return MC_OK;
        memcpy(kept, chunks[i].data->data, chunks[i].size);
        mc_ranges_key(&key, file, NUMBERS_OF_TIFF, chunks[i].offset, chunks[i].size);
        mc_memory_keep(file->ctx, MC_SHARE_LARGE, key.bytes, key.size, kept, chunks[i].size, free);
    }
    return MC_OK;
}
