/*
 * Any file in the place of an index of coverage: what is read of it is a coverage that can be asked, or nothing. The
 * sum over the bytes is put right first, as nothing behind it would be reached otherwise. Input: the file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "footprint/coverage_index.h"
#include "fuzz_support.h"
#include "mapcache/error.h"

enum { COUNT_AT = 12, SALT_AT = 16, SIZE_AT = 24, SUM_AT = 32, HEAD_SIZE = 40 };

static void
mend_sum(uint8_t *bytes, size_t size)
{
    uint64_t salt, whole = size;
    uint32_t count;
    memcpy(&salt, bytes + SALT_AT, sizeof(salt));
    memcpy(&count, bytes + COUNT_AT, sizeof(count));
    uint64_t sum = mc_hash64(bytes + HEAD_SIZE, size - HEAD_SIZE, salt + count);
    memcpy(bytes + SIZE_AT, &whole, sizeof(whole));
    memcpy(bytes + SUM_AT, &sum, sizeof(sum));
}

/* What is written of a coverage is read as the same one. */
static void
check_coverage(const mc_coverage *coverage)
{
    size_t size = mc_coverage_write(NULL, coverage);
    uint8_t *bytes = malloc(size);
    MC_ASSERT(bytes != NULL && mc_coverage_write(bytes, coverage) == size);
    mc_coverage *again = mc_coverage_read(bytes, size);
    MC_ASSERT(again != NULL && mc_coverage_bytes(again) == mc_coverage_bytes(coverage));
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++) {
        mc_tile_range box;
        if (!mc_coverage_box(&box, coverage, z))
            continue;
        MC_ASSERT(mc_coverage_may_touch(coverage, z, box.minx, box.miny, box.maxx, box.maxy));
        MC_ASSERT(mc_coverage_may_have(coverage, z, box.minx, box.miny) ==
                  mc_coverage_may_have(again, z, box.minx, box.miny));
        MC_ASSERT(!mc_coverage_may_have(coverage, z, box.maxx, box.maxy));
    }
    free(again);
    free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_index_content content;
    if (size < HEAD_SIZE || size > 100000)
        return 0;
    uint8_t *bytes = malloc(size);
    MC_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    mend_sum(bytes, size);
    if (mc_index_read(&content, bytes, size))
        for (uint32_t i = 0; i < content.count; i++) {
            mc_coverage *coverage = mc_index_find(&content, &content.entries[i].identity);
            if (coverage != NULL)
                check_coverage(coverage);
            free(coverage);
        }
    free(bytes);
    return 0;
}
