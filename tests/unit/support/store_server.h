/* The store of tests/integration/store_server.py for C tests: one process for each test, gone with it. */
#ifndef MC_UNIT_STORE_SERVER_H
#define MC_UNIT_STORE_SERVER_H

#include <sys/types.h>

#include "unit.h"

typedef struct store_server {
    int port;
    pid_t pid;
    int input; /* the store ends when this is closed, also when the test dies */
} store_server;

/* Also makes process.http; the other one ends both. */
store_server store_start(const char *kind);
void store_stop(store_server *store);

/* What GET /-/ORDER says: store_server.py has the orders. */
const char *store_order(const store_server *store, const char *order);

/* How many requests the store has met since it was asked last. */
int store_requests(const store_server *store);

#endif
