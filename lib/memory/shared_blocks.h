/*
 * A stripe of a shared table (shared_cache.h): where its parts lie, and its blocks. Everything in the mapping is
 * atomic, because readers read while a writer writes, and every number from the mapping is held against its bound,
 * because such a reader may see anything.
 */
#ifndef MC_MEMORY_SHARED_BLOCKS_H
#define MC_MEMORY_SHARED_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MC_SHARED_BLOCK = 1024, MC_SHARED_WORDS = MC_SHARED_BLOCK / 8 };

/* Numbers of slots and blocks begin with 1; 0: none. */
typedef struct mc_shared_slot {
    _Atomic uint64_t sequence; /* odd: there is an entry; only ever grows */
    _Atomic uint32_t hash;     /* lower half */
    _Atomic uint32_t generation;
    _Atomic uint32_t first; /* block */
    _Atomic uint32_t chain; /* the next slot of the bucket, or of the free ones */
    _Atomic uint32_t size;  /* of the value, without its head */
    _Atomic uint16_t key_size;
    _Atomic uint8_t used; /* 0 to 3; readers count up, the hand counts down */
} mc_shared_slot;

typedef struct mc_shared_bucket {
    _Atomic uint32_t slot;
    _Atomic uint32_t generation; /* entries of older ones do not count */
} mc_shared_bucket;

/* But for `busy`, changed under the lock only. */
typedef struct mc_shared_stripe_head {
    _Alignas(64) pthread_mutex_t lock; /* robust */
    _Atomic uint32_t free_block, blocks_begun, blocks_used;
    _Atomic uint32_t free_slot, slots_begun, entries;
    _Atomic uint32_t hand;
    _Atomic uint64_t evictions, emptied;
    _Alignas(64) _Atomic uint64_t busy;
} mc_shared_stripe_head;

/* In the memory of each process; never changed once it is made. */
typedef struct mc_shared_stripe {
    mc_shared_stripe_head *head;
    mc_shared_bucket *buckets;
    mc_shared_slot *slots;
    _Atomic uint32_t *links; /* of each block the next one */
    _Atomic uint64_t *words; /* of the blocks */
    uint32_t bucket_mask;
    uint32_t block_count; /* and so many slots */
} mc_shared_stripe;

/* Bytes of a stripe of so many blocks; and its view, `memory` being all zero at first. */
size_t mc_shared_stripe_size(uint32_t block_count);
void mc_shared_stripe_view(mc_shared_stripe *stripe, uint8_t *memory, uint32_t block_count);

/* A place in a chain of blocks. */
typedef struct mc_shared_cursor {
    const mc_shared_stripe *stripe;
    uint32_t block, at; /* `at`: bytes, a multiple of 8 */
} mc_shared_cursor;

/* Moves on by `size` bytes, rounded up to whole words. False where the chain ends before, which is the fate of a reader
 * whose entry has gone. */
bool mc_shared_read(mc_shared_cursor *cursor, void *data, size_t size);
bool mc_shared_compare(mc_shared_cursor *cursor, const void *data, size_t size, bool *equal);

/*
 * By the writer, under the lock. False, or 0, where a number is none that the writer has put there: somebody else has
 * written into the mapping. The stripe is of no more use then, until it is emptied.
 */

/* As mc_shared_read. */
bool mc_shared_write(mc_shared_cursor *cursor, const void *data, size_t size);

/* Takes `count` free blocks, one at least, as a chain: its first one. They must be there. And gives a chain back. */
uint32_t mc_shared_blocks_take(const mc_shared_stripe *stripe, uint32_t count);
bool mc_shared_blocks_give(const mc_shared_stripe *stripe, uint32_t first, uint32_t count);

/* How many blocks are free; without the lock, how many were a moment ago. */
uint32_t mc_shared_blocks_free(const mc_shared_stripe *stripe);

#endif
