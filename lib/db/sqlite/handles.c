/*
 * The table of open SQLite files. Opening costs ten times a get, so files stay open; there may be more files than
 * descriptors, so the table is bounded. One short mutex guards it; opening and closing happen outside of it, on slots
 * that are reserved before, so that the bound holds at every moment.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <pthread.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "db/sqlite/file_history.h"
#include "db/sqlite/handle_private.h"
#include "db/sqlite/sqlite_counters.h"

enum {
    BUCKETS = 1024,
    SAMPLE = 8,   /* idle handles that are compared to find a victim */
    STRIPES = 64, /* write locks: files share them by hash, nobody holds two of one row */
    LEAST_HANDLES = 4,
    LITTLE = 64 << 10,
    OTHER_FILES = 128, /* descriptors that are not ours, about */
};
static const apr_interval_time_t WAIT_AT_MOST = 30 * APR_USEC_PER_SEC;

struct mc_handles {
    pthread_mutex_t mutex; /* guards all below but the write locks; taken after a write lock, never before */
    pthread_cond_t freed;
    int limit;
    int open; /* slots in use: open, or about to be */
    mc_handle **slots;
    mc_handle *buckets[BUCKETS];
    uint64_t random;
    atomic_size_t page_bytes;
    mc_file_history *history;           /* its own lock, taken last */
    mc_write_lock writers[2 * STRIPES]; /* a row of `outer` writers behind that of all others */
};

/* SQLite's memory statistics cost a process-wide lock with each allocation, and nobody reads them. Where SQLite is in
 * use already (another module of the server) its settings stay as they are. */
static void
set_up_sqlite(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* Pages one by one: a reader of a small file needs five of the twenty that SQLite otherwise begins with. */
    (void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    mc_vfs_set_up();
}

/*
 * Room for that many more descriptors in the kernel's table of this process. It grows by doubling, and once there are
 * threads each time waits for all processors to notice: tens of milliseconds, in the middle of the first requests.
 */
static void
make_room_for_files(int files)
{
    int any = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (any < 0)
        return;
    int high = fcntl(any, F_DUPFD_CLOEXEC, files + OTHER_FILES); /* fails beyond the limit of descriptors */
    if (high >= 0)
        close(high);
    close(any);
}

mc_handles *
mc_handles_create(int limit)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up_sqlite);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY && (rlim_t)limit > files.rlim_cur / 4)
        limit = (int)(files.rlim_cur / 4);
    if (limit < LEAST_HANDLES)
        limit = LEAST_HANDLES;
    make_room_for_files(limit);
    mc_handles *handles = calloc(1, sizeof(*handles));
    MC_ASSERT(handles != NULL);
    handles->slots = calloc((size_t)limit, sizeof(*handles->slots));
    MC_ASSERT(handles->slots != NULL);
    handles->limit = limit;
    handles->history = mc_file_history_create();
    handles->random = mc_hash_seed() | 1;
    pthread_mutex_init(&handles->mutex, NULL);
    mc_clock_condition(&handles->freed);
    for (int i = 0; i < 2 * STRIPES; i++)
        mc_write_lock_init(&handles->writers[i]);
    return handles;
}

static void
discard_unused_handle(mc_handle *handle, bool replaced)
{
    if (handle->db != NULL)
        mc_handle_close(handle, replaced);
    free(handle->path);
    free(handle);
}

void
mc_handles_destroy(mc_handles *handles)
{
    if (handles == NULL)
        return;
    /* Writers last: the last one to close a file in WAL mode takes its -wal in, which a reader cannot. */
    for (int writers = 0; writers <= 1; writers++)
        for (int i = 0; i < handles->limit; i++)
            if (handles->slots[i] != NULL && handles->slots[i]->write == (writers == 1)) {
                MC_ASSERT(!handles->slots[i]->busy);
                discard_unused_handle(handles->slots[i], false);
                handles->slots[i] = NULL;
            }
    for (int i = 0; i < 2 * STRIPES; i++)
        mc_write_lock_destroy(&handles->writers[i]);
    mc_file_history_destroy(handles->history);
    pthread_cond_destroy(&handles->freed);
    pthread_mutex_destroy(&handles->mutex);
    free(handles->slots);
    free(handles);
}

