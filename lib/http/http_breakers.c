#include "http/http_breakers.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "mapcache/error.h"

enum { SERVERS = 128, SERVER_LENGTH = 256 };

/* Less without an answer, at the end of the request's own time, may be its hurry. */
#define TELLING_TIME APR_USEC_PER_SEC
#define TELLING_TIME_OF_ORIGINS (10 * APR_USEC_PER_SEC)
/* With less left than that, the request's time is over: clocks of libcurl and ours are not the same. */
#define END_OF_TIME (APR_USEC_PER_SEC / 10)

typedef struct server_state {
    uint64_t hash;            /* of the name */
    char name[SERVER_LENGTH]; /* "": free; else cut */
    mc_breaker breaker;
    apr_time_t used; /* mc_clock_now() */
} server_state;

struct mc_http_breakers {
    pthread_mutex_t lock; /* of the servers; theirs may be taken while it is held */
    server_state servers[SERVERS];
    atomic_int known; /* of these; read without the lock: where none has failed yet, there is nothing to look for */
};

mc_http_breakers *
mc_http_breakers_create(void)
{
    mc_http_breakers *breakers = calloc(1, sizeof(*breakers));
    MC_ASSERT(breakers != NULL);
    pthread_mutex_init(&breakers->lock, NULL);
    for (int i = 0; i < SERVERS; i++)
        mc_breaker_start(&breakers->servers[i].breaker);
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
    const uint64_t hash = mc_hash64(name, strlen(name), 0);
    for (int i = 0; i < SERVERS; i++) {
        server_state *server = &breakers->servers[i];
        if (server->hash == hash && strncmp(server->name, name, SERVER_LENGTH - 1) == 0)
            return server;
        if (server->used < oldest->used)
            oldest = server;
    }
    if (!add)
        return NULL;
    mc_breaker_report(&oldest->breaker, true, 0); /* nothing is known of the new one */
    if (oldest->name[0] == '\0')
        atomic_fetch_add(&breakers->known, 1);
    oldest->hash = hash;
    apr_cpystrn(oldest->name, name, SERVER_LENGTH);
    return oldest;
}

bool
mc_http_breakers_admit(mc_http_breakers *breakers, const char *server)
{
    if (atomic_load(&breakers->known) == 0)
        return true;
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, false);
    bool admits = state == NULL || mc_breaker_admits(&state->breaker);
    pthread_mutex_unlock(&breakers->lock);
    return admits;
}

static mc_http_sign
sign_of_exchange(const mc_http_exchange *exchange, apr_interval_time_t waited, bool over)
{
    const int status = exchange->reply.status;
    const bool store = exchange->call.store;
    if (exchange->error == MC_OK)
        return status == 429 || (status >= 502 && status <= 504) || (status == 500 && store) ? MC_HTTP_TROUBLE
                                                                                             : MC_HTTP_LIFE;
    if (exchange->reply.too_large)
        return MC_HTTP_LIFE;
    if (exchange->error->kind == MC_ERR_TIMEOUT)
        return !over || waited >= (store ? TELLING_TIME : TELLING_TIME_OF_ORIGINS) ? MC_HTTP_TROUBLE : MC_HTTP_NO_SIGN;
    return exchange->error->kind == MC_ERR_UPSTREAM ? MC_HTTP_TROUBLE : MC_HTTP_NO_SIGN;
}

void
mc_http_add_signs(mc_http_finding *finding, const mc_http_exchange *exchanges, int count, apr_time_t begun,
                  const mc_ctx *ctx)
{
    const apr_interval_time_t waited = mc_clock_now() - begun;
    const bool over = mc_ctx_remaining(ctx, END_OF_TIME) < END_OF_TIME;
    for (int i = 0; i < count; i++) {
        mc_http_sign sign = sign_of_exchange(&exchanges[i], waited, over);
        if (sign >= finding->sign)
            *finding = (mc_http_finding){ sign, over ? 0 : waited };
    }
}

void
mc_http_breakers_report(mc_http_breakers *breakers, const char *server, const mc_http_finding *finding)
{
    const bool works = finding->sign == MC_HTTP_LIFE;
    if (finding->sign == MC_HTTP_NO_SIGN || (works && atomic_load(&breakers->known) == 0))
        return;
    pthread_mutex_lock(&breakers->lock);
    server_state *state = find_server(breakers, server, !works); /* one that works need not be known */
    if (state != NULL) {
        mc_breaker_report(&state->breaker, works, finding->waited);
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
            visit(baton, breakers->servers[i].name, mc_breaker_works(&breakers->servers[i].breaker));
    pthread_mutex_unlock(&breakers->lock);
}
