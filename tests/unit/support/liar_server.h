/* A server that says what a test wants, whatever it is asked. */
#ifndef MC_LIAR_SERVER_H
#define MC_LIAR_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct liar_server {
    int port;
    int listener;
    const char *answer; /* to each packet that comes */
    size_t size;
    size_t first;        /* bytes of the answer's first piece; the rest comes a little later */
    int answers;         /* of one connection, which ends then */
    atomic_int asked;    /* packets that have come */
    atomic_int accepted; /* connections */
    pthread_t thread;
} liar_server;

/* Listens on a port of its own. The answer lives as long as the server. */
void start_liar(liar_server *liar, const char *answer, size_t size, size_t first, int answers);
void stop_liar(liar_server *liar);

/* Sends bytes to a port of this machine and returns what comes until `end` has come, or the connection's end. */
char *ask_port(int port, const void *request, size_t size, const char *end);

#endif
