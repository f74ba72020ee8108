/* Reuse distances: beside a simulated memory (LRU) that follows everything. */
#include "doctor/reuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "unit.h"

enum { THINGS = 20000, REQUESTS = 200000 };

static uint64_t
hash_number(int number)
{
    return mc_hash64(&number, sizeof(number), 5);
}

/* A memory of so many things: those that were asked for last. Returns the share of requests that it answers. */
static double
simulate_memory(const int *requests, int count, int room)
{
    int *next = malloc(sizeof(int) * (THINGS + 1)), *previous = malloc(sizeof(int) * (THINGS + 1));
    bool *held = calloc(THINGS + 1, sizeof(bool));
    int used = 0, hits = 0;
    next[THINGS] = previous[THINGS] = THINGS; /* the ring's beginning: next is the latest */
    for (int i = 0; i < count; i++) {
        int thing = requests[i];
        if (held[thing]) {
            hits++;
            next[previous[thing]] = next[thing];
            previous[next[thing]] = previous[thing];
        } else if (used == room) {
            int oldest = previous[THINGS];
            held[oldest] = false;
            next[previous[oldest]] = THINGS;
            previous[THINGS] = previous[oldest];
        } else
            used++;
        held[thing] = true;
        next[thing] = next[THINGS];
        previous[thing] = THINGS;
        previous[next[THINGS]] = thing;
        next[THINGS] = thing;
    }
    free(next);
    free(previous);
    free(held);
    return (double)hits / count;
}

/* Many requests for few things: the n-th thing about 1/n times as often as the first. */
static void
make_requests(int *requests)
{
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < REQUESTS; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double share = (double)(state >> 11) / 9007199254740992.0;
        int thing = (int)(pow(THINGS + 1.0, share)) - 1;
        requests[i] = thing < THINGS ? thing : THINGS - 1;
    }
}

START_TEST(short_series_are_exact)
{
    static const int series[] = { 1, 2, 3, 1, 1, 2, 4, 3, 2 };
    mc_reuse *reuse = mc_reuse_create(64, pool);
    ck_assert(mc_reuse_hit_ratio(reuse, 10) == 0);
    for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++)
        mc_reuse_add(reuse, hash_number(series[i]));
    /* Distances of the repeated ones: 1: 2, 1: 0, 2: 2, 3: 3, 2: 2. */
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(reuse, 0), 0, 1e-12);
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(reuse, 1), 1.0 / 9, 1e-12);
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(reuse, 2), 1.0 / 9, 1e-12);
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(reuse, 3), 4.0 / 9, 1e-12);
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(reuse, 4), 5.0 / 9, 1e-12);
    ck_assert_double_eq_tol(mc_reuse_things(reuse), 4, 1e-12);
    ck_assert(mc_reuse_rate(reuse) == 1);
}
END_TEST

/* `tolerance`: of the share; buckets are as wide as 1/64 of an octave, and a sample errs. A sample says nothing of a
 * memory with room for fewer than `least` things: in the sample that is next to none. */
static void
compare_with_memory(int most, int least, double tolerance)
{
    static int requests[REQUESTS];
    static const int rooms[] = { 1, 10, 60, 100, 500, 2000, 8000, THINGS };
    make_requests(requests);
    mc_reuse *reuse = mc_reuse_create(most, pool);
    for (int i = 0; i < REQUESTS; i++)
        mc_reuse_add(reuse, hash_number(requests[i]));
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        if (rooms[i] < least)
            continue;
        double exact = simulate_memory(requests, REQUESTS, rooms[i]), found = mc_reuse_hit_ratio(reuse, rooms[i]);
        ck_assert_msg(fabs(exact - found) <= tolerance, "room for %d: exact %.4f, found %.4f", rooms[i], exact, found);
    }
}

START_TEST(without_a_sample_all_sizes_are_right)
{
    compare_with_memory(32768, 1, 0.003);
}
END_TEST

START_TEST(a_sample_is_near)
{
    compare_with_memory(2048, 100, 0.05);
}
END_TEST

START_TEST(memory_is_bounded_and_moments_are_numbered_anew)
{
    mc_reuse *reuse = mc_reuse_create(16, pool);
    for (int i = 0; i < 100000; i++)
        mc_reuse_add(reuse, hash_number(i));
    ck_assert(mc_reuse_rate(reuse) < 1.0 / 1000);
    ck_assert(mc_reuse_hit_ratio(reuse, 1e15) < 0.35);
    ck_assert(mc_reuse_things(reuse) > 20000 && mc_reuse_things(reuse) < 500000);
    mc_reuse *one = mc_reuse_create(16, pool);
    for (int i = 0; i < 100000; i++)
        mc_reuse_add(one, i % 2 == 0 ? 0 : hash_number(7));
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(one, 2), 1 - 2.0 / 100000, 1e-9);
    ck_assert_double_eq_tol(mc_reuse_hit_ratio(one, 1), 0, 1e-9);
}
END_TEST

UNIT_MAIN("reuse", short_series_are_exact, without_a_sample_all_sizes_are_right, a_sample_is_near,
          memory_is_bounded_and_moments_are_numbered_anew)
