/* Pages that are read ahead are those that SQLite would have read itself: with pages of all sizes, beside writers in
 * all journal modes, and through a checkpoint in the middle of a series of gets. */
#include "cache_fixture.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

enum { TILES = 40, LARGEST = 200000 };

static size_t
size_of_version(int tile, int version)
{
    return (size_t)(12 + (tile * 7919 + version * 104729) % (tile % 10 == 0 ? LARGEST : 40000));
}

static uint8_t
byte_of_version(int tile, int version, size_t at)
{
    return (uint8_t)(tile * 31 + version * 17 + (int)(at / 100));
}

static void
run_on_file(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        ck_abort_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *
open_tiles_file(const char *pragmas)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    run_on_file(db, pragmas);
    run_on_file(db, "create table if not exists tiles(tileset,grid,x,y,z,data,dim,ctime,primary key(x,y,z))");
    return db;
}

/* The tile and the version stand in the first bytes. */
static void
write_version(sqlite3 *db, int tile, int version)
{
    static uint8_t bytes[LARGEST + 12];
    size_t size = size_of_version(tile, version);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of_version(tile, version, i);
    memcpy(bytes, "tile", 4);
    memcpy(bytes + 4, &tile, 4);
    memcpy(bytes + 8, &version, 4);
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_prepare_v2(db, "replace into tiles values('ts','G',?,0,5,?,'',1)", -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_int(statement, 1, tile);
    sqlite3_bind_blob(statement, 2, bytes, (int)size, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
}

static int
check_version(mc_cache *cache, int tile, mc_ctx *reader)
{
    mc_tile_key key = key_at(5, tile, 0);
    mc_tile *found;
    int known, version;
    ck_ok(mc_cache_get(&found, cache, &key, reader, reader->pool));
    ck_assert_ptr_nonnull(found);
    memcpy(&known, found->data->data + 4, 4);
    memcpy(&version, found->data->data + 8, 4);
    ck_assert_int_eq(known, tile);
    ck_assert_uint_eq(found->data->size, size_of_version(tile, version));
    for (size_t i = 12; i < found->data->size; i++)
        if (found->data->data[i] != byte_of_version(tile, version, i))
            ck_abort_msg("byte %zu of version %d of tile %d is wrong", i, version, tile);
    return version;
}

static mc_cache *
unremembered_cache(void)
{
    return cache_of(apr_psprintf(
        pool, "<cache name='c' type='sqlite3'><dbfile>%s/a.db</dbfile><memory>false</memory></cache>", cache_folder));
}

START_TEST(pages_of_all_sizes)
{
    static const int sizes[] = { 512, 1024, 4096, 8192, 16384, 65536 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        sqlite3 *db =
            open_tiles_file(apr_psprintf(pool, "pragma page_size=%d; pragma auto_vacuum=%d", sizes[i], (int)(i % 3)));
        for (int tile = 0; tile < TILES; tile++)
            write_version(db, tile, 1);
        sqlite3_close(db);
        mc_cache *cache = unremembered_cache();
        usleep(60000); /* so that reads without locks come in, too */
        for (int round = 0; round < 4; round++)
            for (int tile = 0; tile < TILES; tile++)
                ck_assert_int_eq(check_version(cache, tile * 7 % TILES, &ctx), 1);
        restart_cache_test();
    }
}
END_TEST

/* Writes until it is killed. */
static pid_t
fork_version_writer(const char *pragmas)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0)
        return child;
    sqlite3 *db = open_tiles_file(pragmas);
    for (int version = 2;; version++)
        for (int tile = version % 5; tile < TILES; tile += 5) {
            write_version(db, tile, version);
            if (tile % 20 == 0)
                run_on_file(db, "pragma wal_checkpoint");
        }
}

START_TEST(beside_a_writer)
{
    static const char *const modes[] = {
        "pragma journal_mode=delete; pragma synchronous=off",
        "pragma journal_mode=wal; pragma synchronous=off; pragma wal_autocheckpoint=5"
    };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        sqlite3 *db = open_tiles_file(modes[i]);
        for (int tile = 0; tile < TILES; tile++)
            write_version(db, tile, 1);
        sqlite3_close(db);
        mc_cache *cache = unremembered_cache();
        pid_t writer = fork_version_writer(modes[i]);
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        mc_ctx reader = ctx;
        reader.pool = scratch;
        int newest = 0;
        for (int round = 0; newest < 10; round++) { /* a series of gets, and single ones */
            if (round % 2 == 0)
                mc_cache_reads_begin(&reader);
            for (int tile = 0; tile < TILES; tile++) {
                int version = check_version(cache, tile, &reader);
                newest = version > newest ? version : newest;
            }
            if (round % 2 == 0)
                mc_cache_reads_end(&reader);
            apr_pool_clear(scratch);
        }
        kill(writer, SIGKILL);
        int status;
        ck_assert_int_eq(waitpid(writer, &status, 0), writer);
        ck_assert_msg(WIFSIGNALED(status), "the writer failed: %d", status);
        restart_cache_test();
    }
}
END_TEST

CACHE_MAIN("sqlite_ahead", pages_of_all_sizes, beside_a_writer)
