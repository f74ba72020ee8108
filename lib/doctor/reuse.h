/*
 * How large a memory has to be: an estimate of reuse distances (how many other things were asked for since a thing was
 * asked for last) of a long series of requests, in bounded memory. What is asked for is sampled by its hash; once there
 * are too many sampled things, half of them are given up (SHARDS with a fixed size: Waldspurger et al., FAST 2015).
 */
#ifndef MC_DOCTOR_REUSE_H
#define MC_DOCTOR_REUSE_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mc_reuse mc_reuse;

/* `most`: things that are followed at a time, from 16 to 2^20. */
mc_reuse *mc_reuse_create(int most, apr_pool_t *pool);

/* The next request, by a well mixed hash of what is asked for. */
void mc_reuse_add(mc_reuse *reuse, uint64_t hash);

/* The share (0..1) of all requests that a memory of so many things would have answered (LRU). */
double mc_reuse_hit_ratio(const mc_reuse *reuse, double things);

/* About how many different things were asked for. */
double mc_reuse_things(const mc_reuse *reuse);

/* The share of requests that the sample has looked at now: 1, 1/2, 1/4, ... */
double mc_reuse_rate(const mc_reuse *reuse);

#endif
