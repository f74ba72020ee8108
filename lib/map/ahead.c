/* The thread that looks at catalogues when a process begins. See ahead.h. */
#include "map/ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"
#include "cache/cache_base.h"
#include "memory/scratch.h"
#include "tileset/assembly.h"
#include "tileset/combine.h"

enum {
    CONFIGURATIONS = 64, /* that wait; further ones are left to their maps */
    FEW_PRODUCTS = 16,   /* less are not worth it */
};

/* Microseconds for the catalogues of a configuration; and that a start waits for all of them. */
#define LOOKS_AT_MOST (2 * APR_USEC_PER_SEC)
#define WAITS_AT_MOST (40 * 1000)

/* Pixels of a map's side, and bytes of a tile, for which there is memory from the beginning. */
#define MAP_SIDE ((size_t)1024)
#define TILE_AT_MOST ((size_t)1 << 20)

typedef struct ahead_wanted {
    const apr_array_header_t *tilesets;
    const mc_owner *owner; /* taken */
} ahead_wanted;

struct mc_ahead {
    mc_process *process;
    const mc_log *log;
    _Atomic bool ending;
    bool warmed;          /* memory; of the thread */
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t done;  /* `running` has become false */
    ahead_wanted wanted[CONFIGURATIONS];
    int count;
    apr_time_t waited; /* until when a start waits, by mc_clock_now() */
    bool running;      /* until nothing of the thread is left but its end */
    bool started;      /* `thread` is to be joined */
    pthread_t thread;
};

mc_ahead *
mc_ahead_create(mc_process *process, const mc_log *log)
{
    mc_ahead *ahead = calloc(1, sizeof(*ahead));
    MC_ASSERT(ahead != NULL);
    ahead->process = process;
    ahead->log = log;
    pthread_mutex_init(&ahead->lock, NULL);
    mc_clock_condition(&ahead->done);
    return ahead;
}

static bool
is_ahead_ending(void *ahead)
{
    return atomic_load(&((mc_ahead *)ahead)->ending);
}

/* --- one catalogue ------------------------------------------------------------------------------------------------ */

/* Whether what a tile is made of is asked of a database, and lies in files: of how many products is known later. */
static bool
may_be_catalogue(const mc_tileset *tileset)
{
    bool asked = false;
    for (int i = 0; i < tileset->dimension_count; i++)
        asked = asked || tileset->dimensions[i]->ops->from_backend;
    return asked && tileset->assembly == MC_ASSEMBLE_STACK && tileset->not_built == NULL && tileset->cache != NULL &&
           tileset->cache->ops->location != NULL;
}

/* Nothing is asked over a network. */
static bool
is_listed_by_files(const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->dimension_count; i++)
        if (tileset->dimensions[i]->ops->from_backend && mc_dimension_changed(tileset->dimensions[i]) == 0)
            return false;
    return true;
}

/* The products that the default values stand for, anywhere. The tile that is asked for is one that most likely none of
 * them has, so that no tile is read. */
static mc_error *
look_at_products(mc_tileset *tileset, const mc_grid_link *link, mc_ctx *ctx)
{
    const mc_grid *grid = link->grid;
    mc_combinations products;
    mc_combiner *combiner = mc_combiner_create(tileset, NULL, NULL, ctx->pool);
    MC_TRY(mc_combine(&products, combiner, grid, link->minzoom, &link->extent, 1, ctx));
    mc_footprint_sift sift = {
        mc_assembly_key(tileset, grid, grid->level_count - 1, 0, 0, NULL), products.list, products.count, { 0, 0, 1, 1 }
    };
    if (products.count < FEW_PRODUCTS || sift.key.renderable)
        return MC_OK;
    return mc_footprints_ahead(tileset->cache, &sift, ctx);
}

