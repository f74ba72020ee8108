/* See refresh.h. */
#include "tileset/refresh.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/semaphore.h"
#include "base/thread.h"
#include "base/workers.h"
#include "tileset/tileset_counters.h"

enum { THREADS_MAX = 16, ENTRIES_MAX = 4096, BUCKETS = 1024 };

/* Microseconds before what somebody else draws, or what has failed, is looked at again. */
#define REST_TIME (APR_USEC_PER_SEC / 4)
#define TELL_EACH (APR_USEC_PER_SEC / 100)
/* Microseconds for one tile where neither tileset nor request say another time. */
#define WORK_TIME (60 * APR_USEC_PER_SEC)

typedef enum refresh_state { REFRESH_WAITS, REFRESH_RUNS, REFRESH_RESTS } refresh_state;

typedef struct refresh_entry {
    struct refresh_entry *next; /* of its bucket */
    uint64_t hash;              /* of work and name */
    apr_pool_t *pool;           /* of all below */
    const char *name;
    mc_refresh_work *work;
    mc_tile_request *wanted;
    mc_tile_key *key;
    const mc_owner *owner;
    const apr_table_t *headers;
    const struct mc_config *config; /* for the status page; may be NULL */
    apr_interval_time_t allowance;
    /* With the lock. */
    refresh_state state;
    int hits;
    apr_time_t until; /* mc_clock_now() to which it rests */
} refresh_entry;

struct mc_refreshes {
    mc_process *process;
    const mc_log *log;
    int most_threads;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    refresh_entry *buckets[BUCKETS]; /* by hash */
    apr_time_t swept;                /* mc_clock_now() of the last look for entries that nobody asks for */
    int count, idle, thread_count;
    bool ending;
    pthread_t threads[THREADS_MAX];
};

mc_refreshes *
mc_refreshes_create(int threads, mc_process *process, const mc_log *log)
{
    mc_refreshes *refreshes = calloc(1, sizeof(*refreshes));
    MC_ASSERT(refreshes != NULL);
    refreshes->process = process;
    refreshes->log = log;
    refreshes->most_threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    pthread_mutex_init(&refreshes->lock, NULL);
    mc_clock_condition(&refreshes->changed);
    return refreshes;
}

/* Takes the entry out of the table. With the lock held. */
static void
unlist_entry(mc_refreshes *refreshes, const refresh_entry *entry)
{
    refresh_entry **at = &refreshes->buckets[entry->hash % BUCKETS];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    refreshes->count--;
}

/* Without the lock: a configuration may end with it. */
static void
free_entry(refresh_entry *entry)
{
    const mc_owner *owner = entry->owner;
    mc_task_pool_release(entry->pool);
    owner->drop(owner->thing);
}

static void
free_entries(refresh_entry *entry)
{
    while (entry != NULL) {
        refresh_entry *next = entry->next;
        free_entry(entry);
        entry = next;
    }
}

void
mc_refreshes_destroy(mc_refreshes *refreshes)
{
    if (refreshes == NULL)
        return;
    pthread_mutex_lock(&refreshes->lock);
    refreshes->ending = true;
    pthread_cond_broadcast(&refreshes->changed);
    pthread_mutex_unlock(&refreshes->lock);
    for (int i = 0; i < refreshes->thread_count; i++)
        pthread_join(refreshes->threads[i], NULL);
    for (int i = 0; i < BUCKETS; i++)
        free_entries(refreshes->buckets[i]);
    pthread_cond_destroy(&refreshes->changed);
    pthread_mutex_destroy(&refreshes->lock);
    free(refreshes);
}

int
mc_refreshes_waiting(mc_refreshes *refreshes)
{
    if (refreshes == NULL)
        return 0;
    pthread_mutex_lock(&refreshes->lock);
    int count = refreshes->count;
    pthread_mutex_unlock(&refreshes->lock);
    return count;
}

/* ---- the threads */

/* What waits and was asked for most often; NULL: nothing waits. With the lock held. */
static refresh_entry *
find_busiest(const mc_refreshes *refreshes)
{
    refresh_entry *busiest = NULL;
    for (int i = 0; i < BUCKETS && refreshes->count > 0; i++)
        for (refresh_entry *entry = refreshes->buckets[i]; entry != NULL; entry = entry->next)
            if (entry->state == REFRESH_WAITS && (busiest == NULL || entry->hits > busiest->hits))
                busiest = entry;
    return busiest;
}

