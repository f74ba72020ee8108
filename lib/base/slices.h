/*
 * How long a slice of processor time the calling thread asks for (Linux 6.12 and later; elsewhere nothing happens). A
 * thread with short slices gets no more time than others, but gets its time at once: it interrupts those with longer
 * slices. Threads that answer in microseconds ask for short ones, so that they need not wait for those that draw. That
 * needs no right, and can be taken back: unlike a lower priority, which a thread has for good.
 */
#ifndef MC_BASE_SLICES_H
#define MC_BASE_SLICES_H

#include "mapcache/ctx.h"

/* Again: nothing. A thread of another policy than the ordinary one, or with shorter slices, is left alone. */
void mc_slices_shorten(void);

/* Around what only waits, and computes little, inside of MC_SLOW: the thread keeps the slices that it has. Changing
 * them there and back takes four calls of the kernel, for a hit of a store behind HTTP. In pairs, may be nested. */
void mc_slices_hold(void);
void mc_slices_release(const int *unused);

/* The rest of the enclosing scope is slow, as of MC_SLOW, because it waits for others. */
#define MC_SLOW_WAIT(ctx)                                                                                              \
    __attribute__((cleanup(mc_slices_release), unused)) const int mc_slices_scope = (mc_slices_hold(), 0);             \
    MC_SLOW(ctx)

/* Around what takes no more than a fraction of a millisecond unless somebody inside finds out otherwise: until then the
 * thread keeps the slices that it has, in MC_SLOW, too, which spares four calls of the kernel. In pairs, may be nested;
 * without effect once it is not small. */
bool mc_slices_small_begin(bool is_small);
void mc_slices_small_end(const bool *begun);

/* The rest of the enclosing scope, if `is_small`; MC_SLOW comes behind it. */
#define MC_SLICES_SMALL(is_small)                                                                                      \
    __attribute__((cleanup(mc_slices_small_end), unused)) const bool mc_slices_small_scope =                           \
        mc_slices_small_begin(is_small)

/* What is under way takes longer: nothing without MC_SLICES_SMALL around it, on the same thread. */
void mc_slices_not_small(void);

/* Those of the process before the first thread shortened its own; also for threads that such a thread has started, as
 * these inherit them. */
void mc_slices_restore(void);

#endif
