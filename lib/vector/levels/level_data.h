/*
 * Whether a file of overviews was built from the data that are here: from these very files, or from others, as copies
 * are, of the same bytes. For copies the data have to be read once as a whole, which is no map's own work: one thread
 * of a process does that at a time, a bounded part of it for each map, while all other maps read the data.
 */
#ifndef MC_VECTOR_LEVELS_LEVEL_DATA_H
#define MC_VECTOR_LEVELS_LEVEL_DATA_H

#include <stdatomic.h>

#include "vector/levels/level_origin.h"

/* Open files of data, as long as they are open, and what has been found out about their bytes. */
typedef struct mc_level_data {
    mc_level_origin origin;
    int files[MC_LEVEL_ORIGINS];
    atomic_uint_fast64_t content; /* the digest of all bytes; 0: it is not known (that of `origin` is the builder's) */
    atomic_bool unreadable;       /* it will never be known */
    /* of the thread that has the lock of all of them: */
    mc_level_digest digest; /* as far as it has been made */
    mc_level_origin begun;  /* the files as it began */
    int tries;
} mc_level_data;

typedef enum mc_level_kinship {
    MC_LEVEL_OF_THESE, /* built from these bytes */
    MC_LEVEL_OF_OTHERS,
    MC_LEVEL_UNREAD, /* not known so far: a later map will know */
    MC_LEVEL_UNREADABLE,
} mc_level_kinship;

/* Why the levels cannot be used; NULL: they can, or nothing is known. */
const char *mc_level_kinship_fault(mc_level_kinship kinship);

/* Looks at open files (-1: there is none), and reads nothing of them. `definition`: of CRS and code page. */
void mc_level_data_look(mc_level_data *data, const int files[MC_LEVEL_ORIGINS], uint64_t definition);

/*
 * Compares the data with what levels were built from. Where bytes have to be read for that, at most so many are,
 * MC_LEVEL_DATA_SHARE, in at most a quarter of the time that `ctx` has left and at most a second (some megabytes
 * in any time), and the next call goes on from there. So the deadline and a client that has gone are no errors here:
 * MC_LEVEL_UNREAD. From any thread; nobody waits.
 */
enum { MC_LEVEL_DATA_SHARE = 128 << 20 };
mc_level_kinship mc_level_data_compare(mc_level_data *data, const mc_level_origin *built, mc_ctx *ctx,
                                       apr_pool_t *pool);

#endif
