/*
 * What waits to be purged in one cache in front: keys or addresses, each once, at most MC_PURGE_QUEUE_MAX. One thread
 * at a time.
 */
#ifndef MC_CDN_PURGE_QUEUE_H
#define MC_CDN_PURGE_QUEUE_H

#include <apr_time.h>
#include <stdbool.h>
#include <stdint.h>

enum { MC_PURGE_QUEUE_MAX = 8192, MC_PURGE_BUCKETS = 2048 };

typedef struct mc_purge_item {
    struct mc_purge_item *next;
    uint64_t hash;
    apr_time_t due;   /* mc_clock_now() from which it may be sent */
    apr_time_t again; /* it has changed once more: to be sent then, too; 0: it has not */
    uint64_t serial;  /* of its first change that was not purged */
    char text[];
} mc_purge_item;

typedef struct mc_purge_queue {
    mc_purge_item *buckets[MC_PURGE_BUCKETS];
    int count;
    uint64_t serial; /* of the latest change */
} mc_purge_queue;

typedef enum mc_purge_added {
    MC_PURGE_WAITS,     /* it waits now */
    MC_PURGE_COARSENED, /* so does more than was asked for: there were too many */
    MC_PURGE_FULL       /* it does not wait */
} mc_purge_added;

/*
 * Adds a text, to be sent at `due` at the earliest. One that waits already is sent when it is due, and again for the
 * new change. `keys`: texts are surrogate keys; where these are too many, those of the tileset with most of them become
 * that of the tileset. Addresses find the queue full then.
 */
mc_purge_added mc_purge_queue_add(mc_purge_queue *queue, const char *text, apr_time_t due, bool keys);

/* Takes at most `most` items of at most `bytes` bytes together that are due; NULL: none is. *next: mc_clock_now() when
 * the next one is due, 0: nothing waits. */
mc_purge_item *mc_purge_queue_take(mc_purge_queue *queue, apr_time_t now, int most, size_t bytes, apr_time_t *next);

/* Puts an item back that was taken, to be sent as soon as possible. */
void mc_purge_queue_put_back(mc_purge_queue *queue, mc_purge_item *item, bool keys);

/* The serial of the earliest change that waits; UINT64_MAX: nothing does. */
uint64_t mc_purge_queue_oldest(const mc_purge_queue *queue);

void mc_purge_queue_clear(mc_purge_queue *queue);

#endif
