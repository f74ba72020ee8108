/* Tiles by the file in which they stand: one transaction for each file. */
#ifndef MC_CACHE_SQLITE_PATH_GROUPS_H
#define MC_CACHE_SQLITE_PATH_GROUPS_H

#include <apr_pools.h>

/* Groups in the order of their first members, members in their own order. */
typedef struct mc_path_groups {
    int count;
    int *first; /* member of each group */
    int *next;  /* the next member of the same group; -1: none */
} mc_path_groups;

/* Members are the indices of `paths`; a NULL path is in no group. */
mc_path_groups mc_path_groups_of(const char *const *paths, int count, apr_pool_t *pool);

#endif
