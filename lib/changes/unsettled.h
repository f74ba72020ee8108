/* What a process has read of a log and the readers of its name have not applied for good yet: bounded, however long
 * that takes. */
#ifndef MC_CHANGES_UNSETTLED_H
#define MC_CHANGES_UNSETTLED_H

#include <apr_time.h>

enum { MC_UNSETTLED_MAX = 256 };

/* One thread at a time. All zero: none. */
typedef struct mc_unsettled {
    struct mc_unsettled_batch {
        char *snapshot;  /* that sees all of it */
        apr_time_t time; /* of its oldest marks */
    } batches[MC_UNSETTLED_MAX];
    int count;
} mc_unsettled;

/* Notes what was read, later than all before. Where there are many, two neighbours become one, which is settled when
 * the later one is. */
void mc_unsettled_add(mc_unsettled *unsettled, const char *snapshot, apr_time_t time);

/* Drops what is seen by the snapshot up to which readers have applied the log (NULL: they have not). */
void mc_unsettled_settle(mc_unsettled *unsettled, const char *applied);

/* The oldest time; 0: there is none. */
apr_time_t mc_unsettled_oldest(const mc_unsettled *unsettled);

void mc_unsettled_clear(mc_unsettled *unsettled);

#endif
