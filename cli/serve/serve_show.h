/* What a run tells people, or programs. */
#ifndef MC_CLI_SERVE_SHOW_H
#define MC_CLI_SERVE_SHOW_H

#include "serve_server.h"
#include "serve_things.h"

typedef struct mc_serve_show {
    bool quiet, json;
    int burst;                     /* lines of this second */
    int left_out;                  /* lines that were too many */
    apr_time_t second;             /* when it began */
    int repeated;                  /* how often the last line of the log came again */
    char last[1024];               /* what it says */
    const mc_serve_things *things; /* whose warnings have been told */
    apr_pool_t *pool;
} mc_serve_show;

/* What is served, where, and how it ends. */
void mc_serve_show_serving(const mc_serve_show *show, const mc_serve_things *things, const mc_serve_server *server);

/* The things have changed. */
void mc_serve_show_reloaded(const mc_serve_show *show, const mc_serve_things *things);
void mc_serve_show_stopped(const mc_serve_show *show);

/* On standard error: a remark; something that has failed. */
void mc_serve_show_note(const mc_serve_show *show, const char *text);
void mc_serve_show_failure(const mc_serve_show *show, const char *text);

/* A line of the log of the server, if it says something: the same one again, or too many in a second, are counted. */
void mc_serve_show_log(mc_serve_show *show, const char *line);

/* So many lines of the log were lost: they count as too many. */
void mc_serve_show_lost(mc_serve_show *show, int lines);

/* Says what was counted, once a second or more has passed. */
void mc_serve_show_counted(mc_serve_show *show);

#endif
