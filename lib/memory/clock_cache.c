/*
 * The bounded table. Shards by the key's hash, each a chained hash table with one lock and one queue in order of
 * insertion. A hand walks the queue from the oldest to the newest: entries that were used since it last passed stay,
 * the first other one goes. So a get need not move its entry, and a scan through many keys does not wash out those that
 * are used.
 */
#include "memory/clock_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/references.h"
#include "mapcache/error.h"

enum { SHARDS_MAX = 64, SHARD_BYTES = 1 << 21, FIRST_BUCKETS = 64, CACHE_LINE = 64, SHED_STEP = 1 << 14 };

struct mc_clock_cache_entry {
    mc_clock_cache_entry *chain; /* next of the same bucket */
    mc_clock_cache_entry *newer;
    mc_clock_cache_entry *older;
    uint64_t hash;
    void *value;
    mc_clock_cache_free *free_value;
    size_t bytes; /* what it counts for: value, key, this struct */
    size_t key_size;
    atomic_uint references; /* the table's own included */
    bool used;              /* since the hand last passed */
    unsigned char key[];
};

typedef struct shard {
    _Alignas(CACHE_LINE) pthread_mutex_t lock; /* of everything below, and of the entries but for `references` */
    mc_clock_cache_entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    mc_clock_cache_entry *newest;
    mc_clock_cache_entry *oldest;
    mc_clock_cache_entry *hand; /* NULL: at the oldest */
    uint64_t hits;
    uint64_t misses;
} shard;

struct mc_clock_cache {
    shard *shards;
    size_t shard_count; /* a power of two */
    size_t max_bytes;
    uint64_t seed;
    _Alignas(CACHE_LINE) atomic_size_t bytes; /* of all shards; may exceed the bound while a put makes room */
    _Atomic uint64_t evictions;
    atomic_size_t next_shed; /* the shard that mc_clock_cache_shed begins with */
};

mc_clock_cache *
mc_clock_cache_create(size_t max_bytes)
{
    mc_clock_cache *cache = aligned_alloc(CACHE_LINE, sizeof(*cache));
    MC_ASSERT(cache != NULL);
    *cache = (mc_clock_cache){ .shard_count = 1, .max_bytes = max_bytes, .seed = mc_hash_seed() };
    while (cache->shard_count < SHARDS_MAX && max_bytes / cache->shard_count > SHARD_BYTES)
        cache->shard_count *= 2;
    cache->shards = aligned_alloc(CACHE_LINE, cache->shard_count * sizeof(shard));
    MC_ASSERT(cache->shards != NULL);
    for (size_t i = 0; i < cache->shard_count; i++) {
        shard *s = &cache->shards[i];
        *s = (shard){ .bucket_count = FIRST_BUCKETS };
        s->buckets = calloc(FIRST_BUCKETS, sizeof(mc_clock_cache_entry *));
        MC_ASSERT(s->buckets != NULL);
        MC_ASSERT(pthread_mutex_init(&s->lock, NULL) == 0);
    }
    return cache;
}

void
mc_clock_cache_destroy(mc_clock_cache *cache)
{
    if (cache == NULL)
        return;
    mc_clock_cache_remove_if(cache, NULL, NULL);
    for (size_t i = 0; i < cache->shard_count; i++) {
        pthread_mutex_destroy(&cache->shards[i].lock);
        free(cache->shards[i].buckets);
    }
    free(cache->shards);
    free(cache);
}

void
mc_clock_cache_release(mc_clock_cache_entry *entry)
{
    if (entry == NULL || !mc_references_drop(&entry->references))
        return;
    entry->free_value(entry->value);
    free(entry);
}

static uint64_t
hash_key(const mc_clock_cache *cache, const void *key, size_t key_size)
{
    return mc_hash64(key, key_size, cache->seed);
}

static shard *
shard_of(const mc_clock_cache *cache, uint64_t hash)
{
    return &cache->shards[(hash >> 32) & (cache->shard_count - 1)];
}

/* Where the pointer to the entry of that key stands, or the end of its chain. */
static mc_clock_cache_entry **
find_clock_link(shard *s, uint64_t hash, const void *key, size_t key_size)
{
    mc_clock_cache_entry **link = &s->buckets[hash & (s->bucket_count - 1)];
    for (; *link != NULL; link = &(*link)->chain) {
        const mc_clock_cache_entry *entry = *link;
        if (entry->hash == hash && entry->key_size == key_size &&
            (key_size == 0 || memcmp(entry->key, key, key_size) == 0))
            break;
    }
    return link;
}

