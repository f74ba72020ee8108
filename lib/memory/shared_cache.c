/* See shared_cache.h, and docs/internals/cache/shared-memory.md for why nobody waits and nothing is ever half there. */
#include "memory/shared_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "mapcache/error.h"
#include "memory/shared_blocks.h"

enum { STRIPES_MAX = 64, STRIPE_BYTES = 4 << 20, BLOCKS_MIN = 16, USED_MAX = 3, HAND_STEPS = 64, CHAIN_STEPS = 64 };

struct mc_shared_cache {
    uint8_t *memory;
    size_t bytes, max_bytes;
    uint64_t seed;
    size_t largest; /* value, with head and key */
    uint32_t stripe_mask;
    mc_shared_stripe stripes[STRIPES_MAX];
};

/* The most blocks of which a stripe takes no more than `bytes`. */
static uint32_t
count_stripe_blocks(size_t bytes)
{
    uint32_t low = 0,
             high = (uint32_t)(bytes / MC_SHARED_BLOCK < UINT32_MAX / 2 ? bytes / MC_SHARED_BLOCK : UINT32_MAX / 2);
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (mc_shared_stripe_size(middle) <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void
init_stripe_lock(mc_shared_stripe_head *head)
{
    pthread_mutexattr_t attributes;
    MC_ASSERT(pthread_mutexattr_init(&attributes) == 0);
    MC_ASSERT(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    MC_ASSERT(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    MC_ASSERT(pthread_mutex_init(&head->lock, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
}

mc_shared_cache *
mc_shared_cache_create(size_t max_bytes)
{
    uint32_t stripes = 1;
    while (stripes < STRIPES_MAX && max_bytes / (stripes * 2) >= STRIPE_BYTES)
        stripes *= 2;
    size_t share = max_bytes / stripes & ~(size_t)63;
    uint32_t blocks = count_stripe_blocks(share);
    if (blocks < BLOCKS_MIN)
        return NULL;
    size_t bytes = share * stripes;
    uint8_t *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); /* zeroed */
    if (memory == MAP_FAILED)
        return NULL;
    mc_shared_cache *cache = calloc(1, sizeof(*cache));
    MC_ASSERT(cache != NULL);
    cache->memory = memory;
    cache->bytes = bytes;
    cache->max_bytes = max_bytes;
    cache->seed = mc_hash_seed();
    cache->largest = (size_t)blocks / 4 * MC_SHARED_BLOCK;
    cache->stripe_mask = stripes - 1;
    for (uint32_t i = 0; i < stripes; i++) {
        mc_shared_stripe_view(&cache->stripes[i], memory + i * share, blocks);
        init_stripe_lock(cache->stripes[i].head);
    }
    return cache;
}

void
mc_shared_cache_destroy(mc_shared_cache *cache)
{
    if (cache == NULL)
        return;
    munmap(cache->memory, cache->bytes);
    free(cache);
}

size_t
mc_shared_cache_bound(const mc_shared_cache *cache)
{
    return cache->max_bytes;
}

static const mc_shared_stripe *
stripe_of_hash(const mc_shared_cache *cache, uint64_t hash)
{
    return &cache->stripes[(hash >> 40) & cache->stripe_mask];
}

static mc_shared_bucket *
bucket_of_hash(const mc_shared_stripe *stripe, uint32_t hash)
{
    return &stripe->buckets[hash & stripe->bucket_mask];
}

static size_t
round_up_to_word(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* After everything that a reader took of an entry: whether the entry was there all the time. */
static bool
is_entry_whole(const mc_shared_slot *slot, uint64_t sequence)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->sequence, memory_order_relaxed) == sequence;
}

/* Whether the slot has an entry of that key; without a lock, or under it. `head` may be NULL. */
static bool
match_shared_slot(mc_shared_entry *entry, void *head, const mc_shared_cache *cache, const mc_shared_stripe *stripe,
                  const mc_shared_slot *slot, uint32_t hash, const void *key, size_t key_size)
{
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    if (sequence % 2 == 0 || atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash ||
        atomic_load_explicit(&slot->key_size, memory_order_relaxed) != key_size)
        return false;
    mc_shared_cursor cursor = { stripe, atomic_load_explicit(&slot->first, memory_order_relaxed), 0 };
    size_t size = atomic_load_explicit(&slot->size, memory_order_relaxed);
    uint8_t unused[MC_SHARED_HEAD];
    bool equal;
    if (size > cache->largest || !mc_shared_read(&cursor, head != NULL ? head : unused, MC_SHARED_HEAD) ||
        !mc_shared_compare(&cursor, key, key_size, &equal) || !equal || !is_entry_whole(slot, sequence))
        return false;
    entry->size = size;
    entry->stripe = stripe;
    entry->slot = slot;
    entry->sequence = sequence;
    entry->block = cursor.block;
    entry->at = cursor.at;
    return true;
}

/* Reads before it writes: what is used often is not written to, and stays in the caches of all processors. */
static void
note_slot_used(mc_shared_slot *slot)
{
    uint8_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
    if (used < USED_MAX)
        atomic_store_explicit(&slot->used, (uint8_t)(used + 1), memory_order_relaxed);
}

bool
mc_shared_cache_find(mc_shared_entry *entry, void *head, mc_shared_cache *cache, const void *key, size_t key_size)
{
    uint64_t hash = mc_hash64(key, key_size, cache->seed);
    const mc_shared_stripe *stripe = stripe_of_hash(cache, hash);
    const mc_shared_bucket *bucket = bucket_of_hash(stripe, (uint32_t)hash);
    entry->generation = atomic_load_explicit(&bucket->generation, memory_order_acquire);
    uint32_t number = atomic_load_explicit(&bucket->slot, memory_order_acquire);
    for (int step = 0; step < CHAIN_STEPS && number != 0 && number <= stripe->block_count; step++) {
        mc_shared_slot *slot = &stripe->slots[number - 1];
        if (match_shared_slot(entry, head, cache, stripe, slot, (uint32_t)hash, key, key_size) &&
            atomic_load_explicit(&slot->generation, memory_order_relaxed) == entry->generation &&
            is_entry_whole(slot, entry->sequence)) {
            note_slot_used(slot);
            return true;
        }
        number = atomic_load_explicit(&slot->chain, memory_order_acquire);
    }
    return false;
}

bool
mc_shared_cache_copy(void *data, const mc_shared_entry *entry)
{
    mc_shared_cursor cursor = { entry->stripe, entry->block, entry->at };
    return mc_shared_read(&cursor, data, entry->size) && is_entry_whole(entry->slot, entry->sequence);
}

uint32_t
mc_shared_cache_generation(const mc_shared_cache *cache, const void *key, size_t key_size)
{
    uint64_t hash = mc_hash64(key, key_size, cache->seed);
    return atomic_load(&bucket_of_hash(stripe_of_hash(cache, hash), (uint32_t)hash)->generation);
}

void
mc_shared_cache_forget(mc_shared_cache *cache, const void *key, size_t key_size)
{
    uint64_t hash = mc_hash64(key, key_size, cache->seed);
    atomic_fetch_add(&bucket_of_hash(stripe_of_hash(cache, hash), (uint32_t)hash)->generation, 1);
}

/* Under the lock: as it was at first, but for sequences and generations, which only grow. */
static void
empty_shared_stripe(const mc_shared_stripe *stripe)
{
    mc_shared_stripe_head *head = stripe->head;
    for (uint32_t i = 0; i <= stripe->bucket_mask; i++)
        atomic_store_explicit(&stripe->buckets[i].slot, 0, memory_order_relaxed);
    uint32_t begun = atomic_load_explicit(&head->slots_begun, memory_order_relaxed);
    for (uint32_t i = 0; i < begun && i < stripe->block_count; i++) {
        uint64_t sequence = atomic_load_explicit(&stripe->slots[i].sequence, memory_order_relaxed);
        if (sequence % 2 == 1)
            atomic_store_explicit(&stripe->slots[i].sequence, sequence + 1, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_release); /* before any block is written to again */
    atomic_store(&head->free_block, 0);
    atomic_store(&head->blocks_begun, 0);
    atomic_store(&head->blocks_used, 0);
    atomic_store(&head->free_slot, 0);
    atomic_store(&head->slots_begun, 0);
    atomic_store(&head->entries, 0);
    atomic_store(&head->hand, 0);
    atomic_fetch_add(&head->emptied, 1);
}

/* Never waits. False: somebody else has the lock. *emptied: its last owner was killed. */
static bool
try_stripe_lock(const mc_shared_stripe *stripe, bool *emptied)
{
    int code = pthread_mutex_trylock(&stripe->head->lock);
    if (code == EOWNERDEAD) {
        empty_shared_stripe(stripe); /* before the lock is said to be whole: this process may be killed here, too */
        *emptied = true;
        code = pthread_mutex_consistent(&stripe->head->lock);
    }
    return code == 0;
}

/* The place that has the number of the slot, or the end of the chain: NULL where the chain is none. */
static _Atomic uint32_t *
find_slot_link(const mc_shared_stripe *stripe, uint32_t hash, uint32_t wanted)
{
    _Atomic uint32_t *link = &bucket_of_hash(stripe, hash)->slot;
    for (uint32_t step = 0; step <= stripe->block_count; step++) {
        uint32_t number = atomic_load_explicit(link, memory_order_relaxed);
        if (number > stripe->block_count)
            return NULL;
        if (number == 0 || number == wanted)
            return link;
        link = &stripe->slots[number - 1].chain;
    }
    return NULL;
}

static uint32_t
count_entry_blocks(size_t key_size, size_t size)
{
    size_t bytes = MC_SHARED_HEAD + round_up_to_word(key_size) + size;
    return (uint32_t)((bytes + MC_SHARED_BLOCK - 1) / MC_SHARED_BLOCK);
}

/* Under the lock. The order matters to readers: out of the chain, no entry any more, and only then free. */
static bool
free_shared_slot(const mc_shared_stripe *stripe, uint32_t number)
{
    mc_shared_slot *slot = &stripe->slots[number - 1];
    mc_shared_stripe_head *head = stripe->head;
    _Atomic uint32_t *link = find_slot_link(stripe, atomic_load_explicit(&slot->hash, memory_order_relaxed), number);
    if (link == NULL || atomic_load_explicit(link, memory_order_relaxed) != number)
        return false;
    atomic_store_explicit(link, atomic_load_explicit(&slot->chain, memory_order_relaxed), memory_order_release);
    atomic_store_explicit(&slot->sequence, atomic_load_explicit(&slot->sequence, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    uint32_t count = count_entry_blocks(atomic_load_explicit(&slot->key_size, memory_order_relaxed),
                                        atomic_load_explicit(&slot->size, memory_order_relaxed));
    if (!mc_shared_blocks_give(stripe, atomic_load_explicit(&slot->first, memory_order_relaxed), count))
        return false;
    atomic_store_explicit(&slot->chain, atomic_load_explicit(&head->free_slot, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&head->free_slot, number, memory_order_relaxed);
    atomic_fetch_sub_explicit(&head->entries, 1, memory_order_relaxed);
    return true;
}

/* Whether the hand takes the entry: nobody used it lately, or nobody can any more. */
static bool
is_slot_to_go(const mc_shared_stripe *stripe, mc_shared_slot *slot, bool any)
{
    uint8_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
    const mc_shared_bucket *bucket = bucket_of_hash(stripe, atomic_load_explicit(&slot->hash, memory_order_relaxed));
    if (used == 0 || any ||
        atomic_load_explicit(&bucket->generation, memory_order_relaxed) !=
            atomic_load_explicit(&slot->generation, memory_order_relaxed))
        return true;
    atomic_store_explicit(&slot->used, (uint8_t)(used - 1), memory_order_relaxed);
    return false;
}

/* Under the lock: one entry goes. False: there is none, or the stripe is damaged. */
static bool
evict_shared_slot(const mc_shared_stripe *stripe)
{
    mc_shared_stripe_head *head = stripe->head;
    uint32_t begun = atomic_load_explicit(&head->slots_begun, memory_order_relaxed);
    uint32_t at = atomic_load_explicit(&head->hand, memory_order_relaxed);
    if (begun == 0 || begun > stripe->block_count)
        return false;
    uint64_t met = 0;
    const uint64_t rounds = (uint64_t)begun * USED_MAX;
    for (uint64_t looked = 0; looked < rounds + begun; looked++, at++) {
        if (at >= begun)
            at = 0;
        mc_shared_slot *slot = &stripe->slots[at];
        if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) % 2 == 0 ||
            !is_slot_to_go(stripe, slot, ++met > HAND_STEPS || looked >= rounds))
            continue;
        atomic_store_explicit(&head->hand, at + 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&head->evictions, 1, memory_order_relaxed);
        return free_shared_slot(stripe, at + 1);
    }
    return false;
}

/* Under the lock: a slot that is free, out of the list; 0: there is none. */
static uint32_t
take_free_slot(const mc_shared_stripe *stripe)
{
    mc_shared_stripe_head *head = stripe->head;
    uint32_t number = atomic_load_explicit(&head->free_slot, memory_order_relaxed);
    if (number > stripe->block_count)
        return 0;
    if (number != 0) {
        uint32_t next = atomic_load_explicit(&stripe->slots[number - 1].chain, memory_order_relaxed);
        atomic_store_explicit(&head->free_slot, next, memory_order_relaxed);
        return number;
    }
    uint32_t begun = atomic_load_explicit(&head->slots_begun, memory_order_relaxed);
    if (begun >= stripe->block_count)
        return 0;
    atomic_store_explicit(&head->slots_begun, begun + 1, memory_order_relaxed);
    return begun + 1;
}

/* What is to be put. */
typedef struct shared_value {
    uint32_t hash, generation;
    const void *key, *head, *data;
    size_t key_size, size;
    uint32_t blocks;
} shared_value;

/* Under the lock, with room: writes the entry, and then shows it. False: the stripe is damaged. */
static bool
write_shared_entry(const mc_shared_stripe *stripe, const shared_value *value)
{
    uint32_t number = take_free_slot(stripe);
    uint32_t first = number == 0 ? 0 : mc_shared_blocks_take(stripe, value->blocks);
    if (first == 0)
        return false;
    mc_shared_slot *slot = &stripe->slots[number - 1];
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    mc_shared_bucket *bucket = bucket_of_hash(stripe, value->hash);
    mc_shared_cursor cursor = { stripe, first, 0 };
    atomic_thread_fence(memory_order_release); /* whoever reads what follows sees that the old entry has gone */
    if (sequence % 2 == 1 || !mc_shared_write(&cursor, value->head, MC_SHARED_HEAD) ||
        !mc_shared_write(&cursor, value->key, value->key_size) || !mc_shared_write(&cursor, value->data, value->size))
        return false;
    atomic_store_explicit(&slot->hash, value->hash, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, value->generation, memory_order_relaxed);
    atomic_store_explicit(&slot->first, first, memory_order_relaxed);
    atomic_store_explicit(&slot->size, (uint32_t)value->size, memory_order_relaxed);
    atomic_store_explicit(&slot->key_size, (uint16_t)value->key_size, memory_order_relaxed);
    atomic_store_explicit(&slot->used, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->chain, atomic_load_explicit(&bucket->slot, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release);
    atomic_store_explicit(&bucket->slot, number, memory_order_release);
    atomic_fetch_add_explicit(&stripe->head->entries, 1, memory_order_relaxed);
    return true;
}

/* Under the lock: the number of the slot that has the key; 0: none has. */
static uint32_t
find_old_slot(const mc_shared_cache *cache, const mc_shared_stripe *stripe, const shared_value *value)
{
    mc_shared_entry entry;
    uint32_t number = atomic_load_explicit(&bucket_of_hash(stripe, value->hash)->slot, memory_order_relaxed);
    for (uint32_t step = 0; step < stripe->block_count && number != 0 && number <= stripe->block_count; step++) {
        const mc_shared_slot *slot = &stripe->slots[number - 1];
        if (match_shared_slot(&entry, NULL, cache, stripe, slot, value->hash, value->key, value->key_size))
            return number;
        number = atomic_load_explicit(&slot->chain, memory_order_relaxed);
    }
    return 0;
}

/* One in four, where the stripe is full: clients that go round through a little more than fits would otherwise find
 * nothing of it, while what many ask for is let in soon. */
static bool
is_newcomer_let_in(const mc_shared_stripe *stripe, uint32_t blocks)
{
    static _Thread_local uint32_t state;
    if (mc_shared_blocks_free(stripe) >= blocks)
        return true;
    if (state == 0)
        state = (uint32_t)mc_hash64(&state, sizeof(&state), (uint64_t)(uintptr_t)&state ^ mc_hash_seed()) | 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state & 3) == 0;
}

/* Under the lock. False: the stripe is damaged. */
static bool
put_shared_value(mc_shared_put *result, const mc_shared_cache *cache, const mc_shared_stripe *stripe,
                 const shared_value *value)
{
    uint32_t old = find_old_slot(cache, stripe, value);
    if (old != 0 && !free_shared_slot(stripe, old))
        return false;
    if (old == 0 && !is_newcomer_let_in(stripe, value->blocks))
        return true;
    while (mc_shared_blocks_free(stripe) < value->blocks) {
        if (!evict_shared_slot(stripe))
            return false;
        result->evicted++;
    }
    result->stored = write_shared_entry(stripe, value);
    return result->stored;
}

mc_shared_put
mc_shared_cache_put(mc_shared_cache *cache, const void *key, size_t key_size, uint32_t generation, const void *head,
                    const void *data, size_t size)
{
    mc_shared_put result = { 0 };
    uint64_t hash = mc_hash64(key, key_size, cache->seed);
    const mc_shared_stripe *stripe = stripe_of_hash(cache, hash);
    if (key_size > MC_SHARED_KEY_MAX || size > cache->largest ||
        MC_SHARED_HEAD + round_up_to_word(key_size) + size > cache->largest ||
        atomic_load(&bucket_of_hash(stripe, (uint32_t)hash)->generation) != generation)
        return result;
    if (!try_stripe_lock(stripe, &result.emptied)) {
        atomic_fetch_add_explicit(&stripe->head->busy, 1, memory_order_relaxed);
        return result;
    }
    const shared_value value = { .hash = (uint32_t)hash,
                                 .generation = generation,
                                 .key = key,
                                 .head = head,
                                 .data = data,
                                 .key_size = key_size,
                                 .size = size,
                                 .blocks = count_entry_blocks(key_size, size) };
    if (!put_shared_value(&result, cache, stripe, &value)) {
        empty_shared_stripe(stripe);
        result.emptied = true;
    }
    pthread_mutex_unlock(&stripe->head->lock);
    return result;
}

void
mc_shared_cache_stat(mc_shared_statistics *statistics, const mc_shared_cache *cache)
{
    *statistics = (mc_shared_statistics){ 0 };
    if (cache == NULL)
        return;
    statistics->max_bytes = cache->max_bytes;
    for (uint32_t i = 0; i <= cache->stripe_mask; i++) {
        const mc_shared_stripe_head *head = cache->stripes[i].head;
        statistics->entries += atomic_load_explicit(&head->entries, memory_order_relaxed);
        statistics->bytes += (size_t)atomic_load_explicit(&head->blocks_used, memory_order_relaxed) * MC_SHARED_BLOCK;
        statistics->evictions += atomic_load_explicit(&head->evictions, memory_order_relaxed);
        statistics->emptied += atomic_load_explicit(&head->emptied, memory_order_relaxed);
        statistics->busy += atomic_load_explicit(&head->busy, memory_order_relaxed);
    }
}
