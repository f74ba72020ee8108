/*
 * Addresses of hosts. The C library asks its name servers for as long as they say nothing (some 30 s); here a thread of
 * its own asks, and a request waits until its deadline at most. Answers are shared for a while.
 */
#ifndef MC_BASE_RESOLVE_H
#define MC_BASE_RESOLVE_H

#include <sys/socket.h>

#include "mapcache/ctx.h"

enum { MC_ADDRESSES_MAX = 16, MC_ADDRESS_TEXT = 64 /* bytes of an address in digits */ };

typedef struct mc_address {
    struct sockaddr_storage socket; /* port 0 */
    socklen_t size;
    char text[MC_ADDRESS_TEXT]; /* 192.0.2.1, 2001:db8::1 */
} mc_address;

typedef struct mc_addresses {
    int count;
    mc_address at[MC_ADDRESSES_MAX];
} mc_addresses;

/*
 * The addresses of `host`, a name or an address, in the order of the C library (RFC 6724); at least one. At the latest
 * at `until` (mc_clock_now()) MC_ERR_TIMEOUT, and MC_ERR_UNAVAILABLE once the client has gone. MC_ERR_IO: the name is
 * unknown, or no name server answers.
 */
mc_error *mc_resolve_host(mc_addresses *found, const char *host, apr_time_t until, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

#endif
