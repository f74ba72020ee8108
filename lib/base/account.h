/*
 * What is known of the request that a context works for: log lines, traces and metrics name the request by it. One for
 * each request, on its own thread's stack; jobs of the request read it, and mark what happens.
 */
#ifndef MC_BASE_ACCOUNT_H
#define MC_BASE_ACCOUNT_H

#include <stdatomic.h>

#include "base/trace_context.h"
#include "mapcache/ctx.h"

/* What happened while a request was answered. */
typedef enum mc_account_event {
    MC_EVENT_RENDERED = 1, /* a source was asked for a map */
    MC_EVENT_WAITED = 2,   /* another one's render was waited for */
    MC_EVENT_STALE = 4,    /* a tile that has expired goes out */
    MC_EVENT_COMPOSED = 8, /* the answer was put together of stored tiles */
    MC_EVENT_MEMORY = 16,  /* memory had a tile */
    MC_EVENT_EXPIRED = 32, /* what is stored is too old to go out, or goes out because rendering fails */
    MC_EVENT_STORED = 64,  /* the store took what was rendered */
    MC_EVENT_FAILED = 128, /* rendering failed, now or a moment ago */
    MC_EVENT_UNKEPT = 256, /* the answer was drawn for this request, and nothing looks for it in a store */
} mc_account_event;

typedef struct mc_account {
    const char *method;
    const char *base; /* address of the alias; NULL: not known */
    const char *path; /* what follows it, decoded; NULL: no client asks, the work goes on behind an answer */
    const char *query;
    const char *client;
    const char *service;            /* type of the service that answers; NULL: none was found yet */
    const char *tileset;            /* name in the configuration; NULL: none, or not known yet */
    const char *grid;               /* of a tile, with its place there; NULL: no tile is asked for */
    int z, x, y;                    /* columns from the left, rows from the bottom */
    int width, height;              /* of a map, in pixels; 0: no map is asked for */
    int status;                     /* of the answer; 0: not known yet */
    const struct mc_config *config; /* that answers, for the status page; NULL: nothing is noted for it */
    _Atomic unsigned events;
    mc_trace_context context;
} mc_account;

/* Called from any thread of the request; `ctx` without an account: nothing. */
static inline void
mc_account_mark(const mc_ctx *ctx, mc_account_event event)
{
    if (ctx->account != 0)
        atomic_fetch_or_explicit(&ctx->account->events, (unsigned)event, memory_order_relaxed);
}

/* Takes pairs of a key and its value, which may hold any byte. */
typedef void mc_account_field(void *baton, const char *key, const char *value);

/* What is known as fields: url, service, tileset, tile ("grid/z/x/y") or size ("256x256"), status, trace. In this
 * order; what is not known is left out. The values live in `pool`, or as long as the request. */
void mc_account_visit(const mc_account *account, mc_account_field *field, void *baton, apr_pool_t *pool);

/* The same as one line of logfmt: key=value, in quotes where the value needs them; in `pool`. */
const char *mc_account_text(const mc_account *account, apr_pool_t *pool);

/* Appends " key=value" (without the blank at the begin of a text) to `size` bytes at `text`: in quotes where blanks,
 * quotes or "=" are in the value, control characters as \xNN. Cut at the end of the room, whole otherwise. Returns the
 * bytes in use. */
size_t mc_logfmt_append(char *text, size_t used, size_t size, const char *key, const char *value);

#endif
