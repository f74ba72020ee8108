/* See purgers.h. */
#include "cdn/purgers.h"

#include <pthread.h>
#include <stdlib.h>

#include "cdn/purge_request.h"
#include "cdn/purger.h"
#include "cdn/surrogate_keys.h"

/* Threads of a process; and addresses of tiles that one change of a level may name. */
enum { PURGERS_MAX = 64, ADDRESSES_MAX = 1024 };

struct mc_purgers {
    mc_process *process;
    const mc_log *log;
    pthread_mutex_t lock;            /* of the rest */
    mc_purger *purgers[PURGERS_MAX]; /* used last: at the end */
    int count;
};

mc_purgers *
mc_purgers_create(mc_process *process, const mc_log *log)
{
    mc_purgers *purgers = calloc(1, sizeof(*purgers));
    MC_ASSERT(purgers != NULL);
    purgers->process = process;
    purgers->log = log;
    pthread_mutex_init(&purgers->lock, NULL);
    return purgers;
}

void
mc_purgers_destroy(mc_purgers *purgers)
{
    if (purgers == NULL)
        return;
    for (int i = 0; i < purgers->count; i++)
        mc_purger_stop(purgers->purgers[i]);
    pthread_mutex_destroy(&purgers->lock);
    free(purgers);
}

/* Moves a purger to the end. With the lock held, as the next ones. */
static mc_purger *
use_purger(mc_purgers *purgers, int place)
{
    mc_purger *purger = purgers->purgers[place];
    for (int i = place; i + 1 < purgers->count; i++)
        purgers->purgers[i] = purgers->purgers[i + 1];
    purgers->purgers[purgers->count - 1] = purger;
    return purger;
}

/* The first call for an address starts its thread. Where there are too many, because configurations were replaced, that
 * which nobody has used for longest ends. */
static mc_purger *
find_purger(mc_purgers *purgers, const mc_cdn *cdn, const char *url)
{
    for (int i = 0; i < purgers->count; i++)
        if (mc_purger_serves(purgers->purgers[i], cdn, url))
            return use_purger(purgers, i);
    if (purgers->count == PURGERS_MAX) {
        mc_purger_stop(use_purger(purgers, 0));
        purgers->count--;
    }
    purgers->purgers[purgers->count++] = mc_purger_start(cdn, url, purgers->process, purgers->log);
    return purgers->purgers[purgers->count - 1];
}

/* ---- what has changed */

typedef struct key_adding {
    mc_purger *purger;
    bool delayed;
} key_adding;

static void
add_changed_key(void *baton, const char *key)
{
    const key_adding *adding = baton;
    mc_purger_add(adding->purger, key, adding->delayed);
}

static mc_tile_range
whole_metatiles(const mc_purged_tiles *tiles)
{
    const mc_level *level = &tiles->link->grid->levels[tiles->z];
    const mc_tile_range *range = &tiles->range;
    const int columns = tiles->columns, rows = tiles->rows;
    mc_tile_range whole = { range->minx / columns * columns, range->miny / rows * rows,
                            ((range->maxx - 1) / columns + 1) * columns, ((range->maxy - 1) / rows + 1) * rows };
    whole.maxx = whole.maxx > level->columns ? level->columns : whole.maxx;
    whole.maxy = whole.maxy > level->rows ? level->rows : whole.maxy;
    return whole;
}

static void
add_addresses(mc_purger *purger, const char *url, const mc_purged_tiles *tiles, const mc_tile_range *range,
              bool delayed)
{
    const int64_t count = (int64_t)(range->maxx - range->minx) * (range->maxy - range->miny);
    if (count > ADDRESSES_MAX) {
        mc_purger_lose(purger, count);
        return;
    }
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    for (int y = range->miny; y < range->maxy; y++)
        for (int x = range->minx; x < range->maxx; x++) {
            mc_purger_add(purger, mc_purge_address(url, tiles->tileset, tiles->link->grid, tiles->z, x, y, scratch),
                          delayed);
            apr_pool_clear(scratch);
        }
    apr_pool_destroy(scratch);
}

