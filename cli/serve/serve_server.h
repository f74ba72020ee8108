/* The web server of a run: Apache with the module, or nginx with the FastCGI program. */
#ifndef MC_CLI_SERVE_SERVER_H
#define MC_CLI_SERVE_SERVER_H

#include "serve_address.h"
#include "serve_place.h"

typedef enum mc_serve_front { MC_SERVE_ANY, MC_SERVE_APACHE, MC_SERVE_NGINX } mc_serve_front;

/* What is installed; NULL: it is not. */
typedef struct mc_serve_programs {
    const char *apache, *apache_modules, *mpm, *module;
    const char *nginx, *fcgi;
} mc_serve_programs;

typedef struct mc_serve_process_slot {
    pid_t process; /* 0: it does not run */
    apr_time_t started;
} mc_serve_process_slot;

enum { MC_SERVE_PROCESSES = 2 };

typedef struct mc_serve_server {
    mc_serve_front front;
    mc_serve_programs programs;
    mc_serve_place *place;
    const mc_serve_address *address;
    const char *config; /* the mapcache.xml; absolute */
    int output;         /* of its programs */
    int count;          /* of programs: nginx has two */
    mc_serve_process_slot slots[MC_SERVE_PROCESSES];
} mc_serve_server;

/* Chooses the server: what is wanted, or what is there. An error says what to install. */
mc_error *mc_serve_server_choose(mc_serve_server *server, mc_serve_front wanted, apr_pool_t *pool) MC_CHECKED;

/* "Apache", "nginx" */
const char *mc_serve_server_name(const mc_serve_server *server);

/* Writes the server's configuration and starts those of its programs that do not run. */
mc_error *mc_serve_server_start(mc_serve_server *server, apr_pool_t *pool) MC_CHECKED;

/* Whether requests are answered by now. */
bool mc_serve_server_answers(const mc_serve_server *server);

/* The configuration has changed, and can be used. Requests that run end with the old one. */
void mc_serve_server_reload(const mc_serve_server *server);

/* A process has ended: NULL if it is none of the server's, else which program it was. *lasted: how long it ran, in
 * seconds. */
const char *mc_serve_server_ended(mc_serve_server *server, pid_t process, double *lasted);

void mc_serve_server_stop(mc_serve_server *server);

#endif
