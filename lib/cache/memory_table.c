/* The tables of a process's memory, and how they share its bound. */
#include "cache/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/metrics.h"
#include "cache/cache_counters.h"
#include "mapcache/cache.h"

enum { GENERATIONS = 1024, ENTRY_BYTES = 256 };

/* Of the whole, in sixteenths: what a table keeps when the others want more than there is. A small footprint saves the
 * most for its bytes, a stored tile (a read, but no decoding) the least. */
static const size_t sixteenths[MC_SHARES] = { 3, 9, 4 };

struct mc_memory {
    mc_clock_cache *tables[MC_SHARES];
    struct mc_shared_cache *shared; /* NULL: this process has its tiles for itself */
    size_t bound;
    _Atomic uint64_t evictions; /* of the tables, those that the metrics know */
    _Atomic unsigned generations[GENERATIONS];
};

struct mc_memory *
mc_memory_create(apr_int64_t bytes)
{
    if (bytes <= 0)
        return NULL;
    struct mc_memory *memory = calloc(1, sizeof(*memory));
    MC_ASSERT(memory != NULL);
    memory->bound = (size_t)bytes;
    for (int i = 0; i < MC_SHARES; i++)
        memory->tables[i] = mc_clock_cache_create((size_t)bytes);
    return memory;
}

void
mc_memory_destroy(struct mc_memory *memory)
{
    if (memory == NULL)
        return;
    for (int i = 0; i < MC_SHARES; i++)
        mc_clock_cache_destroy(memory->tables[i]);
    free(memory);
}

void
mc_memory_share(struct mc_memory *memory, struct mc_shared_cache *shared)
{
    memory->shared = shared;
}

struct mc_shared_cache *
mc_memory_shared(const struct mc_memory *memory)
{
    return memory->shared;
}

size_t
mc_memory_bytes(struct mc_memory *memory)
{
    size_t bytes = 0;
    for (int i = 0; i < MC_SHARES; i++)
        bytes += mc_clock_cache_bytes(memory->tables[i]);
    return bytes;
}

void
mc_memory_stat(struct mc_memory *memory, struct mc_clock_cache_statistics *statistics)
{
    if (memory == NULL)
        return;
    *statistics = (mc_clock_cache_statistics){ .max_bytes = memory->bound };
    for (int i = 0; i < MC_SHARES; i++) {
        mc_clock_cache_statistics table;
        mc_clock_cache_stat(memory->tables[i], &table);
        statistics->hits += table.hits;
        statistics->misses += table.misses;
        statistics->evictions += table.evictions;
        statistics->entries += table.entries;
        statistics->bytes += table.bytes;
    }
}

static size_t
memory_table_share(const struct mc_memory *memory, int table)
{
    return memory->bound / 16 * sixteenths[table];
}

/* The table that is the most above its share gives way, until all fit. */
static void
evict_memory_tables(struct mc_memory *memory)
{
    for (int attempt = 0; attempt < 2 * MC_SHARES; attempt++) {
        size_t total = mc_memory_bytes(memory);
        if (total <= memory->bound)
            return;
        int fattest = -1;
        size_t most = 0;
        for (int i = 0; i < MC_SHARES; i++) {
            size_t bytes = mc_clock_cache_bytes(memory->tables[i]);
            size_t above = bytes > memory_table_share(memory, i) ? bytes - memory_table_share(memory, i) : 0;
            if (above > most) {
                most = above;
                fattest = i;
            }
        }
        if (fattest < 0)
            return;
        size_t excess = total - memory->bound;
        mc_clock_cache_shed(memory->tables[fattest], excess < most ? excess : most);
    }
}

/*
 * Once the memory is full, only one in four newcomers pushes others out: clients that go round through a little more
 * than fits would otherwise find nothing of it, while what many ask for is let in soon. Who has not got its share yet
 * may always come in.
 */
static bool
is_let_in(struct mc_memory *memory, mc_share share, size_t bytes)
{
    static _Thread_local uint32_t state = 2463534242U;
    if (mc_memory_bytes(memory) + bytes + ENTRY_BYTES <= memory->bound ||
        mc_clock_cache_bytes(memory->tables[share]) + bytes + ENTRY_BYTES <= memory_table_share(memory, share))
        return true;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state & 3) == 0;
}

/* Two threads may see the same total: each eviction is counted by one of them. */
static void
count_evictions(struct mc_memory *memory, mc_ctx *ctx)
{
    uint64_t total = 0;
    for (int i = 0; i < MC_SHARES; i++)
        total += mc_clock_cache_evictions(memory->tables[i]);
    uint64_t counted = atomic_load_explicit(&memory->evictions, memory_order_relaxed);
    while (counted < total)
        if (atomic_compare_exchange_weak(&memory->evictions, &counted, total)) {
            mc_count(ctx->process->metrics, MC_COUNT_memory_evictions_total, total - counted);
            return;
        }
}

void *
mc_memory_find(struct mc_memory *memory, mc_share share, mc_clock_cache_entry **entry, const void *key, size_t key_size)
{
    *entry = NULL;
    return memory == NULL ? NULL : mc_clock_cache_get(memory->tables[share], entry, key, key_size);
}

void
mc_memory_keep(mc_ctx *ctx, mc_share share, const void *key, size_t key_size, void *value, size_t bytes,
               mc_clock_cache_free *free_value)
{
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    if (memory == NULL || !is_let_in(memory, share, bytes)) {
        free_value(value);
        return;
    }
    mc_clock_cache_put(memory->tables[share], key, key_size, value, bytes, free_value);
    evict_memory_tables(memory);
    count_evictions(memory, ctx);
}

void
mc_memory_drop(struct mc_memory *memory, mc_share share, const void *key, size_t key_size)
{
    if (memory != NULL)
        mc_clock_cache_remove(memory->tables[share], key, key_size);
}

static _Atomic unsigned *
generation_of(struct mc_memory *memory, const char *path)
{
    return &memory->generations[mc_hash64(path, strlen(path), 0) % GENERATIONS];
}

unsigned
mc_memory_generation(struct mc_memory *memory, const char *path)
{
    return memory == NULL ? 0 : atomic_load(generation_of(memory, path));
}

void
mc_memory_written(struct mc_memory *memory, const char *path)
{
    if (memory != NULL)
        atomic_fetch_add(generation_of(memory, path), 1);
}