int
mc_handles_open(mc_handles *handles)
{
    pthread_mutex_lock(&handles->mutex);
    int open = handles->open;
    pthread_mutex_unlock(&handles->mutex);
    return open;
}

/* Takes a handle out of the table's index; its slot stays reserved. Under the mutex. */
static void
unlink_handle(mc_handles *handles, mc_handle *handle)
{
    mc_handle **link = &handles->buckets[handle->hash % BUCKETS];
    while (*link != handle)
        link = &(*link)->next;
    *link = handle->next;
    handle->pooled = false;
}

static unsigned
next_random(mc_handles *handles)
{
    handles->random ^= handles->random << 13;
    handles->random ^= handles->random >> 7;
    handles->random ^= handles->random << 17;
    return (unsigned)(handles->random >> 32);
}

/* An idle handle to be closed: the oldest of a few (strict LRU always throws out the next one to be used when a few
 * files more than the table holds go round). Under the mutex. */
static mc_handle *
choose_victim(mc_handles *handles)
{
    mc_handle *victim = NULL;
    for (int i = 0; i < SAMPLE; i++) {
        mc_handle *candidate = handles->slots[next_random(handles) % (unsigned)handles->limit];
        if (candidate != NULL && !candidate->busy && (victim == NULL || candidate->used < victim->used))
            victim = candidate;
    }
    for (int i = 0; victim == NULL && i < handles->limit; i++)
        if (handles->slots[i] != NULL && !handles->slots[i]->busy)
            victim = handles->slots[i];
    return victim;
}

/* Under the mutex, which is released while closing. */
static void
close_idle(mc_handles *handles, mc_handle *handle)
{
    unlink_handle(handles, handle);
    handle->busy = true;
    pthread_mutex_unlock(&handles->mutex);
    mc_handle_close(handle, true);
    pthread_mutex_lock(&handles->mutex);
    handles->slots[handle->slot] = NULL;
    handles->open--;
    pthread_cond_signal(&handles->freed);
    discard_unused_handle(handle, true); /* only now: who looks for a victim has seen it in its slot */
}

/* An idle handle of the same file and profile, or NULL. Handles of a file that is no longer at the path are closed, and
 * those without locks of a file that has changed.
 * Under the mutex, which is released while closing. */
static mc_handle *
find_idle(mc_handles *handles, const char *path, uint64_t hash, const mc_stamp *stamp, const mc_open_options *how,
          apr_pool_t *pool)
{
    mc_handle *handle = handles->buckets[hash % BUCKETS];
    while (handle != NULL) {
        mc_handle *next = handle->next;
        bool same = handle->hash == hash && handle->profile == how->profile && strcmp(handle->path, path) == 0;
        if (same && !handle->busy) {
            bool fits = stamp != NULL && (!handle->settled || mc_stamp_equal(stamp, &handle->stamp));
            if (fits && handle->device == stamp->device && handle->inode == stamp->inode)
                return handle;
            if (stamp != NULL && stamp->wal_inode != 0 && stamp->wal_inode == handle->wal_inode)
                mc_file_history_note_wal(handles->history, path, handle->used, stamp, pool);
            close_idle(handles, handle);
            next = handles->buckets[hash % BUCKETS]; /* the chain may have changed meanwhile */
        }
        handle = next;
    }
    return NULL;
}

void
mc_handles_close_readers(const mc_handle *writer)
{
    mc_handles *handles = writer->table;
    if (handles == NULL)
        return;
    pthread_mutex_lock(&handles->mutex);
    for (int i = 0; i < handles->limit; i++) {
        mc_handle *handle = handles->slots[i];
        if (handle != NULL && handle->pooled && !handle->busy && !handle->write &&
            strcmp(handle->path, writer->path) == 0)
            close_idle(handles, handle);
    }
    pthread_mutex_unlock(&handles->mutex);
}

/* Puts `handle` into a slot of its own, closing another one where the table is full. Under the mutex, which is released
 * while closing. */
