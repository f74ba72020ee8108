/*
 * Berkeley DB 5.3, for the cache "bdb" (embedded.h); the module mapcache-bdb.so. As MapCache opens it: a B-tree of
 * pages of 64 KB in a file NAME.db, in an environment of the folder whose locks let several processes read or one
 * write. These locks have no time-out: a writer that is killed holds them until the files __db.* of the folder are
 * removed.
 */
#include <apr_strings.h>
#include <db.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/embedded/embedded.h"

enum { PAGE_BYTES = 65536, CACHE_BYTES = 1 << 20 };

/* An open file; closed when the process ends, so that nothing is left in the environment. */
typedef struct bdb_store {
    dev_t device;
    ino_t file;
    pid_t process; /* that has opened it: a child of a fork opens it again */
    DB_ENV *env;
    DB *db;
    struct bdb_store *next;
} bdb_store;

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER; /* of `stores` */
static bdb_store *stores;

__attribute__((destructor)) static void
close_bdb_stores(void)
{
    for (bdb_store *store = stores; store != NULL; store = store->next)
        if (store->process == getpid()) {
            (void)store->db->close(store->db, 0);
            (void)store->env->close(store->env, 0);
        }
}

static mc_error *
bdb_error(const mc_embedded_place *place, int code, const char *what, apr_pool_t *pool)
{
    mc_error_kind kind = code == DB_RUNRECOVERY || code == DB_PAGE_NOTFOUND || code == DB_VERIFY_BAD || code == EINVAL
                             ? MC_ERR_CORRUPT
                             : MC_ERR_IO;
    mc_error *cause = mc_error_create(pool, kind, "%s/%s.db: %s", place->base, place->name, db_strerror(code));
    return mc_error_wrap(pool, cause, kind, "cache \"%s\" %s", place->name, what);
}

/* Messages of the library are those of its codes once more. */
static void
drop_bdb_message(const DB_ENV *env, const char *prefix, const char *message)
{
    (void)env, (void)prefix, (void)message;
}

static int
open_bdb_file(bdb_store *store, const mc_embedded_place *place, const char *name)
{
    int code = db_env_create(&store->env, 0);
    if (code != 0)
        return code;
    store->env->set_errcall(store->env, drop_bdb_message);
    code = store->env->set_cachesize(store->env, 0, CACHE_BYTES, 1);
    if (code == 0)
        code = store->env->open(store->env, place->base, DB_INIT_CDB | DB_INIT_MPOOL | DB_CREATE | DB_THREAD, 0);
    if (code == 0)
        code = db_create(&store->db, store->env, 0);
    if (code == 0)
        code = store->db->set_pagesize(store->db, PAGE_BYTES);
    if (code == 0)
        code = store->db->open(store->db, NULL, name, NULL, DB_BTREE, DB_CREATE | DB_THREAD, 0666);
    if (code != 0) {
        if (store->db != NULL)
            (void)store->db->close(store->db, 0);
        (void)store->env->close(store->env, 0);
    }
    return code;
}

/* With stores_lock. */
static mc_error *
open_bdb_store(bdb_store **opened, const mc_embedded_place *place, const char *file, apr_pool_t *pool)
{
    struct stat info;
    bdb_store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to open a tile store");
    int code = open_bdb_file(store, place, strrchr(file, '/') + 1);
    if (code != 0) {
        free(store);
        return bdb_error(place, code, "cannot be opened", pool);
    }
    if (stat(file, &info) == 0) {
        store->device = info.st_dev;
        store->file = info.st_ino;
    }
    store->process = getpid();
    store->next = stores;
    stores = store;
    *opened = store;
    return MC_OK;
}

/* *store is NULL where there is no database, and none is to be made. */
static mc_error *
find_bdb_store(bdb_store **store, const mc_embedded_place *place, bool make, apr_pool_t *pool)
{
    struct stat info;
    const char *file = apr_pstrcat(pool, place->base, "/", place->name, ".db", NULL);
    *store = NULL;
    bool there = stat(file, &info) == 0;
    if (!there && !make)
        return errno == ENOENT || errno == ENOTDIR ? MC_OK : bdb_error(place, errno, "cannot be opened", pool);
    if (there && !S_ISREG(info.st_mode))
        return bdb_error(place, EISDIR, "cannot be opened", pool);
    int code = there ? 0 : mc_files_make_folders(file);
    if (code != 0)
        return bdb_error(place, code, "cannot be opened", pool);
    pthread_mutex_lock(&stores_lock);
    there = stat(file, &info) == 0; /* another thread may have made it */
    for (bdb_store *known = stores; known != NULL && *store == NULL; known = known->next)
        if (there && known->file == info.st_ino && known->device == info.st_dev && known->process == getpid())
            *store = known;
    mc_error *error = *store != NULL ? MC_OK : open_bdb_store(store, place, file, pool);
    pthread_mutex_unlock(&stores_lock);
    return error;
}

static DBT
bdb_key(const char *key)
{
    return (DBT){ .data = (void *)(uintptr_t)key, .size = (u_int32_t)strlen(key) + 1 };
}

