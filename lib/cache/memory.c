/*
 * Stored tiles in memory. What was read of a file is valid for the stamp that was taken before the read, and no longer:
 * a hit costs the stat() of the file, so that no change of another process is ever missed
 * (docs/reference/design.md 3.2).
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/memory.h"

typedef struct memory_remembered {
    mc_stamp stamp;
    apr_time_t until; /* mc_clock_now(); 0: as long as the stamp holds */
    bool absent;
    mc_tile tile; /* its data holds a reference */
} memory_remembered;

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
    struct {
        uint64_t identity;
        int z, x, y, dimension_count;
    } head = { identity, key->z, key->x, key->y, key->dimension_count };
    memcpy(memory_key->bytes, &head, sizeof(head));
    memory_key->size = sizeof(head);
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

bool
mc_memory_get(mc_tile **tile, const mc_memory_key *key, const mc_stamp *stamp, mc_ctx *ctx, apr_pool_t *pool)
{
    if (key->size == 0)
        return false;
    mc_clock_cache_entry *entry;
    memory_remembered *known =
        mc_memory_find(tile_memory_of_process(ctx), MC_SHARE_TILES, &entry, key->bytes, key->size);
    if (known == NULL)
        return false;
    bool valid = stamp == NULL ? mc_clock_now() < known->until : mc_stamp_equal(&known->stamp, stamp);
    *tile = NULL;
    if (valid && !known->absent) {
        *tile = apr_pmemdup(pool, &known->tile, sizeof(known->tile));
        mc_buf_attach(mc_buf_ref(known->tile.data), pool);
    }
    mc_clock_cache_release(entry);
    if (valid)
        mc_count(ctx->process->metrics, MC_COUNT_memory_hits_total, 1);
    return valid;
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
remember_tile(const mc_memory_key *key, const mc_stamp *stamp, apr_time_t until, mc_tile *tile, mc_ctx *ctx)
{
    if (tile_memory_of_process(ctx) == NULL || key->size == 0)
        return;
    memory_remembered *known = calloc(1, sizeof(*known));
    MC_ASSERT(known != NULL);
    if (stamp != NULL)
        known->stamp = *stamp;
    known->until = until;
    known->absent = tile == NULL;
    size_t bytes = sizeof(*known);
    if (tile != NULL) {
        (void)mc_tile_tag(tile); /* once, not with each request */
        known->tile = *tile;
        mc_buf_ref(tile->data);
        bytes += tile->data->capacity + sizeof(mc_buf);
    }
    mc_memory_keep(ctx, MC_SHARE_TILES, key->bytes, key->size, known, bytes, free_remembered);
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
    if (key->size > 0)
        mc_memory_drop(tile_memory_of_process(ctx), MC_SHARE_TILES, key->bytes, key->size);
}