void *
mc_clock_cache_get(mc_clock_cache *cache, mc_clock_cache_entry **entry, const void *key, size_t key_size)
{
    uint64_t hash = hash_key(cache, key, key_size);
    shard *s = shard_of(cache, hash);
    pthread_mutex_lock(&s->lock);
    mc_clock_cache_entry *found = *find_clock_link(s, hash, key, key_size);
    if (found != NULL) {
        if (!found->used)
            found->used = true;
        mc_references_take(&found->references);
        s->hits++;
    } else {
        s->misses++;
    }
    pthread_mutex_unlock(&s->lock);
    *entry = found;
    return found == NULL ? NULL : found->value;
}

/* Takes *link out of its shard, whose lock is held; the table's reference goes to the list `*out`. */
static void
unlink_entry(mc_clock_cache *cache, shard *s, mc_clock_cache_entry **link, mc_clock_cache_entry **out)
{
    mc_clock_cache_entry *entry = *link;
    *link = entry->chain;
    if (s->hand == entry)
        s->hand = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &s->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &s->oldest) = entry->newer;
    s->entries--;
    atomic_fetch_sub_explicit(&cache->bytes, entry->bytes, memory_order_relaxed);
    entry->chain = *out;
    *out = entry;
}

static void
release_list(mc_clock_cache_entry *list)
{
    while (list != NULL) {
        mc_clock_cache_entry *next = list->chain;
        mc_clock_cache_release(list);
        list = next;
    }
}

/* Drops entries of one shard, whose lock is held, until the table takes at most `limit` bytes or the shard is empty. */
static void
evict_clock_entries(mc_clock_cache *cache, shard *s, size_t limit, mc_clock_cache_entry **out)
{
    while (s->entries > 0 && atomic_load_explicit(&cache->bytes, memory_order_relaxed) > limit) {
        mc_clock_cache_entry *entry = s->hand != NULL ? s->hand : s->oldest;
        while (entry->used) {
            entry->used = false;
            entry = entry->newer != NULL ? entry->newer : s->oldest;
        }
        s->hand = entry;
        unlink_entry(cache, s, find_clock_link(s, entry->hash, entry->key, entry->key_size), out);
        atomic_fetch_add_explicit(&cache->evictions, 1, memory_order_relaxed);
    }
}

static void
grow_clock_buckets(shard *s)
{
    size_t count = s->bucket_count * 2;
    mc_clock_cache_entry **buckets = count == 0 ? NULL : calloc(count, sizeof(*buckets));
    if (buckets == NULL)
        return; /* longer chains are better than a failure */
    for (mc_clock_cache_entry *entry = s->oldest; entry != NULL; entry = entry->newer) {
        mc_clock_cache_entry **bucket = &buckets[entry->hash & (count - 1)];
        entry->chain = *bucket;
        *bucket = entry;
    }
    free(s->buckets);
    s->buckets = buckets;
    s->bucket_count = count;
}

static void
link_entry(shard *s, mc_clock_cache_entry *entry)
{
    if (s->entries >= s->bucket_count)
        grow_clock_buckets(s);
    mc_clock_cache_entry **bucket = &s->buckets[entry->hash & (s->bucket_count - 1)];
    entry->chain = *bucket;
    *bucket = entry;
    entry->older = s->newest;
    *(s->newest != NULL ? &s->newest->newer : &s->oldest) = entry;
    s->newest = entry;
    s->entries++;
}

static mc_clock_cache_entry *
create_entry(uint64_t hash, const void *key, size_t key_size, size_t bytes)
{
    mc_clock_cache_entry *entry = malloc(sizeof(*entry) + key_size);
    if (entry == NULL)
        return NULL;
    memset(entry, 0, sizeof(*entry));
    entry->hash = hash;
    entry->bytes = bytes;
    entry->key_size = key_size;
    atomic_init(&entry->references, 1);
    if (key_size > 0)
        memcpy(entry->key, key, key_size);
    return entry;
}

