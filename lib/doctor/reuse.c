/*
 * The followed things stand in a table by hash, each with the moment of its last request. A tree of sums (Fenwick) over
 * the moments counts the things that were asked for since. Once the moments are used up, they are numbered anew.
 */
#include "doctor/reuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 64, STEPS = 64, OCTAVES = 40, BUCKETS = EXACT + STEPS * OCTAVES };

typedef struct followed {
    uint64_t hash; /* 0: the place is free */
    int moment;    /* from 1 */
} followed;

struct mc_reuse {
    int most, count;     /* of followed things */
    unsigned shift;      /* 1 of 2^shift things is followed */
    unsigned table_mask; /* places of the table - 1 */
    followed *table, *spare;
    int moment, moments;        /* used, and there are */
    int *sums;                  /* the tree over the moments */
    double requests, looked_at; /* all; and those of followed things, each weighed by 2^shift */
    double first;               /* requests for what was not asked for before, weighed likewise */
    double distances[BUCKETS];  /* requests by reuse distance, weighed likewise */
};

mc_reuse *
mc_reuse_create(int most, apr_pool_t *pool)
{
    mc_reuse *reuse = apr_pcalloc(pool, sizeof(*reuse));
    unsigned places = 64;
    while (places < 2 * (unsigned)most)
        places *= 2;
    reuse->most = most;
    reuse->table_mask = places - 1;
    reuse->moments = (int)places * 4;
    reuse->table = apr_pcalloc(pool, sizeof(followed) * places);
    reuse->spare = apr_pcalloc(pool, sizeof(followed) * places);
    reuse->sums = apr_pcalloc(pool, sizeof(int) * ((size_t)reuse->moments + 1));
    return reuse;
}

static void
change_sum(mc_reuse *reuse, int moment, int by)
{
    for (; moment <= reuse->moments; moment += moment & -moment)
        reuse->sums[moment] += by;
}

/* Things whose last request was at `moment` or before. */
static int
sum_until(const mc_reuse *reuse, int moment)
{
    int sum = 0;
    for (; moment > 0; moment -= moment & -moment)
        sum += reuse->sums[moment];
    return sum;
}

static followed *
find_followed(const mc_reuse *reuse, followed *table, uint64_t hash)
{
    unsigned at = (unsigned)(hash >> 32) & reuse->table_mask;
    while (table[at].hash != 0 && table[at].hash != hash)
        at = (at + 1) & reuse->table_mask;
    return &table[at];
}

static bool
is_followed(const mc_reuse *reuse, uint64_t hash)
{
    return (hash & ((UINT64_C(1) << reuse->shift) - 1)) == 0;
}

static int
compare_moments(const void *a, const void *b)
{
    const followed *left = a, *right = b;
    return (left->moment > right->moment) - (left->moment < right->moment);
}

/* Keeps what is still followed, and numbers the moments from 1. */
static void
renumber_moments(mc_reuse *reuse)
{
    int count = 0;
    for (unsigned i = 0; i <= reuse->table_mask; i++)
        if (reuse->table[i].hash != 0 && is_followed(reuse, reuse->table[i].hash))
            reuse->spare[count++] = reuse->table[i];
    if (count > 0)
        qsort(reuse->spare, (size_t)count, sizeof(followed), compare_moments);
    memset(reuse->table, 0, sizeof(followed) * ((size_t)reuse->table_mask + 1));
    memset(reuse->sums, 0, sizeof(int) * ((size_t)reuse->moments + 1));
    reuse->count = reuse->moment = count;
    for (int i = 0; i < count; i++) {
        *find_followed(reuse, reuse->table, reuse->spare[i].hash) = (followed){ reuse->spare[i].hash, i + 1 };
        change_sum(reuse, i + 1, 1);
    }
}

static int
bucket_of(double distance)
{
    if (distance < EXACT)
        return (int)distance;
    int exponent;
    double mantissa = frexp(distance / EXACT, &exponent); /* 0.5 .. 1; distance / EXACT >= 1: exponent >= 1 */
    int bucket = EXACT + (exponent - 1) * STEPS + (int)((mantissa - 0.5) * 2 * STEPS);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

void
mc_reuse_add(mc_reuse *reuse, uint64_t hash)
{
    reuse->requests++;
    if (!is_followed(reuse, hash))
        return;
    hash = hash == 0 ? UINT64_C(1) << 63 : hash; /* followed as long as 0 is */
    if (reuse->moment == reuse->moments)
        renumber_moments(reuse);
    double weight = ldexp(1, (int)reuse->shift);
    followed *place = find_followed(reuse, reuse->table, hash);
    reuse->looked_at += weight;
    if (place->hash == 0) {
        reuse->first += weight;
        reuse->count++;
        place->hash = hash;
    } else {
        reuse->distances[bucket_of((reuse->count - sum_until(reuse, place->moment)) * weight)] += weight;
        change_sum(reuse, place->moment, -1);
    }
    place->moment = ++reuse->moment;
    change_sum(reuse, place->moment, 1);
    while (reuse->count > reuse->most && reuse->shift < 40) {
        reuse->shift++;
        renumber_moments(reuse);
    }
}

double
mc_reuse_hit_ratio(const mc_reuse *reuse, double things)
{
    if (reuse->requests == 0 || things < 1)
        return 0;
    double hits = 0;
    int end = bucket_of(things);
    for (int i = 0; i < end; i++)
        hits += reuse->distances[i];
    /* What the sample has too much or too little of are things that are asked for often: their distances are short. */
    hits += reuse->requests - reuse->looked_at;
    double ratio = hits / reuse->requests;
    return ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;
}

double
mc_reuse_things(const mc_reuse *reuse)
{
    return ldexp(reuse->count, (int)reuse->shift);
}

double
mc_reuse_rate(const mc_reuse *reuse)
{
    return ldexp(1, -(int)reuse->shift);
}
