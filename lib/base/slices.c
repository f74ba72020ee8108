/* Slices of processor time: see slices.h. */
#include "base/slices.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Nanoseconds: the shortest that the kernel gives. Its usual ones are about 3 ms. */
#define SHORT_SLICE UINT64_C(100000)

/* struct sched_attr of the kernel, as in man 2 sched_setattr: the header that has it does not go with <sched.h>. */
typedef struct schedule {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period; /* slice: sched_runtime, of ordinary threads */
} schedule;

static _Atomic uint64_t usual_slice; /* of the process; 0: nobody has shortened his */
static _Thread_local bool is_short;
static _Thread_local int holds; /* mc_slices_hold that are not released */
static _Thread_local int small; /* mc_slices_small_begin that are not ended */
static _Thread_local bool owed; /* mc_slices_restore was asked for meanwhile */

/* Those of the thread are not `from` (0: whatever they are) any more, but `to`. */
static void
change_slice(uint64_t from, uint64_t to)
{
    schedule now;
    if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0 || now.policy != SCHED_OTHER)
        return;
    if (now.slice <= to && from == 0)
        return; /* short enough, or 0: the kernel knows of none */
    if (from != 0 && now.slice != from)
        return; /* somebody else has set it */
    uint64_t unknown = 0;
    atomic_compare_exchange_strong(&usual_slice, &unknown, now.slice);
    now.slice = to;
    (void)syscall(SYS_sched_setattr, 0, &now, 0);
}

void
mc_slices_shorten(void)
{
    owed = false;
    if (is_short)
        return;
    is_short = true;
    change_slice(0, SHORT_SLICE);
}

void
mc_slices_hold(void)
{
    holds++;
}

void
mc_slices_release(const int *unused)
{
    (void)unused;
    holds--;
}

bool
mc_slices_small_begin(bool is_small)
{
    small += is_small;
    return is_small;
}

void
mc_slices_small_end(const bool *begun)
{
    if (*begun && small > 0 && --small == 0)
        owed = false;
}

void
mc_slices_not_small(void)
{
    if (!owed)
        return;
    owed = false;
    small = 0;
    mc_slices_restore();
}

void
mc_slices_restore(void)
{
    uint64_t usual = atomic_load(&usual_slice);
    owed = small > 0;
    if (holds > 0 || owed)
        return; /* and mc_slices_shorten finds them short */
    is_short = false;
    if (usual != 0)
        change_slice(SHORT_SLICE, usual);
}
