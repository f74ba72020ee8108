/* See expire_folder.h. */
#include "server/expire_folder.h"

#include <apr_strings.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/workers.h"
#include "changes/expire_list.h"
#include "changes/watch.h"
#include "tileset/stored/mark_stored.h"

enum {
    FOLDERS_MAX = 16,
    LISTS_MAX = 1000, /* of a folder in one turn */
    LINES_NAMED = 10, /* broken lines of a list that the log names one by one */
    DEPTH_MAX = 1,    /* folders in the folder: imposm makes one each day */
};

#define LIST_BYTES_MAX (INT64_C(1) << 30)

#define LOCK_NAME ".mapcache-lock"
/* Microseconds before a store, or a folder, is tried again that has failed. */
#define FAILED_PAUSE (10 * APR_USEC_PER_SEC)

typedef struct watched_folder {
    const mc_config *config;
    const mc_owner *owner; /* taken */
} watched_folder;

struct mc_expire_folders {
    mc_process *process;
    const mc_log *log;
    pthread_mutex_t lock; /* of what is watched */
    watched_folder watched[FOLDERS_MAX];
    int count;
    pthread_t thread;
    bool running;
    _Atomic bool stopping;
    /* Of the thread alone. */
    struct held_lock {
        char *folder;
        int file;
    } held[FOLDERS_MAX];
    int held_count;
    bool told; /* that something fails */
};

mc_expire_folders *
mc_expire_folders_create(mc_process *process, const mc_log *log)
{
    mc_expire_folders *folders = calloc(1, sizeof(*folders));
    MC_ASSERT(folders != NULL);
    folders->process = process;
    folders->log = log;
    pthread_mutex_init(&folders->lock, NULL);
    return folders;
}

static bool
is_folder_watch_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_expire_folders *)baton)->stopping, memory_order_relaxed);
}

/* ---- one list */

typedef struct list_naming {
    const char *name;
    mc_ctx *ctx;
    int named;
} list_naming;

static void
log_broken_line(void *baton, int64_t line)
{
    list_naming *naming = baton;
    if (naming->named++ < LINES_NAMED)
        mc_log_write(naming->ctx, MC_LOG_WARN, "expire list %s, line %" PRId64 ": no tile z/x/y of Web Mercator",
                     naming->name, line);
}

/* In all tilesets that are drawn. */
static mc_error *
mark_expired_tiles(int64_t *marked, const mc_expire_list *list, const mc_config *config, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_mark_area area = { .boxes = list->boxes,
                                .srs = "EPSG:3857",
                                .minzoom = config->changes->minzoom,
                                .maxzoom = config->changes->maxzoom,
                                .or_remove = true };
    mc_mark_counts counts = { 0 };
    mc_error *first = MC_OK;
    for (int i = 0; i < config->tilesets->nelts && list->tiles > 0; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (tileset->master != NULL || mc_tileset_unchangeable(tileset, pool) != NULL)
            continue;
        mc_error *error = mc_tileset_mark_stored(&counts, tileset, &area, ctx, pool);
        if (error != MC_OK && error->kind == MC_ERR_LIMIT) /* the next time, too */
            mc_log_error(ctx, MC_LOG_WARN, error);
        else if (error != MC_OK && first == MC_OK)
            first = error;
    }
    *marked = counts.marked;
    return first;
}

/* What is no list is kept under another name; one that has changed meanwhile is read again. */
static mc_error *
put_list_away(int folder, const char *name, int file, const struct stat *before, const mc_expire_list *list,
              apr_pool_t *pool)
{
    struct stat after;
    if (fstat(file, &after) != 0 || !mc_files_same(before, &after))
        return MC_OK;
    int done = list->tiles == 0 && list->broken > 0
                   ? renameat(folder, name, folder, apr_pstrcat(pool, name, ".broken", NULL))
                   : unlinkat(folder, name, 0);
    if (done != 0 && errno != ENOENT)
        return mc_error_create(pool, MC_ERR_IO, "expire list %s cannot be removed: %s", name, strerror(errno));
    return MC_OK;
}