/* What is drawn anew, as log lines and the status page name it. */
static mc_account
account_of(const refresh_entry *entry)
{
    const mc_tile_request *wanted = entry->wanted;
    const mc_tile_key *key = entry->key;
    mc_account account = { .config = entry->config };
    if (wanted != NULL)
        account.tileset = wanted->tileset->name;
    const mc_grid *grid = key != NULL ? key->grid : wanted != NULL && wanted->link != NULL ? wanted->link->grid : NULL;
    if (grid == NULL)
        return account;
    account.grid = grid->name;
    account.z = key != NULL ? key->z : wanted->z;
    account.x = key != NULL ? key->x : wanted->x;
    account.y = key != NULL ? key->y : wanted->y;
    return account;
}

/* The log has it from the requests that get the old tile meanwhile, once a minute; the status page at most a hundred
 * times a second. */
static void
tell_of_failed_refresh(mc_error *error, const mc_ctx *ctx)
{
    static _Atomic apr_time_t told; /* mc_clock_now() */
    apr_time_t before = atomic_load(&told), now = mc_clock_now();
    bool due = now - before >= TELL_EACH && atomic_compare_exchange_strong(&told, &before, now);
    error->told = true;
    mc_log_error(ctx, due ? MC_LOG_WARN : MC_LOG_INFO, error);
}

/* Whether it is to be looked at again after a while. */
static bool
do_refresh(const refresh_entry *entry, const mc_refreshes *refreshes)
{
    bool busy = false;
    apr_pool_t *pool = mc_task_pool_acquire();
    apr_interval_time_t time = entry->allowance > 0 ? entry->allowance : WORK_TIME;
    mc_account account = account_of(entry);
    mc_ctx ctx = { .pool = pool,
                   .process = refreshes->process,
                   .log = refreshes->log,
                   .account = &account,
                   .headers = entry->headers,
                   .deadline = mc_clock_now() + time,
                   .allowance = time };
    mc_error *error = entry->work(&busy, entry->wanted, entry->key, &ctx, pool);
    if (error != MC_OK)
        tell_of_failed_refresh(error, &ctx);
    bool failed = error != MC_OK;
    mc_count(refreshes->process->metrics, failed ? MC_COUNT_refresh_failures_total : MC_COUNT_refreshes_total,
             busy ? 0 : 1);
    mc_task_pool_release(pool);
    return busy || failed;
}

/* Entries that nobody has asked for since they rest, now and then: they hold a configuration. With the lock held; the
 * caller frees them without. */
static refresh_entry *
take_rested(mc_refreshes *refreshes)
{
    refresh_entry *taken = NULL;
    apr_time_t now = mc_clock_now();
    if (refreshes->count == 0 || now - refreshes->swept < REST_TIME)
        return NULL;
    refreshes->swept = now;
    for (int i = 0; i < BUCKETS; i++)
        for (refresh_entry **at = &refreshes->buckets[i]; *at != NULL;) {
            refresh_entry *entry = *at;
            if (entry->state != REFRESH_RESTS || now < entry->until + REST_TIME) {
                at = &entry->next;
                continue;
            }
            *at = entry->next;
            refreshes->count--;
            entry->next = taken;
            taken = entry;
        }
    return taken;
}

/* Until there may be something to do. With the lock held, which is given up meanwhile. */
static void
wait_for_refresh(mc_refreshes *refreshes)
{
    refresh_entry *rested = take_rested(refreshes);
    if (rested != NULL) {
        pthread_mutex_unlock(&refreshes->lock);
        free_entries(rested);
        pthread_mutex_lock(&refreshes->lock);
        return;
    }
    refreshes->idle++;
    if (refreshes->count == 0)
        pthread_cond_wait(&refreshes->changed, &refreshes->lock);
    else
        (void)mc_clock_wait(&refreshes->changed, &refreshes->lock, mc_clock_now() + REST_TIME);
    refreshes->idle--;
}

static void *
run_refresh_thread(void *baton)
{
    mc_refreshes *refreshes = baton;
    pthread_mutex_lock(&refreshes->lock);
    while (!refreshes->ending) {
        refresh_entry *entry = find_busiest(refreshes);
        if (entry == NULL) {
            wait_for_refresh(refreshes);
            continue;
        }
        entry->state = REFRESH_RUNS;
        pthread_mutex_unlock(&refreshes->lock);
        bool rests = do_refresh(entry, refreshes);
        pthread_mutex_lock(&refreshes->lock);
        entry->state = REFRESH_RESTS;
        entry->until = mc_clock_now() + REST_TIME;
        entry->hits = 0;
        if (rests)
            continue;
        unlist_entry(refreshes, entry);
        pthread_mutex_unlock(&refreshes->lock);
        free_entry(entry);
        pthread_mutex_lock(&refreshes->lock);
    }
    pthread_mutex_unlock(&refreshes->lock);
    return NULL;
}