static mc_error *
get_bdb_value(mc_buf **data, const mc_embedded_place *place, const char *key, mc_ctx *ctx, apr_pool_t *pool)
{
    bdb_store *store;
    DBT name = bdb_key(key), value = { .flags = DB_DBT_MALLOC };
    *data = NULL;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(find_bdb_store(&store, place, false, pool));
    if (store == NULL)
        return MC_OK;
    int code = store->db->get(store->db, NULL, &name, &value, 0);
    if (code == DB_NOTFOUND)
        return MC_OK;
    if (code != 0)
        return bdb_error(place, code, "cannot be read", pool);
    mc_error *error = mc_buf_duplicate(data, value.data, value.size, pool);
    free(value.data);
    return error;
}

static int
write_bdb_value(DB *db, const mc_embedded_value *item, uint8_t *room)
{
    DBT name = bdb_key(item->key), value = { .data = room, .size = (u_int32_t)(item->size + MC_EMBEDDED_TIME) };
    if (item->data == NULL) {
        int code = db->del(db, NULL, &name, 0);
        return code == DB_NOTFOUND ? 0 : code;
    }
    memcpy(room, item->data, item->size);
    memcpy(room + item->size, item->time, MC_EMBEDDED_TIME);
    return db->put(db, NULL, &name, &value, 0);
}

static mc_error *
write_bdb_values(const mc_embedded_place *place, const mc_embedded_value *values, int count, bdb_store *store,
                 mc_ctx *ctx)
{
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        uint8_t *room = malloc(values[i].size + MC_EMBEDDED_TIME);
        if (room == NULL)
            return mc_error_create(ctx->pool, MC_ERR_NO_MEMORY, "no memory to store a tile");
        code = write_bdb_value(store->db, &values[i], room);
        free(room);
    }
    int synced = store->db->sync(store->db, 0);
    code = code == 0 ? synced : code;
    return code == 0 ? MC_OK : bdb_error(place, code, "cannot be written", ctx->pool);
}

static mc_error *
write_bdb(const mc_embedded_place *place, const mc_embedded_value *values, int count, mc_ctx *ctx)
{
    bdb_store *store;
    bool removes_only = true;
    for (int i = 0; i < count; i++)
        removes_only = removes_only && values[i].data == NULL;
    MC_TRY(mc_ctx_check(ctx, ctx->pool));
    MC_TRY(find_bdb_store(&store, place, !removes_only, ctx->pool));
    return store == NULL || count == 0 ? MC_OK : write_bdb_values(place, values, count, store, ctx);
}

static mc_error *
measure_bdb(int64_t *keys, int64_t *bytes, const mc_embedded_place *place, mc_ctx *ctx)
{
    bdb_store *store;
    DB_BTREE_STAT *found = NULL;
    struct stat info;
    *keys = *bytes = 0;
    MC_TRY(find_bdb_store(&store, place, false, ctx->pool));
    if (store == NULL)
        return MC_OK;
    int code = store->db->stat(store->db, NULL, &found, 0);
    if (code != 0)
        return bdb_error(place, code, "cannot be read", ctx->pool);
    *keys = (int64_t)found->bt_nkeys;
    free(found);
    if (stat(apr_psprintf(ctx->pool, "%s/%s.db", place->base, place->name), &info) == 0)
        *bytes = (int64_t)info.st_blocks * 512;
    return MC_OK;
}

/* Returns as Berkeley DB does. Writers wait while the cursor is open. */
static int
read_bdb_keys(mc_embedded_page *page, DBC *cursor, const char *prefix, const char *after, apr_pool_t *pool)
{
    const char *begin = *after != '\0' ? after : prefix;
    size_t size = strlen(prefix);
    DBT name = { .data = strdup(begin),
                 .size = (u_int32_t)(strlen(begin) + (*after != '\0')),
                 .flags = DB_DBT_REALLOC };
    DBT value = { .flags = DB_DBT_USERMEM | DB_DBT_PARTIAL }; /* no byte of it */
    int code = name.data == NULL ? ENOMEM : cursor->get(cursor, &name, &value, DB_SET_RANGE);
    for (; code == 0 && page->count < page->most; code = cursor->get(cursor, &name, &value, DB_NEXT)) {
        const char *text = name.data;
        if (name.size < size || memcmp(text, prefix, size) != 0) {
            code = DB_NOTFOUND;
            break;
        }
        if (name.size == 0 || text[name.size - 1] != '\0' || (*after != '\0' && strcmp(text, after) == 0))
            continue; /* of another program; or the last one of the page before */
        page->keys[page->count++] = apr_pstrmemdup(pool, text, name.size - 1);
    }
    free(name.data);
    return code == DB_NOTFOUND ? 0 : code;
}

static mc_error *
list_bdb(mc_embedded_page *page, const mc_embedded_place *place, const char *prefix, const char *after, mc_ctx *ctx,
         apr_pool_t *pool)
{
    bdb_store *store;
    DBC *cursor;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(find_bdb_store(&store, place, false, pool));
    if (store == NULL)
        return MC_OK;
    int code = store->db->cursor(store->db, NULL, &cursor, 0);
    if (code == 0) {
        code = read_bdb_keys(page, cursor, prefix, after, pool);
        int closed = cursor->close(cursor);
        code = code == 0 ? closed : code;
    }
    return code == 0 ? MC_OK : bdb_error(place, code, "cannot be read", pool);
}

const mc_embedded_engine mc_bdb_engine = { get_bdb_value, write_bdb, measure_bdb, list_bdb };
