/* Sets of rows of a table, by their ordinals (overview_private.h). */
#ifndef MC_OVERVIEW_OVERVIEW_ORDINALS_H
#define MC_OVERVIEW_OVERVIEW_ORDINALS_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stdint.h>

/* Sets of a table have at most so many bytes. */
#define MC_OVERVIEW_ORDINALS_BYTES (256 << 20)

typedef struct mc_overview_ordinals {
    uint8_t *bits;
    int64_t most; /* ordinals are below that */
    int64_t count;
} mc_overview_ordinals;

/* An empty set of ordinals from 0 to below `most`; NULL: it would be too large. */
mc_overview_ordinals *mc_overview_ordinals_create(int64_t most, apr_pool_t *pool);

/* False: it is not below `most`. */
bool mc_overview_ordinals_add(mc_overview_ordinals *set, int64_t ordinal);

bool mc_overview_ordinals_have(const mc_overview_ordinals *set, int64_t ordinal);

#endif
