/* See behind_queue.h. */
#include "cache/behind_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

enum { BUCKETS = 8192, MOST_WAITING = 65536 };

void
mc_behind_queue_init(mc_behind_queue *queue)
{
    *queue = (mc_behind_queue){ .seed = mc_hash_seed() };
    queue->last = &queue->first;
}

static uint64_t
hash_waiting_key(const mc_behind_queue *queue, const mc_tile_key *key)
{
    const int place[3] = { key->z, key->x, key->y };
    uint64_t hash = mc_hash64(place, sizeof(place), queue->seed);
    hash = mc_hash64(key->tileset, strlen(key->tileset), hash);
    for (int i = 0; i < key->dimension_count; i++)
        hash = mc_hash64(key->dimensions[i].value, strlen(key->dimensions[i].value), hash);
    return hash;
}

static bool
is_same_tile(const mc_tile_key *a, const mc_tile_key *b)
{
    if (a->x != b->x || a->y != b->y || a->z != b->z || a->dimension_count != b->dimension_count ||
        strcmp(a->grid->name, b->grid->name) != 0 || strcmp(a->tileset, b->tileset) != 0)
        return false;
    for (int i = 0; i < a->dimension_count; i++)
        if (strcmp(a->dimensions[i].value, b->dimensions[i].value) != 0)
            return false;
    return true;
}

/* Whether the tileset and values of a tile are those of the one before it, and need no copy. */
static bool
has_same_texts(const mc_tile_key *a, const mc_tile_key *b)
{
    return a->tileset == b->tileset && a->dimension_count == b->dimension_count && a->dimensions == b->dimensions;
}

static size_t
count_key_bytes(const mc_tile_key *key)
{
    size_t bytes = sizeof(mc_dimension_value) * (size_t)key->dimension_count + strlen(key->tileset) + 1;
    for (int i = 0; i < key->dimension_count; i++)
        bytes += strlen(key->dimensions[i].value) + 1;
    return bytes + sizeof(void *); /* so that the next one is aligned */
}

static size_t
count_put_bytes(const mc_tile_write *tiles, int count)
{
    size_t bytes = sizeof(mc_behind_put) + sizeof(mc_behind_tile) * (size_t)count;
    for (int i = 0; i < count; i++)
        if (i == 0 || !has_same_texts(&tiles[i].key, &tiles[i - 1].key))
            bytes += count_key_bytes(&tiles[i].key);
    return bytes;
}

static char *
keep_waiting_text(const char **kept, const char *text, char *room)
{
    size_t size = strlen(text) + 1;
    *kept = memcpy(room, text, size);
    return room + size;
}

/* The key with copies of its texts; returns the room behind them. */
static char *
keep_waiting_key(mc_tile_key *key, char *room)
{
    char *begin = room;
    size_t bytes = count_key_bytes(key);
    mc_dimension_value *values = (mc_dimension_value *)(void *)room;
    room += sizeof(*values) * (size_t)key->dimension_count;
    for (int i = 0; i < key->dimension_count; i++) {
        values[i] = key->dimensions[i];
        room = keep_waiting_text(&values[i].value, values[i].value, room);
    }
    keep_waiting_text(&key->tileset, key->tileset, room);
    key->dimensions = values;
    return begin + bytes / sizeof(void *) * sizeof(void *);
}

static void
fill_put(mc_behind_put *put, const mc_tile_write *tiles, int count)
{
    char *room = (char *)(put->tiles + count);
    for (int i = 0; i < count; i++) {
        mc_tile_write *kept = &put->tiles[i].write;
        *kept = tiles[i];
        if (i > 0 && has_same_texts(&tiles[i].key, &tiles[i - 1].key)) {
            kept->key.tileset = put->tiles[i - 1].write.key.tileset;
            kept->key.dimensions = put->tiles[i - 1].write.key.dimensions;
        } else {
            room = keep_waiting_key(&kept->key, room);
        }
        if (kept->key.client_named) /* its tileset lives as long as the request */
            kept->layers = NULL;
        mc_buf_ref(kept->data);
    }
}

static mc_behind_tile **
find_waiting_bucket(const mc_behind_queue *queue, uint64_t hash)
{
    return &queue->buckets[hash % BUCKETS];
}

static size_t
count_data_bytes(const mc_buf *data)
{
    return sizeof(*data) + (data->capacity > data->size ? data->capacity : data->size);
}

