/* <max_size>: made from the configuration, told of uses and puts, started and ended with the process. */
#include <apr_strings.h>
#include <apr_uuid.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cache/quota/quota_private.h"

/* Who stores a tile waits so long for the books at most: microseconds. */
#define INTENT_PATIENCE (2 * APR_USEC_PER_SEC)

/* --- from the configuration --------------------------------------------------------------------------------------- */

/* Where two caches keep their tiles in one place, each would count, or not see, what the other one has. */
static void
complain_of_shared_place(const mc_cache *other, const char *place, const mc_node *node, mc_build *build)
{
    mc_complain(
        build->diagnostics, MC_WARNING, mc_node_child(node, "max_size"),
        "cache \"%s\" has its tiles in %s, too, and <max_size> counts and removes those of both: give each cache "
        "a place of its own",
        other->name, place);
}

/* Slashes once, and none at the end. */
static const char *
plain_place(const char *place, apr_pool_t *pool)
{
    char *plain = apr_palloc(pool, strlen(place) + 1), *at = plain;
    for (; *place != '\0'; place++)
        if (*place != '/' || (place[1] != '/' && place[1] != '\0'))
            *at++ = *place;
    *at = '\0';
    return plain;
}

static void
compare_place(const mc_cache *cache, const mc_cache *other, const mc_node *node, mc_build *build)
{
    bool file, of_other;
    const char *place = cache->ops->place(&file, cache, build->pool);
    const char *its = other->ops->place == NULL ? NULL : other->ops->place(&of_other, other, build->pool);
    if (its == NULL)
        return;
    const char *plain = plain_place(place, build->pool), *below = plain_place(its, build->pool);
    const size_t size = strlen(plain);
    if (strcmp(plain, below) == 0)
        complain_of_shared_place(other, place, node, build);
    else if (!file && strncmp(plain, below, size) == 0 && below[size] == '/')
        APR_ARRAY_PUSH(cache->quota->others, const char *) = below;
}

void
mc_quota_compare_places(const apr_array_header_t *nodes, mc_build *build)
{
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        const mc_cache *cache = name == NULL ? NULL : apr_hash_get(build->caches, name, APR_HASH_KEY_STRING);
        if (cache == NULL || cache->quota == NULL)
            continue;
        for (apr_hash_index_t *at = apr_hash_first(build->pool, build->caches); at != NULL; at = apr_hash_next(at)) {
            const mc_cache *other = apr_hash_this_val(at);
            if (other != cache)
                compare_place(cache, other, node, build);
        }
    }
}

bool
mc_quota_leaves_out(const mc_cache *cache, const char *folder, apr_pool_t *pool)
{
    const apr_array_header_t *others = cache->quota->others;
    const char *plain = others->nelts == 0 ? NULL : plain_place(folder, pool);
    for (int i = 0; i < others->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(others, i, const char *), plain) == 0)
            return true;
    return false;
}

static apr_status_t end_quota_on_cleanup(void *data);
static void wake_quota(void *baton, mc_ctx *ctx);
static bool note_intents(void *baton, const mc_tile_key *blocks, int count, mc_ctx *ctx);

bool
mc_quota_from_config(mc_cache *cache, const mc_quota_store *store, int shift, const mc_node *node, mc_build *build)
{
    bool file;
    if (cache->max_size == 0)
        return true;
    const char *place = cache->ops->place(&file, cache, build->pool);
    if (place == NULL || strcmp(place, "/") == 0 || *place == '\0') {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "max_size"),
                    "<max_size> needs a folder of its own for the tiles of cache \"%s\", with a name in front of the "
                    "first {token}",
                    cache->name);
        return false;
    }
    size_t length = strlen(place);
    const char *path = apr_pstrcat(build->pool, place,
                                   file                       ? ".books"
                                   : place[length - 1] == '/' ? "mapcache.books"
                                                              : "/mapcache.books",
                                   NULL);
    mc_quota *quota = apr_pcalloc(build->pool, sizeof(*quota));
    quota->cache = cache;
    quota->store = store;
    quota->others = apr_array_make(build->pool, 2, sizeof(const char *));
    quota->books = mc_books_at(path, cache->name, build->pool);
    pthread_mutex_init(&quota->lock, NULL);
    mc_clock_condition(&quota->changed);
    cache->quota = quota;
    cache->uses = mc_uses_create(&(mc_uses_hooks){ quota, wake_quota, note_intents }, shift, build->pool);
    apr_pool_pre_cleanup_register(build->pool, quota, end_quota_on_cleanup);
    return true;
}

const char *
mc_quota_books_path(const mc_cache *cache)
{
    return cache->quota->books.path;
}

/* --- what requests tell ------------------------------------------------------------------------------------------- */

typedef struct quota_intents {
    const mc_quota *quota;
    const mc_tile_key *blocks;
    int count;
} quota_intents;

static mc_error *
write_intents(mc_handle *books, void *baton, mc_ctx *ctx)
{
    const quota_intents *intents = baton;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    const mc_quota *quota = intents->quota;
    for (int i = 0; i < intents->count; i++) {
        const mc_quota_name name = quota->store->name(quota->cache, &intents->blocks[i], ctx->pool);
        MC_TRY(mc_books_note(books, &name, &intents->blocks[i], now, MC_BOOK_STORED, ctx->pool));
    }
    return MC_OK;
}

