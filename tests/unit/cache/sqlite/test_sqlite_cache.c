/* What is particular to the caches in SQLite files. */
#include "cache_fixture.h"

#include <sqlite3.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/metrics.h"
#include "cache/cache_counters.h"
#include "mapcache/upkeep.h"

static const uint8_t colour[4] = { 0x11, 0x22, 0x33, 0x80 };

static mc_cache *
store(const char *type, const char *inner)
{
    return cache_of(
        apr_psprintf(pool, "<cache name='c' type='%s'><dbfile>%s/a.db</dbfile>%s</cache>", type, cache_folder, inner));
}

#define ROLLBACK "<pragma name='journal_mode'>delete</pragma>"

/* What another program does with the file. */
static void
outside(const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

/* The first column of the first row. */
static const char *
ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    const char *found = NULL;
    if (sqlite3_step(statement) == SQLITE_ROW)
        found = apr_pstrdup(pool, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found == NULL ? "" : found;
}

START_TEST(tiles_of_one_colour_are_five_bytes)
{
    mc_tile_key key = key_at(1, 0, 1);
    put_colour(store("sqlite3", ""), &key, colour);
    ck_assert_str_eq(ask("SELECT hex(data) FROM tiles"), "70696374757265");
    put_colour(store("sqlite3", "<detect_blank>False</detect_blank>"), &key, colour);
    ck_assert_str_eq(ask("SELECT hex(data) FROM tiles"), "70696374757265");
    mc_cache *cache = store("sqlite3", "<detect_blank/>");
    put_colour(cache, &key, colour);
    ck_assert_str_eq(ask("SELECT hex(data) FROM tiles"), "2311223380");
    usleep(60000);
    for (int i = 0; i < 3; i++) { /* also from memory */
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert(tile->blank && !tile->no_data && tile->coding == MC_CODING_PNG && tile->mtime != 0);
        ck_assert_int_eq(memcmp(tile->bgra, colour, 4), 0);
        ck_assert_int_eq(memcmp(tile->data->data, "\x89PNG", 4), 0);
        ck_assert_uint_eq(mc_tile_tag(tile), mc_hash64(tile->data->data, tile->data->size, 0));
    }
    static const uint8_t nothing[4] = { 0, 0, 0, 0 };
    put_colour(cache, &key, nothing);
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert(tile->blank && tile->no_data);
    outside("UPDATE tiles SET data = x'231122'");
    ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    outside("UPDATE tiles SET data = x''");
    expect_text(cache, &key, NULL);
    outside("UPDATE tiles SET data = NULL");
    expect_text(cache, &key, NULL);
}
END_TEST

START_TEST(mbtiles_share_the_picture_of_one_colour)
{
    mc_cache *cache = store("mbtiles", "");
    mc_tile_key first = key_at(3, 5, 6);
    mc_tile_key second = key_at(3, 5, 7);
    mc_tile_key third = key_at(4, 1, 2);
    put_colour(cache, &first, colour);
    put_colour(cache, &second, colour);
    put_text(cache, &third, "other");
    ck_assert_str_eq(ask("SELECT count(*) || group_concat(tile_id) FROM (SELECT tile_id FROM images ORDER BY 1)"),
                     "2#11223380,1-2-4");
    ck_assert_str_eq(ask("SELECT tile_data FROM tiles WHERE zoom_level=3 AND tile_column=5 AND tile_row=7"), "picture");
    ck_ok(mc_cache_remove(cache, &first, &ctx));
    expect_text(cache, &first, NULL);
    expect_text(cache, &second, "picture");
    ck_ok(mc_cache_remove(cache, &third, &ctx));
    ck_assert_str_eq(ask("SELECT count(*) FROM images WHERE tile_id = '1-2-4'"), "0");
    ck_assert_str_eq(ask("SELECT value FROM metadata WHERE name = 'minzoom'"), "3");
    ck_assert_str_eq(ask("SELECT value FROM metadata WHERE name = 'maxzoom'"), "4");
    ck_assert_str_eq(ask("SELECT value FROM metadata WHERE name = 'format'"), "png");
}
END_TEST

START_TEST(mbtiles_keep_no_picture_that_no_tile_has)
{
    mc_cache *cache = store("mbtiles", "");
    mc_tile_key key = key_at(4, 1, 2), other = key_at(4, 1, 3);
    put_text(cache, &key, "other");
    put_text(cache, &other, "same");
    put_colour(cache, &key, colour);
    expect_text(cache, &key, "picture");
    expect_text(cache, &other, "same");
    ck_assert_str_eq(ask("SELECT group_concat(tile_id) FROM (SELECT tile_id FROM images ORDER BY 1)"),
                     "#11223380,1-3-4");
}
END_TEST

/* MBTiles 1.3, tiles: a table, or a view. A file of GDAL's has a table, others have not even an index. */
START_TEST(mbtiles_of_other_programs_are_written_where_they_are_read)
{
    mc_cache *cache = store("mbtiles", "");
    mc_tile_key key = key_at(3, 5, 6), other = key_at(3, 5, 7);
    outside("CREATE TABLE metadata(name text, value text); CREATE TABLE tiles(zoom_level integer, tile_column integer,"
            " tile_row integer, tile_data blob); INSERT INTO tiles VALUES(3, 5, 6, 'theirs'), (3, 5, 7, 'kept')");
    expect_text(cache, &key, "theirs");
    for (int i = 0; i < 2; i++) {
        put_text(cache, &key, "ours");
        expect_text(cache, &key, "ours");
    }
    put_colour(cache, &key, colour);
    expect_text(cache, &key, "picture");
    expect_text(cache, &other, "kept");
    ck_assert_str_eq(ask("SELECT count(*) FROM tiles"), "2");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &key, NULL);
    expect_text(cache, &other, "kept");
}
END_TEST

