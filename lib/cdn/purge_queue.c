/* See purge_queue.h. */
#include "cdn/purge_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cdn/surrogate_keys.h"
#include "mapcache/error.h"

enum { TALLIES = 512 };

static mc_purge_item **
purge_bucket(mc_purge_queue *queue, uint64_t hash)
{
    return &queue->buckets[hash % MC_PURGE_BUCKETS];
}

static mc_purge_item *
find_item(mc_purge_queue *queue, const char *text, uint64_t hash)
{
    mc_purge_item *item = *purge_bucket(queue, hash);
    while (item != NULL && (item->hash != hash || strcmp(item->text, text) != 0))
        item = item->next;
    return item;
}

static void
insert_item(mc_purge_queue *queue, mc_purge_item *item)
{
    mc_purge_item **bucket = purge_bucket(queue, item->hash);
    item->next = *bucket;
    *bucket = item;
    queue->count++;
}

/* What waits for the same text becomes one: the earliest change, and all moments. */
static void
join_item(mc_purge_item *known, uint64_t serial, apr_time_t due)
{
    known->serial = serial < known->serial ? serial : known->serial;
    if (due > known->due && due > known->again)
        known->again = due;
}

static void
queue_text(mc_purge_queue *queue, const char *text, uint64_t serial, apr_time_t due)
{
    const size_t size = strlen(text) + 1;
    const uint64_t hash = mc_hash64(text, size - 1, 0);
    mc_purge_item *known = find_item(queue, text, hash);
    if (known != NULL) {
        join_item(known, serial, due);
        return;
    }
    mc_purge_item *item = calloc(1, sizeof(*item) + size);
    MC_ASSERT(item != NULL);
    item->hash = hash;
    item->due = due;
    item->serial = serial;
    memcpy(item->text, text, size);
    insert_item(queue, item);
}

/* ---- too many keys */

/* Of the key's tileset; TALLIES: it lies in none. */
static int
tally_of(const char *key)
{
    char tileset[MC_SURROGATE_KEY_MAX];
    if (!mc_surrogate_tileset(tileset, key))
        return TALLIES;
    return (int)(mc_hash64(tileset, strlen(tileset), 0) % TALLIES);
}

/* Whether it names less than a tileset. */
static bool
is_part(const char *key)
{
    return key[0] != ':' && strchr(key, ':') != NULL;
}

/* The tilesets with most keys of parts; -1: there are no such keys. */
static int
find_most_keys(const mc_purge_queue *queue)
{
    int tallies[TALLIES + 1] = { 0 }, most = -1;
    for (int i = 0; i < MC_PURGE_BUCKETS; i++)
        for (const mc_purge_item *item = queue->buckets[i]; item != NULL; item = item->next)
            if (is_part(item->text))
                tallies[tally_of(item->text)]++;
    for (int i = 0; i < TALLIES; i++)
        if (tallies[i] > 0 && (most < 0 || tallies[i] > tallies[most]))
            most = i;
    return most;
}

/* Takes out all items of a tally, or all where that is -1. */
static mc_purge_item *
take_out(mc_purge_queue *queue, int tally)
{
    mc_purge_item *taken = NULL;
    for (int i = 0; i < MC_PURGE_BUCKETS; i++) {
        mc_purge_item **link = &queue->buckets[i];
        while (*link != NULL) {
            mc_purge_item *item = *link;
            if (tally >= 0 && (!is_part(item->text) || tally_of(item->text) != tally)) {
                link = &item->next;
                continue;
            }
            *link = item->next;
            item->next = taken;
            taken = item;
            queue->count--;
        }
    }
    return taken;
}

/* The keys of the tilesets with most of them become those of the tilesets; where all are, they become that of all. */
static void
coarsen_keys(mc_purge_queue *queue)
{
    const int tally = find_most_keys(queue);
    mc_purge_item *next;
    for (mc_purge_item *item = take_out(queue, tally); item != NULL; item = next) {
        char tileset[MC_SURROGATE_KEY_MAX];
        const char *key = tally >= 0 && mc_surrogate_tileset(tileset, item->text) ? tileset : MC_SURROGATE_ALL;
        queue_text(queue, key, item->serial, item->again > item->due ? item->again : item->due);
        next = item->next;
        free(item);
    }
}

/* ---- in and out */

mc_purge_added
mc_purge_queue_add(mc_purge_queue *queue, const char *text, apr_time_t due, bool keys)
{
    const uint64_t hash = mc_hash64(text, strlen(text), 0);
    const bool full = queue->count >= MC_PURGE_QUEUE_MAX && find_item(queue, text, hash) == NULL;
    if (full && !keys)
        return MC_PURGE_FULL;
    queue_text(queue, text, ++queue->serial, due);
    if (full)
        coarsen_keys(queue);
    return full ? MC_PURGE_COARSENED : MC_PURGE_WAITS;
}

static void
note_due(apr_time_t *next, apr_time_t due)
{
    if (due != 0 && (*next == 0 || due < *next))
        *next = due;
}

/* Moves an item that is sent now to *taken; one that is to be sent again stays, too. Returns when. */
static apr_time_t
take_item(mc_purge_queue *queue, mc_purge_item **link, mc_purge_item **taken)
{
    mc_purge_item *item = *link;
    const apr_time_t again = item->again;
    *link = item->next;
    queue->count--;
    item->next = *taken;
    item->again = 0;
    *taken = item;
    if (again != 0)
        queue_text(queue, item->text, queue->serial, again);
    return again;
}

mc_purge_item *
mc_purge_queue_take(mc_purge_queue *queue, apr_time_t now, int most, size_t bytes, apr_time_t *next)
{
    mc_purge_item *taken = NULL;
    int count = 0;
    size_t size = 0;
    *next = 0;
    for (int i = 0; i < MC_PURGE_BUCKETS && queue->count > 0; i++) {
        mc_purge_item **link = &queue->buckets[i];
        while (*link != NULL) {
            mc_purge_item *item = *link;
            const size_t more = strlen(item->text) + 1;
            const bool room = count == 0 || (count < most && size + more <= bytes);
            if (item->due <= now && room) {
                count++;
                size += more;
                note_due(next, take_item(queue, link, &taken));
                continue;
            }
            note_due(next, item->due);
            link = &item->next;
        }
    }
    return taken;
}

void
mc_purge_queue_put_back(mc_purge_queue *queue, mc_purge_item *item, bool keys)
{
    queue_text(queue, item->text, item->serial, item->due);
    free(item);
    if (keys && queue->count > MC_PURGE_QUEUE_MAX)
        coarsen_keys(queue);
}

uint64_t
mc_purge_queue_oldest(const mc_purge_queue *queue)
{
    uint64_t oldest = UINT64_MAX;
    for (int i = 0; i < MC_PURGE_BUCKETS; i++)
        for (const mc_purge_item *item = queue->buckets[i]; item != NULL; item = item->next)
            oldest = item->serial < oldest ? item->serial : oldest;
    return oldest;
}

void
mc_purge_queue_clear(mc_purge_queue *queue)
{
    for (int i = 0; i < MC_PURGE_BUCKETS; i++)
        while (queue->buckets[i] != NULL) {
            mc_purge_item *item = queue->buckets[i];
            queue->buckets[i] = item->next;
            free(item);
        }
    queue->count = 0;
}