static mc_error *
apply_open_list(int folder, const char *name, int file, const struct stat *info, const mc_config *config, mc_ctx *ctx,
                apr_pool_t *pool)
{
    list_naming naming = { name, ctx, 0 };
    int64_t marked = 0;
    mc_expire_list *list = mc_expire_list_create(log_broken_line, &naming, pool);
    if (info->st_size > LIST_BYTES_MAX) {
        mc_log_write(ctx, MC_LOG_WARN, "expire list %s is larger than a gigabyte, and not read", name);
        list->broken = 1;
        return put_list_away(folder, name, file, info, list, pool);
    }
    int why = mc_expire_list_read(list, file);
    if (why != 0)
        return mc_error_create(pool, MC_ERR_IO, "expire list %s: %s", name, strerror(why));
    MC_TRY(mark_expired_tiles(&marked, list, config, ctx, pool));
    mc_log_write(ctx, list->broken > 0 ? MC_LOG_WARN : MC_LOG_INFO,
                 "expire list %s: %" PRId64 " tiles are named, %" PRId64 " stored tiles marked, %" PRId64
                 " lines broken",
                 name, list->tiles, marked, list->broken);
    return put_list_away(folder, name, file, info, list, pool);
}

static mc_error *
apply_list(int folder, const char *name, const mc_config *config, mc_ctx *ctx, apr_pool_t *pool)
{
    struct stat info;
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) /* gone, or no file: as links are none */
        return errno == ENOENT || errno == ELOOP
                   ? MC_OK
                   : mc_error_create(pool, MC_ERR_IO, "expire list %s: %s", name, strerror(errno));
    mc_error *error = MC_OK;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode))
        error = apply_open_list(folder, name, file, &info, config, ctx, pool);
    close(file);
    return error;
}

/* ---- folders */

static bool
ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), tail = strlen(end);
    return size >= tail && strcmp(name + size - tail, end) == 0;
}

/* Whoever writes a list gives it its name when it is whole. */
static bool
is_list_name(const char *name)
{
    return *name != '.' && !ends_with(name, "~") && !ends_with(name, ".tmp") && !ends_with(name, ".part") &&
           !ends_with(name, ".broken");
}

/* Names (const char *) of what is in the folder. */
static apr_array_header_t *
list_names_of_folder(int folder, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 16, sizeof(const char *));
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *open = again < 0 ? NULL : fdopendir(again);
    if (open == NULL && again >= 0)
        close(again);
    for (struct dirent *entry; open != NULL && names->nelts < LISTS_MAX && (entry = readdir(open)) != NULL;)
        if (is_list_name(entry->d_name))
            APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(pool, entry->d_name);
    if (open != NULL)
        closedir(open);
    return names;
}

static mc_error *
take_lists(int folder, int depth, const mc_config *config, mc_ctx *ctx)
{
    mc_error *error = MC_OK;
    apr_pool_t *outer = ctx->pool, *pool, *scratch;
    apr_pool_create(&pool, outer);
    apr_pool_create(&scratch, pool);
    const apr_array_header_t *names = list_names_of_folder(folder, pool);
    for (int i = 0; i < names->nelts && error == MC_OK && !mc_ctx_abandoned(ctx); i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);
        int inner = depth < DEPTH_MAX ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        apr_pool_clear(scratch);
        ctx->pool = scratch;
        error = inner >= 0 ? take_lists(inner, depth + 1, config, ctx) : apply_list(folder, name, config, ctx, scratch);
        error = mc_error_copy(error, outer);
        ctx->pool = outer;
        if (inner >= 0)
            close(inner);
    }
    apr_pool_destroy(pool);
    return error;
}

/* Whether this process is the one that takes lists out of the folder: from the first time on that nobody else is. */
static mc_error *
hold_folder(bool *held, mc_expire_folders *folders, const char *path, int folder, apr_pool_t *pool)
{
    *held = false;
    for (int i = 0; i < folders->held_count && !*held; i++)
        *held = strcmp(folders->held[i].folder, path) == 0;
    if (*held || folders->held_count == FOLDERS_MAX)
        return MC_OK;
    int file = openat(folder, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0)
        return mc_error_create(pool, MC_ERR_IO, "%s/" LOCK_NAME ": %s", path, strerror(errno));
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        int why = errno;
        close(file);
        return why == EWOULDBLOCK ? MC_OK : mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror(why));
    }
    char *copy = strdup(path);
    MC_ASSERT(copy != NULL);
    folders->held[folders->held_count++] = (struct held_lock){ copy, file };
    return *held = true, MC_OK;
}