/* MBTiles 1.3, metadata: pbf, jpg, png, webp, or a type of IETF; "xxx" of MapCache's mixed format is none of these. */
START_TEST(mbtiles_tell_the_format_of_their_pictures)
{
    mc_cache *cache = store("mbtiles", "");
    mc_tile_key key = key_at(4, 1, 2);
    key.extension = "xxx";
    put_text(cache, &key, "\xff\xd8\xff\xe0 and so on");
    ck_assert_str_eq(ask("SELECT value FROM metadata WHERE name = 'format'"), "jpg");
    outside("DELETE FROM metadata");
    put_text(cache, &key, "\x89PNG\r\n\x1a\n and so on");
    ck_assert_str_eq(ask("SELECT value FROM metadata WHERE name = 'format'"), "png");
}
END_TEST

START_TEST(statements_may_use_every_name)
{
#define KEY "ts=:tileset AND g=:grid AND x=:x AND y=:y AND z=:z AND ix=:inv_x AND iy=:inv_y AND d=:dim"
    mc_cache *cache = store("sqlite3", "<queries><create>CREATE TABLE IF NOT EXISTS own(ts, g, x, y, z, ix, iy, d, b,"
                                       " PRIMARY KEY(ts, g, x, y, z, ix, iy, d))</create>"
                                       "<set>INSERT OR REPLACE INTO own VALUES(:tileset, :grid, :x, :y, :z, :inv_x,"
                                       " :inv_y, :dim, :data)</set><get>SELECT b FROM own WHERE " KEY "</get>"
                                       "<exists>SELECT 1 FROM own WHERE " KEY "</exists>"
                                       "<delete>DELETE FROM own WHERE " KEY "</delete></queries>");
    mc_dimension_value dimensions[] = { { "a", "1' OR '1'='1", false }, { "b", "2", false } };
    mc_tile_key key = key_at(3, 5, 6);
    key.dimensions = dimensions;
    key.dimension_count = 2;
    put_text(cache, &key, "tile");
    ck_assert_str_eq(ask("SELECT ts||'|'||g||'|'||x||'|'||y||'|'||z||'|'||ix||'|'||iy||'|'||d||'|'||b FROM own"),
                     "ts|G|5|6|3|2|1|2#1' OR '1'='1|tile");
    expect_text(cache, &key, "tile");
    bool exists;
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(exists);
    mc_tile_key other = key_at(3, 5, 6);
    expect_text(cache, &other, NULL);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &key, NULL);
    mc_cache *wrong = store("sqlite3", "<queries><get>SELECT nothing FROM own</get></queries>");
    mc_tile *tile;
    mc_error *error = mc_cache_get(&tile, wrong, &key, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
    ck_assert_ptr_null(strstr(error->message, "nothing"));
}
END_TEST

