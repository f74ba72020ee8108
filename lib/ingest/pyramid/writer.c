/* See writer.h. */
#include "ingest/pyramid/writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"

enum { FIRST_ROOM = 1000 };

struct mc_ingest_writer {
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, but for what the thread has while it is busy: storing, ctx */
    pthread_cond_t changed;
    bool busy, stop;
    const mc_tileset *tileset;
    mc_ingest_writes storing;
    mc_ctx ctx; /* its pool is the thread's */
    apr_pool_t *failures;
    mc_error *error; /* in `failures` */
    apr_int64_t tiles, bytes;
    double seconds;
};

mc_ingest_writes
mc_ingest_writes_create(apr_pool_t *pool)
{
    return (mc_ingest_writes){ .list = apr_array_make(pool, FIRST_ROOM, sizeof(mc_tile_write)) };
}

void
mc_ingest_writes_release(mc_ingest_writes *writes)
{
    for (int i = 0; i < writes->list->nelts; i++)
        mc_buf_unref(APR_ARRAY_IDX(writes->list, i, mc_tile_write).data);
    apr_array_clear(writes->list);
    writes->bytes = 0;
}

static int
in_store_order(const void *a, const void *b)
{
    const mc_tile_key *left = &((const mc_tile_write *)a)->key, *right = &((const mc_tile_write *)b)->key;
    if (left->z != right->z)
        return left->z > right->z ? -1 : 1;
    if (left->x != right->x)
        return left->x < right->x ? -1 : 1;
    return left->y < right->y ? -1 : left->y > right->y;
}

static mc_error *
store_ingested_tiles(mc_ingest_writer *writer)
{
    apr_array_header_t *list = writer->storing.list;
    qsort(list->elts, (size_t)list->nelts, sizeof(mc_tile_write), in_store_order);
    const mc_tile_write *writes = (const mc_tile_write *)(const void *)list->elts;
    MC_TRY(mc_cache_put(writer->tileset->cache, writes, list->nelts, &writer->ctx));
    return mc_tileset_forget_formats(writer->tileset, writes, list->nelts, &writer->ctx);
}

static void *
run_ingest_writer(void *baton)
{
    mc_ingest_writer *writer = baton;
    pthread_setname_np(pthread_self(), "mapcache-writer");
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (!writer->busy && !writer->stop)
            pthread_cond_wait(&writer->changed, &writer->lock);
        if (!writer->busy)
            break;
        pthread_mutex_unlock(&writer->lock);
        apr_time_t began = mc_clock_now();
        mc_error *error = store_ingested_tiles(writer);
        pthread_mutex_lock(&writer->lock);
        writer->seconds += (double)(mc_clock_now() - began) / APR_USEC_PER_SEC;
        writer->error = mc_error_copy(error, writer->failures);
        if (error == MC_OK) {
            writer->tiles += writer->storing.list->nelts;
            writer->bytes += (apr_int64_t)writer->storing.bytes;
        }
        mc_ingest_writes_release(&writer->storing);
        apr_pool_clear(writer->ctx.pool);
        writer->busy = false;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

mc_error *
mc_ingest_writer_create(mc_ingest_writer **writer, const mc_tileset *tileset, const mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ingest_writer *made = apr_pcalloc(pool, sizeof(*made));
    made->tileset = tileset;
    made->storing = mc_ingest_writes_create(pool);
    made->failures = mc_task_pool_acquire();
    made->ctx = *ctx;
    made->ctx.pool = mc_task_pool_acquire();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (mc_thread_start(&made->thread, NULL, run_ingest_writer, made) != 0) {
        mc_task_pool_release(made->failures);
        mc_task_pool_release(made->ctx.pool);
        return mc_error_create(pool, MC_ERR_LIMIT, "the thread that stores tiles cannot be started");
    }
    *writer = made;
    return MC_OK;
}

bool
mc_ingest_writer_busy(mc_ingest_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    bool busy = writer->busy;
    pthread_mutex_unlock(&writer->lock);
    return busy;
}

/* With the lock held. */
static mc_error *
wait_until_idle(mc_ingest_writer *writer, apr_pool_t *pool)
{
    while (writer->busy)
        pthread_cond_wait(&writer->changed, &writer->lock);
    return mc_error_copy(writer->error, pool);
}

mc_error *
mc_ingest_writer_store(mc_ingest_writer *writer, mc_ingest_writes *writes, apr_pool_t *pool)
{
    pthread_mutex_lock(&writer->lock);
    mc_error *error = wait_until_idle(writer, pool);
    if (error == MC_OK && writes->list->nelts > 0) {
        mc_ingest_writes empty = writer->storing;
        writer->storing = *writes;
        *writes = empty;
        writer->busy = true;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return error;
}

mc_error *
mc_ingest_writer_wait(mc_ingest_writer *writer, apr_pool_t *pool)
{
    pthread_mutex_lock(&writer->lock);
    mc_error *error = wait_until_idle(writer, pool);
    pthread_mutex_unlock(&writer->lock);
    return error;
}

void
mc_ingest_writer_count(mc_ingest_writer *writer, mc_ingest_counts *counts)
{
    pthread_mutex_lock(&writer->lock);
    counts->tiles = writer->tiles;
    counts->bytes = writer->bytes;
    counts->store = writer->seconds;
    pthread_mutex_unlock(&writer->lock);
}

void
mc_ingest_writer_destroy(mc_ingest_writer *writer)
{
    if (writer == NULL)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->stop = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    mc_ingest_writes_release(&writer->storing);
    mc_task_pool_release(writer->failures);
    mc_task_pool_release(writer->ctx.pool);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
}
