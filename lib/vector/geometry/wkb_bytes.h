/* The bytes of well-known binary: OGC 06-103r4, 8.2, and PostGIS' flags of the type for Z, M and SRID. */
#ifndef MC_VECTOR_GEOMETRY_WKB_BYTES_H
#define MC_VECTOR_GEOMETRY_WKB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mapcache/error.h"

/* What a geometry begins with. */
typedef struct mc_wkb_head {
    uint32_t type; /* without what it says of Z, M and SRID */
    uint32_t srid; /* 0: none is named */
    int values;    /* of a vertex: 2, 3 or 4 */
    bool swapped;  /* the bytes are of the other order than this machine's */
} mc_wkb_head;

static inline mc_error *
mc_wkb_truncated(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "a geometry ends before its last vertex");
}

/* False where the bytes end before. */
static inline bool
mc_wkb_word(uint32_t *word, const uint8_t **at, const uint8_t *end, bool swapped)
{
    if (end - *at < 4)
        return false;
    memcpy(word, *at, 4);
    *at += 4;
    if (swapped)
        *word = __builtin_bswap32(*word);
    return true;
}

static inline double
mc_wkb_number(const uint8_t *bytes, bool swapped)
{
    uint64_t bits;
    double value;
    memcpy(&bits, bytes, 8);
    if (swapped)
        bits = __builtin_bswap64(bits);
    memcpy(&value, &bits, 8);
    return value;
}

/* False where the bytes end before, or the first one names no order. */
static inline bool
mc_wkb_take_head(mc_wkb_head *head, const uint8_t **at, const uint8_t *end)
{
    static const uint16_t one = 1;
    uint8_t little;
    uint32_t word;
    if (*at >= end || **at > 1)
        return false;
    memcpy(&little, &one, 1);
    *head = (mc_wkb_head){ .swapped = *(*at)++ != little };
    if (!mc_wkb_word(&word, at, end, head->swapped))
        return false;
    if ((word & 0x20000000U) != 0 && !mc_wkb_word(&head->srid, at, end, head->swapped))
        return false;
    uint32_t iso = (word & 0x0FFFFFFFU) / 1000;
    bool z = (word & 0x80000000U) != 0 || iso == 1 || iso == 3, m = (word & 0x40000000U) != 0 || iso == 2 || iso == 3;
    head->values = 2 + z + m;
    head->type = (word & 0x0FFFFFFFU) % 1000;
    return true;
}

#endif
