/*
 * One answer for several who ask the same at the same time. An answer says something of the moment at which its
 * question was sent, so nobody takes the answer to a question that was sent before: those who come while a question is
 * under way wait for its end, and share the next one.
 */
#ifndef MC_VECTOR_POSTGIS_SHARED_ANSWER_H
#define MC_VECTOR_POSTGIS_SHARED_ANSWER_H

#include <pthread.h>
#include <stdint.h>

#include "mapcache/ctx.h"

/* Longest wait for a question of others, where the usual one takes a tenth of a millisecond: behind that each asks for
 * itself. */
#define MC_SHARED_WAIT apr_time_from_msec(50)

typedef struct mc_shared_answer {
    apr_interval_time_t wait;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended_one;
    uint64_t begun,
        ended;   /* how many questions have been; the last one that has begun is under way where both differ */
    int waiting; /* for a question of others */
    bool known;  /* the last one had an answer: */
    uint64_t topic;
    int answer;
} mc_shared_answer;

typedef mc_error *mc_ask(int *answer, void *baton, mc_ctx *ctx, apr_pool_t *pool);

void mc_shared_answer_init(mc_shared_answer *shared, apr_interval_time_t wait);
void mc_shared_answer_destroy(mc_shared_answer *shared);

/* The answer to a question about `topic` that is sent after the call: by this thread with `ask`, or by another one.
 * Errors of `ask`; those of others are nobody else's. */
mc_error *mc_shared_answer_get(int *answer, mc_shared_answer *shared, uint64_t topic, mc_ask *ask, void *baton,
                               mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