static mc_error *
reserve_slot(mc_handles *handles, mc_handle *handle, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, WAIT_AT_MOST);
    mc_handle *victim = NULL;
    while (handles->open == handles->limit && (victim = choose_victim(handles)) == NULL)
        if (handle->settled || mc_wait_condition(&handles->freed, &handles->mutex, until, ctx) != MC_WAIT_READY)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "all tile stores that may be open are in use");
    int slot = 0;
    if (victim != NULL) {
        slot = victim->slot;
        unlink_handle(handles, victim);
    } else {
        while (handles->slots[slot] != NULL)
            slot++;
        handles->open++;
    }
    handle->slot = slot;
    handles->slots[slot] = handle;
    if (victim != NULL) {
        mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_handles_evicted_total, 1);
        pthread_mutex_unlock(&handles->mutex);
        struct stat now;
        bool replaced = stat(victim->path, &now) != 0 || now.st_ino != victim->inode || now.st_dev != victim->device;
        discard_unused_handle(victim, replaced);
        pthread_mutex_lock(&handles->mutex);
    }
    return MC_OK;
}

static void
give_up_slot(mc_handles *handles, mc_handle *handle)
{
    pthread_mutex_lock(&handles->mutex);
    handles->slots[handle->slot] = NULL;
    handles->open--;
    pthread_cond_signal(&handles->freed);
    pthread_mutex_unlock(&handles->mutex);
}

static mc_handle *
create_handle(mc_handles *handles, const char *path, uint64_t hash, const mc_open_options *how)
{
    mc_handle *handle = calloc(1, sizeof(*handle));
    MC_ASSERT(handle != NULL);
    handle->table = handles;
    handle->all_page_bytes = handles == NULL ? NULL : &handles->page_bytes;
    handle->path = strdup(path);
    MC_ASSERT(handle->path != NULL);
    handle->hash = hash;
    handle->profile = how->profile;
    handle->write = how->write;
    handle->settled = how->settled;
    handle->busy = true;
    return handle;
}

/* Opens the file of a handle that has its slot and enters it into the index. */
static mc_error *
open_into(mc_handle *handle, const mc_stamp *stamp, const mc_open_options *how, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_handles *handles = handle->table;
    bool foreign = mc_file_history_wal_is_foreign(handles == NULL ? NULL : handles->history, handle->path, stamp, pool);
    if (foreign) {
        mc_log_write(ctx, MC_LOG_WARN, "%s-wal belongs to a file that was replaced: it is not used", handle->path);
        if (how->write)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "a tile store has a foreign write-ahead log beside it");
    }
    bool alone = foreign;
    MC_TRY(mc_handle_open(handle, how, stamp, &alone, ctx, pool));
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_handles_opened_total, 1);
    mc_stamp now;
    if (handles == NULL || alone || !mc_stamp_take_plain(&now, handle->path) ||
        (stamp != NULL && (now.inode != stamp->inode || now.device != stamp->device)))
        return MC_OK; /* it is not certain which file is open, or how it may be read later: for this use only */
    handle->device = now.device;
    handle->inode = now.inode;
    if (how->settled)
        handle->stamp = *stamp;
    if (how->write)
        mc_file_history_note_written(handles->history, handle->path, pool);
    pthread_mutex_lock(&handles->mutex);
    handle->next = handles->buckets[handle->hash % BUCKETS];
    handles->buckets[handle->hash % BUCKETS] = handle;
    handle->pooled = true;
    pthread_mutex_unlock(&handles->mutex);
    return MC_OK;
}

mc_handle *
mc_handles_take_idle(mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
                     apr_pool_t *pool)
{
    uint64_t hash = mc_hash64(path, strlen(path), how->profile);
    pthread_mutex_lock(&handles->mutex);
    mc_handle *found = find_idle(handles, path, hash, stamp, how, pool);
    if (found != NULL)
        found->busy = true;
    pthread_mutex_unlock(&handles->mutex);
    return found;
}

bool
mc_handles_have_idle(mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
                     apr_pool_t *pool)
{
    if (handles == NULL)
        return false;
    pthread_mutex_lock(&handles->mutex);
    bool found = find_idle(handles, path, mc_hash64(path, strlen(path), how->profile), stamp, how, pool) != NULL;
    pthread_mutex_unlock(&handles->mutex);
    return found;
}

