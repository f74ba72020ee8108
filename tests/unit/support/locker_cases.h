/* What every locker between machines must do, as cases that the tests of each kind run. */
#ifndef MC_LOCKER_CASES_H
#define MC_LOCKER_CASES_H

#include "mapcache/lock.h"
#include "unit.h"

/* A locker as another machine has it; its timeout is an hour. */
typedef mc_locker *make_locker(void);

/* Locks exclude each other, by name; whoever asks for too long is told so. */
void locks_exclude_each_other(make_locker *make);

/* Threads of two machines take turns, each woken by the one before: `make` gives lockers that do not look by
 * themselves. */
void lockers_take_turns(make_locker *make);

/* A holder that is killed holds nobody up. `restart`: makes the connections of a new process. */
void dead_holders_free_locks(make_locker *make, void (*restart)(void));

#endif