bool
mc_clock_cache_put(mc_clock_cache *cache, const void *key, size_t key_size, void *value, size_t bytes,
                   mc_clock_cache_free *free_value)
{
    size_t overhead = sizeof(mc_clock_cache_entry) + sizeof(mc_clock_cache_entry *) + key_size;
    uint64_t hash = hash_key(cache, key, key_size);
    shard *s = shard_of(cache, hash);
    size_t largest = cache->max_bytes / 8;
    bool fits = overhead <= largest && bytes <= largest - overhead;
    mc_clock_cache_entry *entry = fits ? create_entry(hash, key, key_size, bytes + overhead) : NULL;
    if (entry == NULL) {
        free_value(value);
        mc_clock_cache_remove(cache, key, key_size);
        return false;
    }
    entry->value = value;
    entry->free_value = free_value;

    mc_clock_cache_entry *out = NULL;
    pthread_mutex_lock(&s->lock);
    mc_clock_cache_entry **old = find_clock_link(s, hash, key, key_size);
    if (*old != NULL)
        unlink_entry(cache, s, old, &out);
    atomic_fetch_add_explicit(&cache->bytes, entry->bytes, memory_order_relaxed);
    evict_clock_entries(cache, s, cache->max_bytes, &out);
    link_entry(s, entry);
    pthread_mutex_unlock(&s->lock);

    size_t at = (size_t)(s - cache->shards);
    for (size_t i = 1; i < cache->shard_count; i++) {
        if (atomic_load_explicit(&cache->bytes, memory_order_relaxed) <= cache->max_bytes)
            break;
        shard *other = &cache->shards[(at + i) & (cache->shard_count - 1)];
        pthread_mutex_lock(&other->lock);
        evict_clock_entries(cache, other, cache->max_bytes, &out);
        pthread_mutex_unlock(&other->lock);
    }
    release_list(out);
    return true;
}

bool
mc_clock_cache_remove(mc_clock_cache *cache, const void *key, size_t key_size)
{
    uint64_t hash = hash_key(cache, key, key_size);
    shard *s = shard_of(cache, hash);
    mc_clock_cache_entry *out = NULL;
    pthread_mutex_lock(&s->lock);
    mc_clock_cache_entry **link = find_clock_link(s, hash, key, key_size);
    bool found = *link != NULL;
    if (found)
        unlink_entry(cache, s, link, &out);
    pthread_mutex_unlock(&s->lock);
    release_list(out);
    return found;
}

size_t
mc_clock_cache_remove_if(mc_clock_cache *cache,
                         bool (*matches)(void *baton, const void *key, size_t key_size, const void *value), void *baton)
{
    size_t removed = 0;
    for (size_t i = 0; i < cache->shard_count; i++) {
        shard *s = &cache->shards[i];
        mc_clock_cache_entry *out = NULL;
        pthread_mutex_lock(&s->lock);
        for (mc_clock_cache_entry *entry = s->oldest, *newer; entry != NULL; entry = newer) {
            newer = entry->newer;
            if (matches != NULL && !matches(baton, entry->key, entry->key_size, entry->value))
                continue;
            unlink_entry(cache, s, find_clock_link(s, entry->hash, entry->key, entry->key_size), &out);
            removed++;
        }
        pthread_mutex_unlock(&s->lock);
        release_list(out);
    }
    return removed;
}

uint64_t
mc_clock_cache_evictions(const mc_clock_cache *cache)
{
    return atomic_load_explicit(&cache->evictions, memory_order_relaxed);
}

void
mc_clock_cache_stat(mc_clock_cache *cache, mc_clock_cache_statistics *statistics)
{
    *statistics = (mc_clock_cache_statistics){ .max_bytes = cache->max_bytes };
    for (size_t i = 0; i < cache->shard_count; i++) {
        shard *s = &cache->shards[i];
        pthread_mutex_lock(&s->lock);
        statistics->hits += s->hits;
        statistics->misses += s->misses;
        statistics->entries += s->entries;
        pthread_mutex_unlock(&s->lock);
    }
    statistics->evictions = mc_clock_cache_evictions(cache);
    statistics->bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
}

size_t
mc_clock_cache_bytes(const mc_clock_cache *cache)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed);
}

/* A little of each shard, so that no shard loses what is used while another keeps what is not. */
void
mc_clock_cache_shed(mc_clock_cache *cache, size_t bytes)
{
    size_t used = mc_clock_cache_bytes(cache);
    size_t limit = bytes < used ? used - bytes : 0;
    size_t idle = 0;
    while (mc_clock_cache_bytes(cache) > limit && idle < cache->shard_count) {
        size_t at = atomic_fetch_add_explicit(&cache->next_shed, 1, memory_order_relaxed);
        shard *s = &cache->shards[at & (cache->shard_count - 1)];
        mc_clock_cache_entry *out = NULL;
        pthread_mutex_lock(&s->lock);
        size_t before = s->entries;
        size_t step = mc_clock_cache_bytes(cache);
        step = step > limit && step - limit > SHED_STEP ? step - SHED_STEP : limit;
        evict_clock_entries(cache, s, step, &out);
        idle = s->entries < before ? 0 : idle + 1;
        pthread_mutex_unlock(&s->lock);
        release_list(out);
    }
}
