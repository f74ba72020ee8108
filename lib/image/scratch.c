/* The free list: a bounded number of blocks, at most 16 MB in all unless a program that draws large maps all the time
 * says otherwise. */
#include "image/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks from this size on are mapped: from malloc they would stay behind in the heap of each thread that ever drew a
 * map. */
#define MAPPED_FROM ((size_t)1 << 20)
#define HUGE_PAGE ((size_t)2 << 20)
#define KEPT_BLOCKS 64
#define KEPT_BYTES ((size_t)16 << 20)

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

/* The data begins on a huge page, right behind the small page whose end holds the header: faulting a map's pixels in
 * by small pages takes as long as drawing them. */
static block *
map(size_t capacity)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), reserved = page + capacity + HUGE_PAGE;
    uint8_t *base = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    uint8_t *data = (uint8_t *)(((uintptr_t)base + page + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    uint8_t *end = data + capacity;
    if (data - page > base)
        munmap(base, (size_t)(data - page - base));
    if (end < base + reserved)
        munmap(end, (size_t)(base + reserved - end));
    madvise(data, capacity, MADV_HUGEPAGE);
    return (block *)(void *)(data - offsetof(block, data));
}

static block *
allocate(size_t capacity)
{
    block *fresh = capacity < MAPPED_FROM ? aligned_alloc(64, sizeof(block) + capacity) : map(capacity);
    if (fresh != NULL)
        fresh->capacity = capacity;
    return fresh;
}

static void
give_back(block *released)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (released->capacity < MAPPED_FROM)
        free(released);
    else
        munmap(released->data - page, page + released->capacity);
}

void *
mc_scratch_acquire(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size_t capacity = (size + 4095) & ~(size_t)4095;
    block *taken = take_kept(size);
    if (taken == NULL)
        taken = allocate(capacity);
    if (taken == NULL)
        return NULL;
    return taken->data;
}

/* Under `lock`: what has to go so that `released` is kept, which may be itself; NULL: nothing. The smaller a block is,
 * the less the system asks for another one. */
static block *
keep(block *released)
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
    block *leaving = keep((block *)(void *)((uint8_t *)data - offsetof(block, data)));
    pthread_mutex_unlock(&lock);
    if (leaving != NULL)
        give_back(leaving);
}
