/*
 * Large blocks of memory from a free list of the process: pixels, inflated rows, compressor state. Asking the system
 * for a quarter of a megabyte again for each tile costs more in page faults than decoding a sparse tile does.
 */
#ifndef MC_MEMORY_SCRATCH_H
#define MC_MEMORY_SCRATCH_H

#include <stddef.h>

/* At least `size` bytes, aligned to 64, with undefined content; NULL without memory, or where the budget of the process
 * (base/budget.h) has no room for them. Any thread. */
void *mc_scratch_acquire(size_t size);

/* The same of what is needed for pixels that the budget has let in: counted, but refused by the system alone. */
void *mc_scratch_require(size_t size);

/* Raises the number of bytes that the process keeps for the next map; a smaller number than before changes nothing. */
void mc_scratch_keep(size_t bytes);
size_t mc_scratch_kept_most(void);

/* Before blocks of that size are needed, `count` of them at a time (16 at most): the system's pages for them are there
 * then, and the blocks are kept as any others. */
void mc_scratch_warm(size_t size, int count);

/* Gives all blocks that are kept back to the system. */
void mc_scratch_forget(void);

void mc_scratch_release(void *block); /* NULL is ignored. Any thread */

#endif
