/*
 * Large blocks of memory from a free list of the process: pixels, inflated rows, compressor state. Asking the system
 * for a quarter of a megabyte again for each tile costs more in page faults than decoding a sparse tile does.
 */
#ifndef MC_IMAGE_SCRATCH_H
#define MC_IMAGE_SCRATCH_H

#include <stddef.h>

/* At least `size` bytes, aligned to 64, with undefined content; NULL without memory. Any thread. */
void *mc_scratch_acquire(size_t size);
/* Lets the process keep up to so many bytes for the next map, if that is more than before. */
void mc_scratch_keep(size_t bytes);
size_t mc_scratch_kept_most(void);

void mc_scratch_release(void *block); /* NULL is ignored; may be another thread than the one that acquired */

#endif
