#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shared_values.h"

enum { SMALL = 128 << 10 }; /* bytes: one stripe */

START_TEST(remembers_replaces_and_forgets)
{
    int version;
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    ck_assert_uint_eq(mc_shared_cache_bound(cache), SMALL);
    const int other = shared_value_other(cache, 1);
    ck_assert_int_eq(shared_value_check(cache, 1, NULL), SHARED_ABSENT);
    ck_assert(shared_value_put(cache, 1, 10, 5000).stored);
    ck_assert(shared_value_put(cache, other, 20, 0).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, &version), SHARED_GOOD);
    ck_assert_int_eq(version, 10);
    ck_assert(shared_value_put(cache, 1, 11, 700).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, &version), SHARED_GOOD);
    ck_assert_int_eq(version, 11);
    shared_value_forget(cache, 1);
    ck_assert_int_eq(shared_value_check(cache, 1, NULL), SHARED_ABSENT);
    ck_assert_int_eq(shared_value_check(cache, other, NULL), SHARED_GOOD);
    ck_assert(shared_value_put(cache, 1, 12, 700).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, &version), SHARED_GOOD);
    ck_assert_int_eq(version, 12);
    mc_shared_statistics s;
    mc_shared_cache_stat(&s, cache);
    ck_assert_uint_eq(s.entries, 2);
    ck_assert_uint_eq(s.evictions, 0);
    ck_assert_uint_eq(s.max_bytes, SMALL);
    mc_shared_cache_destroy(cache);
}
END_TEST

START_TEST(what_was_read_before_a_key_was_forgotten_is_not_put)
{
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    uint32_t before = shared_value_generation(cache, 1);
    shared_value_forget(cache, 1);
    ck_assert(!shared_value_put_of(cache, 1, before, 10, 100).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, NULL), SHARED_ABSENT);
    ck_assert(shared_value_put_of(cache, 1, shared_value_generation(cache, 1), 11, 100).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, NULL), SHARED_GOOD);
    mc_shared_cache_destroy(cache);
}
END_TEST

START_TEST(keys_are_bytes)
{
    static const char bytes[] = "\0\0\0\0\0\0\0\0\0";
    char head[MC_SHARED_HEAD] = { 0 };
    mc_shared_entry entry;
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    for (size_t size = 0; size < sizeof(bytes); size++) {
        mc_shared_cache_find(&entry, head, cache, bytes, size);
        head[0] = (char)size;
        ck_assert(mc_shared_cache_put(cache, bytes, size, entry.generation, head, &size, sizeof(size)).stored);
    }
    for (size_t size = 0; size < sizeof(bytes); size++) {
        size_t value = 99;
        ck_assert(mc_shared_cache_find(&entry, head, cache, bytes, size));
        ck_assert_int_eq(head[0], (char)size);
        ck_assert_uint_eq(entry.size, sizeof(value));
        ck_assert(mc_shared_cache_copy(&value, &entry));
        ck_assert_uint_eq(value, size);
    }
    static const char long_key[MC_SHARED_KEY_MAX + 1];
    ck_assert(!mc_shared_cache_put(cache, long_key, sizeof(long_key), 0, head, "", 0).stored);
    mc_shared_cache_destroy(cache);
}
END_TEST

START_TEST(stays_inside_its_bound)
{
    static const size_t bounds[] = { 64 << 10, SMALL, 1 << 20, 9 << 20, 40 << 20 };
    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        mc_shared_cache *cache = mc_shared_cache_create(bounds[b]);
        mc_shared_statistics s;
        int found = 0, put = 0;
        for (int i = 0; i < (int)(bounds[b] >> 10); i++) { /* about three times as much as fits */
            put += shared_value_put(cache, i, 0, (size_t)(i * 37 % 5000)).stored;
            mc_shared_cache_stat(&s, cache);
            ck_assert_uint_le(s.bytes, bounds[b]);
        }
        for (int i = 0; i < (int)(bounds[b] >> 10); i++) {
            shared_verdict verdict = shared_value_check(cache, i, NULL);
            ck_assert_int_ne(verdict, SHARED_WRONG);
            found += verdict == SHARED_GOOD;
        }
        mc_shared_cache_stat(&s, cache);
        ck_assert_uint_gt(s.bytes, bounds[b] / 100 * 70);
        ck_assert_uint_gt(s.evictions, 0);
        ck_assert_uint_eq(s.entries, (size_t)found);
        ck_assert_uint_eq(s.evictions, (uint64_t)(put - found));
        ck_assert_uint_eq(s.emptied, 0);
        mc_shared_cache_destroy(cache);
    }
    ck_assert_ptr_null(mc_shared_cache_create(0));
    ck_assert_ptr_null(mc_shared_cache_create(4096));
    mc_shared_cache_destroy(NULL);
    mc_shared_statistics s;
    mc_shared_cache_stat(&s, NULL);
    ck_assert_uint_eq(s.max_bytes, 0);
}
END_TEST

