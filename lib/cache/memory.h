/*
 * The memory of a process: stored tiles, footprints with facts about their files, and large footprints. Three tables
 * share one bound (<memory_cache>): each may fill the room that the others leave, and none evicts entries of the
 * others.
 */
#ifndef MC_CACHE_MEMORY_H
#define MC_CACHE_MEMORY_H

#include "mapcache/ctx.h"
#include "memory/clock_cache.h"

typedef enum mc_share {
    MC_SHARE_TILES, /* encoded, as they are stored */
    MC_SHARE_SMALL, /* small footprints, absences, coverage */
    MC_SHARE_LARGE, /* footprints of MC_LARGE_FOOTPRINT bytes and more */
    MC_SHARES
} mc_share;

enum { MC_LARGE_FOOTPRINT = 1 << 16 };

struct mc_memory;
struct mc_shared_cache;

/* Stored tiles lie in memory that processes share, which the caller owns, instead of in the table of this process.
 * Before the first use. NULL: they do not. */
void mc_memory_share(struct mc_memory *memory, struct mc_shared_cache *shared);
struct mc_shared_cache *mc_memory_shared(const struct mc_memory *memory);

/* As mc_clock_cache_get, of one table. NULL memory has nothing. */
void *mc_memory_find(struct mc_memory *memory, mc_share share, mc_clock_cache_entry **entry, const void *key,
                     size_t key_size);

/* As mc_clock_cache_put, but a newcomer to a full memory may be refused: then `value` is freed at once. */
void mc_memory_keep(mc_ctx *ctx, mc_share share, const void *key, size_t key_size, void *value, size_t bytes,
                    mc_clock_cache_free *free_value);

void mc_memory_drop(struct mc_memory *memory, mc_share share, const void *key, size_t key_size);

/*
 * A number that changes when this process writes to the file of that name (and at times when it writes to another):
 * part of the identity of all that is remembered of a file, so that nothing outlives a write by this process, whatever
 * the file's times are.
 */
unsigned mc_memory_generation(struct mc_memory *memory, const char *path);
void mc_memory_written(struct mc_memory *memory, const char *path);

/* Bytes of all tables together now. */
size_t mc_memory_bytes(struct mc_memory *memory);

#endif
