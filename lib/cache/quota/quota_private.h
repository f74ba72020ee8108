/* What the parts of lib/cache/quota share. */
#ifndef MC_CACHE_QUOTA_QUOTA_PRIVATE_H
#define MC_CACHE_QUOTA_QUOTA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/quota/books.h"
#include "cache/uses.h"

/* Seconds: a block that was used or written to so short a time ago is not removed, and what somebody is storing there
 * is not yet measured for good. More than a put takes, and than the clocks of hosts differ. */
#define MC_QUOTA_FRESH 15

struct mc_quota {
    mc_cache *cache;
    const mc_quota_store *store;
    mc_books books;
    apr_array_header_t *others; /* const char *: folders below the cache's, with the tiles of other caches */
    char holder[64];            /* of the lease; "" before the first use */
    pthread_mutex_t lock;       /* of the next four; taken inside of that of the process's list */
    pthread_cond_t changed;
    bool running; /* there is a thread */
    pthread_t thread;
    mc_process *process;
    _Atomic bool end;      /* the thread has to end */
    _Atomic bool work;     /* there is something to measure or to remove */
    struct mc_quota *next; /* in the list of the process, by its lock */
    /* Of the thread. */
    bool removing;    /* until the low water mark is reached */
    bool stuck;       /* said that all is too young to be removed */
    apr_int64_t step; /* seconds of a step of time */
    apr_int64_t step_began;
    apr_time_t warned; /* mc_clock_now() when it said that young tiles go; 0: not yet */
    uint64_t failure;  /* hash of what was wrong last; 0: nothing */
};

struct mc_quotas {
    pthread_mutex_t lock;
    mc_quota *first;
};

/* The key of the first tile of a block of the books; false: the configuration has no such grid any more, and the tiles
 * cannot be found without. */
bool mc_quota_block_key(mc_tile_key *key, const mc_quota *quota, const mc_book_block *block, apr_pool_t *pool);

/* All keys of a block's tiles; at most 2^(2 * shift). Returns how many. */
int mc_quota_tile_keys(mc_tile_key *keys, const mc_tile_key *first, int shift);

/* Writes down the uses that wait. */
mc_error *mc_quota_flush(mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

/* One round of whoever has, or gets, the lease: survey, measure, remove. */
mc_error *mc_quota_round(mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

/* Measures the blocks of which it is not known how large they are. */
mc_error *mc_quota_measure(mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

/* Goes through what the store had before its books, from a place on; *mine false: another one has taken the lease. */
mc_error *mc_quota_survey_store(bool *mine, mc_quota *quota, const char *from, mc_ctx *ctx) MC_CHECKED;

/* Removes the blocks that were used least recently, where the cache is above its limit, down to the low water mark or
 * as far as they are old enough. */
mc_error *mc_quota_evict(mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

/* Bytes of the cache: by the store, or by the books. */
mc_error *mc_quota_total(int64_t *bytes, mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

/* The thread. */
void *mc_quota_keep(void *quota);

/* Takes or renews the lease; *mine false: another one has it. */
mc_error *mc_quota_renew(bool *mine, mc_quota *quota, mc_ctx *ctx) MC_CHECKED;

#endif
