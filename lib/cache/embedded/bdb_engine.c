/*
 * Berkeley DB 5.3, for the cache "bdb" (embedded.h); the module mapcache-bdb.so. As MapCache opens it: a B-tree of
 * pages of 64 KB in a file NAME.db, in an environment of the folder whose locks let several processes read or one
 * write. Before these locks, which a killed process keeps for ever, ours take turns of their own (bdb_turn.h), and a
 * write that was not finished is undone (bdb_undo.h).
 */
#include <apr_strings.h>
#include <db.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/embedded/bdb_others.h"
#include "cache/embedded/bdb_turn.h"
#include "cache/embedded/bdb_undo.h"

enum { PAGE_BYTES = 65536, CACHE_BYTES = 1 << 20 };

/* An open file; closed when the process ends, so that nothing is left in the environment. One whose environment was
 * mended by another process is left as it is: what it has in memory must not get into the file any more. */
typedef struct bdb_store {
    dev_t device;
    ino_t file;
    ino_t region;  /* of the environment */
    pid_t process; /* that has opened it: a child of a fork opens it again */
    int presence;  /* file of the turns: its being open tells that this process takes turns */
    char *folder;
    DB_ENV *env;
    DB *db;
    struct bdb_store *next;
} bdb_store;

/* A stay inside: the turn, and the store. */
typedef struct bdb_visit {
    mc_bdb_turn turn;
    bdb_store *store; /* NULL: there is no database, and no turn was taken */
} bdb_visit;

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER; /* of `stores` */
static bdb_store *stores;

/* Inode of the environment's first file; 0: there is none. */
static ino_t
find_bdb_region(const char *folder)
{
    struct stat info;
    char name[APR_PATH_MAX];
    apr_snprintf(name, sizeof(name), "%s/" MC_BDB_REGION, folder);
    return stat(name, &info) == 0 ? info.st_ino : 0;
}

static void
close_bdb_store(const bdb_store *store)
{
    (void)store->db->close(store->db, 0);
    (void)store->env->close(store->env, 0);
}