static void
add_tiles(mc_purger *purger, const mc_cdn *cdn, const char *url, const mc_purged_tiles *tiles, bool delayed)
{
    key_adding adding = { purger, delayed };
    const mc_tile_range range = whole_metatiles(tiles);
    mc_purger_lock(purger);
    if (!mc_cdn_purges_keys(cdn->type))
        add_addresses(purger, url, tiles, &range, delayed);
    else if (!mc_surrogate_is_made(tiles->link, tiles->z))
        mc_surrogates_of_changed(tiles->tileset, tiles->link->grid, tiles->z, &range, add_changed_key, &adding);
    mc_purger_unlock(purger);
}

void
mc_purgers_add(mc_purgers *purgers, const mc_cdns *cdns, const mc_purged_tiles *tiles, bool delayed)
{
    if (purgers == NULL || cdns == NULL || tiles->range.minx >= tiles->range.maxx ||
        tiles->range.miny >= tiles->range.maxy)
        return;
    pthread_mutex_lock(&purgers->lock);
    for (int i = 0; i < cdns->all->nelts; i++) {
        const mc_cdn *cdn = APR_ARRAY_IDX(cdns->all, i, const mc_cdn *);
        for (int j = 0; j < cdn->urls->nelts; j++) {
            const char *url = APR_ARRAY_IDX(cdn->urls, j, const char *);
            add_tiles(find_purger(purgers, cdn, url), cdn, url, tiles, delayed);
        }
    }
    pthread_mutex_unlock(&purgers->lock);
}

/* ---- what is done */

typedef struct awaited {
    mc_purger *purger;
    uint64_t serial;
} awaited;

static bool
await_all(const awaited *all, int count, mc_ctx *ctx)
{
    bool done = true;
    for (int i = 0; i < count; i++) {
        done = mc_purger_await(all[i].purger, all[i].serial, ctx) && done;
        mc_purger_unref(all[i].purger);
    }
    return done;
}

bool
mc_purgers_flush(mc_purgers *purgers, const mc_cdns *cdns, mc_ctx *ctx)
{
    awaited all[PURGERS_MAX];
    int count = 0;
    if (purgers == NULL || cdns == NULL)
        return true;
    pthread_mutex_lock(&purgers->lock);
    for (int i = 0; i < cdns->all->nelts; i++) {
        const mc_cdn *cdn = APR_ARRAY_IDX(cdns->all, i, const mc_cdn *);
        for (int j = 0; j < cdn->urls->nelts && count < PURGERS_MAX; j++) {
            mc_purger *purger = find_purger(purgers, cdn, APR_ARRAY_IDX(cdn->urls, j, const char *));
            all[count++] = (awaited){ mc_purger_ref(purger), mc_purger_serial(purger) };
        }
    }
    pthread_mutex_unlock(&purgers->lock);
    return await_all(all, count, ctx);
}

bool
mc_purgers_finish(mc_purgers *purgers, mc_ctx *ctx)
{
    awaited all[PURGERS_MAX];
    int count = 0;
    if (purgers == NULL)
        return true;
    pthread_mutex_lock(&purgers->lock);
    for (; count < purgers->count; count++)
        all[count] = (awaited){ mc_purger_ref(purgers->purgers[count]), mc_purger_serial(purgers->purgers[count]) };
    pthread_mutex_unlock(&purgers->lock);
    return await_all(all, count, ctx);
}

void
mc_purgers_visit(mc_purgers *purgers, void (*visit)(void *baton, const mc_purger_state *state), void *baton)
{
    if (purgers == NULL)
        return;
    pthread_mutex_lock(&purgers->lock);
    for (int i = 0; i < purgers->count; i++) {
        const mc_purger_state state = mc_purger_look(purgers->purgers[i]);
        visit(baton, &state);
    }
    pthread_mutex_unlock(&purgers->lock);
}
