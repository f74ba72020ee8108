/* Real redis servers for tests, each with a folder and a port of its own. */
#ifndef MC_REDIS_SERVER_H
#define MC_REDIS_SERVER_H

#include <sys/types.h>

typedef struct redis_server_process {
    pid_t pid;
    int port;
    char folder[64]; /* has `redis.sock`, too */
} redis_server_process;

/* With these options of its command line, NULL at the end; {folder} in them stands for the folder. The server answers
 * when this returns. The folder may be there before: its name is not empty then. */
void start_redis(redis_server_process *server, const char *const *options);
void stop_redis(redis_server_process *server);

/* What the server says to one line of words, over its local socket. */
const char *ask_redis(const redis_server_process *server, const char *line);

/* Three servers with all slots of a cluster between them, and every key in its place. */
void start_redis_cluster(redis_server_process servers[3]);

/* A certificate of an authority of our own in the server's folder, for 127.0.0.1 and localhost: authority.pem,
 * server.pem, server.key. */
void make_redis_certificates(const char *folder);

#endif
