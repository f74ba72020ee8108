/*
 * A table of values in memory that processes share: made by their parent before it forks, bounded in bytes, with a hand
 * that takes what is not used. For what many processes read and few write (docs/internals/cache/shared-memory.md).
 * Readers take no lock. Writers never wait: what cannot be put at once is not put. A process that is killed at any
 * moment leaves neither a lock nor half a value.
 *
 * A value is a head of MC_SHARED_HEAD bytes, for what the user has to know before anything is copied, and any number of
 * bytes. Nothing in it may be a pointer.
 */
#ifndef MC_MEMORY_SHARED_CACHE_H
#define MC_MEMORY_SHARED_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MC_SHARED_HEAD = 144, MC_SHARED_KEY_MAX = 16384 };

typedef struct mc_shared_cache mc_shared_cache;

/* For processes that are forked later. Takes at most `max_bytes`, all that is needed for the table itself included;
 * pages of the machine are taken as they are used. NULL where the system does not give that much, or where it is too
 * little for anything. */
mc_shared_cache *mc_shared_cache_create(size_t max_bytes);

/* Gives up this process's view; other processes keep theirs. NULL is ignored. */
void mc_shared_cache_destroy(mc_shared_cache *cache);

/* As given to mc_shared_cache_create. */
size_t mc_shared_cache_bound(const mc_shared_cache *cache);

/* Where a reader found a value. All members are this file's own, but for `size` and `generation`. */
typedef struct mc_shared_entry {
    size_t size;         /* of the value, without its head; bounded */
    uint32_t generation; /* of the key, before the look: for mc_shared_cache_put; also where there is no value */
    const struct mc_shared_stripe *stripe;
    const struct mc_shared_slot *slot;
    uint64_t sequence;
    uint32_t block, at;
} mc_shared_entry;

/* Whether there is a value for exactly this key (any bytes); its head is copied to `head`. */
bool mc_shared_cache_find(mc_shared_entry *entry, void *head, mc_shared_cache *cache, const void *key, size_t key_size);

/* The generation of a key by itself. */
uint32_t mc_shared_cache_generation(const mc_shared_cache *cache, const void *key, size_t key_size);

/* Copies entry->size bytes. False: the value has gone meanwhile, and what was copied does not count. */
bool mc_shared_cache_copy(void *data, const mc_shared_entry *entry);

typedef struct mc_shared_put {
    bool stored;
    bool emptied;     /* a process had been killed while it put something: a stripe was emptied for that */
    uint32_t evicted; /* values that had to go */
} mc_shared_put;

/*
 * Stores a value in place of what the key had. `generation`: of mc_shared_cache_find with this key, before the value
 * was got from where it comes from; if the key was forgotten since, nothing is stored. Nothing is stored either where
 * the value is too large (a quarter of a stripe), where another process is writing to the same stripe, and for three of
 * four newcomers to a stripe that is full.
 */
mc_shared_put mc_shared_cache_put(mc_shared_cache *cache, const void *key, size_t key_size, uint32_t generation,
                                  const void *head, const void *data, size_t size);

/* No find that begins after this gives what was put before, or what is put with a generation of before. Waits for
 * nobody. A few other keys may be forgotten as well. */
void mc_shared_cache_forget(mc_shared_cache *cache, const void *key, size_t key_size);

typedef struct mc_shared_statistics {
    size_t entries;
    size_t bytes; /* that values take, with their keys */
    size_t max_bytes;
    uint64_t evictions;
    uint64_t emptied; /* stripes, because a process was killed */
    uint64_t busy;    /* values that were not put because another process was writing */
} mc_shared_statistics;

/* A sum over the stripes, while others go on. NULL has nothing. */
void mc_shared_cache_stat(mc_shared_statistics *statistics, const mc_shared_cache *cache);

#endif
