/*
 * One request and its response in terms of CGI (RFC 3875): variables become a request, a response becomes a head of
 * header lines and a body. Shared by FastCGI and plain CGI.
 */
#ifndef MC_CGI_EXCHANGE_H
#define MC_CGI_EXCHANGE_H

#include "generation.h"

typedef struct mc_exchange {
    const apr_table_t *variables;
    mc_error *(*read_body)(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool); /* NULL: none */
    void *read_body_baton;
    bool (*abandoned)(void *baton);
    void *abandoned_baton;
    void (*slow)(void *baton, bool begins); /* as in mc_ctx */
    void *slow_baton;
} mc_exchange;

/* What is to be sent. All of it lives in the pool that was given. */
typedef struct mc_reply {
    uint8_t *head; /* header lines and the empty line; preceded by `reserve` writable bytes */
    size_t head_size;
    const uint8_t *body; /* NULL: none */
    size_t body_size;
} mc_reply;

/* Answers; errors become responses. `reserve`: bytes that the caller wants in front of the head. */
void mc_exchange_respond(mc_reply *reply, mc_generations *generations, const mc_exchange *exchange, size_t reserve,
                         apr_pool_t *pool);

/* Bytes of the request's body that its service would read at most; 0: none. */
size_t mc_exchange_body_limit(mc_generations *generations, const apr_table_t *variables, apr_pool_t *pool);

/* A response of the front end itself, with a line of text. */
void mc_exchange_refuse(mc_reply *reply, int status, const char *text, size_t reserve, apr_pool_t *pool);

#endif
