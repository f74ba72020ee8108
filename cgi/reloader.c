/* The thread that loads configurations again: see reloader.h. */
#include "reloader.h"

#include <pthread.h>

#include "supervisor.h"

struct mc_reloader {
    mc_generations *generations;
    pthread_t thread;
    pthread_mutex_t lock; /* of the next two */
    bool asked, stopping;
    pthread_cond_t told;
};

/* True once there is something to load, false at the end. */
static bool
wait_for_reload(mc_reloader *reloader)
{
    pthread_mutex_lock(&reloader->lock);
    while (!reloader->asked && !reloader->stopping)
        pthread_cond_wait(&reloader->told, &reloader->lock);
    bool goes_on = !reloader->stopping;
    reloader->asked = false;
    pthread_mutex_unlock(&reloader->lock);
    return goes_on;
}

static void *
run_reloader(void *baton)
{
    mc_reloader *reloader = baton;
    while (wait_for_reload(reloader)) {
        mc_supervisor_tell(MC_SUPERVISED_RELOADS);
        mc_generations_reload(reloader->generations);
        mc_supervisor_tell(MC_SUPERVISED_SERVES);
    }
    return NULL;
}

mc_reloader *
mc_reloader_start(mc_generations *generations, apr_pool_t *pool)
{
    mc_reloader *reloader = apr_pcalloc(pool, sizeof(*reloader));
    reloader->generations = generations;
    pthread_mutex_init(&reloader->lock, NULL);
    pthread_cond_init(&reloader->told, NULL);
    return pthread_create(&reloader->thread, NULL, run_reloader, reloader) == 0 ? reloader : NULL;
}

void
mc_reloader_ask(mc_reloader *reloader)
{
    pthread_mutex_lock(&reloader->lock);
    reloader->asked = true;
    pthread_cond_signal(&reloader->told);
    pthread_mutex_unlock(&reloader->lock);
}

void
mc_reloader_stop(mc_reloader *reloader)
{
    if (reloader == NULL)
        return;
    pthread_mutex_lock(&reloader->lock);
    reloader->stopping = true;
    pthread_cond_signal(&reloader->told);
    pthread_mutex_unlock(&reloader->lock);
    pthread_join(reloader->thread, NULL);
}