/* Only where that holds nobody up: nothing of a store waits to be written. */
__attribute__((destructor)) static void
close_bdb_stores(void)
{
    mc_bdb_turn turn;
    for (bdb_store *store = stores; store != NULL; store = store->next) {
        const mc_embedded_place place = { .base = store->folder, .name = "" };
        if (store->process != getpid() || !mc_bdb_try_turn(&turn, &place, true))
            continue;
        if (store->region == find_bdb_region(store->folder))
            close_bdb_store(store);
        mc_bdb_end_turn(&turn, true);
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
    store->db = NULL;
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

/* With stores_lock. 0, or as Berkeley DB says it; *opened is NULL then. */
static int
open_bdb_store(bdb_store **opened, const mc_embedded_place *place, const char *file, apr_pool_t *pool)
{
    struct stat info;
    bdb_store *store = calloc(1, sizeof(*store));
    char *folder = strdup(place->base);
    int code = store == NULL || folder == NULL ? ENOMEM : open_bdb_file(store, place, strrchr(file, '/') + 1);
    *opened = NULL;
    if (code != 0) {
        free(store);
        free(folder);
        return code;
    }
    if (stat(file, &info) == 0) {
        store->device = info.st_dev;
        store->file = info.st_ino;
    }
    store->folder = folder;
    store->region = find_bdb_region(folder);
    store->presence = open(apr_pstrcat(pool, folder, "/" MC_BDB_TURNS, NULL), O_RDONLY | O_CLOEXEC);
    store->process = getpid();
    store->next = stores;
    stores = store;
    *opened = store;
    return 0;
}

/* One that is open; NULL: none. With stores_lock. */
static bdb_store *
find_bdb_store(const mc_embedded_place *place, const char *file)
{
    struct stat info;
    const ino_t region = find_bdb_region(place->base);
    if (stat(file, &info) != 0)
        return NULL;
    for (bdb_store *known = stores; known != NULL; known = known->next)
        if (known->file == info.st_ino && known->device == info.st_dev && known->process == getpid() &&
            known->region == region)
            return known;
    return NULL;
}

/* The store, opened where that may be done: alone, or where nobody is kept out; NULL elsewhere, if it is not open yet.
 * 0, or as Berkeley DB says it. */
static int
reach_bdb_store(bdb_visit *visit, const mc_embedded_place *place, const char *file, apr_pool_t *pool)
{
    int code = 0;
    pthread_mutex_lock(&stores_lock);
    visit->store = find_bdb_store(place, file);
    if (visit->store == NULL && (visit->turn.alone || visit->turn.file < 0))
        code = open_bdb_store(&visit->store, place, file, pool);
    pthread_mutex_unlock(&stores_lock);
    return code;
}

/* With the turn. What has died inside is made good before, also where only the environment says so. */
static mc_error *
enter_bdb(bdb_visit *visit, const mc_embedded_place *place, const char *file, bool writes, mc_ctx *ctx,
          apr_pool_t *pool)
{
    const bool guarded = visit->turn.file >= 0;
    bool undone;
    for (int attempt = 0;; attempt++) {
        if (visit->turn.died)
            MC_TRY(mc_bdb_mend(&visit->turn, place, ctx, pool));
        int code = writes && guarded ? mc_bdb_begin_undo(place, strrchr(file, '/') + 1, pool) : 0;
        if (code == 0)
            code = reach_bdb_store(visit, place, file, pool);
        if (code == 0)
            return MC_OK;
        mc_bdb_leave_undo();
        if (writes && guarded && mc_bdb_undo_rest(&undone, place, pool) != 0)
            visit->turn.died = true;
        if (code != DB_RUNRECOVERY || !visit->turn.alone || !guarded || attempt > 0)
            return bdb_error(place, code, "cannot be opened", pool);
        visit->turn.died = true;
    }
}

/* Takes the turn that is needed: alone also where something is to be made good, or opened. */
static mc_error *
take_bdb_visit(bdb_visit *visit, const mc_embedded_place *place, const char *file, bool writes, mc_ctx *ctx,
               apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    for (bool alone = writes; error == MC_OK; alone = true) {
        MC_TRY(mc_bdb_take_turn(&visit->turn, place, alone, ctx, pool));
        if (alone || !visit->turn.died)
            error = enter_bdb(visit, place, file, writes, ctx, pool);
        if (error == MC_OK && visit->store != NULL)
            return MC_OK;
        mc_bdb_end_turn(&visit->turn, true);
    }
    return error;
}

/* visit->store is NULL where there is no database, and none is to be made. */
static mc_error *
begin_bdb_visit(bdb_visit *visit, const mc_embedded_place *place, bool writes, bool make, mc_ctx *ctx, apr_pool_t *pool)
{
    struct stat info;
    const char *file = apr_pstrcat(pool, place->base, "/", place->name, ".db", NULL);
    *visit = (bdb_visit){ .turn = { .file = -1 } };
    MC_TRY(mc_ctx_check(ctx, pool));
    bool there = stat(file, &info) == 0;
    if (!there && !make)
        return errno == ENOENT || errno == ENOTDIR ? MC_OK : bdb_error(place, errno, "cannot be opened", pool);
    if (there && !S_ISREG(info.st_mode))
        return bdb_error(place, EISDIR, "cannot be opened", pool);
    int code = there ? 0 : mc_files_make_folders(file);
    if (code != 0)
        return bdb_error(place, code, "cannot be opened", pool);
    return take_bdb_visit(visit, place, file, writes, ctx, pool);
}

/* `code`: what the library has said at last; of a write all but 0 is to be undone. */
static void
end_bdb_visit(bdb_visit *visit, int code, bool writes)
{
    mc_bdb_leave_undo();
    mc_bdb_end_turn(&visit->turn, code == 0 || (!writes && code != DB_RUNRECOVERY));
}

static DBT
bdb_key(const char *key)
{
    return (DBT){ .data = (void *)(uintptr_t)key, .size = (u_int32_t)strlen(key) + 1 };
}

static mc_error *
get_bdb_value(mc_buf **data, const mc_embedded_place *place, const char *key, mc_ctx *ctx, apr_pool_t *pool)
{
    bdb_visit visit;
    DBT name = bdb_key(key), value = { .flags = DB_DBT_MALLOC };
    *data = NULL;
    MC_TRY(begin_bdb_visit(&visit, place, false, false, ctx, pool));
    if (visit.store == NULL)
        return MC_OK;
    int code = visit.store->db->get(visit.store->db, NULL, &name, &value, 0);
    end_bdb_visit(&visit, code, false);
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

/* 0, or as Berkeley DB says it. */
static int
write_bdb_values(const mc_embedded_value *values, int count, const bdb_store *store)
{
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        uint8_t *room = malloc(values[i].size + MC_EMBEDDED_TIME);
        code = room == NULL ? ENOMEM : write_bdb_value(store->db, &values[i], room);
        free(room);
    }
    return code == 0 ? store->db->sync(store->db, 0) : code;
}

static mc_error *
write_bdb(const mc_embedded_place *place, const mc_embedded_value *values, int count, mc_ctx *ctx)
{
    bdb_visit visit;
    bool removes_only = true;
    for (int i = 0; i < count; i++)
        removes_only = removes_only && values[i].data == NULL;
    if (count == 0)
        return MC_OK;
    MC_TRY(begin_bdb_visit(&visit, place, true, !removes_only, ctx, ctx->pool));
    if (visit.store == NULL)
        return MC_OK;
    int code = write_bdb_values(values, count, visit.store);
    if (code == 0)
        code = mc_bdb_forget_undo(place, ctx->pool);
    end_bdb_visit(&visit, code, true);
    return code == 0 ? MC_OK : bdb_error(place, code, "cannot be written", ctx->pool);
}

static mc_error *
measure_bdb(int64_t *keys, int64_t *bytes, const mc_embedded_place *place, mc_ctx *ctx)
{
    bdb_visit visit;
    DB_BTREE_STAT *found = NULL;
    struct stat info;
    *keys = *bytes = 0;
    MC_TRY(begin_bdb_visit(&visit, place, false, false, ctx, ctx->pool));
    if (visit.store == NULL)
        return MC_OK;
    int code = visit.store->db->stat(visit.store->db, NULL, &found, 0);
    end_bdb_visit(&visit, code, false);
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
    bdb_visit visit;
    DBC *cursor;
    MC_TRY(begin_bdb_visit(&visit, place, false, false, ctx, pool));
    if (visit.store == NULL)
        return MC_OK;
    int code = visit.store->db->cursor(visit.store->db, NULL, &cursor, 0);
    if (code == 0) {
        code = read_bdb_keys(page, cursor, prefix, after, pool);
        int closed = cursor->close(cursor);
        code = code == 0 ? closed : code;
    }
    end_bdb_visit(&visit, code, false);
    return code == 0 ? MC_OK : bdb_error(place, code, "cannot be read", pool);
}

const mc_embedded_engine mc_bdb_engine = { get_bdb_value, write_bdb, measure_bdb, list_bdb };
