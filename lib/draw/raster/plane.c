/* See plane.h: a short list for the process, under one lock that is held for a few instructions. */
#include "draw/raster/plane.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/pages.h"
#include "image/scratch.h"

enum { KEPT = 64 };

typedef struct kept_plane {
    void *bytes;
    size_t size;
    const bool *dirty;
} kept_plane;

static struct {
    pthread_mutex_t lock; /* of the rest */
    kept_plane planes[KEPT];
    int count;
    size_t bytes;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *
take_kept_plane(size_t size)
{
    void *found = NULL;
    pthread_mutex_lock(&kept.lock);
    for (int i = 0; i < kept.count && found == NULL; i++)
        if (kept.planes[i].size == size) {
            found = kept.planes[i].bytes;
            kept.planes[i] = kept.planes[--kept.count];
            kept.bytes -= size;
        }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

static bool
keep_plane(const kept_plane *given)
{
    size_t most = mc_scratch_kept_most();
    pthread_mutex_lock(&kept.lock);
    bool fits = kept.count < KEPT && kept.bytes + given->size <= most;
    if (fits) {
        kept.planes[kept.count++] = *given;
        kept.bytes += given->size;
    }
    pthread_mutex_unlock(&kept.lock);
    return fits;
}

static apr_status_t
release_plane(void *data)
{
    kept_plane *given = data;
    if (*given->dirty || !keep_plane(given)) {
        if (given->size < MC_PAGES_FROM)
            free(given->bytes);
        else
            mc_pages_unmap(given->bytes, given->size);
    }
    return APR_SUCCESS;
}

void *
mc_plane_acquire(size_t size, const bool *dirty, apr_pool_t *pool)
{
    kept_plane *given = apr_palloc(pool, sizeof(*given));
    *given = (kept_plane){ take_kept_plane(size), size, dirty };
    if (given->bytes == NULL)
        given->bytes = size < MC_PAGES_FROM ? calloc(1, size) : mc_pages_map(size);
    MC_ASSERT(given->bytes != NULL);
    apr_pool_cleanup_register(pool, given, release_plane, apr_pool_cleanup_null);
    return given->bytes;
}