/* A store that fails between two flushes: the next flush tells, as somebody counts on what is gone. */
START_TEST(what_is_lost_early_is_told_by_the_flush)
{
    mc_cache *cache = store("sqlite3", "");
    mc_tile_key one = key_at(1, 0, 0), two = key_at(1, 1, 0);
    mc_tile *tile;
    ctx.writes = mc_cache_writes_create(pool);
    put_text(cache, &one, "one");
    run_shell("mkdir %s/a.db");
    ck_fails(IO, mc_cache_get(&tile, cache, &one, &ctx, pool));
    run_shell("rmdir %s/a.db");
    put_text(cache, &two, "two");
    ck_fails(IO, mc_cache_writes_flush(&ctx));
    ck_ok(mc_cache_writes_flush(&ctx));
    ctx.writes = NULL;
    expect_text(cache, &one, NULL);
    expect_text(cache, &two, "two");
}
END_TEST

static int warnings;

static void
count_warnings(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    if (level == MC_LOG_WARN && strstr(message, "index") != NULL)
        warnings++;
}

START_TEST(a_missing_index_is_told)
{
    const mc_log log = { .level = MC_LOG_WARN, .write = count_warnings };
    ctx.log = &log;
    outside("CREATE TABLE tiles(tileset, grid, x, y, z, data, dim, ctime);"
            "INSERT INTO tiles VALUES('ts', 'G', 1, 1, 1, 'tile', '', 0)");
    mc_tile_key key = key_at(1, 1, 1);
    mc_cache *cache = store("sqlite3", "");
    warnings = 0;
    for (int i = 0; i < 3; i++)
        expect_text(cache, &key, "tile");
    ck_assert_int_eq(warnings, 1);
    mc_cache *strict = store("sqlite3", "<memory>false</memory><index_check>error</index_check>");
    mc_tile *tile;
    for (int i = 0; i < 2; i++)
        ck_fails(CONFIG, mc_cache_get(&tile, strict, &key, &ctx, pool));
    outside("CREATE INDEX i ON tiles(x, y, z)");
    strict = store("sqlite3", "<memory>false</memory><index_check>error</index_check>");
    expect_text(strict, &key, "tile");
    warnings = 0;
    outside("DROP INDEX i");
    expect_text(store("sqlite3", "<memory>false</memory><index_check>off</index_check>"), &key, "tile");
    ck_assert_int_eq(warnings, 0);
}
END_TEST

