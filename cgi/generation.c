/* Generations of the configuration: see generation.h. */
#include "generation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"

/* Pauses before a file that could not be used is tried again, each twice the one before: what was missing may be there
 * again (memory, descriptors, a database). */
static const apr_time_t FIRST_PAUSE = APR_USEC_PER_SEC, LONGEST_PAUSE = 60 * APR_USEC_PER_SEC;

struct mc_generations {
    const char *file;
    int threads; /* that answer requests; 0: none may be started */
    apr_pool_t *pool;
    pthread_mutex_t lock; /* of `current` */
    mc_generation *current;
    pthread_mutex_t loading; /* of all from `looked` to `told`, and `runtime` while it is NULL; taken before `lock` */
    bool looked;
    struct stat tried;       /* the file as it was last loaded, or last failed to; zero: it was not there */
    apr_time_t again, pause; /* when what failed is tried again, and how long that was put off; 0: nothing failed */
    uint64_t told;           /* hash of the failure that was logged last */
    mc_log runtime_log;
    _Atomic(mc_runtime *) runtime;
    _Atomic apr_time_t next_look;
    int leaving; /* threads that end a generation, with `lock` */
    pthread_cond_t left;
};

static void
log_complaints(const mc_diagnostics *diagnostics, mc_ctx *ctx)
{
    for (int i = 0; i < diagnostics->complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint);
        if (complaint->severity != MC_REFUSED) /* those are the error's text */
            mc_log_write(ctx, MC_LOG_WARN, "%s:%d:%d: %s", complaint->file, complaint->line, complaint->column,
                         complaint->text);
    }
}

/* Called with `loading` held. */
static mc_error *
load_generation(mc_generation **out, mc_generations *generations, apr_pool_t *pool)
{
    mc_generation *generation = apr_pcalloc(pool, sizeof(*generation));
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    MC_TRY(mc_server_load(&generation->server, generations->file, diagnostics, pool));
    const mc_config *config = mc_server_config(generation->server);
    generation->log = (mc_log){ config->log_level, mc_log_stderr.write, mc_log_stderr.baton };
    generation->pool = pool;
    generation->generations = generations;
    atomic_init(&generation->references, 1);
    if (atomic_load(&generations->runtime) == NULL) {
        mc_runtime *runtime;
        generations->runtime_log = generation->log;
        mc_error *error = mc_runtime_create(&runtime, config, 1, generations->threads > 0, &generations->runtime_log,
                                            generations->pool);
        if (error != MC_OK)
            return error;
        mc_runtime_limit_requests(runtime, config, generations->threads);
        mc_runtime_process(runtime)->lasting = generations->threads > 0;
        atomic_store(&generations->runtime, runtime);
    }
    mc_server_follow(generation->server, mc_runtime_process(atomic_load(&generations->runtime)));
    mc_ctx ctx = { .pool = pool, .log = &generation->log };
    log_complaints(diagnostics, &ctx);
    mc_server_prepare(generation->server, mc_clock_now() + MC_PREPARING_TIME,
                      mc_runtime_process(atomic_load(&generations->runtime)), &generation->log);
    *out = generation;
    return MC_OK;
}

static void
replace_current_generation(mc_generations *generations, mc_generation *next)
{
    pthread_mutex_lock(&generations->lock);
    mc_generation *old = generations->current;
    generations->current = next;
    pthread_mutex_unlock(&generations->lock);
    if (old != NULL)
        mc_generation_release(old);
}

/* What happens to configurations is logged whatever they say of logs themselves. */
static const mc_log *
log_of_everything(apr_pool_t *pool)
{
    mc_log *log = apr_palloc(pool, sizeof(*log));
    *log = (mc_log){ MC_LOG_DEBUG, mc_log_stderr.write, mc_log_stderr.baton };
    return log;
}

/* The same failure once. */
static void
log_failure(mc_generations *generations, const mc_error *error, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .log = log_of_everything(pool) };
    const char *why = mc_error_chain(error, pool);
    uint64_t hash = mc_hash64(why, strlen(why), 0);
    if (hash == generations->told)
        return;
    generations->told = hash;
    mc_log_write(&ctx, MC_LOG_ERROR, "failed to %s config file %s: %s",
                 generations->current == NULL ? "load" : "reload", generations->file, why);
}

/* Whether the file is to be loaded: it is not the one that was tried last, or that one failed a while ago. */
static bool
is_load_due(mc_generations *generations, const struct stat *now)
{
    if (!generations->looked || !mc_files_same(now, &generations->tried)) {
        generations->pause = 0;
        generations->told = 0;
        return true;
    }
    return generations->pause != 0 && mc_clock_now() >= generations->again;
}

static void
put_load_off(mc_generations *generations)
{
    apr_time_t pause = generations->pause == 0 ? FIRST_PAUSE : 2 * generations->pause;
    generations->pause = pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
    generations->again = mc_clock_now() + generations->pause;
}

static struct stat
stamp_of_file(const mc_generations *generations)
{
    struct stat now;
    return stat(generations->file, &now) == 0 ? now : (struct stat){ 0 };
}

/* What /ready says of the last load. */
static void
tell_load_failed(const mc_generations *generations, bool failed)
{
    mc_runtime *runtime = atomic_load(&generations->runtime);
    if (runtime != NULL)
        atomic_store(&mc_runtime_process(runtime)->reload_failed, failed);
}

