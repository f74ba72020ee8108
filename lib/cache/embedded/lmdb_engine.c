/*
 * LMDB, for the cache "lmdb" (embedded.h); the module mapcache-lmdb.so. A folder is opened once in a process, as LMDB
 * wants it, also where two caches name it. Readers take no lock of other processes; a writer waits for the others.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/wait.h"
#include "base/write_lock.h"
#include "cache/embedded/embedded.h"

/* The byte of the database, behind all that a file can have, that who writes has locked. Not one of the file of LMDB's
 * own locks: closing a descriptor of that one would let go of them. */
static const off_t writers_byte = (off_t)1 << 62;

/* Microseconds between two looks at a lock that another process has, at first and at most. */
static const apr_interval_time_t first_look = 250, slowest_look = 2000;

/* An open folder; never closed before the process ends, but where its file was replaced. */
typedef struct lmdb_store {
    dev_t device;
    ino_t folder, file; /* inodes */
    pid_t process;      /* that has opened it: a child of a fork opens it again */
    MDB_env *env;
    MDB_dbi dbi;
    bool read_only;
    mc_write_lock writing;
    int lock; /* descriptor of the database, for the lock of the byte, with `writing`; -1: none is open */
    pthread_rwlock_t mapped; /* held for reading by transactions, for writing while the map changes its size */
    struct lmdb_store *next;
} lmdb_store;

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER; /* of `stores` */
static lmdb_store *stores;

static mc_error *
lmdb_error(const mc_embedded_place *place, int code, const char *what, apr_pool_t *pool)
{
    mc_error_kind kind = code == MDB_MAP_FULL       ? MC_ERR_LIMIT
                         : code == MDB_READERS_FULL ? MC_ERR_UNAVAILABLE
                         : code == MDB_INVALID || code == MDB_CORRUPTED || code == MDB_PANIC ||
                                 code == MDB_VERSION_MISMATCH || code == MDB_PAGE_NOTFOUND
                             ? MC_ERR_CORRUPT
                             : MC_ERR_IO;
    const char *more = code == MDB_MAP_FULL       ? " (a larger <max_size> makes room)"
                       : code == MDB_READERS_FULL ? " (a larger <max_readers> lets more in)"
                                                  : "";
    mc_error *cause = mc_error_create(pool, kind, "%s: %s%s", place->base, mdb_strerror(code), more);
    return mc_error_wrap(pool, cause, kind, "cache \"%s\" %s%s", place->name, what, more);
}

static int
open_lmdb_env(lmdb_store *store, const mc_embedded_place *place, unsigned flags)
{
    MDB_txn *transaction;
    int code = mdb_env_create(&store->env);
    if (code != 0)
        return code;
    code = mdb_env_set_mapsize(store->env, place->map_size);
    if (code == 0 && place->readers > 0)
        code = mdb_env_set_maxreaders(store->env, (unsigned)place->readers);
    if (code == 0)
        code = mdb_env_open(store->env, place->base, MDB_NOTLS | flags, 0666);
    if (code == 0) /* the database without a name is always there: a writer is not waited for */
        code = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &transaction);
    if (code == 0) {
        code = mdb_dbi_open(transaction, NULL, 0, &store->dbi);
        if (code == 0)
            code = mdb_txn_commit(transaction);
        else
            mdb_txn_abort(transaction);
    }
    if (code != 0) {
        mdb_env_close(store->env);
        store->env = NULL;
    }
    store->read_only = (flags & MDB_RDONLY) != 0;
    return code;
}

/* With stores_lock. For reading where we may not write. */
static mc_error *
open_lmdb_store(lmdb_store **opened, const mc_embedded_place *place, const struct stat *folder, const char *file,
                apr_pool_t *pool)
{
    struct stat info;
    lmdb_store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to open a tile store");
    int code = open_lmdb_env(store, place, 0);
    if (code == EACCES || code == EROFS || code == EPERM)
        code = open_lmdb_env(store, place, MDB_RDONLY);
    if (code != 0) {
        free(store);
        return lmdb_error(place, code, "cannot be opened", pool);
    }
    store->device = folder->st_dev;
    store->folder = folder->st_ino;
    store->file = stat(file, &info) == 0 ? info.st_ino : 0;
    store->process = getpid();
    store->lock = -1;
    mc_write_lock_init(&store->writing);
    pthread_rwlock_init(&store->mapped, NULL);
    store->next = stores;
    stores = store;
    *opened = store;
    return MC_OK;
}

