/* The tiles that wait for a cache (write_behind.c): what waits is found by its key in one step, and all that it takes
 * is counted. No locks: the caller has one. */
#ifndef MC_CACHE_BEHIND_QUEUE_H
#define MC_CACHE_BEHIND_QUEUE_H

#include "mapcache/cache.h"

struct mc_behind_put;

/* A tile of a put. Its data are NULL once the tile is wanted no more. */
typedef struct mc_behind_tile {
    mc_tile_write write;
    uint64_t hash;
    size_t bytes; /* of the data, as they stand in memory */
    struct mc_behind_put *put;
    struct mc_behind_tile *chain; /* in its bucket, while the tile is wanted */
} mc_behind_tile;

/* The tiles of one put, in one piece of memory. */
typedef struct mc_behind_put {
    struct mc_behind_put *next;
    size_t bytes;      /* of this piece; the data of tiles come on top */
    int count, wanted; /* tiles; those that are still wanted */
    int attempts;      /* that have failed */
    uint64_t others;   /* mc_behind_queue.stored when the last one failed */
    bool apart;        /* its tiles are stored one by one */
    apr_time_t made;   /* time of day */
    apr_time_t until;  /* mc_clock_now(), as below: the put is lost then */
    apr_time_t resume; /* not before then */
    mc_behind_tile tiles[];
} mc_behind_put;

typedef struct mc_behind_queue {
    mc_behind_put *first, **last; /* in the order of their puts */
    mc_behind_tile **buckets;     /* NULL before the first put */
    uint64_t seed;
    uint64_t stored; /* puts, so far */
    size_t bytes;    /* of all that waits, with what is needed to keep it */
    int tiles;       /* that are wanted */
} mc_behind_queue;

void mc_behind_queue_init(mc_behind_queue *queue);

/* A put with references to the data of its tiles; `seconds` that it may wait. NULL where it would not fit into
 * `most_bytes` with what waits. */
mc_behind_put *mc_behind_queue_add(mc_behind_queue *queue, const mc_tile_write *tiles, int count, double seconds,
                                   apr_int64_t most_bytes);

/* The waiting tile of a key, or NULL. */
mc_behind_tile *mc_behind_queue_find(const mc_behind_queue *queue, const mc_tile_key *key);

/* Whether the put has a tile of the key, wanted or not. */
bool mc_behind_put_has(const mc_behind_queue *queue, const mc_behind_put *put, const mc_tile_key *key);

/* The tile is wanted no more. NULL is ignored. */
void mc_behind_queue_drop(mc_behind_queue *queue, mc_behind_tile *tile);

/* Takes a put out, whatever of it is still wanted, and frees it. Returns how many tiles were. */
int mc_behind_queue_remove(mc_behind_queue *queue, mc_behind_put *put);

/* Which put to store next at `now`: one that is due, among these one that has failed least often, the oldest of them.
 * NULL: none is due; *resume is when the next one will be. */
mc_behind_put *mc_behind_queue_next(apr_time_t *resume, const mc_behind_queue *queue, apr_time_t now);

/* Removes all puts whose time is over. Returns how many wanted tiles they had. */
int mc_behind_queue_expire(mc_behind_queue *queue, apr_time_t now);

#endif