/* With the lock held. */
static void
start_refresh_thread(mc_refreshes *refreshes)
{
    if (refreshes->idle > 0 || refreshes->thread_count >= refreshes->most_threads)
        return;
    refreshes->thread_count +=
        mc_thread_start(&refreshes->threads[refreshes->thread_count], NULL, run_refresh_thread, refreshes) == 0;
}

/* ---- what is asked for */

static mc_tile_key *
copy_key(const mc_tile_key *key, apr_pool_t *pool)
{
    if (key == NULL)
        return NULL;
    mc_tile_key *copy = apr_pmemdup(pool, key, sizeof(*key));
    mc_dimension_value *values = apr_palloc(pool, sizeof(*values) * (size_t)(key->dimension_count + 1));
    for (int i = 0; i < key->dimension_count; i++) {
        values[i] = key->dimensions[i];
        values[i].value = apr_pstrdup(pool, key->dimensions[i].value);
    }
    copy->dimensions = values;
    copy->tileset = apr_pstrdup(pool, key->tileset); /* in mirror modes it is what the client has sent */
    return copy;
}

static mc_tile_request *
copy_request(const mc_tile_request *wanted, apr_pool_t *pool)
{
    if (wanted == NULL)
        return NULL;
    mc_tile_request *copy = apr_pmemdup(pool, wanted, sizeof(*wanted));
    int count = wanted->values == NULL ? 0 : wanted->tileset->dimension_count;
    const char **values = apr_pcalloc(pool, sizeof(*values) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        values[i] = wanted->values[i] == NULL ? NULL : apr_pstrdup(pool, wanted->values[i]);
    copy->values = wanted->values == NULL ? NULL : values;
    return copy;
}

static refresh_entry *
create_refresh(uint64_t hash, const char *name, mc_refresh_work *work, const mc_tile_request *wanted,
               const mc_tile_key *key, const mc_ctx *ctx)
{
    apr_pool_t *pool = mc_task_pool_acquire();
    refresh_entry *entry = apr_pcalloc(pool, sizeof(*entry));
    *entry = (refresh_entry){ .hash = hash,
                              .pool = pool,
                              .name = apr_pstrdup(pool, name),
                              .work = work,
                              .wanted = copy_request(wanted, pool),
                              .key = copy_key(key, pool),
                              .owner = ctx->owner,
                              .headers = ctx->headers == NULL ? NULL : apr_table_clone(pool, ctx->headers),
                              .config = ctx->account == NULL ? NULL : ctx->account->config,
                              .allowance = ctx->allowance,
                              .hits = 1 };
    ctx->owner->take(ctx->owner->thing);
    return entry;
}

/* The entry of that name, which counts one more and waits again once it has rested. With the lock held. */
static bool
count_hit(mc_refreshes *refreshes, uint64_t hash, const char *name, mc_refresh_work *work)
{
    for (refresh_entry *entry = refreshes->buckets[hash % BUCKETS]; entry != NULL; entry = entry->next) {
        if (entry->hash != hash || entry->work != work || strcmp(entry->name, name) != 0)
            continue;
        entry->hits++;
        if (entry->state == REFRESH_RESTS && mc_clock_now() >= entry->until) {
            entry->state = REFRESH_WAITS;
            start_refresh_thread(refreshes);
            pthread_cond_signal(&refreshes->changed);
        }
        return true;
    }
    return false;
}

bool
mc_refresh_later(const char *name, mc_refresh_work *work, const mc_tile_request *wanted, const mc_tile_key *key,
                 mc_ctx *ctx)
{
    mc_refreshes *refreshes = ctx->process == NULL ? NULL : ctx->process->refreshes;
    refresh_entry *rested = NULL;
    if (refreshes == NULL || ctx->owner == NULL)
        return false;
    const uint64_t hash = mc_hash64(name, strlen(name), (uint64_t)(uintptr_t)work);
    pthread_mutex_lock(&refreshes->lock);
    bool known = count_hit(refreshes, hash, name, work);
    if (!known)
        rested = take_rested(refreshes);
    bool room = !known && refreshes->count < ENTRIES_MAX && !refreshes->ending;
    if (room) {
        refresh_entry *entry = create_refresh(hash, name, work, wanted, key, ctx);
        entry->next = refreshes->buckets[hash % BUCKETS];
        refreshes->buckets[hash % BUCKETS] = entry;
        refreshes->count++;
        start_refresh_thread(refreshes);
        pthread_cond_signal(&refreshes->changed);
    }
    pthread_mutex_unlock(&refreshes->lock);
    free_entries(rested);
    return true; /* where there is no room, who asks next tries again */
}
