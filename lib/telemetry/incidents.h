/* The last errors and warnings of all processes of a server, for its status page. */
#ifndef MC_TELEMETRY_INCIDENTS_H
#define MC_TELEMETRY_INCIDENTS_H

#include "base/account.h"
#include "telemetry/monitor.h"

/* Incidents that are kept. */
enum { MC_INCIDENTS_MAX = 64 };

/* Something that the log was told of as an error or a warning. Texts are cut, and have no secrets. */
typedef struct mc_incident {
    apr_time_t first, last; /* microseconds since 1970: of the same thing */
    uint64_t number;        /* of the last one among all: the order, whatever clocks say */
    uint64_t count;         /* how often it has happened between these; 0: nothing is here */
    int level;              /* mc_log_level */
    int status;             /* of the response; 0: of none, or it was not known yet */
    char text[400];
    char tileset[64], service[20], tile[80];
    char url[256];      /* path and query of the last request */
    char position[128]; /* "file:line" of the configuration; "" where it is not known */
} mc_incident;

/*
 * Fills an incident by what the log is told. `account` may be NULL: it is no client's request. `position` may be NULL.
 * Of the URL and the message values are hidden that may be passwords or keys (text/secret.h).
 */
void mc_incident_describe(mc_incident *incident, mc_log_level level, const char *message, const mc_account *account,
                          const char *position, apr_pool_t *pool);

/* Adds it. The same message about the same tileset with the same status is counted, and takes no room. */
void mc_incidents_add(mc_monitor *monitor, const mc_incident *incident);

/* Copies all to `to`, which has room for MC_INCIDENTS_MAX: the last one first. Returns how many there are. */
int mc_incidents_copy(mc_incident *to, mc_monitor *monitor);

/* Ends all texts of one that came from shared memory: whoever wrote it may have died at it. */
void mc_incident_end_texts(mc_incident *incident);

#endif
