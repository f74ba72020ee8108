/* Values for tables that are shared by processes, of which every byte is told by their key and version. */
#ifndef SHARED_VALUES_H
#define SHARED_VALUES_H

#include "memory/shared_cache.h"

enum { SHARED_VALUE_MAX = 40000 };

typedef enum shared_verdict { SHARED_ABSENT, SHARED_GOOD, SHARED_WRONG } shared_verdict;

/* A value that is ready to be put. */
typedef struct shared_value_ready {
    char key[200], head[MC_SHARED_HEAD];
    uint8_t data[SHARED_VALUE_MAX];
    size_t key_size, size;
} shared_value_ready;

void shared_value_prepare(shared_value_ready *ready, int key, int version, size_t size);
mc_shared_put shared_value_put_ready(mc_shared_cache *cache, const shared_value_ready *ready, uint32_t generation);

/* Puts a value of `size` bytes; only if the key was not forgotten since `generation`. */
mc_shared_put shared_value_put_of(mc_shared_cache *cache, int key, uint32_t generation, int version, size_t size);

/* The same, whatever was forgotten before. */
mc_shared_put shared_value_put(mc_shared_cache *cache, int key, int version, size_t size);

uint32_t shared_value_generation(mc_shared_cache *cache, int key);
void shared_value_forget(mc_shared_cache *cache, int key);

/* The first key after `key` that is not forgotten with it. Forgets `key`. */
int shared_value_other(mc_shared_cache *cache, int key);

/* Compares every byte. *version: of the value, unless it is absent; may be NULL. */
shared_verdict shared_value_check(mc_shared_cache *cache, int key, int *version);

#endif
