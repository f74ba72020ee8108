/* The free list: a bounded number of blocks, at most 16 MB in all. */
#include "image/scratch.h"

#include <pthread.h>
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
static const size_t kept_maximum = 0;
#else
static const size_t kept_maximum = KEPT_BYTES;
#endif

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

void
mc_scratch_release(void *data)
{
    if (data == NULL)
        return;
    block *released = (block *)(void *)((uint8_t *)data - offsetof(block, data));
    bool keep = false;
    pthread_mutex_lock(&lock);
    if (kept_count < KEPT_BLOCKS && released->capacity <= kept_maximum - kept_bytes) {
        kept[kept_count++] = released;
        kept_bytes += released->capacity;
        keep = true;
    }
    pthread_mutex_unlock(&lock);
    if (!keep)
        give_back(released);
}
