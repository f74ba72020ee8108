#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "memory/clock_cache.h"

static atomic_int freed;

static void
count_free(void *value)
{
    freed++;
    free(value);
}

static bool
put(mc_clock_cache *cache, int key, int value, size_t bytes)
{
    int *copy = malloc(sizeof(value));
    *copy = value;
    return mc_clock_cache_put(cache, &key, sizeof(key), copy, bytes, count_free);
}

/* The value, or -1. */
static int
get(mc_clock_cache *cache, int key)
{
    mc_clock_cache_entry *entry;
    int *value = mc_clock_cache_get(cache, &entry, &key, sizeof(key));
    int result = value == NULL ? -1 : *value;
    mc_clock_cache_release(entry);
    return result;
}

START_TEST(remembers_replaces_and_forgets)
{
    freed = 0;
    mc_clock_cache *cache = mc_clock_cache_create(1 << 20);
    ck_assert_int_eq(get(cache, 1), -1);
    ck_assert(put(cache, 1, 10, 100));
    ck_assert(put(cache, 2, 20, 100));
    ck_assert_int_eq(get(cache, 1), 10);
    ck_assert(put(cache, 1, 11, 100));
    ck_assert_int_eq(freed, 1);
    ck_assert_int_eq(get(cache, 1), 11);
    int key = 2;
    ck_assert(mc_clock_cache_remove(cache, &key, sizeof(key)));
    ck_assert(!mc_clock_cache_remove(cache, &key, sizeof(key)));
    ck_assert_int_eq(get(cache, 2), -1);
    mc_clock_cache_statistics s;
    mc_clock_cache_stat(cache, &s);
    ck_assert_uint_eq(s.hits, 2);
    ck_assert_uint_eq(s.misses, 2);
    ck_assert_uint_eq(s.entries, 1);
    mc_clock_cache_destroy(cache);
    ck_assert_int_eq(freed, 3);
}
END_TEST

START_TEST(a_reference_outlives_the_table)
{
    freed = 0;
    mc_clock_cache *cache = mc_clock_cache_create(1 << 20);
    int key = 5;
    put(cache, key, 50, 1);
    mc_clock_cache_entry *entry;
    int *value = mc_clock_cache_get(cache, &entry, &key, sizeof(key));
    put(cache, key, 51, 1);
    ck_assert_int_eq(*value, 50);
    ck_assert_int_eq(freed, 0);
    mc_clock_cache_destroy(cache);
    ck_assert_int_eq(freed, 1);
    ck_assert_int_eq(*value, 50);
    mc_clock_cache_release(entry);
    ck_assert_int_eq(freed, 2);
}
END_TEST

START_TEST(stays_inside_its_bound)
{
    freed = 0;
    static const size_t bounds[] = { 100000, 10 << 20 };
    for (int b = 0; b < 2; b++) {
        mc_clock_cache *cache = mc_clock_cache_create(bounds[b]);
        mc_clock_cache_statistics s;
        for (int i = 0; i < 20000; i++) {
            put(cache, i, i, (size_t)(i % 7) * 500);
            mc_clock_cache_stat(cache, &s);
            ck_assert_uint_le(s.bytes, bounds[b]);
        }
        ck_assert_uint_gt(s.bytes, bounds[b] / 2);
        ck_assert_uint_eq(s.entries + s.evictions, 20000);
        mc_clock_cache_destroy(cache);
    }
    ck_assert_int_eq(freed, 40000);
}
END_TEST

START_TEST(what_is_too_large_is_not_kept_nor_is_its_forerunner)
{
    freed = 0;
    mc_clock_cache *cache = mc_clock_cache_create(8000);
    ck_assert(put(cache, 1, 1, 10));
    ck_assert(!put(cache, 1, 2, 1001));
    ck_assert(!put(cache, 2, 2, SIZE_MAX));
    ck_assert_int_eq(freed, 3);
    ck_assert_int_eq(get(cache, 1), -1);
    mc_clock_cache_destroy(cache);
    mc_clock_cache *off = mc_clock_cache_create(0);
    ck_assert(!put(off, 1, 1, 0));
    mc_clock_cache_destroy(off);
}
END_TEST

START_TEST(what_is_used_survives_a_scan)
{
    mc_clock_cache *cache = mc_clock_cache_create(1000000);
    for (int i = 0; i < 100; i++)
        put(cache, i, i, 1000);
    for (int i = 1000; i < 21000; i++) {
        put(cache, i, i, 1000);
        if (i % 5 == 0)
            for (int k = 0; k < 100; k += 7)
                ck_assert_msg(get(cache, k) == k, "%d was dropped at %d", k, i);
    }
    mc_clock_cache_destroy(cache);
}
END_TEST

