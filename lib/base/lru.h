/*
 * A table of values, bounded in bytes, that drops what has not been used. For what many threads read and few write:
 * a get takes one short lock of one shard, marks the entry as used and counts a reference; nothing moves.
 */
#ifndef MC_BASE_LRU_H
#define MC_BASE_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mc_lru mc_lru;
typedef struct mc_lru_entry mc_lru_entry;

/* Called once for each value, when it has left the table and its last reader has let it go; from any thread, without
 * a lock held. */
typedef void mc_lru_free(void *value);

/* A table for at most `max_bytes` of values, keys and its own entries. Memory grows as it is used. */
mc_lru *mc_lru_create(size_t max_bytes);

/* Drops everything. Entries that are still referenced stay valid until their mc_lru_release. NULL is ignored. */
void mc_lru_destroy(mc_lru *lru);

/*
 * The value of `key` (any bytes) or NULL. With a value, *entry holds a reference: the value lives at least until
 * mc_lru_release(*entry). Readers of the same entry run at the same time: the value is read-only for them.
 */
void *mc_lru_get(mc_lru *lru, mc_lru_entry **entry, const void *key, size_t key_size);
void mc_lru_release(mc_lru_entry *entry); /* NULL is ignored */

/*
 * Stores `value`, which takes `bytes` of memory, in place of what `key` had; the table owns it from now on. False if it
 * is larger than an eighth of the whole bound or there is no memory: then it has been freed at once (and what `key` had
 * is gone as well).
 */
bool mc_lru_put(mc_lru *lru, const void *key, size_t key_size, void *value, size_t bytes, mc_lru_free *free_value);

/* False if there was none. */
bool mc_lru_remove(mc_lru *lru, const void *key, size_t key_size);

/* Removes every entry for which `matches` says so (NULL: all of them); it is called with a lock held and must not use
 * the table. Returns how many. */
size_t mc_lru_remove_if(mc_lru *lru, bool (*matches)(void *baton, const void *key, size_t key_size, const void *value),
                        void *baton);

typedef struct mc_lru_statistics {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions; /* dropped to stay inside the bound */
    size_t entries;
    size_t bytes;
    size_t max_bytes;
} mc_lru_statistics;

/* Entries dropped so far to stay inside the bound; cheap, no lock. */
uint64_t mc_lru_evictions(const mc_lru *lru);

/* Drops entries, those first that were not used, until at least `bytes` are free that were not, or nothing is left. For
 * several tables that share one bound. */
void mc_lru_shed(mc_lru *lru, size_t bytes);

/* What the table takes now; cheap, no lock. */
size_t mc_lru_bytes(const mc_lru *lru);

/* Whether a value of `bytes` would push out none: a hint, other threads put too. */
bool mc_lru_has_room(const mc_lru *lru, size_t bytes);

/* A sum over the shards, each exact by itself. */
void mc_lru_stat(mc_lru *lru, mc_lru_statistics *statistics);

#endif