static mc_error *
check_out(mc_handle **handle, mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
          mc_ctx *ctx, apr_pool_t *pool)
{
    uint64_t hash = mc_hash64(path, strlen(path), how->profile);
    mc_handle *created = NULL;
    if (handles != NULL) {
        *handle = mc_handles_take_idle(handles, path, stamp, how, pool);
        if (*handle != NULL)
            return MC_OK;
        pthread_mutex_lock(&handles->mutex);
        created = create_handle(handles, path, hash, how);
        mc_error *error = reserve_slot(handles, created, ctx, pool);
        pthread_mutex_unlock(&handles->mutex);
        if (error != MC_OK) {
            discard_unused_handle(created, false);
            return error;
        }
    } else {
        created = create_handle(NULL, path, hash, how);
    }
    mc_error *error = open_into(created, stamp, how, ctx, pool);
    if (error != MC_OK) {
        if (handles != NULL)
            give_up_slot(handles, created);
        discard_unused_handle(created, false);
        return error;
    }
    *handle = created;
    return MC_OK;
}

static mc_error *
lock_writer(mc_write_lock **lock, mc_handles *handles, const char *path, bool outer, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_write_lock *wanted = &handles->writers[mc_hash64(path, strlen(path), 0) % STRIPES + (outer ? STRIPES : 0)];
    if (!mc_write_lock_take(wanted, mc_clock_now() + mc_ctx_remaining(ctx, WAIT_AT_MOST), ctx))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "a tile store is being written for too long");
    *lock = wanted;
    return MC_OK;
}

mc_error *
mc_handle_acquire(mc_handle **handle, mc_handles *handles, const char *path, const mc_stamp *stamp,
                  const mc_open_options *how, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_ASSERT(stamp != NULL || how->write);
    mc_write_lock *lock = NULL;
    if (how->write && handles != NULL)
        MC_TRY(lock_writer(&lock, handles, path, how->outer, ctx, pool));
    mc_stamp made; /* by another thread, while this one waited for the lock */
    if (stamp == NULL && lock != NULL && mc_stamp_take(&made, path))
        stamp = &made;
    bool check = stamp == NULL && handles != NULL && ctx->bulk;
    mc_error *error = check ? mc_file_history_check_away(handles->history, path, pool) : MC_OK;
    if (error == MC_OK)
        error = check_out(handle, handles, path, stamp, how, ctx, pool);
    if (error != MC_OK) {
        if (lock != NULL)
            mc_write_lock_give(lock);
        return error;
    }
    (*handle)->write_lock = lock;
    (*handle)->wal_inode = stamp == NULL ? 0 : stamp->wal_inode;
    (*handle)->used = apr_time_now();
    if ((*handle)->wants_wal)
        mc_handle_enter_wal(*handle);
    mc_handle_bound_wait(*handle, ctx);
    return MC_OK;
}

static size_t
pages_of(mc_handle *handle)
{
    int used = 0, high = 0;
    if (sqlite3_db_status(handle->db, SQLITE_DBSTATUS_CACHE_USED, &used, &high, 0) != SQLITE_OK || used < 0)
        return 0;
    return (size_t)used;
}

void
mc_handle_release(mc_handle *handle, bool usable)
{
    mc_handles *handles = handle->table;
    mc_write_lock *lock = handle->write_lock;
    handle->write_lock = NULL;
    mc_handle_unbound(handle);
    usable = mc_handle_end(handle) && usable;
    if (handles == NULL) {
        discard_unused_handle(handle, false);
        return;
    }
    if (usable && mc_handle_count_pages(handle, pages_of(handle)) && handle->page_bytes > LITTLE) {
        sqlite3_db_release_memory(handle->db);
        (void)mc_handle_count_pages(handle, pages_of(handle));
    }
    pthread_mutex_lock(&handles->mutex);
    bool keep = usable && handle->pooled;
    if (keep) {
        handle->busy = false;
        pthread_cond_signal(&handles->freed);
    } else if (handle->pooled) {
        unlink_handle(handles, handle);
    }
    pthread_mutex_unlock(&handles->mutex);
    if (!keep) {
        struct stat now;
        bool replaced = stat(handle->path, &now) != 0 || now.st_ino != handle->inode || now.st_dev != handle->device;
        mc_handle_close(handle, replaced);
        give_up_slot(handles, handle);
        discard_unused_handle(handle, false);
    }
    if (lock != NULL)
        mc_write_lock_give(lock);
}
