/* Where a run listens. */
#ifndef MC_CLI_SERVE_ADDRESS_H
#define MC_CLI_SERVE_ADDRESS_H

#include <sys/socket.h>
#include <sys/types.h>

#include "mapcache/error.h"

typedef struct mc_serve_address {
    const char *host; /* numeric; an address of IPv6 in brackets */
    int port;
    bool public; /* other machines may reach it */
    bool any;    /* all addresses of the machine */
    struct sockaddr_storage socket;
    socklen_t size;
} mc_serve_address;

/* An address or a name ("localhost") of this machine. */
mc_error *mc_serve_address_find(mc_serve_address *address, const char *text, apr_pool_t *pool) MC_CHECKED;

/*
 * Chooses the port: `wanted`, or where that is taken and `exactly` is false the next one that is free. An error names
 * who has the port, as far as that can be known.
 */
mc_error *mc_serve_address_choose(mc_serve_address *address, int wanted, bool exactly, apr_pool_t *pool) MC_CHECKED;

/* Whether the process listens on the port: it, and nobody who was there first. */
bool mc_serve_address_held(const mc_serve_address *address, pid_t process);

/* "http://127.0.0.1:8080/": what a browser on this machine is told. */
const char *mc_serve_address_url(const mc_serve_address *address, apr_pool_t *pool);

#endif
