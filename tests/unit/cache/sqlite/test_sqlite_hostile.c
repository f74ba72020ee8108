/* SQLite files that are made to do harm: what has no end, what is too large, what reaches beyond the file. */
#include "cache_fixture.h"

#include <sqlite3.h>

#include "base/clock.h"
#include "db/sqlite/handles.h"

enum { DEADLINE_MS = 300, SOON_MS = 20000 /* on any machine; without a bound it is never */ };

static const char endless[] = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
                              " WHERE n < 0";

static const char *
path_of(void)
{
    return apr_pstrcat(pool, cache_folder, "/a.db", NULL);
}

static mc_cache *
store(const char *type)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='%s'><dbfile>%s</dbfile></cache>", type, path_of()));
}

static void
outside(const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(path_of(), &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

static bool
client_has_gone(void *baton)
{
    (void)baton;
    return true;
}

/* Of a request whose deadline is soon, or whose client has gone. */
static mc_ctx
hurried(bool gone)
{
    mc_ctx own = ctx;
    if (gone)
        own.abandoned = client_has_gone;
    else
        own.deadline = mc_clock_now() + DEADLINE_MS * 1000;
    return own;
}

/* The view that an MBTiles file may have instead of a table, and that has neither tiles nor an end. */
static void
make_endless_store(const char *type)
{
    restart_cache_test();
    const char *columns = strcmp(type, "mbtiles") == 0
                              ? "n % 3 AS zoom_level, n % 5 AS tile_column, n % 7 AS tile_row, x'00' AS tile_data"
                              : "'t' || n AS tileset, 'g' || n AS grid, n % 5 AS x, n % 7 AS y, n % 3 AS z, x'00' AS"
                                " data, 'd' || n AS dim, n AS ctime";
    outside(apr_pstrcat(pool, "CREATE VIEW tiles AS SELECT ", columns, " FROM (", endless, ")", NULL));
}

START_TEST(an_endless_view_ends_with_its_request)
{
    static const char *const types[] = { "mbtiles", "sqlite3" };
    for (int i = 0; i < 4; i++) {
        make_endless_store(types[i % 2]);
        mc_cache *cache = store(types[i % 2]);
        mc_tile_key key = key_at(2, 1, 1);
        key.renderable = false;
        mc_tile *tile;
        bool exists;
        apr_time_t begin = mc_clock_now();
        mc_ctx first = hurried(i >= 2);
        ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &first, pool));
        mc_ctx second = hurried(i >= 2);
        ck_fails(UNAVAILABLE, mc_cache_exists(&exists, cache, &key, &second));
        ck_assert_int_lt(mc_clock_now() - begin, SOON_MS * 1000);
    }
}
END_TEST

START_TEST(an_endless_trigger_ends_with_its_request)
{
    mc_cache *cache = store("sqlite3");
    mc_tile_key key = key_at(2, 1, 1), other = key_at(2, 1, 2);
    put_text(cache, &key, "one");
    outside(apr_pstrcat(pool, "CREATE TRIGGER t AFTER INSERT ON tiles BEGIN SELECT 1 FROM (", endless, "); END", NULL));
    mc_ctx own = hurried(false);
    mc_buf *bytes = mc_buf_attach(mc_buf_copy("two", 3), pool);
    const mc_tile_write put = { .key = other, .data = bytes };
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_cache_put(cache, &put, 1, &own));
    ck_assert_int_lt(mc_clock_now() - begin, SOON_MS * 1000);
    expect_text(cache, &key, "one");
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &other, &ctx, pool));
    ck_assert(tile == NULL);
}
END_TEST

/* The bytes are on the disk; they are not read. */
START_TEST(a_blob_larger_than_any_tile_is_refused)
{
    mc_cache *cache = store("mbtiles");
    mc_tile_key key = key_at(1, 0, 0);
    outside("CREATE TABLE tiles(zoom_level, tile_column, tile_row, tile_data);"
            "INSERT INTO tiles VALUES(1, 0, 0, zeroblob(300000000)), (1, 1, 0, zeroblob(100000))");
    mc_tile *tile;
    ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    key = key_at(1, 1, 0);
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert(tile != NULL && tile->data->size == 100000);
}
END_TEST

static bool
setting_of(sqlite3 *db, int setting)
{
    int value = -1;
    ck_assert_int_eq(sqlite3_db_config(db, setting, -1, &value), SQLITE_OK);
    return value == 1;
}

START_TEST(no_schema_is_trusted)
{
    outside("CREATE TABLE t(a)");
    for (int write = 0; write <= 1; write++) {
        mc_handle *handle;
        mc_stamp stamp;
        mc_open_options how = { .write = write == 1 };
        how.profile = mc_open_options_profile(&how);
        ck_assert(mc_stamp_take(&stamp, path_of()));
        ck_ok(mc_handle_acquire(&handle, process.handles, path_of(), &stamp, &how, &ctx, pool));
        ck_assert(setting_of(mc_handle_db(handle), SQLITE_DBCONFIG_DEFENSIVE));
        ck_assert(!setting_of(mc_handle_db(handle), SQLITE_DBCONFIG_TRUSTED_SCHEMA));
        ck_assert_int_eq(sqlite3_limit(mc_handle_db(handle), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1), 40000);
        mc_handle_release(handle, true);
    }
}
END_TEST

CACHE_MAIN("sqlite hostile", an_endless_view_ends_with_its_request, an_endless_trigger_ends_with_its_request,
           a_blob_larger_than_any_tile_is_refused, no_schema_is_trusted)
