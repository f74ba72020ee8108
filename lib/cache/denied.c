/* Whether this process may write where a cache stores its tiles: asked before a server runs into it. */
#include <apr_strings.h>
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_base.h"
#include "mapcache/upkeep.h"

static bool
is_writable_folder(const char *path)
{
    return access(path, W_OK | X_OK) == 0;
}

static const char *
folder_around(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? "." : slash == path ? "/" : apr_pstrmemdup(pool, path, (apr_size_t)(slash - path));
}

/* Whether a folder, or the next one around it that is there, can be written; nothing else can be made in it. */
static bool
can_make_in(const char *folder, apr_pool_t *pool)
{
    while (access(folder, F_OK) != 0 && strcmp(folder, ".") != 0 && strcmp(folder, "/") != 0)
        folder = folder_around(folder, pool);
    return is_writable_folder(folder);
}

/* The first folder from `path` downwards that cannot be written; NULL: there is none among the first `*looks`. */
static const char *
find_denied_folder(const char *path, int depth, int *looks, apr_pool_t *pool)
{
    const char *denied = NULL;
    if (!is_writable_folder(path))
        return path;
    DIR *folder = depth > 0 ? opendir(path) : NULL;
    for (const struct dirent *entry;
         folder != NULL && denied == NULL && *looks > 0 && (entry = readdir(folder)) != NULL; (*looks)--)
        if (entry->d_type == DT_DIR && *entry->d_name != '.')
            denied = find_denied_folder(apr_pstrcat(pool, path, "/", entry->d_name, NULL), depth - 1, looks, pool);
    if (folder != NULL)
        closedir(folder);
    return denied;
}

/* A file of SQLite: itself, and the folder for its journal. */
static mc_cache_denial
look_at_file(const char *file, apr_pool_t *pool)
{
    const char *folder = folder_around(file, pool);
    if (access(file, F_OK) == 0 && access(file, W_OK) != 0)
        return (mc_cache_denial){ .path = file };
    if (can_make_in(folder, pool))
        return (mc_cache_denial){ .path = NULL };
    return (mc_cache_denial){ .path = folder, .missing = access(folder, F_OK) != 0 };
}

mc_cache_denial
mc_cache_denied(const mc_cache *cache, const char *tileset, apr_pool_t *pool)
{
    enum { LEVELS = 2, LOOKS = 1000 }; /* below the folder of a tileset: its grids, and their zooms */
    int looks = LOOKS;
    bool file = false;
    const char *place = cache->ops->place == NULL ? NULL : cache->ops->place(&file, cache, pool);
    if (place == NULL)
        return (mc_cache_denial){ .path = NULL };
    if (file)
        return look_at_file(place, pool);
    if (access(place, F_OK) != 0 || !is_writable_folder(place))
        return (mc_cache_denial){ .path = can_make_in(place, pool) ? NULL : place,
                                  .folder = place,
                                  .missing = access(place, F_OK) != 0 };
    const char *own = apr_pstrcat(pool, place, "/", tileset, NULL);
    if (access(own, F_OK) != 0)
        return (mc_cache_denial){ .path = NULL };
    return (mc_cache_denial){ .path = find_denied_folder(own, LEVELS, &looks, pool), .folder = place };
}
