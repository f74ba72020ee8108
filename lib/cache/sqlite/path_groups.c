/* See path_groups.h. */
#include "cache/sqlite/path_groups.h"

#include <apr_hash.h>
#include <string.h>

mc_path_groups
mc_path_groups_of(const char *const *paths, int count, apr_pool_t *pool)
{
    size_t size = sizeof(int) * (size_t)(count > 0 ? count : 1);
    mc_path_groups groups = { 0, apr_palloc(pool, size), apr_palloc(pool, size) };
    int *last = apr_palloc(pool, size); /* member of each group */
    apr_hash_t *known = apr_hash_make(pool);
    int *before = NULL; /* the last member of the group of the path before */
    const char *path = NULL;
    for (int i = 0; i < count; i++) {
        groups.next[i] = -1;
        if (paths[i] == NULL)
            continue;
        if (path == NULL || strcmp(path, paths[i]) != 0)
            before = apr_hash_get(known, paths[i], APR_HASH_KEY_STRING);
        path = paths[i];
        if (before == NULL) {
            before = &last[groups.count];
            groups.first[groups.count++] = i;
            apr_hash_set(known, path, APR_HASH_KEY_STRING, before);
        } else {
            groups.next[*before] = i;
        }
        *before = i;
    }
    return groups;
}
