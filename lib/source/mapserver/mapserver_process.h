/* One child process that draws map files: starting it, talking with it until a moment, ending it. */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_PROCESS_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_PROCESS_H

#include <apr_tables.h>
#include <sys/types.h>

#include "mapcache/ctx.h"

typedef struct mc_mapserver_process {
    pid_t pid;
    int watched; /* the process itself, whoever may have its number later; -1: the kernel has no such descriptors */
    int socket;  /* to its standard input; our end, non-blocking */
    int errors;  /* from its standard error; non-blocking at both ends: what nobody reads is lost */
} mc_mapserver_process;

typedef enum mc_mapserver_talk {
    MC_MAPSERVER_SAID,
    MC_MAPSERVER_ENDED, /* the process has closed its end */
    MC_MAPSERVER_LATE,
    MC_MAPSERVER_GONE /* the client of the request has gone */
} mc_mapserver_talk;

/* MC_ERR_UNAVAILABLE: there is no program, or no process more. */
mc_error *mc_mapserver_start(mc_mapserver_process *process, apr_pool_t *pool) MC_CHECKED;

/*
 * Starts MapServer's CGI program, whose answer comes on the socket; its standard input is empty. variables: of
 * "NAME=value", for it alone. It may use the processor for so many seconds. MC_ERR_UNAVAILABLE: there is no process
 * more.
 */
mc_error *mc_mapserver_start_cgi(mc_mapserver_process *process, const char *program,
                                 const apr_array_header_t *variables, int seconds, apr_pool_t *pool) MC_CHECKED;

/* All bytes go out, or come in, until the moment `until` (mc_clock_now()). */
mc_mapserver_talk mc_mapserver_send(const mc_mapserver_process *process, const void *bytes, size_t size,
                                    apr_time_t until, mc_ctx *ctx);
mc_mapserver_talk mc_mapserver_receive(const mc_mapserver_process *process, void *bytes, size_t size, apr_time_t until,
                                       mc_ctx *ctx);

/* What there is, at most `size` bytes; *got is 0 at the end of what the process says. */
mc_mapserver_talk mc_mapserver_receive_some(size_t *got, const mc_mapserver_process *process, void *bytes, size_t size,
                                            apr_time_t until, mc_ctx *ctx);

/* Whether a process that nobody has asked anything is there, and silent. */
bool mc_mapserver_idle_well(const mc_mapserver_process *process);

/* What the process has written to its standard error since the last call; NULL: nothing. All that the pipe has,
 * *whole being false where the pipe may have been full; or at most 1 KB. */
enum { MC_MAPSERVER_COMPLAINTS_MAX = 1 << 20 };
const char *mc_mapserver_all_complaints(bool *whole, const mc_mapserver_process *process, apr_pool_t *pool);
const char *mc_mapserver_complaints(const mc_mapserver_process *process, apr_pool_t *pool);

/* Kills it. False: it is not gone yet (the kernel holds it), and mc_mapserver_reap is to be called again later. */
bool mc_mapserver_end(mc_mapserver_process *process);
bool mc_mapserver_reap(const mc_mapserver_process *process);

#endif