/* Memory for a tile on each thread that decodes, and for the pixels of a map. */
static void
warm_memory(const mc_tileset *tileset, mc_ctx *ctx)
{
    const mc_grid *grid = tileset->links[0]->grid;
    const size_t tile = ((size_t)grid->tile_width * 4 + 1) * (size_t)grid->tile_height + 64;
    if (tile > TILE_AT_MOST)
        return;
    mc_scratch_warm(tile, mc_workers_count(ctx->process->workers) + 1);
    mc_scratch_warm(MAP_SIDE * MAP_SIDE * 4 + 64, 1);
}

static void
look_at_catalogue(mc_tileset *tileset, mc_ctx *ctx)
{
    for (int i = 0; i < tileset->link_count && !mc_ctx_abandoned(ctx); i++) {
        mc_ctx own = *ctx;
        apr_pool_create(&own.pool, ctx->pool);
        mc_error_ignore(look_at_products(tileset, tileset->links[i], &own)); /* whoever asks for a map is told */
        apr_pool_destroy(own.pool);
    }
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static void
look_at_tilesets(mc_ahead *ahead, const ahead_wanted *wanted)
{
    apr_pool_t *pool = mc_task_pool_acquire();
    mc_ctx ctx = { .pool = pool,
                   .process = ahead->process,
                   .log = ahead->log,
                   .owner = wanted->owner,
                   .deadline = mc_clock_now() + LOOKS_AT_MOST,
                   .abandoned = is_ahead_ending,
                   .abandoned_baton = ahead };
    for (int i = 0; i < wanted->tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(wanted->tilesets, i, mc_tileset *);
        if (!may_be_catalogue(tileset) || !is_listed_by_files(tileset))
            continue;
        if (!ahead->warmed)
            warm_memory(tileset, &ctx);
        ahead->warmed = true;
        look_at_catalogue(tileset, &ctx);
    }
    mc_task_pool_release(pool);
}

static void *
run_ahead(void *baton)
{
    mc_ahead *ahead = baton;
    pthread_setname_np(pthread_self(), "mapcache-ahead");
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count > 0) {
        ahead_wanted wanted = ahead->wanted[0];
        ahead->count--;
        for (int i = 0; i < ahead->count; i++)
            ahead->wanted[i] = ahead->wanted[i + 1];
        pthread_mutex_unlock(&ahead->lock);
        if (!is_ahead_ending(ahead))
            look_at_tilesets(ahead, &wanted);
        wanted.owner->drop(wanted.owner->thing);
        pthread_mutex_lock(&ahead->lock);
    }
    ahead->running = false;
    pthread_cond_broadcast(&ahead->done);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* With the lock held. */
static void
start_ahead(mc_ahead *ahead)
{
    if (ahead->running)
        return;
    if (ahead->started)
        pthread_join(ahead->thread, NULL);
    ahead->running = ahead->started = mc_thread_start(&ahead->thread, NULL, run_ahead, ahead) == 0;
    ahead->waited = mc_clock_now() + WAITS_AT_MOST;
}

void
mc_ahead_begin(mc_ahead *ahead, const apr_array_header_t *tilesets, const mc_owner *owner)
{
    bool any = false;
    for (int i = 0; i < tilesets->nelts; i++)
        any = any || may_be_catalogue(APR_ARRAY_IDX(tilesets, i, const mc_tileset *));
    if (ahead == NULL || !any || !ahead->process->lasting)
        return;
    bool taken = false;
    pthread_mutex_lock(&ahead->lock);
    if (ahead->count < CONFIGURATIONS) {
        start_ahead(ahead);
        taken = ahead->running;
    }
    if (taken) {
        owner->take(owner->thing);
        ahead->wanted[ahead->count++] = (ahead_wanted){ tilesets, owner };
    }
    pthread_mutex_unlock(&ahead->lock);
}

void
mc_ahead_wait(mc_ahead *ahead)
{
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&ahead->lock);
    while (ahead->running && mc_clock_wait(&ahead->done, &ahead->lock, ahead->waited))
        ;
    pthread_mutex_unlock(&ahead->lock);
}

void
mc_ahead_destroy(mc_ahead *ahead)
{
    if (ahead == NULL)
        return;
    atomic_store(&ahead->ending, true);
    if (ahead->started)
        pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->done);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
