#include "http/http_breakers.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mapcache/error.h"

enum { SERVERS = 64, SERVER_LENGTH = 256 };

const mc_breaker_rules mc_http_breaker_rules = { 3, APR_USEC_PER_SEC, 30 * APR_USEC_PER_SEC };
const mc_breaker_rules mc_http_origin_breaker_rules = { 5, APR_USEC_PER_SEC, 30 * APR_USEC_PER_SEC };

typedef struct server_state {
    char name[SERVER_LENGTH]; /* "": free */
    mc_breaker breaker;
    apr_time_t used; /* mc_clock_now() */
} server_state;

struct mc_http_breakers {
    pthread_mutex_t lock; /* of the servers; theirs may be taken while it is held */
    server_state servers[SERVERS];
};

mc_http_breakers *
mc_http_breakers_create(const mc_breaker_rules *rules)
{
    mc_http_breakers *breakers = calloc(1, sizeof(*breakers));
    MC_ASSERT(breakers != NULL);
    pthread_mutex_init(&breakers->lock, NULL);
    for (int i = 0; i < SERVERS; i++)
        mc_breaker_start(&breakers->servers[i].breaker, rules);
    return breakers;
}

void
mc_http_breakers_destroy(mc_http_breakers *breakers)
{
    if (breakers == NULL)
        return;
    for (int i = 0; i < SERVERS; i++)
        mc_breaker_end(&breakers->servers[i].breaker);
    pthread_mutex_destroy(&breakers->lock);
    free(breakers);
}

/* Of that server; `add`: in place of the one that was asked longest ago, where it is not there. Else NULL. */
static server_state *
find_server(mc_http_breakers *breakers, const char *name, bool add)
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
    mc_breaker_report(&oldest->breaker, true); /* nothing is known of the new one */
    apr_cpystrn(oldest->name, name, SERVER_LENGTH);
    return oldest;
}

bool
mc_http_breakers_admit(mc_http_breakers *breakers, const char *server)
{
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, false);
    bool admits = state == NULL || mc_breaker_admits(&state->breaker);
    pthread_mutex_unlock(&breakers->lock);
    return admits;
}

void
mc_http_breakers_report(mc_http_breakers *breakers, const char *server, bool works)
{
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, !works); /* one that works need not be known */
    if (state != NULL) {
        mc_breaker_report(&state->breaker, works);
        state->used = mc_clock_now();
    }
    pthread_mutex_unlock(&breakers->lock);
}

void
mc_http_breakers_visit(mc_http_breakers *breakers, apr_time_t since,
                       void (*visit)(void *baton, const char *name, bool works), void *baton)
{
    pthread_mutex_lock(&breakers->lock);
    for (int i = 0; i < SERVERS; i++)
        if (breakers->servers[i].name[0] != '\0' && breakers->servers[i].used >= since)
            visit(baton, breakers->servers[i].name, mc_breaker_is_closed(&breakers->servers[i].breaker));
    pthread_mutex_unlock(&breakers->lock);
}
