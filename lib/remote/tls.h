/* TLS over a socket that does not block. OpenSSL does the work, in a module that is loaded at first use
 * (mapcache-tls.so). */
#ifndef MC_REMOTE_TLS_H
#define MC_REMOTE_TLS_H

#include <sys/types.h>

#include "remote/remote.h"

typedef struct mc_tls_session mc_tls_session;

/* What the socket has to be ready for before the same call is made again; 0: nothing. */
typedef struct mc_tls_wish {
    short events; /* of poll() */
} mc_tls_wish;

/*
 * The functions of the module. `settings` are made once for each server and freed by `forget`. The certificate of the
 * server is always checked, with its name. `send` and `receive`: bytes, 0: the connection has ended, -1: *wish tells
 * what to wait for.
 */
typedef struct mc_tls_engine {
    mc_error *(*prepare)(void **settings, const mc_remote_tls *tls, apr_pool_t *pool);
    void (*forget)(void *settings);
    mc_tls_session *(*begin)(void *settings, int descriptor, const char *host); /* NULL: no memory */
    /* One step of the handshake. *wish 0: it is done. MC_ERR_FORBIDDEN: the certificate is not the server's. */
    mc_error *(*shake)(mc_tls_wish *wish, mc_tls_session *session, apr_pool_t *pool);
    ssize_t (*send)(mc_tls_session *session, const void *bytes, size_t size, mc_tls_wish *wish);
    ssize_t (*receive)(mc_tls_session *session, void *bytes, size_t size, mc_tls_wish *wish);
    bool (*has_unread)(const mc_tls_session *session); /* decrypted bytes that the socket does not tell of */
    void (*end)(mc_tls_session *session);
} mc_tls_engine;

#define MC_TLS_ENGINE_SYMBOL "mc_tls_openssl"

/* The module; MC_ERR_UNAVAILABLE where there is none. */
mc_error *mc_tls_load(const mc_tls_engine **engine, apr_pool_t *pool) MC_CHECKED;

#endif
