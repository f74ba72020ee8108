/* See pages.h. */
#include "memory/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *
mc_pages_map(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), reserved = page + size + HUGE_PAGE;
    uint8_t *base = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    uint8_t *data = (uint8_t *)(((uintptr_t)base + page + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    uint8_t *end = data + ((size + page - 1) & ~(page - 1));
    if (data - page > base)
        munmap(base, (size_t)(data - page - base));
    if (end < base + reserved)
        munmap(end, (size_t)(base + reserved - end));
    madvise(data, size, MADV_HUGEPAGE);
    return data;
}

void
mc_pages_unmap(void *data, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((uint8_t *)data - page, page + size);
}
