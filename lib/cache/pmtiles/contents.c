/* See contents.h. */
#include "cache/pmtiles/contents.h"

#include <stddef.h>
#include <sys/mman.h>

enum { SETS = 1 << 19, WAYS = 4 };

struct mc_contents {
    mc_content_place sets[SETS][WAYS]; /* length 0: free */
};

mc_contents *
mc_contents_create(void)
{
    void *memory =
        mmap(NULL, sizeof(mc_contents), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void
mc_contents_destroy(mc_contents *contents)
{
    if (contents != NULL)
        munmap(contents, sizeof(*contents));
}

mc_content_place *
mc_contents_find(mc_contents *contents, uint64_t hash, uint32_t length)
{
    mc_content_place *set = contents->sets[hash % SETS];
    for (int i = 0; i < WAYS; i++)
        if (set[i].hash == hash && set[i].length == length && length > 0)
            return &set[i];
    return NULL;
}

void
mc_contents_use(mc_content_place *place)
{
    if (place->uses < UINT32_MAX)
        place->uses++;
}

void
mc_contents_add(mc_contents *contents, uint64_t hash, uint64_t offset, uint32_t length)
{
    mc_content_place *set = contents->sets[hash % SETS], *least = &set[0];
    for (int i = 0; i < WAYS; i++) {
        if (set[i].length == 0) {
            least = &set[i];
            break;
        }
        if (set[i].uses < least->uses)
            least = &set[i];
    }
    *least = (mc_content_place){ hash, offset, length, 0 };
    for (int i = 0; i < WAYS; i++) /* what was used long ago makes room at last */
        if (&set[i] != least && set[i].uses > 0 && (hash >> 32) % 8 == 0)
            set[i].uses--;
}