/* A child that locks the file against all until the pipe is closed. */
static pid_t
lock_file(int *release)
{
    int go[2];
    int ready[2];
    char byte;
    ck_assert(pipe(go) == 0 && pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        close(go[1]);
        int code = sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db);
        if (code == SQLITE_OK)
            code = sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
        if (write(ready[1], code == SQLITE_OK ? "y" : "n", 1) != 1 || read(go[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(go[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    *release = go[1];
    return child;
}

START_TEST(a_lock_of_another_process_ends_with_the_deadline)
{
    mc_cache *cache = store("sqlite3", ROLLBACK "<memory>false</memory>");
    mc_cache *immutable = store("sqlite3", ROLLBACK "<memory>false</memory><immutable>true</immutable>");
    mc_cache *fresh = store("sqlite3", ROLLBACK "<memory>false</memory><pragma name='cache_size'>100</pragma>");
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
    int release;
    pid_t child = lock_file(&release);
    mc_tile *tile;
    mc_cache *locked[] = { cache, fresh }; /* with an open handle, and without one */
    for (int i = 0; i < 2; i++) {
        apr_time_t begin = mc_clock_now();
        ctx.deadline = begin + apr_time_from_msec(200);
        ck_fails(UNAVAILABLE, mc_cache_get(&tile, locked[i], &key, &ctx, pool));
        ck_assert_int_lt(mc_clock_now() - begin, apr_time_from_sec(15));
        begin = mc_clock_now();
        ctx.deadline = begin + apr_time_from_msec(200);
        mc_tile_write write = { .key = key, .data = mc_buf_attach(mc_buf_copy("x", 1), pool) };
        ck_fails(UNAVAILABLE, mc_cache_put(locked[i], &write, 1, &ctx));
        ck_assert_int_lt(mc_clock_now() - begin, apr_time_from_sec(15));
    }
    expect_text(immutable, &key, "tile"); /* takes no locks */
    ctx.deadline = 0;
    close(release);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    expect_text(cache, &key, "tile");
    expect_text(fresh, &key, "tile");
}
END_TEST

START_TEST(damaged_files_give_errors)
{
    mc_cache *cache = store("sqlite3", ROLLBACK);
    mc_tile_key key = key_at(5, 31, 31);
    mc_tile_write tile = { .key = key, .data = mc_buf_create(20000, 20000) };
    memset(tile.data->data, 'x', 20000);
    tile.data->size = 20000;
    for (int i = 0; i < 64; i++) {
        tile.key = key_at(5, i % 32, i / 32);
        ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
    }
    mc_buf_unref(tile.data);
    run_shell("cp %s/a.db %s/whole");
    mc_tile *found;
    key = key_at(5, 31, 1);
    static const int sizes[] = { 100, 4095, 4097, 200000, 1200000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        run_shell(apr_psprintf(pool, "head -c %d %%s/whole > %%s/new && mv %%s/new %%s/a.db", sizes[i]));
        mc_error *error = mc_cache_get(&found, cache, &key, &ctx, pool);
        ck_assert_msg(error != MC_OK, "%d bytes", sizes[i]);
        ck_assert_msg(error->kind == MC_ERR_CORRUPT || error->kind == MC_ERR_IO, "%d", sizes[i]);
        ck_assert_ptr_null(strstr(error->message, cache_folder));
    }
    for (int i = 1; i < 30; i++) { /* a page of noise anywhere: an answer or an error, nothing else */
        run_shell(apr_psprintf(pool,
                               "cp %%s/whole %%s/new && dd if=/dev/urandom of=%%s/new bs=4096 seek=%d count=1"
                               " conv=notrunc 2>/dev/null && mv %%s/new %%s/a.db",
                               i));
        for (int j = 0; j < 64; j += 7) {
            key = key_at(5, j % 32, j / 32);
            mc_error *error = mc_cache_get(&found, cache, &key, &ctx, pool);
            ck_assert(error == MC_OK || error->kind == MC_ERR_CORRUPT || error->kind == MC_ERR_IO);
        }
    }
    run_shell(": > %s/new && mv %s/new %s/a.db"); /* empty: like a new one */
    expect_text(cache, &key, NULL);
    key.renderable = false;
    ck_fails(IO, mc_cache_get(&found, cache, &key, &ctx, pool));
    run_shell("mv %s/whole %s/a.db");
    key = key_at(5, 31, 1);
    ck_ok(mc_cache_get(&found, cache, &key, &ctx, pool));
    ck_assert_uint_eq(found->data->size, 20000);
}
END_TEST

static uint64_t
counted(mc_counter counter)
{
    return mc_counter_value(process.metrics, counter);
}

START_TEST(absences_are_remembered_where_nothing_renders)
{
    mc_cache *cache = store("sqlite3", "");
    mc_tile_key there = key_at(1, 0, 0);
    mc_tile_key absent = key_at(1, 1, 1);
    put_text(cache, &there, "tile");
    usleep(60000);
    for (int i = 0; i < 3; i++)
        expect_text(cache, &absent, NULL);
    ck_assert_uint_eq(counted(MC_COUNT_memory_hits_total), 0);
    absent.renderable = false;
    for (int i = 0; i < 3; i++)
        expect_text(cache, &absent, NULL);
    ck_assert_uint_eq(counted(MC_COUNT_memory_hits_total), 2);
    outside("INSERT INTO tiles VALUES('ts', 'G', 1, 1, 1, 'new', '', datetime('now'))");
    expect_text(cache, &absent, "new");
    usleep(60000);
    for (int i = 0; i < 8000; i++) { /* hostile: more absences than the memory holds */
        absent = key_at(5, i % 32, i / 32);
        absent.renderable = false;
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &absent, &ctx, pool));
    }
    ck_assert_uint_gt(counted(MC_COUNT_memory_evictions_total), 0);
}
END_TEST

START_TEST(long_dimensions_are_told_apart)
{
    mc_cache *cache = store("sqlite3", "");
    char longest[6000];
    for (int round = 0; round < 3; round++) {
        for (char last = 'a'; last <= 'd'; last++) {
            memset(longest, 'x', sizeof(longest));
            longest[sizeof(longest) - 2] = last;
            longest[sizeof(longest) - 1] = '\0';
            mc_dimension_value dimensions[] = { { "a", longest + (round == 2 ? 5000 : 0), false }, { "b", "", false } };
            mc_tile_key key = key_at(1, 0, 0);
            key.dimensions = dimensions;
            key.dimension_count = 2;
            char text[] = { last, '\0' };
            if (round != 1)
                put_text(cache, &key, text);
            expect_text(cache, &key, text);
        }
        usleep(60000);
    }
}
END_TEST

static void
complaints_of_use(int expected, mc_cache *cache, const char *tileset, const mc_grid *on, mc_build *build)
{
    static const mc_node node = { .name = "tileset" };
    int before = build->diagnostics->complaints->nelts;
    const mc_cache_use use = { .tileset = tileset, .grid = on };
    mc_cache_used_by(cache, &use, &node, build);
    ck_assert_int_eq(build->diagnostics->complaints->nelts - before, expected);
}

START_TEST(tilesets_that_share_an_mbtiles_file_are_named)
{
    static const double half = 20037508.342789244;
    static const mc_level halves[] = { { 156543.03392804097, 1, 1 }, { 78271.516964020485, 2, 2 } };
    const mc_grid world = { .name = "W",
                            .epsg = 3857,
                            .extent = { -half, -half, half, half },
                            .tile_width = 256,
                            .tile_height = 256,
                            .level_count = 2,
                            .levels = halves };
    mc_grid other = world, from_top = world;
    other.name = "H";
    from_top.origin = MC_TOP_LEFT;
    mc_build build = config_build();
    mc_cache *cache = store("mbtiles", "");
    complaints_of_use(0, cache, "one", &world, &build);
    complaints_of_use(0, cache, "one", &world, &build);
    complaints_of_use(1, cache, "two", &world, &build);
    complaints_of_use(1, cache, "one", &other, &build);
    ck_assert_int_eq(APR_ARRAY_IDX(build.diagnostics->complaints, 0, mc_complaint).severity, MC_WARNING);
    cache = cache_of("<cache name='c' type='mbtiles'><dbfile>/x/{tileset}-{grid}</dbfile></cache>");
    complaints_of_use(0, cache, "one", &world, &build);
    complaints_of_use(0, cache, "two", &world, &build);
    complaints_of_use(0, cache, "one", &other, &build);
    complaints_of_use(1, cache, "three", &from_top, &build); /* other programs count rows from the south */
    complaints_of_use(1, cache, "four", &cache_grid, &build);
    const mc_cache_use dated = { .tileset = "dated", .grid = &world, .dimensions = true };
    static const mc_node node = { .name = "tileset" };
    int before = build.diagnostics->complaints->nelts;
    mc_cache_used_by(cache, &dated, &node, &build); /* all dates in one file */
    ck_assert_int_eq(build.diagnostics->complaints->nelts, before + 1);
    mc_cache_used_by(cache_of("<cache name='c' type='mbtiles'><dbfile>/x/{tileset}{dim}</dbfile></cache>"), &dated,
                     &node, &build);
    ck_assert_int_eq(build.diagnostics->complaints->nelts, before + 1);
    cache = store("sqlite3", "");
    mc_cache_used_by(cache, &dated, &node, &build);
    ck_assert_int_eq(build.diagnostics->complaints->nelts, before + 1);
    complaints_of_use(0, cache, "one", &world, &build);
    complaints_of_use(0, cache, "two", &other, &build);
}
END_TEST

START_TEST(a_wal_file_is_read_where_no_shared_memory_can_be_made)
{
    mc_cache *cache = store("sqlite3", "");
    mc_tile_key key = key_at(1, 1, 1);
    outside("PRAGMA journal_mode=WAL; CREATE TABLE tiles(tileset, grid, x, y, z, data, dim, ctime,"
            " PRIMARY KEY(tileset, grid, x, y, z, dim));"
            "INSERT INTO tiles VALUES('ts', 'G', 1, 1, 1, 'one', '', 0)");
    run_shell("test ! -e %s/a.db-wal && ln -s /nowhere/shm %s/a.db-shm");
    for (int i = 0; i < 3; i++)
        expect_text(cache, &key, "one");
    ck_assert_int_eq(count_open_files(), 0); /* no handle outlives what it has seen */
    run_shell("rm %s/a.db-shm");
    outside("UPDATE tiles SET data = 'two'");
    run_shell("ln -s /nowhere/shm %s/a.db-shm");
    expect_text(cache, &key, "two");
    run_shell("rm %s/a.db-shm");
    sqlite3 *db; /* with a -wal beside it, the main file alone would be stale */
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE tiles SET data = 'three'", NULL, NULL, NULL), SQLITE_OK);
    run_shell("mkdir %s/b && cp %s/a.db %s/b && cp %s/a.db-wal %s/b && ln -s /nowhere/shm %s/b/a.db-shm");
    sqlite3_close(db);
    mc_tile *tile;
    mc_cache *copy =
        cache_of(apr_psprintf(pool, "<cache name='c' type='sqlite3'><dbfile>%s/b/a.db</dbfile></cache>", cache_folder));
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, copy, &key, &ctx, pool));
    run_shell("rm %s/b/a.db-shm");
    expect_text(copy, &key, "three");
}
END_TEST

START_TEST(a_series_of_gets_sees_one_state)
{
    static const char *const journals[] = { "wal", "delete" };
    for (int i = 0; i < 2; i++) {
        restart_cache_test();
        mc_cache *cache =
            store("sqlite3", apr_psprintf(pool, "<memory>%s</memory><pragma name='journal_mode'>%s</pragma>",
                                          i == 0 ? "true" : "false", journals[i]));
        mc_tile_key key = key_at(1, 0, 0);
        mc_tile_key second = key_at(1, 0, 1);
        put_text(cache, &key, "old");
        put_text(cache, &second, "old");
        mc_cache_reads_begin(&ctx);
        expect_text(cache, &key, "old");
        mc_ctx other = ctx; /* as a job on another thread has it */
        other.pool = pool;
        if (i == 0) {
            outside("UPDATE tiles SET data = 'new'");
            expect_text(cache, &second, "old");
            mc_tile *tile;
            ck_ok(mc_cache_get(&tile, cache, &second, &other, pool));
            ck_assert_int_eq(memcmp(tile->data->data, "new", 3), 0);
        } else {
            put_text(cache, &second, "new"); /* a write ends the series: it does not wait for its own lock */
            expect_text(cache, &second, "new");
        }
        mc_cache_reads_end(&ctx);
        ck_assert_ptr_null(ctx.reads);
        expect_text(cache, &second, "new");
    }
}
END_TEST

START_TEST(a_series_of_gets_holds_one_file)
{
    mc_cache *cache = cache_of(apr_psprintf(
        pool,
        "<cache name='c' type='sqlite3'><dbfile>%s/{x}-{y}.db</dbfile><xcount>1</xcount><ycount>1</ycount></cache>",
        cache_folder));
    for (int i = 0; i < 40; i++) {
        mc_tile_key key = key_at(3, i % 8, i / 8);
        put_text(cache, &key, apr_itoa(pool, i));
    }
    mc_cache_reads_begin(&ctx);
    for (int i = 0; i < 80; i++) {
        mc_tile_key key = key_at(3, i % 40 % 8, i % 40 / 8);
        expect_text(cache, &key, apr_itoa(pool, i % 40));
        ck_assert_int_le(count_open_files(), 16);
    }
    mc_tile_key absent = key_at(3, 7, 7);
    expect_text(cache, &absent, NULL);
    expect_text(cache, &absent, NULL);
    mc_cache_reads_end(&ctx); /* what follows a test stops the process if a handle is still in use */
}
END_TEST

/* More tiles than are read at once, and only some of the level's. */
static void
check_list(const char *type, mc_origin origin)
{
    enum { SIDE = 100, TILES = 5000 };
    static mc_level wide[] = { { 1000, 128, 128 } };
    static mc_tile_write tiles[TILES];
    const mc_grid own = { .name = "G",
                          .tile_width = 1,
                          .tile_height = 1,
                          .level_count = 1,
                          .levels = wide,
                          .origin = origin,
                          .extent = { 0, 0, 128000, 128000 } };
    const mc_tile_range area = { 3, 5, 99, 100 };
    mc_cache *cache = store(type, "");
    mc_buf *data = mc_buf_attach(mc_buf_copy("tile", 4), pool);
    int wanted = 0;
    seen_tiles met = { .most = TILES + 1 };
    for (int i = 0; i < TILES; i++) {
        tiles[i] = (mc_tile_write){ .key = key_at(0, i * 2 % SIDE, i * 2 / SIDE), .data = data };
        tiles[i].key.grid = &own;
    }
    ck_ok(mc_cache_put(cache, tiles, TILES, &ctx));
    ck_ok(mc_cache_list(cache, &tiles[0].key, &area, see_tile, &met, &ctx));
    for (int i = 0; i < TILES; i++) {
        const mc_tile_key *key = &tiles[i].key;
        bool inside = key->x >= area.minx && key->x < area.maxx && key->y >= area.miny && key->y < area.maxy;
        ck_assert_int_eq(met.places[key->y][key->x], inside);
        wanted += inside;
    }
    ck_assert_int_eq(met.count, wanted);
    ck_assert_int_gt(wanted, 4096); /* two answers */
}

START_TEST(lists_are_whole_wherever_files_count_from)
{
    static const char *const types[] = { "sqlite3", "mbtiles", "geopackage" };
    for (int type = 0; type < 3; type++)
        for (int origin = 0; origin < 4; origin++) {
            restart_cache_test();
            check_list(types[type], (mc_origin)origin);
        }
}
END_TEST

START_TEST(foreign_and_empty_files_are_listed)
{
    const mc_tile_key key = key_at(3, 0, 0);
    const mc_tile_range all = { 0, 0, 8, 8 };
    seen_tiles met = { .most = 9 };
    outside("CREATE TABLE other(a)");
    ck_ok(mc_cache_list(store("mbtiles", ""), &key, &all, see_tile, &met, &ctx));
    ck_ok(mc_cache_list(store("geopackage", ""), &key, &all, see_tile, &met, &ctx));
    ck_ok(mc_cache_list(store("sqlite3", ""), &key, &all, see_tile, &met, &ctx));
    ck_assert_int_eq(met.count, 0);
    outside("CREATE TABLE tiles(zoom_level, tile_column, tile_row, tile_data); INSERT INTO tiles VALUES"
            " (3, 1, 2, 'a'), (3, 7, 7, 'b'), (2, 0, 0, 'c')");
    ck_ok(mc_cache_list(store("mbtiles", ""), &key, &all, see_tile, &met, &ctx));
    ck_assert(met.count == 2 && met.places[2][1] == 1 && met.places[7][7] == 1);
}
END_TEST

typedef struct compacting {
    volatile int stop;
    bool failed;
    int64_t before, after; /* bytes; after -1: nothing was changed */
} compacting;

static bool
know(void *baton, const mc_store_group *group)
{
    (void)baton;
    return group->z >= 0;
}

static void
stop_it(void *baton, const mc_store *store, const char *what, double done)
{
    compacting *task = baton;
    (void)store, (void)done;
    ck_assert_str_eq(what, "compacting");
    task->stop = 1;
}

static void
note(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    compacting *task = baton;
    task->failed = error != MC_OK;
    task->before = before->bytes;
    task->after = after == NULL ? -1 : after->bytes;
}

/* The first time all of a file is written anew, which takes as long as the file is large. */
START_TEST(compacting_ends_when_it_is_stopped)
{
    mc_cache *cache = store("sqlite3", "");
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "kept");
    outside("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
            " INSERT INTO tiles SELECT 'ts', 'G', i, 0, 20, zeroblob(500), '', NULL FROM n;"
            " DELETE FROM tiles WHERE z = 20 AND x < 1000");
    compacting found = { 0 };
    mc_upkeep task = {
        .compact = true, .stop = &found.stop, .known = know, .progress = stop_it, .report = note, .baton = &found
    };
    ck_ok(mc_cache_upkeep(cache, &task, &ctx));
    ck_assert(found.failed && found.after == found.before);
    ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
    ck_assert_str_eq(ask("PRAGMA auto_vacuum"), "0");
    task.stop = NULL;
    ck_ok(mc_cache_upkeep(cache, &task, &ctx));
    ck_assert(!found.failed && found.after < found.before);
    expect_text(cache, &key, "kept");
}
END_TEST

CACHE_MAIN("sqlite cache", compacting_ends_when_it_is_stopped, what_is_lost_early_is_told_by_the_flush,
           tiles_of_one_colour_are_five_bytes, mbtiles_share_the_picture_of_one_colour,
           mbtiles_keep_no_picture_that_no_tile_has, mbtiles_of_other_programs_are_written_where_they_are_read,
           mbtiles_tell_the_format_of_their_pictures, statements_may_use_every_name, a_missing_index_is_told,
           a_lock_of_another_process_ends_with_the_deadline, damaged_files_give_errors,
           absences_are_remembered_where_nothing_renders, long_dimensions_are_told_apart,
           tilesets_that_share_an_mbtiles_file_are_named, a_wal_file_is_read_where_no_shared_memory_can_be_made,
           a_series_of_gets_sees_one_state, a_series_of_gets_holds_one_file, lists_are_whole_wherever_files_count_from,
           foreign_and_empty_files_are_listed)