/* *store is NULL where there is no database, and none is to be made. */
static mc_error *
find_lmdb_store(lmdb_store **store, const mc_embedded_place *place, bool make, apr_pool_t *pool)
{
    struct stat folder, info;
    const char *file = apr_pstrcat(pool, place->base, "/data.mdb", NULL);
    *store = NULL;
    bool there = stat(file, &info) == 0;
    if (!there && !make)
        return errno == ENOENT || errno == ENOTDIR ? MC_OK : lmdb_error(place, errno, "cannot be opened", pool);
    int code = there ? 0 : mc_files_make_folders(file);
    if (code != 0 || stat(place->base, &folder) != 0)
        return lmdb_error(place, code != 0 ? code : errno, "cannot be opened", pool);
    pthread_mutex_lock(&stores_lock);
    there = stat(file, &info) == 0; /* another thread may have made it */
    for (lmdb_store *known = stores; known != NULL && *store == NULL; known = known->next)
        if (known->folder == folder.st_ino && known->device == folder.st_dev && known->process == getpid() && there &&
            known->file == info.st_ino)
            *store = known;
    mc_error *error = *store != NULL ? MC_OK : open_lmdb_store(store, place, &folder, file, pool);
    pthread_mutex_unlock(&stores_lock);
    return error;
}

/* Another process has made the map larger. */
static void
follow_lmdb_map(lmdb_store *store)
{
    pthread_rwlock_wrlock(&store->mapped);
    (void)mdb_env_set_mapsize(store->env, 0);
    pthread_rwlock_unlock(&store->mapped);
}

/* With store->mapped held for reading afterwards, if 0. Readers of processes that were killed are swept away. */
static int
begin_lmdb_transaction(MDB_txn **transaction, lmdb_store *store, unsigned flags)
{
    int code = MDB_MAP_RESIZED, dead;
    for (int attempt = 0; attempt < 3; attempt++) {
        pthread_rwlock_rdlock(&store->mapped);
        code = mdb_txn_begin(store->env, NULL, flags, transaction);
        if (code == 0)
            return 0;
        pthread_rwlock_unlock(&store->mapped);
        if (code == MDB_MAP_RESIZED)
            follow_lmdb_map(store);
        else if (code != MDB_READERS_FULL || mdb_reader_check(store->env, &dead) != 0)
            break;
    }
    return code;
}

static mc_error *
get_lmdb_value(mc_buf **data, const mc_embedded_place *place, const char *key, mc_ctx *ctx, apr_pool_t *pool)
{
    lmdb_store *store;
    MDB_txn *transaction;
    MDB_val name = { strlen(key) + 1, (void *)(uintptr_t)key }, value;
    *data = NULL;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(find_lmdb_store(&store, place, false, pool));
    if (store == NULL)
        return MC_OK;
    int code = begin_lmdb_transaction(&transaction, store, MDB_RDONLY);
    if (code != 0)
        return lmdb_error(place, code, "cannot be read", pool);
    mc_error *error = MC_OK;
    code = mdb_get(transaction, store->dbi, &name, &value);
    if (code == 0)
        error = mc_buf_duplicate(data, value.mv_data, value.mv_size, pool);
    else if (code != MDB_NOTFOUND)
        error = lmdb_error(place, code, "cannot be read", pool);
    mdb_txn_abort(transaction);
    pthread_rwlock_unlock(&store->mapped);
    return error;
}

static int
write_lmdb_value(MDB_txn *transaction, MDB_dbi dbi, const mc_embedded_value *item)
{
    MDB_val name = { strlen(item->key) + 1, (void *)(uintptr_t)item->key };
    MDB_val value = { item->size + MC_EMBEDDED_TIME, NULL };
    if (item->data == NULL) {
        int code = mdb_del(transaction, dbi, &name, NULL);
        return code == MDB_NOTFOUND ? 0 : code;
    }
    int code = mdb_put(transaction, dbi, &name, &value, MDB_RESERVE);
    if (code != 0)
        return code;
    memcpy(value.mv_data, item->data, item->size);
    memcpy((char *)value.mv_data + item->size, item->time, MC_EMBEDDED_TIME);
    return 0;
}

static mc_error *
write_lmdb_values(const mc_embedded_place *place, const mc_embedded_value *values, int count, lmdb_store *store,
                  apr_pool_t *pool)
{
    MDB_txn *transaction;
    int code = begin_lmdb_transaction(&transaction, store, 0);
    if (code != 0)
        return lmdb_error(place, code, "cannot be written", pool);
    for (int i = 0; i < count && code == 0; i++)
        code = write_lmdb_value(transaction, store->dbi, &values[i]);
    if (code == 0)
        code = mdb_txn_commit(transaction);
    else
        mdb_txn_abort(transaction);
    pthread_rwlock_unlock(&store->mapped);
    return code == 0 ? MC_OK : lmdb_error(place, code, "cannot be written", pool);
}

/* Whether the byte is locked now: by fcntl(2), so that the lock ends with its holder. A file system that has no such
 * locks is one for a single machine: LMDB's own lock is enough then, but for the deadline. */
