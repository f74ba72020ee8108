/* See plane.h: a short list for the process, under one lock that is held for a few instructions. */
#include "draw/raster/plane.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/budget.h"
#include "memory/pages.h"
#include "memory/scratch.h"

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

/* A plane goes with a map whose pixels the budget has let in: it counts, and is not refused. */
static void *
allocate_plane(size_t size)
{
    void *bytes = size < MC_PAGES_FROM ? calloc(1, size) : mc_pages_map(size);
    MC_ASSERT(bytes != NULL);
    mc_budget_charge(size);
    return bytes;
}

static void
free_plane(const kept_plane *plane)
{
    mc_budget_give(plane->size);
    if (plane->size < MC_PAGES_FROM)
        free(plane->bytes);
    else
        mc_pages_unmap(plane->bytes, plane->size);
}

static apr_status_t
release_plane(void *data)
{
    kept_plane *given = data;
    if (*given->dirty || !keep_plane(given)) {
        free_plane(given);
    }
    return APR_SUCCESS;
}

void *
mc_plane_acquire(size_t size, const bool *dirty, apr_pool_t *pool)
{
    kept_plane *given = apr_palloc(pool, sizeof(*given));
    *given = (kept_plane){ take_kept_plane(size), size, dirty };
    if (given->bytes == NULL)
        given->bytes = allocate_plane(size);
    apr_pool_cleanup_register(pool, given, release_plane, apr_pool_cleanup_null);
    return given->bytes;
}

void
mc_planes_forget(void)
{
    kept_plane leaving[KEPT];
    pthread_mutex_lock(&kept.lock);
    int count = kept.count;
    for (int i = 0; i < count; i++)
        leaving[i] = kept.planes[i];
    kept.count = 0;
    kept.bytes = 0;
    pthread_mutex_unlock(&kept.lock);
    for (int i = 0; i < count; i++)
        free_plane(&leaving[i]);
}
