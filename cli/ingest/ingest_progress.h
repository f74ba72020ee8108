/* What `mapcache ingest` says: its plan, a bar on a terminal, lines elsewhere, JSON for programs. */
#ifndef MC_CLI_INGEST_PROGRESS_H
#define MC_CLI_INGEST_PROGRESS_H

#include "ingest_options.h"

typedef struct mc_ingest_report {
    bool quiet, json, bar, dry_run;
    const char *srs;      /* of images that do not say theirs; or NULL */
    const char *value;    /* of the group that is being made; NULL: there is none */
    int images;           /* of all groups */
    mc_ingest_counts all; /* of groups that have ended */
    mc_ingest_counts now; /* of all of them and the present one, as last told */
    apr_time_t began, shown;
    bool drawn;                /* a bar stands on the line */
    bool outlined;             /* the plan has been told */
    apr_int64_t before, after; /* bytes of the store; -1: not to be told */
} mc_ingest_report;

void mc_ingest_report_init(mc_ingest_report *report, const mc_ingest_options *options);

/* A message on standard error, beside the bar. */
void mc_ingest_report_line(mc_ingest_report *report, const char *message);

/* What is going to be done. */
void mc_ingest_report_outline(mc_ingest_report *report, const mc_tileset *tileset, const mc_grid_link *link,
                              mc_ingest *const *ingests, int count);
void mc_ingest_report_begin(mc_ingest_report *report, const char *value);
void mc_ingest_report_show(mc_ingest_report *report, const mc_ingest_counts *counts);
void mc_ingest_report_add(mc_ingest_report *report, const mc_ingest_counts *counts);

/* error: NULL where there was none. */
void mc_ingest_report_end(mc_ingest_report *report, const char *error, int status);

#endif
