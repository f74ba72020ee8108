/*
 * What is open and waits for its next use: data sets that one thread uses at a time and that are dear to open. A thing
 * is found by its text and the stamp of its file, so that a file that has changed is opened anew.
 */
#ifndef MC_BASE_IDLE_H
#define MC_BASE_IDLE_H

#include <pthread.h>
#include <stddef.h>

#include "base/stamp.h"

/* Which thing. */
typedef struct mc_idle_key {
    const char *text; /* all that tells one from another */
    mc_stamp stamp;   /* all zero: no file, nothing of it gets old */
    bool settled;
} mc_idle_key;

/* First member of what waits. */
typedef struct mc_idle_thing {
    mc_idle_key key; /* whose text lives as long as the thing */
    size_t bytes;    /* of memory that the thing holds, counted against the bound of all */
    struct mc_idle_thing *next;
} mc_idle_thing;

typedef struct mc_idle {
    int most;
    size_t most_bytes;
    void (*destroy)(mc_idle_thing *thing);
    pthread_mutex_t lock;  /* of the next three */
    mc_idle_thing *latest; /* first */
    int count;
    size_t bytes;
} mc_idle;

/* At most so many things with so many bytes wait; the one that has waited longest goes first. */
#define MC_IDLE(most, most_bytes, destroy)                                                                             \
    {                                                                                                                  \
        most, most_bytes, destroy, PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0                                               \
    }

/* Directly after the stamp was taken, and before the file is opened. */
mc_idle_key mc_idle_key_of(const char *text, const mc_stamp *stamp);

/* Takes the thing of that key out of those that wait; NULL: there is none. Things of another stamp are destroyed. */
mc_idle_thing *mc_idle_take(mc_idle *idle, const mc_idle_key *key);

/* Lets a thing wait if `keep`, unless its file was just changing when it was opened; else destroys it. */
void mc_idle_give(mc_idle *idle, mc_idle_thing *thing, bool keep);

#endif