/* Of several tiles of one key the last one counts. */
static void
enter_waiting_tiles(mc_behind_queue *queue, mc_behind_put *put)
{
    for (int i = 0; i < put->count; i++) {
        mc_behind_tile *tile = &put->tiles[i];
        tile->put = put;
        tile->hash = hash_waiting_key(queue, &tile->write.key);
        mc_behind_queue_drop(queue, mc_behind_queue_find(queue, &tile->write.key));
        mc_behind_tile **bucket = find_waiting_bucket(queue, tile->hash);
        tile->chain = *bucket;
        *bucket = tile;
        put->wanted++;
        queue->tiles++;
        tile->bytes = count_data_bytes(tile->write.data);
        queue->bytes += tile->bytes;
    }
}

mc_behind_put *
mc_behind_queue_add(mc_behind_queue *queue, const mc_tile_write *tiles, int count, double seconds,
                    apr_int64_t most_bytes)
{
    size_t own = count_put_bytes(tiles, count), all = own;
    for (int i = 0; i < count; i++)
        all += count_data_bytes(tiles[i].data);
    if (queue->bytes + all > (size_t)most_bytes || queue->tiles + count > MOST_WAITING)
        return NULL;
    if (queue->buckets == NULL)
        queue->buckets = calloc(BUCKETS, sizeof(mc_behind_tile *));
    mc_behind_put *put = calloc(1, own);
    MC_ASSERT(queue->buckets != NULL && put != NULL);
    put->bytes = own;
    put->count = count;
    put->made = apr_time_now();
    put->until = mc_clock_now() + (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
    fill_put(put, tiles, count);
    enter_waiting_tiles(queue, put);
    queue->bytes += own;
    *queue->last = put;
    queue->last = &put->next;
    return put;
}

mc_behind_tile *
mc_behind_queue_find(const mc_behind_queue *queue, const mc_tile_key *key)
{
    if (queue->buckets == NULL || queue->tiles == 0)
        return NULL;
    const uint64_t hash = hash_waiting_key(queue, key);
    mc_behind_tile *tile = *find_waiting_bucket(queue, hash);
    while (tile != NULL && (tile->hash != hash || !is_same_tile(&tile->write.key, key)))
        tile = tile->chain;
    return tile;
}

bool
mc_behind_put_has(const mc_behind_queue *queue, const mc_behind_put *put, const mc_tile_key *key)
{
    const uint64_t hash = hash_waiting_key(queue, key);
    for (int i = 0; i < put->count; i++)
        if (put->tiles[i].hash == hash && is_same_tile(&put->tiles[i].write.key, key))
            return true;
    return false;
}

void
mc_behind_queue_drop(mc_behind_queue *queue, mc_behind_tile *tile)
{
    if (tile == NULL || tile->write.data == NULL)
        return;
    mc_behind_tile **at = find_waiting_bucket(queue, tile->hash);
    while (*at != tile)
        at = &(*at)->chain;
    *at = tile->chain;
    queue->bytes -= tile->bytes;
    queue->tiles--;
    tile->put->wanted--;
    mc_buf_unref(tile->write.data);
    tile->write.data = NULL;
}

int
mc_behind_queue_remove(mc_behind_queue *queue, mc_behind_put *put)
{
    const int wanted = put->wanted;
    for (int i = 0; i < put->count; i++)
        mc_behind_queue_drop(queue, &put->tiles[i]);
    mc_behind_put **at = &queue->first;
    while (*at != put)
        at = &(*at)->next;
    *at = put->next;
    if (*at == NULL)
        queue->last = at;
    queue->bytes -= put->bytes;
    free(put);
    if (queue->first == NULL) { /* an idle queue needs nothing */
        free(queue->buckets);
        queue->buckets = NULL;
    }
    return wanted;
}

mc_behind_put *
mc_behind_queue_next(apr_time_t *resume, const mc_behind_queue *queue, apr_time_t now)
{
    mc_behind_put *next = NULL;
    *resume = 0;
    for (mc_behind_put *put = queue->first; put != NULL; put = put->next) {
        const apr_time_t due = put->resume < put->until ? put->resume : put->until;
        if (due <= now && put->wanted > 0 && put->attempts == 0)
            return put;
        if (due <= now || put->wanted == 0)
            next = next == NULL || put->attempts < next->attempts ? put : next;
        else if (*resume == 0 || due < *resume)
            *resume = due;
    }
    return next;
}

int
mc_behind_queue_expire(mc_behind_queue *queue, apr_time_t now)
{
    int lost = 0;
    for (mc_behind_put *put = queue->first, *next; put != NULL; put = next) {
        next = put->next;
        if (put->until <= now || put->wanted == 0)
            lost += mc_behind_queue_remove(queue, put);
    }
    return lost;
}