static bool
try_writers_byte(lmdb_store *store, const mc_embedded_place *place, bool take, apr_pool_t *pool)
{
    struct flock byte = {
        .l_type = take ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = writers_byte, .l_len = 1
    };
    if (store->lock < 0)
        store->lock = open(apr_pstrcat(pool, place->base, "/data.mdb", NULL), O_RDWR | O_CLOEXEC);
    return store->lock < 0 || fcntl(store->lock, F_OFD_SETLK, &byte) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* False: there was no time, or the client has gone. */
static bool
take_writers_turn(lmdb_store *store, const mc_embedded_place *place, apr_time_t until, mc_ctx *ctx)
{
    if (!mc_write_lock_take(&store->writing, until, ctx))
        return false;
    for (apr_interval_time_t pause = first_look; !try_writers_byte(store, place, true, ctx->pool);
         pause = pause < slowest_look ? 2 * pause : pause)
        if (mc_clock_now() >= until || !mc_wait_pause(pause, ctx)) {
            mc_write_lock_give(&store->writing);
            return false;
        }
    return true;
}

static void
end_writers_turn(lmdb_store *store, const mc_embedded_place *place, mc_ctx *ctx)
{
    (void)try_writers_byte(store, place, false, ctx->pool);
    mc_write_lock_give(&store->writing);
}

/* Threads of this process and those of other processes take turns within the deadline: also while a process that has
 * its turn is stopped. For another program's writers LMDB waits as long as these write; LMDB is told when one of them
 * was killed. */
static mc_error *
write_lmdb(const mc_embedded_place *place, const mc_embedded_value *values, int count, mc_ctx *ctx)
{
    lmdb_store *store;
    bool removes_only = true;
    for (int i = 0; i < count; i++)
        removes_only = removes_only && values[i].data == NULL;
    MC_TRY(mc_ctx_check(ctx, ctx->pool));
    MC_TRY(find_lmdb_store(&store, place, !removes_only, ctx->pool));
    if (store == NULL || count == 0)
        return MC_OK;
    if (store->read_only)
        return lmdb_error(place, EACCES, "cannot be written", ctx->pool);
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, (apr_interval_time_t)3600 * APR_USEC_PER_SEC);
    if (!take_writers_turn(store, place, until, ctx))
        return mc_error_create(ctx->pool, MC_ERR_UNAVAILABLE, "cache \"%s\" is being written to by others",
                               place->name);
    mc_error *error = write_lmdb_values(place, values, count, store, ctx->pool);
    end_writers_turn(store, place, ctx);
    return error;
}

static mc_error *
measure_lmdb(int64_t *keys, int64_t *bytes, const mc_embedded_place *place, mc_ctx *ctx)
{
    lmdb_store *store;
    MDB_stat found;
    struct stat info;
    *keys = *bytes = 0;
    MC_TRY(find_lmdb_store(&store, place, false, ctx->pool));
    if (store == NULL)
        return MC_OK;
    int code = mdb_env_stat(store->env, &found);
    if (code != 0)
        return lmdb_error(place, code, "cannot be read", ctx->pool);
    *keys = (int64_t)found.ms_entries;
    if (stat(apr_pstrcat(ctx->pool, place->base, "/data.mdb", NULL), &info) == 0)
        *bytes = (int64_t)info.st_blocks * 512;
    return MC_OK;
}

/* *code: as of LMDB. */
static void
read_lmdb_keys(mc_embedded_page *page, int *code, MDB_cursor *cursor, const char *prefix, const char *after,
               apr_pool_t *pool)
{
    const char *begin = *after != '\0' ? after : prefix;
    size_t size = strlen(prefix);
    MDB_val name = { strlen(begin) + 1, (void *)(uintptr_t)begin };
    if (*after == '\0')
        name.mv_size--; /* without its zero byte: before all that begin so */
    *code = name.mv_size == 0 ? mdb_cursor_get(cursor, &name, NULL, MDB_FIRST)
                              : mdb_cursor_get(cursor, &name, NULL, MDB_SET_RANGE);
    for (; *code == 0 && page->count < page->most; *code = mdb_cursor_get(cursor, &name, NULL, MDB_NEXT)) {
        const char *text = name.mv_data;
        if (name.mv_size < size || memcmp(text, prefix, size) != 0)
            return;
        if (text[name.mv_size - 1] != '\0' || (*after != '\0' && strcmp(text, after) == 0))
            continue; /* of another program; or the last one of the page before */
        page->keys[page->count++] = apr_pstrmemdup(pool, text, name.mv_size - 1);
    }
}

static mc_error *
list_lmdb(mc_embedded_page *page, const mc_embedded_place *place, const char *prefix, const char *after, mc_ctx *ctx,
          apr_pool_t *pool)
{
    lmdb_store *store;
    MDB_txn *transaction;
    MDB_cursor *cursor;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(find_lmdb_store(&store, place, false, pool));
    if (store == NULL)
        return MC_OK;
    int code = begin_lmdb_transaction(&transaction, store, MDB_RDONLY);
    if (code != 0)
        return lmdb_error(place, code, "cannot be read", pool);
    code = mdb_cursor_open(transaction, store->dbi, &cursor);
    if (code == 0) {
        read_lmdb_keys(page, &code, cursor, prefix, after, pool);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(transaction);
    pthread_rwlock_unlock(&store->mapped);
    return code == 0 || code == MDB_NOTFOUND ? MC_OK : lmdb_error(place, code, "cannot be read", pool);
}

const mc_embedded_engine mc_lmdb_engine = { get_lmdb_value, write_lmdb, measure_lmdb, list_lmdb };
