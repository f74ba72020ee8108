/* The listening sockets that the program was given, or opens itself. */
#ifndef MC_CGI_SOCKETS_H
#define MC_CGI_SOCKETS_H

#include "mapcache/error.h"

enum { MC_SOCKETS_MAX = 16 };

typedef struct mc_sockets {
    int descriptors[MC_SOCKETS_MAX];
    int count;        /* 0: none, a plain CGI */
    bool spawned;     /* descriptor 0: who has started the program would start it again and again */
    const char *path; /* of a local socket that was made here, to be removed at the end; or NULL */
} mc_sockets;

/* address NULL: what systemd passed (LISTEN_FDS), else descriptor 0 if it listens. MC_ERR_CONFIG for an address that
 * is none, MC_ERR_IO where it cannot be listened on. */
mc_error *mc_sockets_open(mc_sockets *sockets, const char *address, int backlog, apr_pool_t *pool) MC_CHECKED;
void mc_sockets_remove(const mc_sockets *sockets);

#endif
