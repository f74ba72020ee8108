/* Starting threads of the library. */
#ifndef MC_BASE_THREAD_H
#define MC_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* A thread that gets no signals: these belong to the host's threads. `attributes` may be NULL. 0, or an errno: the
 * system has no thread now. */
static inline int
mc_thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *baton)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(thread, attributes, run, baton);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

#endif
