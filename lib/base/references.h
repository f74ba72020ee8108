/* Counts of references to what several threads share. */
#ifndef MC_BASE_REFERENCES_H
#define MC_BASE_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "mapcache/error.h"

/* Another reference, for whoever asks as one who has a reference or holds the lock under which the object is found. */
static inline void
mc_references_take(atomic_uint *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* True for the last reference: no other thread has the object any more, and all changes by other threads are visible.
 */
static inline bool
mc_references_drop(atomic_uint *count)
{
    unsigned before = atomic_fetch_sub_explicit(count, 1, memory_order_acq_rel);
    MC_ASSERT(before > 0);
    return before == 1;
}

#endif
