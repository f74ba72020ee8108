#include "http/breaker.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/error.h"

enum { SERVERS = 64, SERVER_LENGTH = 256 };

typedef struct server_state {
    char name[SERVER_LENGTH]; /* "": free */
    int failures;             /* in a row */
    apr_interval_time_t pause;
    apr_time_t until; /* 0: it works */
    apr_time_t used;
} server_state;

struct mc_breakers {
    pthread_mutex_t lock; /* of the servers */
    server_state servers[SERVERS];
};

mc_breakers *
mc_breakers_create(void)
{
    mc_breakers *breakers = calloc(1, sizeof(*breakers));
    MC_ASSERT(breakers != NULL);
    pthread_mutex_init(&breakers->lock, NULL);
    return breakers;
}

void
mc_breakers_destroy(mc_breakers *breakers)
{
    if (breakers == NULL)
        return;
    pthread_mutex_destroy(&breakers->lock);
    free(breakers);
}

/* Of that server; `add`: in place of the one that was asked longest ago, where it is not there. Else NULL. */
static server_state *
find_server(mc_breakers *breakers, const char *name, bool add)
{
    server_state *oldest = &breakers->servers[0];
    for (int i = 0; i < SERVERS; i++) {
        server_state *server = &breakers->servers[i];
        if (strncmp(server->name, name, SERVER_LENGTH - 1) == 0)
            return server;
        if (server->used < oldest->used)
            oldest = server;
    }
    if (!add)
        return NULL;
    *oldest = (server_state){ .failures = 0 };
    apr_cpystrn(oldest->name, name, SERVER_LENGTH);
    return oldest;
}

apr_interval_time_t
mc_breaker_pause(mc_breakers *breakers, const char *server, apr_time_t now)
{
    apr_interval_time_t left = 0;
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, false);
    if (state != NULL && state->until != 0) {
        left = state->until > now ? state->until - now : 0;
        if (left == 0)
            state->until = now + state->pause; /* for all but this caller */
    }
    pthread_mutex_unlock(&breakers->lock);
    return left;
}

void
mc_breaker_judge(mc_breakers *breakers, const char *server, bool works, apr_time_t now)
{
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, !works); /* one that works need not be known */
    if (state != NULL && works) {
        state->failures = 0;
        state->pause = 0;
        state->until = 0;
    } else if (state != NULL && ++state->failures >= MC_BREAKER_FAILURES) {
        state->pause = state->pause == 0 ? MC_BREAKER_PAUSE : state->pause * 2;
        if (state->pause > MC_BREAKER_PAUSE_MOST)
            state->pause = MC_BREAKER_PAUSE_MOST;
        state->until = now + state->pause;
    }
    if (state != NULL)
        state->used = now;
    pthread_mutex_unlock(&breakers->lock);
}
