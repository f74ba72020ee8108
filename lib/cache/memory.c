/*
 * Stored tiles in memory. What was read of a file is valid for the stamp that was taken before the read, and no longer:
 * a hit costs the stat() of the file, so that no change of another process is ever missed
 * (docs/reference/design.md 3.2). In the process's own memory a hit is a reference; in memory that processes share it
 * is a copy.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/cache_counters.h"
#include "cache/memory.h"
#include "memory/shared_cache.h"

typedef struct memory_remembered {
    mc_stamp stamp;
    apr_time_t until; /* mc_clock_now(); 0: as long as the stamp holds */
    bool absent;
    mc_tile tile; /* its data holds a reference; none in shared memory, where the bytes follow */
} memory_remembered;

_Static_assert(sizeof(memory_remembered) <= MC_SHARED_HEAD, "what is remembered of a tile is a head in shared memory");

static struct mc_memory *
tile_memory_of_process(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->memory;
}

/* Appends text with its end, so that neighbours cannot be confused. What does not fit has no key (size 0) and is not
 * remembered. */
static void
key_text(mc_memory_key *key, const char *text)
{
    size_t size = strlen(text) + 1;
    if (key->size == 0 || size > sizeof(key->bytes) - key->size) {
        key->size = 0;
        return;
    }
    memcpy(key->bytes + key->size, text, size);
    key->size += size;
}

void
mc_memory_key_build(mc_memory_key *memory_key, uint64_t identity, const char *path, const mc_tile_key *key)
{
    const mc_grid *grid = key->grid;
    bool known = key->z >= 0 && key->z < grid->level_count;
    struct {
        uint64_t identity, grid;
        int z, x, y, dimension_count;
        /* What leads from level, column and row to a place in a store, and from a colour to a picture. */
        int columns, rows, tile_width, tile_height, origin, level_count;
    } head = { identity,
               grid->definition,
               key->z,
               key->x,
               key->y,
               key->dimension_count,
               known ? grid->levels[key->z].columns : 0,
               known ? grid->levels[key->z].rows : 0,
               grid->tile_width,
               grid->tile_height,
               (int)grid->origin,
               grid->level_count };
    memcpy(memory_key->bytes, &head, sizeof(head));
    memory_key->size = sizeof(head);
    memory_key->looked = false;
    key_text(memory_key, path);
    key_text(memory_key, key->tileset);
    key_text(memory_key, key->grid->name);
    for (int i = key->dimension_count - 1; i >= 0; i--)
        key_text(memory_key, key->dimensions[i].value);
}

/* The end of the year 9999: whatever a store says, times can be added to and printed. */
#define LATEST_TIME (INT64_C(253402300799) * APR_USEC_PER_SEC)

mc_tile *
mc_tile_create(mc_buf *data, apr_time_t mtime, apr_pool_t *pool)
{
    mc_tile *tile = apr_pcalloc(pool, sizeof(*tile));
    tile->data = data;
    tile->mtime = mtime < 0 ? 0 : mtime > LATEST_TIME ? LATEST_TIME : mtime;
    tile->coding = mc_image_sniff(data->data, data->size);
    return tile;
}

static bool
is_remembered_valid(const memory_remembered *known, const mc_stamp *stamp)
{
    return stamp == NULL ? mc_clock_now() < known->until : mc_stamp_equal(&known->stamp, stamp);
}

static bool
recall_own_tile(mc_tile **tile, const mc_memory_key *key, const mc_stamp *stamp, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_clock_cache_entry *entry;
    memory_remembered *known =
        mc_memory_find(tile_memory_of_process(ctx), MC_SHARE_TILES, &entry, key->bytes, key->size);
    if (known == NULL)
        return false;
    bool valid = is_remembered_valid(known, stamp);
    if (valid && !known->absent) {
        *tile = apr_pmemdup(pool, &known->tile, sizeof(known->tile));
        mc_buf_attach(mc_buf_ref(known->tile.data), pool);
    }
    mc_clock_cache_release(entry);
    return valid;
}

/* Without room for the copy the store is asked, which says so. */
static bool
recall_shared_tile(mc_tile **tile, struct mc_shared_cache *shared, mc_memory_key *key, const mc_stamp *stamp,
                   apr_pool_t *pool)
{
    mc_shared_entry entry;
    union {
        memory_remembered known;
        char bytes[MC_SHARED_HEAD];
    } head;
    bool found = mc_shared_cache_find(&entry, head.bytes, shared, key->bytes, key->size);
    key->looked = true;
    key->generation = entry.generation;
    if (!found || !is_remembered_valid(&head.known, stamp))
        return false;
    if (head.known.absent)
        return true;
    mc_buf *data = mc_buf_create(entry.size, entry.size);
    if (data->capacity < entry.size || !mc_shared_cache_copy(data->data, &entry)) {
        mc_buf_unref(data);
        return false;
    }
    data->size = entry.size;
    *tile = apr_pmemdup(pool, &head.known.tile, sizeof(head.known.tile));
    (*tile)->data = mc_buf_attach(data, pool);
    return true;
}