/* Loads the file, of which the stamp was taken before. What is told of it is true once the log has it. Called with
 * `loading` held. */
static bool
load_next_generation(mc_generations *generations, struct stat stamp)
{
    generations->looked = true;
    generations->tried = stamp;
    apr_pool_t *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    mc_generation *next = NULL;
    mc_error *error = load_generation(&next, generations, pool);
    if (error == MC_OK) {
        generations->pause = 0;
        replace_current_generation(generations, next);
        tell_load_failed(generations, false);
        return true;
    }
    put_load_off(generations);
    tell_load_failed(generations, true);
    log_failure(generations, error, pool);
    apr_pool_destroy(pool);
    return false;
}

/* Loads the file if that is due. */
static void
reload_changed_generation(mc_generations *generations)
{
    if (pthread_mutex_trylock(&generations->loading) != 0)
        return; /* another thread is at it; until it has finished, the old one serves */
    struct stat now = stamp_of_file(generations);
    if (is_load_due(generations, &now))
        load_next_generation(generations, now);
    pthread_mutex_unlock(&generations->loading);
}

void
mc_generations_reload(mc_generations *generations)
{
    apr_pool_t *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    pthread_mutex_lock(&generations->loading);
    generations->pause = 0;
    generations->told = 0;
    bool loaded = load_next_generation(generations, stamp_of_file(generations));
    mc_ctx ctx = { .pool = pool, .log = log_of_everything(pool) };
    if (loaded)
        mc_log_write(&ctx, MC_LOG_NOTICE, "reloaded config file %s", generations->file);
    pthread_mutex_unlock(&generations->loading);
    apr_pool_destroy(pool);
}

bool
mc_generations_loaded(mc_generations *generations)
{
    pthread_mutex_lock(&generations->lock);
    bool loaded = generations->current != NULL;
    pthread_mutex_unlock(&generations->lock);
    return loaded;
}

mc_generations *
mc_generations_create(const char *file, int threads, apr_pool_t *pool)
{
    mc_generations *generations = apr_pcalloc(pool, sizeof(*generations));
    generations->file = file;
    generations->threads = threads;
    generations->pool = pool;
    pthread_mutex_init(&generations->lock, NULL);
    pthread_mutex_init(&generations->loading, NULL);
    pthread_cond_init(&generations->left, NULL);
    reload_changed_generation(generations);
    atomic_store(&generations->next_look, mc_clock_now() + APR_USEC_PER_SEC);
    return generations;
}

void
mc_generations_destroy(mc_generations *generations)
{
    mc_runtime *runtime = atomic_load(&generations->runtime);
    if (runtime != NULL)
        mc_runtime_drain(runtime);
    if (generations->current != NULL)
        mc_generation_release(generations->current);
    pthread_mutex_lock(&generations->lock);
    while (generations->leaving > 0)
        pthread_cond_wait(&generations->left, &generations->lock);
    pthread_mutex_unlock(&generations->lock);
    if (runtime != NULL)
        mc_runtime_destroy(runtime);
}

static mc_generation *
acquire_current_generation(mc_generations *generations)
{
    pthread_mutex_lock(&generations->lock);
    mc_generation *generation = generations->current;
    if (generation != NULL)
        atomic_fetch_add_explicit(&generation->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&generations->lock);
    return generation;
}

mc_generation *
mc_generation_acquire(mc_generations *generations)
{
    mc_generation *generation = acquire_current_generation(generations);
    if (generation != NULL && !mc_server_config(generation->server)->auto_reload)
        return generation;
    apr_time_t now = mc_clock_now();
    apr_time_t due = atomic_load_explicit(&generations->next_look, memory_order_relaxed);
    if (now < due || !atomic_compare_exchange_strong(&generations->next_look, &due, now + APR_USEC_PER_SEC))
        return generation;
    if (generation != NULL)
        mc_generation_release(generation);
    reload_changed_generation(generations);
    return acquire_current_generation(generations);
}

static void
count_leaving(mc_generations *generations, int more)
{
    pthread_mutex_lock(&generations->lock);
    generations->leaving += more;
    pthread_cond_broadcast(&generations->left);
    pthread_mutex_unlock(&generations->lock);
}

static void *
end_old_generation(void *data)
{
    mc_generation *generation = data;
    mc_generations *generations = generation->generations;
    apr_pool_destroy(generation->pool);
    count_leaving(generations, -1);
    return NULL;
}

void
mc_generation_release(mc_generation *generation)
{
    if (atomic_fetch_sub_explicit(&generation->references, 1, memory_order_acq_rel) > 1)
        return;
    mc_generations *generations = generation->generations;
    mc_runtime *runtime = atomic_load(&generations->runtime);
    pthread_t thread;
    count_leaving(generations, 1);
    if (runtime != NULL && mc_runtime_stores_behind(runtime) &&
        pthread_create(&thread, NULL, end_old_generation, generation) == 0)
        pthread_detach(thread);
    else
        end_old_generation(generation);
}

mc_runtime *
mc_generations_runtime(mc_generations *generations)
{
    return atomic_load_explicit(&generations->runtime, memory_order_acquire);
}
