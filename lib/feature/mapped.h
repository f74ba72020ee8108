/* Files mapped into memory for reading: bounds are the caller's to check, a file that shrinks is found by its stamp. */
#ifndef MC_FEATURE_MAPPED_H
#define MC_FEATURE_MAPPED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mapcache/error.h"

typedef struct mc_mapped {
    const uint8_t *bytes; /* NULL: an empty file */
    size_t size;
} mc_mapped;

/* Maps a whole file until `pool` is cleared. *found false, and no error, where there is none. */
mc_error *mc_mapped_open(mc_mapped *file, bool *found, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Numbers at an offset that is inside, of the byte order in the name. */
static inline uint32_t
mc_big32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint32_t
mc_little32(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline uint16_t
mc_little16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[1] << 8 | bytes[0]);
}

static inline double
mc_little_double(const uint8_t *bytes)
{
    uint64_t bits = (uint64_t)mc_little32(bytes + 4) << 32 | mc_little32(bytes);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

#endif
