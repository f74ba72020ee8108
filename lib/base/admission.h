/*
 * Who may begin what takes long. The threads of a front end serve stored tiles in microseconds, and wait for origins,
 * locks and drawings in the same requests: some of the threads stay free of the latter, so that stored tiles, /health
 * and refusals are answered at once however much is asked for.
 */
#ifndef MC_BASE_ADMISSION_H
#define MC_BASE_ADMISSION_H

#include <stdatomic.h>

#include "mapcache/ctx.h"

typedef struct mc_admissions mc_admissions;

/* One request; part of its ctx, and of the copies of its ctx on other threads. */
typedef struct mc_admission {
    mc_admissions *admissions; /* NULL: everything is let in */
    const char *client;        /* address of the client as the web server tells it, or NULL */
    bool inside;
    int most_origin_requests; /* of this request; 0: no limit */
    atomic_int origin_requests;
    struct mc_admission *previous, *next; /* of those inside; the lock of `admissions` */
} mc_admission;

mc_admissions *mc_admissions_create(void);
void mc_admissions_destroy(mc_admissions *admissions);

/* At most so many requests inside, and of one client (0: as many as there are). Before the first request. */
void mc_admissions_limit(mc_admissions *admissions, int most, int most_of_client);

/*
 * Before a request waits for others or draws; again for a request that is inside does nothing. MC_ERR_BUSY: too many
 * are inside. A ctx without an admission is let in.
 */
mc_error *mc_admission_enter(mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same for what a request can do without: nothing is counted or logged where it is false. */
bool mc_admission_lets_in(mc_ctx *ctx);

/* The error of a request that is refused, which is counted; the log is told of all together, every five seconds. */
mc_error *mc_admission_refuse(mc_ctx *ctx, const char *message, const char *reason, apr_pool_t *pool) MC_CHECKED;

/* Before a request is sent to an origin. MC_ERR_BAD_REQUEST: this one has sent too many (a map of many layers). */
mc_error *mc_admission_count_origin(mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* At the end of the request, inside or not. */
void mc_admission_leave(mc_admission *admission);

#endif
