/* The thread that loads configurations again: see reloader.h. */
#include "reloader.h"

#include <pthread.h>

#include "base/clock.h"
#include "supervisor.h"

struct mc_reloader {
    mc_generations *generations;
    pthread_t thread;
    pthread_mutex_t lock; /* of the next three */
    bool asked, stopping, ended;
    pthread_cond_t told; /* that one of them is true */
};

typedef enum reloader_turn { RELOADER_LOOKS, RELOADER_LOADS, RELOADER_ENDS } reloader_turn;

/* What is to be done next; a look after `pause`, unless that is 0. */
static reloader_turn
wait_for_reload(mc_reloader *reloader, apr_interval_time_t pause)
{
    const apr_time_t end = mc_clock_now() + pause;
    bool late = false;
    pthread_mutex_lock(&reloader->lock);
    while (!reloader->asked && !reloader->stopping && !late)
        if (pause == 0)
            pthread_cond_wait(&reloader->told, &reloader->lock);
        else
            late = !mc_clock_wait(&reloader->told, &reloader->lock, end);
    reloader_turn turn = reloader->stopping ? RELOADER_ENDS : reloader->asked ? RELOADER_LOADS : RELOADER_LOOKS;
    reloader->asked = false;
    pthread_mutex_unlock(&reloader->lock);
    return turn;
}

/* Once the process ends, nothing is said but that. */
static void
tell_of_reload(mc_reloader *reloader, mc_supervised_state state)
{
    pthread_mutex_lock(&reloader->lock);
    if (!reloader->stopping)
        mc_supervisor_tell(state);
    pthread_mutex_unlock(&reloader->lock);
}

static void *
run_reloader(void *baton)
{
    mc_reloader *reloader = baton;
    reloader_turn turn;
    apr_interval_time_t pause = 1;
    while ((turn = wait_for_reload(reloader, pause)) != RELOADER_ENDS) {
        if (turn == RELOADER_LOADS) {
            tell_of_reload(reloader, MC_SUPERVISED_RELOADS);
            mc_generations_reload(reloader->generations);
            tell_of_reload(reloader, MC_SUPERVISED_SERVES);
        }
        pause = mc_generations_look(reloader->generations);
    }
    pthread_mutex_lock(&reloader->lock);
    reloader->ended = true;
    pthread_cond_broadcast(&reloader->told);
    pthread_mutex_unlock(&reloader->lock);
    return NULL;
}

mc_reloader *
mc_reloader_start(mc_generations *generations, apr_pool_t *pool)
{
    mc_reloader *reloader = apr_pcalloc(pool, sizeof(*reloader));
    reloader->generations = generations;
    pthread_mutex_init(&reloader->lock, NULL);
    mc_clock_condition(&reloader->told);
    return pthread_create(&reloader->thread, NULL, run_reloader, reloader) == 0 ? reloader : NULL;
}

void
mc_reloader_ask(mc_reloader *reloader)
{
    pthread_mutex_lock(&reloader->lock);
    reloader->asked = true;
    pthread_cond_broadcast(&reloader->told);
    pthread_mutex_unlock(&reloader->lock);
}

void
mc_reloader_stop(mc_reloader *reloader)
{
    pthread_mutex_lock(&reloader->lock);
    reloader->stopping = true;
    pthread_cond_broadcast(&reloader->told);
    pthread_mutex_unlock(&reloader->lock);
}

bool
mc_reloader_wait(mc_reloader *reloader, apr_time_t end)
{
    pthread_mutex_lock(&reloader->lock);
    while (!reloader->ended && mc_clock_wait(&reloader->told, &reloader->lock, end))
        ;
    bool ended = reloader->ended;
    pthread_mutex_unlock(&reloader->lock);
    if (ended)
        pthread_join(reloader->thread, NULL);
    return ended;
}
