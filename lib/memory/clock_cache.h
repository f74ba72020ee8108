/*
 * A table of values, bounded in bytes, that drops what has not been used. For what many threads read and few write:
 * a get takes one short lock of one shard, marks the entry as used and counts a reference; nothing moves.
 */
#ifndef MC_MEMORY_CLOCK_CACHE_H
#define MC_MEMORY_CLOCK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mc_clock_cache mc_clock_cache;
typedef struct mc_clock_cache_entry mc_clock_cache_entry;

/* Called once for each value, when it has left the table and its last reader has let it go; from any thread, without
 * a lock held. */
typedef void mc_clock_cache_free(void *value);

/* A table for at most `max_bytes` of values, keys and its own entries. Memory grows as it is used. */
mc_clock_cache *mc_clock_cache_create(size_t max_bytes);

/* Drops everything. Entries that are still referenced stay valid until their mc_clock_cache_release. NULL is ignored.
 */
void mc_clock_cache_destroy(mc_clock_cache *cache);

/*
 * The value of `key` (any bytes) or NULL. With a value, *entry holds a reference: the value lives at least until
 * mc_clock_cache_release(*entry). Readers of the same entry run at the same time: the value is read-only for them.
 */
void *mc_clock_cache_get(mc_clock_cache *cache, mc_clock_cache_entry **entry, const void *key, size_t key_size);
void mc_clock_cache_release(mc_clock_cache_entry *entry); /* NULL is ignored */

/*
 * Stores `value`, which takes `bytes` of memory, in place of what `key` had; the table owns it from now on. False if it
 * is larger than an eighth of the whole bound or there is no memory: then it has been freed at once (and what `key` had
 * is gone as well).
 */
bool mc_clock_cache_put(mc_clock_cache *cache, const void *key, size_t key_size, void *value, size_t bytes,
                        mc_clock_cache_free *free_value);

/* False if there was none. */
bool mc_clock_cache_remove(mc_clock_cache *cache, const void *key, size_t key_size);

/* Removes every entry for which `matches` says so (NULL: all of them); it is called with a lock held and must not use
 * the table. Returns how many. */
size_t mc_clock_cache_remove_if(mc_clock_cache *cache,
                                bool (*matches)(void *baton, const void *key, size_t key_size, const void *value),
                                void *baton);

typedef struct mc_clock_cache_statistics {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions; /* dropped to stay inside the bound */
    size_t entries;
    size_t bytes;
    size_t max_bytes;
} mc_clock_cache_statistics;

/* Entries dropped so far to stay inside the bound; cheap, no lock. */
uint64_t mc_clock_cache_evictions(const mc_clock_cache *cache);

/* Drops entries, those first that were not used, until at least `bytes` are free that were not, or nothing is left. For
 * several tables that share one bound. */
void mc_clock_cache_shed(mc_clock_cache *cache, size_t bytes);

/* What the table takes now; cheap, no lock. */
size_t mc_clock_cache_bytes(const mc_clock_cache *cache);

/* A sum over the shards, each exact by itself. */
void mc_clock_cache_stat(mc_clock_cache *cache, mc_clock_cache_statistics *statistics);

#endif