bool
mc_memory_get(mc_tile **tile, mc_memory_key *key, const mc_stamp *stamp, mc_ctx *ctx, apr_pool_t *pool)
{
    struct mc_memory *memory = tile_memory_of_process(ctx);
    if (memory == NULL || key->size == 0)
        return false;
    *tile = NULL;
    struct mc_shared_cache *shared = mc_memory_shared(memory);
    bool known = shared != NULL ? recall_shared_tile(tile, shared, key, stamp, pool)
                                : recall_own_tile(tile, key, stamp, ctx, pool);
    if (known) {
        mc_count(ctx->process->metrics, MC_COUNT_memory_hits_total, 1);
        mc_account_mark(ctx, MC_EVENT_MEMORY);
    }
    return known;
}

static void
free_remembered(void *value)
{
    memory_remembered *known = value;
    if (!known->absent)
        mc_buf_unref(known->tile.data);
    free(known);
}

static void
remember_own_tile(const mc_memory_key *key, const memory_remembered *what, mc_ctx *ctx)
{
    memory_remembered *known = malloc(sizeof(*known));
    MC_ASSERT(known != NULL);
    *known = *what;
    size_t bytes = sizeof(*known);
    if (!what->absent) {
        mc_buf_ref(what->tile.data);
        bytes += what->tile.data->capacity + sizeof(mc_buf);
    }
    mc_memory_keep(ctx, MC_SHARE_TILES, key->bytes, key->size, known, bytes, free_remembered);
}

static void
remember_shared_tile(struct mc_shared_cache *shared, const mc_memory_key *key, memory_remembered *what, mc_ctx *ctx)
{
    union {
        memory_remembered known;
        char bytes[MC_SHARED_HEAD];
    } head = { .bytes = { 0 } };
    head.known = *what;
    head.known.tile.data = NULL; /* a pointer is this process's affair */
    const mc_buf *data = what->absent ? NULL : what->tile.data;
    uint32_t generation = key->looked ? key->generation : mc_shared_cache_generation(shared, key->bytes, key->size);
    mc_shared_put put = mc_shared_cache_put(shared, key->bytes, key->size, generation, head.bytes,
                                            data == NULL ? NULL : data->data, data == NULL ? 0 : data->size);
    if (put.evicted > 0)
        mc_count(ctx->process->metrics, MC_COUNT_memory_evictions_total, put.evicted);
    if (put.emptied) {
        mc_count(ctx->process->metrics, MC_COUNT_memory_emptied_total, 1);
        mc_log_write(ctx, MC_LOG_WARN,
                     "a process ended in the middle of a write to the memory that processes share: "
                     "a part of the memory was emptied");
    }
}

static void
remember_tile(const mc_memory_key *key, const mc_stamp *stamp, apr_time_t until, mc_tile *tile, mc_ctx *ctx)
{
    struct mc_memory *memory = tile_memory_of_process(ctx);
    if (memory == NULL || key->size == 0)
        return;
    memory_remembered known = { .until = until, .absent = tile == NULL };
    if (stamp != NULL)
        known.stamp = *stamp;
    if (tile != NULL) {
        (void)mc_tile_tag(tile); /* once, not with each request */
        known.tile = *tile;
    }
    struct mc_shared_cache *shared = mc_memory_shared(memory);
    if (shared != NULL)
        remember_shared_tile(shared, key, &known, ctx);
    else
        remember_own_tile(key, &known, ctx);
}

void
mc_memory_put(const mc_memory_key *key, const mc_stamp *stamp, apr_time_t now, mc_tile *tile, mc_ctx *ctx)
{
    if (mc_stamp_settled(stamp, now))
        remember_tile(key, stamp, 0, tile, ctx);
}

void
mc_memory_put_for(const mc_memory_key *key, double seconds, mc_tile *tile, mc_ctx *ctx)
{
    remember_tile(key, NULL, mc_clock_now() + (apr_time_t)(seconds * APR_USEC_PER_SEC), tile, ctx);
}

void
mc_memory_forget(const mc_memory_key *key, mc_ctx *ctx)
{
    struct mc_memory *memory = tile_memory_of_process(ctx);
    if (memory == NULL || key->size == 0)
        return;
    if (mc_memory_shared(memory) != NULL)
        mc_shared_cache_forget(mc_memory_shared(memory), key->bytes, key->size);
    else
        mc_memory_drop(memory, MC_SHARE_TILES, key->bytes, key->size);
}