START_TEST(what_is_too_large_is_not_kept)
{
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    ck_assert(!shared_value_put(cache, 1, 1, SMALL / 4).stored);
    ck_assert(!mc_shared_cache_put(cache, "k", 1, 0, (char[MC_SHARED_HEAD]){ 0 }, NULL, SIZE_MAX).stored);
    ck_assert(!mc_shared_cache_put(cache, "k", 1, 0, (char[MC_SHARED_HEAD]){ 0 }, NULL, SIZE_MAX / 2).stored);
    ck_assert(shared_value_put(cache, 1, 1, SMALL / 8).stored);
    ck_assert_int_eq(shared_value_check(cache, 1, NULL), SHARED_GOOD);
    mc_shared_cache_destroy(cache);
}
END_TEST

/* A client that goes through everything does not wash out what others ask for all the time. */
START_TEST(what_is_used_survives_a_scan)
{
    enum { HOT = 20, SCAN = 4000 };
    mc_shared_cache *cache = mc_shared_cache_create(1 << 20);
    int hits = 0, asked = 0;
    for (int i = 0; i < SCAN; i++) {
        int key = i % HOT;
        asked++;
        if (shared_value_check(cache, key, NULL) == SHARED_GOOD)
            hits++;
        else
            shared_value_put(cache, key, 0, 10000);
        if (shared_value_check(cache, 1000 + i, NULL) == SHARED_ABSENT)
            shared_value_put(cache, 1000 + i, 0, 10000);
    }
    ck_assert_int_gt(hits, asked / 10 * 9);
    mc_shared_cache_destroy(cache);
}
END_TEST

/* Slightly more than fits, round and round, of which a queue would never find anything. */
START_TEST(a_loop_through_more_than_fits_finds_some)
{
    enum { KEYS = 100, ROUNDS = 40 };
    mc_shared_cache *cache = mc_shared_cache_create(1 << 20); /* for about 85 */
    int hits = 0;
    for (int i = 0; i < KEYS * ROUNDS; i++) {
        if (shared_value_check(cache, i % KEYS, NULL) == SHARED_GOOD)
            hits++;
        else
            shared_value_put(cache, i % KEYS, 0, 11000);
    }
    ck_assert_int_gt(hits, KEYS * ROUNDS / 2);
    mc_shared_cache_destroy(cache);
}
END_TEST

typedef struct thread_task {
    mc_shared_cache *cache;
    uint32_t state;
    int wrong, good;
} thread_task;

enum { THREAD_KEYS = 60, THREAD_STEPS = 4000 };

static _Atomic int stored_version[THREAD_KEYS]; /* what a store would have */

/* Finds, puts and forgets by chance. */
static void *
use_shared_cache(void *baton)
{
    thread_task *task = baton;
    for (int i = 0; i < THREAD_STEPS; i++) {
        task->state = task->state * 1664525 + 1013904223;
        int key = (int)(task->state >> 8) % THREAD_KEYS, action = (int)(task->state >> 24) % 16;
        int version = 0;
        if (action == 0) {
            atomic_fetch_add(&stored_version[key], 1); /* the store has changed, */
            shared_value_forget(task->cache, key);     /* and then the key is forgotten */
        } else if (action < 6) {
            uint32_t generation = shared_value_generation(task->cache, key);
            version = atomic_load(&stored_version[key]); /* read from the store */
            shared_value_put_of(task->cache, key, generation, version, task->state % 6000);
        } else {
            shared_verdict verdict = shared_value_check(task->cache, key, &version);
            task->wrong += verdict == SHARED_WRONG;
            task->good += verdict == SHARED_GOOD;
        }
    }
    return NULL;
}

START_TEST(many_threads)
{
    enum { THREADS = 8 };
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    pthread_t threads[THREADS];
    thread_task tasks[THREADS];
    int good = 0;
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (thread_task){ .cache = cache, .state = (uint32_t)i };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_shared_cache, &tasks[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(tasks[i].wrong, 0);
        good += tasks[i].good;
    }
    ck_assert_int_gt(good, 0);
    for (int key = 0; key < THREAD_KEYS; key++) {
        int version;
        shared_verdict verdict = shared_value_check(cache, key, &version);
        ck_assert_int_ne(verdict, SHARED_WRONG);
        if (verdict == SHARED_GOOD) /* who forgets has changed the store before */
            ck_assert_int_eq(version, atomic_load(&stored_version[key]));
    }
    mc_shared_statistics s;
    mc_shared_cache_stat(&s, cache);
    ck_assert_uint_eq(s.emptied, 0);
    mc_shared_cache_destroy(cache);
}
END_TEST

UNIT_MAIN("shared_cache", remembers_replaces_and_forgets, what_was_read_before_a_key_was_forgotten_is_not_put,
          keys_are_bytes, stays_inside_its_bound, what_is_too_large_is_not_kept, what_is_used_survives_a_scan,
          a_loop_through_more_than_fits_finds_some, many_threads)
