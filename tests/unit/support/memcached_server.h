/* A memcached of the test's own. */
#ifndef MC_TESTS_MEMCACHED_SERVER_H
#define MC_TESTS_MEMCACHED_SERVER_H

#include <sys/types.h>

/* memcached takes a port that is free and tells which: one that is looked for here could be another's by then. */
pid_t start_memcached(int *port);
void stop_memcached(pid_t child);

/* The seconds that the memcached at a port has counted: keys expire where that number changes. */
long read_memcached_seconds(int port);

/* A port at which nobody listens as long as the socket *keeper is open. */
int reserve_unused_port(int *keeper);

#endif