static mc_error *
look_into_folder(mc_expire_folders *folders, const mc_config *config, mc_ctx *ctx)
{
    bool held;
    const char *path = config->changes->folder;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return mc_error_create(ctx->pool, MC_ERR_IO, "%s: %s", path, strerror(errno));
    mc_error *error = hold_folder(&held, folders, path, folder, ctx->pool);
    if (error == MC_OK && held)
        error = take_lists(folder, 0, config, ctx);
    close(folder);
    return error;
}

/* ---- the thread */

/* What is watched now, taken; the lock is not held while lists are read. */
static int
take_watched(watched_folder watched[FOLDERS_MAX], mc_expire_folders *folders)
{
    pthread_mutex_lock(&folders->lock);
    int count = folders->count;
    for (int i = 0; i < count; i++) {
        watched[i] = folders->watched[i];
        watched[i].owner->take(watched[i].owner->thing);
    }
    pthread_mutex_unlock(&folders->lock);
    return count;
}

/* The pause until the next turn. */
static apr_interval_time_t
look_once(mc_expire_folders *folders, mc_ctx *ctx)
{
    watched_folder watched[FOLDERS_MAX];
    int count = take_watched(watched, folders);
    double pause = 5;
    bool failed = false;
    for (int i = 0; i < count; i++) {
        if (!is_folder_watch_stopping(folders)) {
            mc_error *error = look_into_folder(folders, watched[i].config, ctx);
            bool told = folders->told || is_folder_watch_stopping(folders);
            if (error != MC_OK)
                mc_log_error(ctx, told ? MC_LOG_DEBUG : MC_LOG_WARN, error);
            failed = failed || error != MC_OK;
        }
        pause = i == 0 || watched[i].config->changes->poll < pause ? watched[i].config->changes->poll : pause;
        watched[i].owner->drop(watched[i].owner->thing);
    }
    folders->told = failed;
    return failed ? FAILED_PAUSE : (apr_interval_time_t)(pause * APR_USEC_PER_SEC);
}

static void *
run_folder_watch(void *baton)
{
    mc_expire_folders *folders = baton;
    apr_pool_t *pool = mc_task_pool_acquire();
    mc_ctx ctx = { .pool = pool,
                   .process = folders->process,
                   .log = folders->log,
                   .abandoned = is_folder_watch_stopping,
                   .abandoned_baton = folders };
    while (!is_folder_watch_stopping(folders)) {
        apr_interval_time_t pause = look_once(folders, &ctx);
        apr_pool_clear(pool);
        (void)mc_wait_pause(pause, &ctx);
    }
    mc_task_pool_release(pool);
    return NULL;
}

/* With the lock held. */
static void
start_folder_watch(mc_expire_folders *folders)
{
    if (!folders->running)
        folders->running = mc_thread_start(&folders->thread, NULL, run_folder_watch, folders) == 0;
}

void
mc_expire_folders_watch(mc_expire_folders *folders, const mc_config *config, const mc_owner *owner)
{
    const mc_owner *dropped = NULL;
    bool wanted = config->changes != NULL && config->changes->folder != NULL;
    int place = 0;
    if (folders == NULL)
        return;
    pthread_mutex_lock(&folders->lock);
    while (place < folders->count && strcmp(folders->watched[place].config->file, config->file) != 0)
        place++;
    if (place < folders->count)
        dropped = folders->watched[place].owner;
    if (wanted && place < FOLDERS_MAX) {
        owner->take(owner->thing);
        folders->watched[place] = (watched_folder){ config, owner };
        folders->count += place == folders->count;
        start_folder_watch(folders);
    } else if (place < folders->count) {
        folders->watched[place] = folders->watched[--folders->count];
    }
    pthread_mutex_unlock(&folders->lock);
    if (dropped != NULL)
        dropped->drop(dropped->thing);
}

void
mc_expire_folders_destroy(mc_expire_folders *folders)
{
    if (folders == NULL)
        return;
    atomic_store(&folders->stopping, true);
    if (folders->running)
        pthread_join(folders->thread, NULL);
    for (int i = 0; i < folders->count; i++)
        folders->watched[i].owner->drop(folders->watched[i].owner->thing);
    for (int i = 0; i < folders->held_count; i++) {
        close(folders->held[i].file);
        free(folders->held[i].folder);
    }
    pthread_mutex_destroy(&folders->lock);
    free(folders);
}
