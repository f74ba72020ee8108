/* What a machine, databases, stores and a configuration would do better: the checks of `mapcache doctor`. */
#ifndef MC_DOCTOR_DOCTOR_H
#define MC_DOCTOR_DOCTOR_H

#include "mapcache/server.h"

typedef struct mc_doctor mc_doctor;

/* One check. */
typedef struct mc_doctor_check {
    const char *id;    /* for programs: "spatial-index" */
    const char *title; /* for people */
    void (*run)(mc_doctor *doctor, const struct mc_doctor_check *check);
    const char *help; /* one sentence: when the check finds something */
} mc_doctor_check;

/* The table of all checks, which ends with a row without an id. */
const mc_doctor_check *mc_doctor_list(void);

/* Something to be changed. Texts are free of control characters, but for `fix`. */
typedef struct mc_finding {
    const mc_doctor_check *check;
    const char *subject; /* the setting, file, table */
    const char *found;   /* with what was measured */
    const char *why, *todo;
    double factor;   /* times by which the work that is meant becomes less; 1: not known */
    const char *fix; /* SQL where `database` is set, else lines for a shell; NULL: there is none, or none that can be
                        written safely: each name in it is part of subject or todo, too */
    int database;    /* the number of the connection, from 1; 0: none */
} mc_finding;

/* What could not be looked at. */
typedef struct mc_doctor_gap {
    const mc_doctor_check *check; /* NULL: several of them */
    const char *reason;
} mc_doctor_gap;

/* A memory of tiles, as the access log says what it would have been worth. */
typedef struct mc_doctor_size {
    double bytes, ratio; /* ratio: hits of all requests for tiles, 0..1 */
} mc_doctor_size;

/* What drawing or encoding a tile of a tileset costs: measured. */
typedef struct mc_doctor_cost {
    const char *tileset, *what; /* "metatile 4 x 4", "format JPEG" */
    int z;
    double processor, wall; /* milliseconds a tile: of this process; by the clock, databases and origins in it */
    double bytes;           /* a tile; 0: it was not encoded */
} mc_doctor_cost;

typedef struct mc_doctor_report {
    apr_array_header_t *findings; /* of mc_finding, the largest factor first */
    apr_array_header_t *gaps;     /* of mc_doctor_gap */
    apr_array_header_t *sizes;    /* of mc_doctor_size; empty without an access log */
    apr_array_header_t *costs;    /* of mc_doctor_cost; empty unless tiles are drawn */
    double tile_bytes;            /* of a tile in the log, on average; 0: not known */
    int64_t lines, tiles;         /* of the access log: lines read, requests for tiles among them */
} mc_doctor_report;

typedef struct mc_doctor_options {
    int processes, clients; /* of the server that is to be: processes, and clients that are connected to one of them */
    double seconds;         /* for everything together */
    const char *access_log; /* NULL: none */
    bool draw;              /* draw some tiles */
} mc_doctor_options;

/* Runs all checks. Changes nothing. MC_ERR_IO where the access log cannot be read. Results live in `pool`. */
mc_error *mc_doctor_examine(mc_doctor_report **report, const mc_config *config, const mc_doctor_options *options,
                            const mc_log *log, apr_pool_t *pool) MC_CHECKED;

#endif
