/*
 * How long a slice of processor time the calling thread asks for (Linux 6.12 and later; elsewhere nothing happens). A
 * thread with short slices gets no more time than others, but gets its time at once: it interrupts those with longer
 * slices. Threads that answer in microseconds ask for short ones, so that they need not wait for those that draw. That
 * needs no right, and can be taken back: unlike a lower priority, which a thread has for good.
 */
#ifndef MC_BASE_SLICES_H
#define MC_BASE_SLICES_H

/* Again: nothing. A thread of another policy than the ordinary one, or with shorter slices, is left alone. */
void mc_slices_shorten(void);

/* Those of the process before the first thread shortened its own; also for threads that such a thread has started, as
 * these inherit them. */
void mc_slices_restore(void);

#endif
