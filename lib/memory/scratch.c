/* The free list: a bounded number of blocks, at most 16 MB in all unless a program that draws large maps all the time
 * says otherwise. */
#include "memory/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "memory/pages.h"

#define KEPT_BLOCKS 64
#define KEPT_BYTES ((size_t)16 << 20)
#define WARMED_BLOCKS 16

typedef struct block {
    size_t capacity; /* bytes after this header */
    _Alignas(64) uint8_t data[];
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *kept[KEPT_BLOCKS]; /* under `lock`, as the two below */
static int kept_count;
static size_t kept_bytes;

/* A sanitizer must see each block's own life. */
#if defined(MC_DEBUG) || defined(__SANITIZE_ADDRESS__)
enum { KEEPS = false };
#else
enum { KEEPS = true };
#endif
static _Atomic size_t kept_maximum = KEEPS ? KEPT_BYTES : 0;

void
mc_scratch_keep(size_t bytes)
{
    if (KEEPS && bytes > kept_maximum)
        kept_maximum = bytes;
}

size_t
mc_scratch_kept_most(void)
{
    return kept_maximum;
}

static block *
take_kept(size_t size)
{
    block *found = NULL;
    int best = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < kept_count; i++) {
        /* A block far larger than asked for stays for those who need it. */
        if (kept[i]->capacity < size || kept[i]->capacity / 4 > size)
            continue;
        if (best < 0 || kept[i]->capacity < kept[best]->capacity)
            best = i;
    }
    if (best >= 0) {
        found = kept[best];
        kept[best] = kept[--kept_count];
        kept_bytes -= found->capacity;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static block *
allocate_scratch_block(size_t capacity)
{
    block *fresh = NULL;
    if (capacity < MC_PAGES_FROM) {
        fresh = aligned_alloc(64, sizeof(block) + capacity);
    } else { /* from malloc it would stay behind in the heap of each thread that ever drew a map */
        uint8_t *data = mc_pages_map(capacity);
        fresh = data == NULL ? NULL : (block *)(void *)(data - offsetof(block, data));
    }
    if (fresh != NULL)
        fresh->capacity = capacity;
    return fresh;
}

/* What of a block counts in the budget of the process. */
static size_t
counted_capacity(size_t capacity)
{
    return capacity >= MC_BUDGET_FROM ? capacity : 0;
}

static void
free_scratch_block(block *released)
{
    mc_budget_give(counted_capacity(released->capacity));
    if (released->capacity < MC_PAGES_FROM)
        free(released);
    else
        mc_pages_unmap(released->data, released->capacity);
}

void
mc_scratch_forget(void)
{
    block *leaving[KEPT_BLOCKS];
    pthread_mutex_lock(&lock);
    int count = kept_count;
    for (int i = 0; i < count; i++)
        leaving[i] = kept[i];
    kept_count = 0;
    kept_bytes = 0;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++)
        free_scratch_block(leaving[i]);
}

static void *
acquire_scratch(size_t size, bool refusable)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    block *taken = take_kept(size);
    if (taken != NULL)
        return taken->data;
    size_t capacity = (size + 4095) & ~(size_t)4095, counted = counted_capacity(capacity);
    if (counted > 0 && refusable && !mc_budget_take(counted))
        return NULL;
    if (counted > 0 && !refusable)
        mc_budget_charge(counted);
    taken = allocate_scratch_block(capacity);
    if (taken == NULL)
        mc_budget_give(counted);
    return taken == NULL ? NULL : taken->data;
}

void *
mc_scratch_acquire(size_t size)
{
    return acquire_scratch(size, true);
}

void *
mc_scratch_require(size_t size)
{
    return acquire_scratch(size, false);
}

/* Under `lock`: what has to go so that `released` is kept, which may be itself; NULL: nothing. The smaller a block is,
 * the less the system asks for another one. */
static block *
keep_scratch_block(block *released)
{
    if (kept_bytes + released->capacity > kept_maximum)
        return released;
    int place = kept_count;
    block *least = NULL;
    if (kept_count == KEPT_BLOCKS) {
        place = 0;
        for (int i = 1; i < kept_count; i++)
            if (kept[i]->capacity < kept[place]->capacity)
                place = i;
        least = kept[place];
        if (least->capacity >= released->capacity)
            return released;
        kept_bytes -= least->capacity;
    } else {
        kept_count++;
    }
    kept[place] = released;
    kept_bytes += released->capacity;
    return least;
}

void
mc_scratch_release(void *data)
{
    if (data == NULL)
        return;
    pthread_mutex_lock(&lock);
    block *leaving = keep_scratch_block((block *)(void *)((uint8_t *)data - offsetof(block, data)));
    pthread_mutex_unlock(&lock);
    if (leaving != NULL)
        free_scratch_block(leaving);
}

void
mc_scratch_warm(size_t size, int count)
{
    void *warmed[WARMED_BLOCKS];
    int most = count < WARMED_BLOCKS ? count : WARMED_BLOCKS, taken = 0;
    while (taken < most && (warmed[taken] = mc_scratch_acquire(size)) != NULL)
        memset(warmed[taken++], 0, size);
    while (taken > 0)
        mc_scratch_release(warmed[--taken]);
}
