/* Generations of the configuration: see generation.h. */
#include "generation.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "config/config_files.h"
#include "config/reload_state.h"

/* Pauses before a file that could not be used is tried again, each twice the one before: what was missing may be there
 * again (memory, descriptors, a database). */
static const apr_time_t FIRST_PAUSE = APR_USEC_PER_SEC, LONGEST_PAUSE = 60 * APR_USEC_PER_SEC;

/* Between two looks at files; and at files that change, which are read once two looks have found the same, or after so
 * long. */
static const apr_time_t BETWEEN_LOOKS = APR_USEC_PER_SEC, BETWEEN_CHANGES = APR_USEC_PER_SEC / 4,
                        LONGEST_CHANGE = 5 * APR_USEC_PER_SEC;

struct mc_generations {
    const char *file;
    int threads; /* that answer requests; 0: none may be started */
    apr_pool_t *pool;
    pthread_mutex_t lock; /* of `current` */
    mc_generation *current;
    pthread_mutex_t
        loading; /* of all from `files_pool` to `told`, and `runtime` while it is NULL; taken before `lock` */
    apr_pool_t *files_pool;
    mc_config_files *files;  /* that the last load has read, or has failed to; NULL: there was none */
    uint64_t seen;           /* their stamp at the last look that found a change; 0: none */
    apr_time_t unsettled;    /* since when they change; 0: they do not */
    apr_time_t again, pause; /* when what failed is tried again, and how long that was put off; 0: nothing failed */
    uint64_t told;           /* hash of the failure that was logged last */
    mc_log runtime_log;
    _Atomic(mc_runtime *) runtime;
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

/* What the next look compares with. */
static void
keep_list_of_files(mc_generations *generations, const mc_config_files *files)
{
    apr_pool_t *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    generations->files = mc_config_files_copy(files, pool);
    if (generations->files_pool != NULL)
        apr_pool_destroy(generations->files_pool);
    generations->files_pool = pool;
}

/* Whether somebody has written to the files since they were opened. Then nobody knows what was read: they are read
 * again once they are at rest. */
static bool
were_written_meanwhile(mc_generations *generations)
{
    const apr_time_t now = mc_clock_now();
    if (mc_config_files_changed(generations->files) == NULL ||
        (generations->unsettled != 0 && now - generations->unsettled >= LONGEST_CHANGE)) {
        generations->unsettled = 0;
        generations->seen = 0;
        return false;
    }
    if (generations->unsettled == 0)
        generations->unsettled = now;
    return true;
}

/* Called with `loading` held. *out: NULL where the files are being written. */
static mc_error *
load_generation(mc_generation **out, mc_generations *generations, apr_pool_t *pool)
{
    mc_generation *generation = apr_pcalloc(pool, sizeof(*generation));
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    mc_error *wrong = mc_server_load(&generation->server, generations->file, diagnostics, pool);
    keep_list_of_files(generations, diagnostics->read);
    *out = NULL;
    if (generations->current != NULL && were_written_meanwhile(generations)) {
        if (wrong != MC_OK)
            mc_error_ignore(wrong);
        return MC_OK;
    }
    MC_TRY(wrong);
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

/* Whether the files are to be loaded: they are others than those that were tried last, and nobody is writing to them,
 * or those have failed a while ago. */
static bool
is_load_due(mc_generations *generations, apr_time_t now)
{
    if (generations->files != NULL && mc_config_files_changed(generations->files) == NULL) {
        generations->unsettled = 0;
        generations->seen = 0;
        return generations->pause != 0 && now >= generations->again;
    }
    if (generations->files != NULL) {
        const uint64_t stamp = mc_config_files_stamp(generations->files);
        const bool rests = stamp == generations->seen;
        generations->seen = stamp;
        if (generations->unsettled == 0)
            generations->unsettled = now;
        if (!rests && now - generations->unsettled < LONGEST_CHANGE)
            return false;
    }
    generations->pause = 0;
    generations->told = 0;
    return true;
}

static void
put_load_off(mc_generations *generations)
{
    apr_time_t pause = generations->pause == 0 ? FIRST_PAUSE : 2 * generations->pause;
    generations->pause = pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
    generations->again = mc_clock_now() + generations->pause;
}

/* How the last load has ended, for /ready and others. */
static void
tell_of_load(const mc_generations *generations, const mc_error *error)
{
    mc_runtime *runtime = atomic_load(&generations->runtime);
    if (runtime != NULL)
        mc_reload_states_tell(mc_runtime_process(runtime)->reloads, generations->file, error, apr_time_now());
}

static void
log_reload(const mc_generations *generations, const char *changed, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .log = log_of_everything(pool) };
    if (changed == NULL)
        mc_log_write(&ctx, MC_LOG_NOTICE, "reloaded config file %s", generations->file);
    else
        mc_log_write(&ctx, MC_LOG_NOTICE, "reloaded config file %s, because %s has changed", generations->file,
                     changed);
}

/* Loads the files. What is told of it is true once the log has it. `changed`: the file because of which, or NULL.
 * Called with `loading` held. */
static void
load_next_generation(mc_generations *generations, const char *changed)
{
    const bool first = generations->current == NULL;
    apr_pool_t *pool, *scratch;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    apr_pool_create_unmanaged_ex(&scratch, mc_memory_exhausted, NULL);
    mc_generation *next = NULL;
    changed = changed == NULL ? NULL : apr_pstrdup(scratch, changed);
    mc_error *error = load_generation(&next, generations, pool);
    if (error != MC_OK) {
        put_load_off(generations);
        tell_of_load(generations, error);
        log_failure(generations, error, pool);
    } else if (next == NULL) {
        generations->pause = FIRST_PAUSE; /* also if the files become again what was read, which is not in use */
        generations->again = 0;
    } else {
        generations->pause = 0;
        replace_current_generation(generations, next);
        tell_of_load(generations, MC_OK);
        if (!first)
            log_reload(generations, changed, scratch);
    }
    if (next == NULL)
        apr_pool_destroy(pool);
    apr_pool_destroy(scratch);
}

/* Whether anybody wants the files to be looked at. Called with `loading` held. */
static bool
are_files_looked_at(mc_generations *generations)
{
    pthread_mutex_lock(&generations->lock);
    const mc_generation *current = generations->current;
    bool wanted = current == NULL || generations->unsettled != 0 || mc_server_config(current->server)->auto_reload;
    pthread_mutex_unlock(&generations->lock);
    return wanted;
}

apr_interval_time_t
mc_generations_look(mc_generations *generations)
{
    apr_interval_time_t next = 0;
    pthread_mutex_lock(&generations->loading);
    if (are_files_looked_at(generations)) {
        if (is_load_due(generations, mc_clock_now()))
            load_next_generation(generations,
                                 generations->files == NULL ? NULL : mc_config_files_changed(generations->files));
        if (are_files_looked_at(generations))
            next = generations->unsettled != 0 ? BETWEEN_CHANGES : BETWEEN_LOOKS;
    }
    pthread_mutex_unlock(&generations->loading);
    return next;
}

void
mc_generations_reload(mc_generations *generations)
{
    pthread_mutex_lock(&generations->loading);
    generations->pause = 0;
    generations->told = 0;
    generations->unsettled = 0;
    load_next_generation(generations, NULL);
    pthread_mutex_unlock(&generations->loading);
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
    load_next_generation(generations, NULL);
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
    if (generations->files_pool != NULL)
        apr_pool_destroy(generations->files_pool);
}

mc_generation *
mc_generation_acquire(mc_generations *generations)
{
    pthread_mutex_lock(&generations->lock);
    mc_generation *generation = generations->current;
    if (generation != NULL)
        atomic_fetch_add_explicit(&generation->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&generations->lock);
    return generation;
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
