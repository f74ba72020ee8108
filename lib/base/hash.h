/*
 * A fast 64-bit hash for tables, tags and lock names. Not for secrets. Somebody who knows the seed can make collisions:
 * tables with keys from clients use mc_hash_seed().
 */
#ifndef MC_BASE_HASH_H
#define MC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The same value for the same bytes and seed on every machine and in every version: tags and lock names depend on it.
 */
uint64_t mc_hash64(const void *data, size_t size, uint64_t seed);

/* A random number that stays the same as long as the process lives. Children of a fork share it. */
uint64_t mc_hash_seed(void);

#endif