static bool
is_odd(void *baton, const void *key, size_t key_size, const void *value)
{
    (void)baton;
    (void)key;
    ck_assert_uint_eq(key_size, sizeof(int));
    return *(const int *)value % 2 == 1;
}

START_TEST(removes_by_a_rule)
{
    mc_clock_cache *cache = mc_clock_cache_create(64 << 20);
    for (int i = 0; i < 1000; i++)
        put(cache, i, i, 10);
    ck_assert_uint_eq(mc_clock_cache_remove_if(cache, is_odd, NULL), 500);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(get(cache, i), i % 2 == 1 ? -1 : i);
    mc_clock_cache_destroy(cache);
}
END_TEST

START_TEST(keys_are_bytes)
{
    freed = 0;
    mc_clock_cache *cache = mc_clock_cache_create(1 << 20);
    mc_clock_cache_put(cache, "", 0, malloc(1), 1, count_free);
    mc_clock_cache_put(cache, "\0", 1, malloc(1), 1, count_free);
    mc_clock_cache_put(cache, "\0\0", 2, malloc(1), 1, count_free);
    mc_clock_cache_statistics s;
    mc_clock_cache_stat(cache, &s);
    ck_assert_uint_eq(s.entries, 3);
    mc_clock_cache_destroy(cache);
    ck_assert_int_eq(freed, 3);
}
END_TEST

static void *
hammer(void *baton)
{
    mc_clock_cache *cache = baton;
    unsigned state = (unsigned)(uintptr_t)&state | 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        int key = (int)(state >> 16) % 300;
        mc_clock_cache_entry *entry;
        int *value = mc_clock_cache_get(cache, &entry, &key, sizeof(key));
        if (value == NULL)
            put(cache, key, key * 3, 1000 + (state >> 8) % 1000);
        else
            ck_assert_int_eq(*value, key * 3);
        if (i % 50 == 0)
            mc_clock_cache_remove(cache, &key, sizeof(key));
        mc_clock_cache_release(entry);
    }
    return NULL;
}

START_TEST(many_threads)
{
    mc_clock_cache *cache = mc_clock_cache_create(200000);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, hammer, cache);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    mc_clock_cache_statistics s;
    mc_clock_cache_stat(cache, &s);
    ck_assert_uint_le(s.bytes, 200000);
    ck_assert_uint_gt(s.evictions, 0);
    mc_clock_cache_destroy(cache);
}
END_TEST

static int
compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(hashes_do_not_meet)
{
    enum { COUNT = 300000 };
    static uint64_t hashes[COUNT];
    char text[128];
    memset(text, '-', sizeof(text));
    for (int i = 0; i < COUNT; i++) {
        int size = snprintf(text, sizeof(text), "tileset-%d-%d-%d", i % 17, i / 17, i % 3);
        text[size] = '-';
        hashes[i] = mc_hash64(text, (size_t)size + (size_t)(i % 80), 0);
    }
    qsort(hashes, COUNT, sizeof(hashes[0]), compare_hashes);
    for (int i = 1; i < COUNT; i++)
        ck_assert(hashes[i] != hashes[i - 1]);
}
END_TEST

START_TEST(each_bit_changes_half_of_the_hash)
{
    unsigned char data[100];
    for (size_t size = 1; size <= sizeof(data); size++) {
        for (size_t i = 0; i < size; i++)
            data[i] = (unsigned char)(i * 7);
        uint64_t whole = mc_hash64(data, size, 1);
        int changed = 0;
        for (size_t bit = 0; bit < size * 8; bit++) {
            data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            int bits = __builtin_popcountll(whole ^ mc_hash64(data, size, 1));
            data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            ck_assert_int_gt(bits, 8);
            changed += bits;
        }
        double mean = (double)changed / (double)(size * 8);
        ck_assert_msg(mean > 28 && mean < 36, "size %zu: %g bits", size, mean);
        ck_assert(mc_hash64(data, size, 2) != whole);
        ck_assert(mc_hash64(data, size - 1, 1) != whole);
    }
}
END_TEST

START_TEST(the_hash_never_changes)
{
    /* Tags that clients hold and locks between versions depend on these. */
    ck_assert_uint_eq(mc_hash64("", 0, 0), 0x9a0261fc216ce985u);
    ck_assert_uint_eq(mc_hash64("tile", 4, 0), 0x61c97d09de8fd1b2u);
}
END_TEST

UNIT_MAIN("clock_cache", remembers_replaces_and_forgets, a_reference_outlives_the_table, stays_inside_its_bound,
          what_is_too_large_is_not_kept_nor_is_its_forerunner, what_is_used_survives_a_scan, removes_by_a_rule,
          keys_are_bytes, many_threads, hashes_do_not_meet, each_bit_changes_half_of_the_hash, the_hash_never_changes)