/* Before tiles are stored. Where the books are away they are stored all the same: without them nothing is removed. */
static bool
note_intents(void *baton, const mc_tile_key *blocks, int count, mc_ctx *ctx)
{
    mc_quota *quota = baton;
    mc_ctx own = *ctx;
    const apr_time_t patience = mc_clock_now() + INTENT_PATIENCE;
    if (own.deadline == 0 || own.deadline > patience)
        own.deadline = patience;
    apr_pool_create(&own.pool, ctx->pool);
    quota_intents intents = { quota, blocks, count };
    mc_error *error = mc_books_do(&quota->books, write_intents, &intents, &own);
    if (error != MC_OK) /* the thread says what is wrong; here it would be said with each put */
        mc_log_error(&own, MC_LOG_INFO, error);
    apr_pool_destroy(own.pool);
    if (!atomic_exchange(&quota->work, true)) {
        pthread_mutex_lock(&quota->lock);
        pthread_cond_broadcast(&quota->changed);
        pthread_mutex_unlock(&quota->lock);
    }
    return error == MC_OK;
}

/* --- thread ------------------------------------------------------------------------------------------------------- */

/* With the lock held. A plain CGI program starts no thread: what it knows is written down when it ends. */
static void
start_quota_thread(mc_quota *quota, mc_process *process)
{
    apr_uuid_t uuid;
    apr_uuid_get(&uuid);
    apr_uuid_format(quota->holder, &uuid);
    quota->process = process;
    atomic_store(&quota->work, true);
    if (!process->brief)
        quota->running = mc_thread_start(&quota->thread, NULL, mc_quota_keep, quota) == 0;
}

/* With the first use in this process. */
static void
wake_quota(void *baton, mc_ctx *ctx)
{
    mc_quota *quota = baton;
    mc_quotas *list = ctx->process == NULL ? NULL : ctx->process->quotas;
    if (list != NULL) {
        pthread_mutex_lock(&list->lock);
        pthread_mutex_lock(&quota->lock);
        if (quota->process == NULL && !atomic_load(&quota->end)) {
            start_quota_thread(quota, ctx->process);
            quota->next = list->first;
            list->first = quota;
        }
        pthread_mutex_unlock(&quota->lock);
        pthread_mutex_unlock(&list->lock);
    }
    mc_uses_set_time(quota->cache->uses, apr_time_sec(apr_time_now()));
}

/* What a process that started no thread knows, in little time. */
static void
settle_brief_quota(mc_quota *quota)
{
    mc_ctx ctx = { .process = quota->process, .log = &mc_log_stderr, .deadline = mc_clock_now() + INTENT_PATIENCE };
    apr_pool_create(&ctx.pool, NULL);
    mc_error *error = mc_quota_flush(quota, &ctx);
    if (error == MC_OK)
        error = mc_quota_round(quota, &ctx);
    if (error != MC_OK)
        mc_log_error(&ctx, MC_LOG_INFO, error);
    apr_pool_destroy(ctx.pool);
}

static void
end_quota(mc_quota *quota)
{
    pthread_mutex_lock(&quota->lock);
    atomic_store(&quota->end, true);
    pthread_cond_broadcast(&quota->changed);
    const bool running = quota->running;
    pthread_mutex_unlock(&quota->lock);
    if (running)
        pthread_join(quota->thread, NULL);
    else
        settle_brief_quota(quota);
    pthread_mutex_lock(&quota->lock);
    quota->running = false;
    quota->process = NULL;
    pthread_mutex_unlock(&quota->lock);
}

/* Before the configuration goes, whose cache the thread uses. */
static apr_status_t
end_quota_on_cleanup(void *data)
{
    mc_quota *quota = data;
    pthread_mutex_lock(&quota->lock);
    mc_quotas *list = quota->process == NULL ? NULL : quota->process->quotas;
    pthread_mutex_unlock(&quota->lock);
    if (list != NULL) {
        bool mine = false; /* else the process ends it */
        pthread_mutex_lock(&list->lock);
        for (mc_quota **at = &list->first; *at != NULL && !mine; at = mine ? at : &(*at)->next)
            if (*at == quota) {
                *at = quota->next;
                mine = true;
            }
        pthread_mutex_unlock(&list->lock);
        if (mine)
            end_quota(quota);
    }
    pthread_cond_destroy(&quota->changed);
    pthread_mutex_destroy(&quota->lock);
    return APR_SUCCESS;
}

mc_quotas *
mc_quotas_create(void)
{
    mc_quotas *quotas = calloc(1, sizeof(*quotas));
    MC_ASSERT(quotas != NULL);
    pthread_mutex_init(&quotas->lock, NULL);
    return quotas;
}

void
mc_quotas_destroy(mc_quotas *quotas)
{
    if (quotas == NULL)
        return;
    for (;;) {
        pthread_mutex_lock(&quotas->lock);
        mc_quota *quota = quotas->first;
        if (quota != NULL)
            quotas->first = quota->next;
        pthread_mutex_unlock(&quotas->lock);
        if (quota == NULL)
            break;
        end_quota(quota);
    }
    pthread_mutex_destroy(&quotas->lock);
    free(quotas);
}
