/*
 * FastCGI 1.0 records of a responder: parsing what a web server sends, formatting what goes back. No input or output
 * happens here, so that the parser can be fuzzed; everything it reads is hostile and bounded.
 */
#ifndef MC_CGI_RECORDS_H
#define MC_CGI_RECORDS_H

#include <apr_tables.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mapcache/buf.h"

enum {
    MC_FCGI_HEADER_SIZE = 8,
    MC_FCGI_PARAMS_MAX = 256 * 1024,        /* bytes of name-value pairs of one request */
    MC_FCGI_VARIABLES_MAX = 2048,           /* pairs */
    MC_FCGI_BODY_MAX = 64 * 1024 * 1024,    /* bytes of standard input that are kept of a request */
    MC_FCGI_BODIES_MAX = 128 * 1024 * 1024, /* of all requests */
    MC_FCGI_ABORT_REQUEST = 2,              /* record type */
    MC_FCGI_CONNECTIONS_MAX = 16384,        /* told to web servers that ask, and the loop's own bound */
};

typedef enum mc_fcgi_event {
    MC_FCGI_MORE,    /* everything was taken, no request is complete */
    MC_FCGI_BODY,    /* the variables are complete and a body begins: set `body_limit`, then feed on */
    MC_FCGI_REQUEST, /* a request is complete: answer it, then call mc_fcgi_finish */
    MC_FCGI_ABORT,   /* the request that was coming in is given up: end it, then call mc_fcgi_finish */
    MC_FCGI_BROKEN,  /* not FastCGI, or beyond a bound: close the connection */
} mc_fcgi_event;

/* What all connections share: bytes of bodies that are kept. */
typedef struct mc_fcgi_bodies {
    _Atomic size_t bytes;
} mc_fcgi_bodies;

/* Why a body is not there: what came of it is dropped at once, and what comes yet. */
typedef enum mc_fcgi_loss { MC_FCGI_KEPT, MC_FCGI_TOO_LONG, MC_FCGI_NO_ROOM } mc_fcgi_loss;

/* One connection's state. One request at a time; others that begin meanwhile are refused (no multiplexing). */
typedef struct mc_fcgi_parser {
    apr_pool_t *pool; /* for errors only */
    uint8_t header[MC_FCGI_HEADER_SIZE];
    unsigned header_size;
    unsigned content_left, padding_left;
    uint8_t small[512]; /* content of a record that must be seen as a whole */
    unsigned small_size;
    bool active; /* a request has begun and has not been finished */
    bool params_ended;
    bool keep; /* the web server wants to use the connection again */
    uint16_t request_id;
    mc_buf *params;       /* raw name-value pairs */
    bool params_too_long; /* they were beyond MC_FCGI_PARAMS_MAX; `params` is not usable */
    mc_buf *body;         /* NULL without one */
    size_t body_limit;    /* bytes of a body that somebody reads; 0 for each new request */
    bool body_asked;      /* MC_FCGI_BODY has been said */
    mc_fcgi_loss body_loss;
    size_t body_counted; /* of `bodies`, for this one */
    mc_fcgi_bodies *bodies;
    mc_buf *replies; /* records to be sent at once; the caller empties it */
} mc_fcgi_parser;

void mc_fcgi_init(mc_fcgi_parser *parser, mc_fcgi_bodies *bodies, apr_pool_t *pool);
void mc_fcgi_destroy(mc_fcgi_parser *parser);

/* Takes bytes until something is to be done; *data and *size are moved past what was taken. */
mc_fcgi_event mc_fcgi_feed(mc_fcgi_parser *parser, const uint8_t **data, size_t *size);

/* Forgets the request, so that the next one can begin. */
void mc_fcgi_finish(mc_fcgi_parser *parser);

/* Name-value pairs as a table in `pool`. False when they are malformed or too many. */
bool mc_fcgi_variables(apr_table_t **variables, const uint8_t *data, size_t size, apr_pool_t *pool);

/* Bytes still to be sent: memory of the request's pool and of its body. */
typedef struct mc_fcgi_output {
    struct iovec *vectors;
    int count;
    int next;
} mc_fcgi_output;

/*
 * The records of a whole response, which ends the request. `head` is preceded by MC_FCGI_HEADER_SIZE writable bytes;
 * head and body must live as long as the output.
 */
void mc_fcgi_respond(mc_fcgi_output *output, uint16_t request_id, uint8_t *head, size_t head_size, const void *body,
                     size_t body_size, apr_pool_t *pool);

/* Counts `sent` bytes off. False when nothing is left. */
bool mc_fcgi_output_sent(mc_fcgi_output *output, size_t sent);

#endif
