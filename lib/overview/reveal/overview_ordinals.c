/* See overview_ordinals.h. A bit for each, in pages that are not touched before a bit of them is set. */
#include "overview/reveal/overview_ordinals.h"

#include <stdlib.h>

#include "mapcache/error.h"

static apr_status_t
free_ordinals(void *data)
{
    free(((mc_overview_ordinals *)data)->bits);
    return APR_SUCCESS;
}

mc_overview_ordinals *
mc_overview_ordinals_create(int64_t most, apr_pool_t *pool)
{
    if (most < 0 || most / 8 >= MC_OVERVIEW_ORDINALS_BYTES)
        return NULL;
    mc_overview_ordinals *made = apr_pcalloc(pool, sizeof(*made));
    made->most = most;
    made->bits = calloc(1, (size_t)(most / 8 + 1));
    MC_ASSERT(made->bits != NULL);
    apr_pool_cleanup_register(pool, made, free_ordinals, apr_pool_cleanup_null);
    return made;
}

bool
mc_overview_ordinals_add(mc_overview_ordinals *set, int64_t ordinal)
{
    if (ordinal < 0 || ordinal >= set->most)
        return false;
    uint8_t *byte = &set->bits[ordinal / 8];
    const uint8_t bit = (uint8_t)(1 << ordinal % 8);
    set->count += (*byte & bit) == 0;
    *byte |= bit;
    return true;
}

bool
mc_overview_ordinals_have(const mc_overview_ordinals *set, int64_t ordinal)
{
    return ordinal >= 0 && ordinal < set->most && (set->bits[ordinal / 8] >> ordinal % 8 & 1) != 0;
}
