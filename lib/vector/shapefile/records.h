/*
 * Large records of a file that were read once stay in memory: a map of a town would else copy the outline of its
 * continent each time. Records of 32 KB and more are kept, the first ones that are read: up to 16 MB of a file and 64
 * MB of the process.
 */
#ifndef MC_VECTOR_SHAPEFILE_RECORDS_H
#define MC_VECTOR_SHAPEFILE_RECORDS_H

#include "vector/shapefile/file.h"

enum { MC_LARGE_RECORD = 1 << 15 };

typedef struct mc_records mc_records;

/* Without any records at first. The records are freed when `pool` is cleared. */
mc_records *mc_records_create(apr_pool_t *pool);

/* The `size` bytes at `offset`, valid as long as the pool; NULL where the bytes are not kept or cannot be read. From
 * any thread. */
const uint8_t *mc_records_at(mc_records *records, const mc_file *file, uint64_t offset, size_t size);

#endif
