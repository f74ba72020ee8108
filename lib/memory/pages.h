/* Large memory straight from the system: freed memory goes back at once, and large pages make the first access cheap.
 */
#ifndef MC_MEMORY_PAGES_H
#define MC_MEMORY_PAGES_H

#include <stddef.h>

/* From this size on it is worth it. */
#define MC_PAGES_FROM ((size_t)1 << 20)

/*
 * `size` zero bytes (at least 1) that begin on a huge page; the bytes right before them, as many as a small page has,
 * are the caller's, too. Faulting a map's pixels in by small pages takes as long as drawing them. NULL without memory.
 * Any thread.
 */
void *mc_pages_map(size_t size);
void mc_pages_unmap(void *data, size_t size);

#endif
