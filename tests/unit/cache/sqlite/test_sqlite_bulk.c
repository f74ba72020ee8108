/* Many tiles at once in SQLite files: what is gathered on the way, bulk loads, writers that are cut off, full disks. */
#include "cache_fixture.h"

#include "base/clock.h"
#include "cache/sqlite/sqlite_base.h"
#include "mapcache/survey.h"
#include "mapcache/upkeep.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TILES = 64, TILE_BYTES = 9000 };

static const char *
path_of(const char *suffix)
{
    return apr_pstrcat(pool, cache_folder, "/a.db", suffix, NULL);
}

static bool
there(const char *suffix)
{
    return access(path_of(suffix), F_OK) == 0;
}

static mc_cache *
store(const char *type, const char *inner)
{
    return cache_of(
        apr_psprintf(pool, "<cache name='c' type='%s'><dbfile>%s/a.db</dbfile>%s</cache>", type, cache_folder, inner));
}

/* The first column of the first row, in a connection without anything of ours. */
static const char *
ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    const char *found = "";
    ck_assert_int_eq(sqlite3_open(path_of(""), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    if (sqlite3_step(statement) == SQLITE_ROW)
        found = apr_pstrdup(pool, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

/* A tile whose bytes tell its number. */
static mc_tile_write
tile_of(int number, int size, apr_pool_t *scratch)
{
    mc_buf *bytes = mc_buf_create((size_t)size, (size_t)size);
    memset(bytes->data, 'a' + number % 26, (size_t)size);
    memcpy(bytes->data + 4, &number, sizeof(number));
    bytes->size = (size_t)size;
    return (mc_tile_write){ .key = key_at(5, number % 32, number / 32 % 32), .data = mc_buf_attach(bytes, scratch) };
}

/* As a seeder's commit: tiles first .. first + count - 1 of 32 x 32. */
static mc_error *
load_in(mc_cache *cache, int first, int count, apr_pool_t *parent)
{
    apr_pool_t *scratch;
    mc_ctx own = ctx;
    apr_pool_create(&scratch, parent);
    own.pool = scratch;
    own.writes = mc_cache_writes_create(scratch);
    mc_error *error = MC_OK;
    for (int i = first; i < first + count && error == MC_OK; i++) {
        mc_tile_write put_text = tile_of(i, TILE_BYTES, scratch);
        error = mc_cache_put(cache, &put_text, 1, &own);
    }
    if (error == MC_OK)
        error = mc_cache_writes_flush(&own);
    error = mc_error_copy(error, parent);
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
load(mc_cache *cache, int first, int count)
{
    return load_in(cache, first, count, pool);
}

static void
expect_loaded(mc_cache *cache, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        mc_tile_write wanted = tile_of(i, TILE_BYTES, pool);
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &wanted.key, &ctx, pool));
        ck_assert_msg(tile != NULL, "tile %d is missing", i);
        ck_assert_uint_eq(tile->data->size, TILE_BYTES);
        ck_assert_int_eq(memcmp(tile->data->data, wanted.data->data, TILE_BYTES), 0);
    }
}

static int
wait_for(pid_t child)
{
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Of a child: handles of its own, as POSIX locks are a process's. */
static void
renew_handles(void)
{
    process.handles = mc_handles_create(16);
}

static void
end_process(void)
{
    mc_handles_destroy(process.handles);
    process.lasting = false;
    renew_handles();
}

static void
expect_whole_file(void)
{
    ck_assert(there("") && !there("-journal") && !there("-wal") && !there("-shm"));
    ck_assert_str_eq(ask("PRAGMA journal_mode"), "delete");
}

static const char *const types[] = { "sqlite3", "mbtiles", "geopackage" };
enum { TYPES = sizeof(types) / sizeof(*types) };

START_TEST(a_load_leaves_one_file_in_rollback_mode)
{
    cache_grid.origin = MC_TOP_LEFT; /* a GeoPackage's levels begin at one corner */
    for (int i = 0; i < TYPES; i++) {
        restart_cache_test();
        mc_cache *cache = store(types[i], "");
        mc_tile_key key = key_at(1, 0, 0);
        put_text(cache, &key, "one");
        expect_text(cache, &key, "one"); /* a reader of our own stays open */
        ck_ok(load(cache, 0, TILES));
        ck_assert(!there("-wal"));
        ck_assert_str_eq(ask("PRAGMA journal_mode"), "delete");
        expect_loaded(cache, 0, TILES);
        end_process();
        expect_whole_file();
        expect_loaded(cache, 0, TILES);
    }
    cache_grid.origin = MC_BOTTOM_LEFT;
}
END_TEST

/* Readers and writers of a server do not wait for each other, but what is for other programs stays as those expect. */
START_TEST(a_server_uses_wal_while_it_runs)
{
    cache_grid.origin = MC_TOP_LEFT;
    for (int i = 0; i < TYPES; i++) {
        restart_cache_test();
        mc_cache *cache = store(types[i], "");
        ck_ok(load(cache, 0, TILES)); /* by a seeder, before */
        end_process();
        expect_whole_file();
        process.lasting = true;
        mc_tile_key key = key_at(1, 0, 0);
        expect_loaded(cache, 0, TILES);
        put_text(cache, &key, "one");
        ck_assert_str_eq(ask("PRAGMA journal_mode"), i == 0 ? "wal" : "delete");
        expect_text(cache, &key, "one");
        end_process();
        expect_whole_file();
        expect_text(cache, &key, "one");
    }
    cache_grid.origin = MC_BOTTOM_LEFT;
}
END_TEST

/* Who reads just then keeps the file in rollback mode; the next write tries again. */
START_TEST(a_server_waits_for_nobody_to_enter_wal)
{
    mc_cache *cache = store("sqlite3", "");
    ck_ok(load(cache, 0, TILES));
    end_process();
    process.lasting = true;
    sqlite3 *other;
    ck_assert_int_eq(sqlite3_open(path_of(""), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN; SELECT count(*) FROM tiles", NULL, NULL, NULL), SQLITE_OK);
    mc_ctx brief = ctx;
    brief.deadline = mc_clock_now() + 300000;
    mc_tile_write first = tile_of(TILES, TILE_BYTES, pool), second = tile_of(TILES + 1, TILE_BYTES, pool);
    ck_fails(UNAVAILABLE, mc_cache_put(cache, &first, 1, &brief)); /* its commit waits for the reader */
    sqlite3_close(other);
    ck_ok(mc_cache_put(cache, &second, 1, &ctx));
    ck_assert_str_eq(ask("PRAGMA journal_mode"), "wal");
    end_process();
    expect_whole_file();
}
END_TEST

/* As MapCache makes them: without our mark. */
START_TEST(a_file_of_others_does_not_enter_wal)
{
    mc_cache *cache = store("sqlite3", "<pragma name='application_id'>7</pragma>");
    ck_ok(load(cache, 0, TILES));
    end_process();
    process.lasting = true;
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "one");
    ck_assert_str_eq(ask("PRAGMA journal_mode"), "delete");
    ck_assert_str_eq(ask("PRAGMA application_id"), "7");
}
END_TEST

/* Another process that has the file open, until a byte comes. Returns its number, once it has read. */
static pid_t
hold_open(int release[2])
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(release), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sqlite3 *db;
        bool good = sqlite3_open(path_of(""), &db) == SQLITE_OK &&
                    sqlite3_exec(db, "SELECT count(*) FROM tiles", NULL, NULL, NULL) == SQLITE_OK;
        good = write(ready[1], "r", 1) == 1 && read(release[0], &byte, 1) == 1 && good;
        sqlite3_close(db);
        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

/* Its -wal and -shm stand beside the new one, and are not the new one's. */
START_TEST(what_a_removed_file_has_left_does_not_count)
{
    int release[2];
    mc_cache *cache = store("sqlite3", "");
    ck_ok(load(cache, 0, TILES));
    end_process();
    ck_assert_str_eq(ask("PRAGMA journal_mode=wal"), "wal");
    pid_t holder = hold_open(release);
    ck_assert(there("-wal") && there("-shm"));
    ck_assert_int_eq(unlink(path_of("")), 0);
    for (int round = 0; round < 2; round++) { /* by a few tiles in WAL mode, and by many */
        const mc_tile_key key = key_at(1, 0, round);
        put_text(cache, &key, "one");
        expect_text(cache, &key, "one");
        ck_ok(load(cache, TILES * (round + 1), TILES));
        expect_loaded(cache, TILES, TILES * (round + 1));
        mc_handles_destroy(process.handles);
        renew_handles();
        ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
        expect_loaded(cache, TILES, TILES * (round + 1));
    }
    ck_assert_int_eq(write(release[1], "e", 1), 1);
    ck_assert_int_eq(wait_for(holder), 0);
    expect_loaded(cache, TILES, 2 * TILES);
    ck_assert_str_eq(ask("SELECT count(*) FROM tiles"), apr_psprintf(pool, "%d", 2 * TILES + 2));
}
END_TEST

START_TEST(a_load_beside_others_stays_in_wal)
{
    mc_cache *cache = store("sqlite3", "");
    sqlite3 *other;
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "one");
    end_process();
    ck_assert_int_eq(sqlite3_open(path_of(""), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "PRAGMA journal_mode=wal; SELECT count(*) FROM tiles", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_ok(load(cache, 0, TILES));
    ck_assert(there("-wal"));
    end_process(); /* soon, and everything is in the file itself */
    struct stat log;
    ck_assert(stat(path_of("-wal"), &log) == 0 && log.st_size == 0);
    sqlite3_close(other);
    ck_assert_str_eq(ask("PRAGMA journal_mode"), "wal");
    ck_ok(load(cache, TILES, TILES)); /* and leaves it once they have gone */
    ck_assert(!there("-wal"));
    expect_loaded(cache, 0, 2 * TILES);
    end_process();
    expect_whole_file();
}
END_TEST

/* A load, or a server in the middle of writing. */
START_TEST(what_a_killed_writer_leaves_is_put_right)
{
    for (int lasting = 0; lasting <= 1; lasting++) {
        restart_cache_test();
        mc_cache *cache = store("sqlite3", "");
        pid_t child = fork();
        if (child == 0) {
            renew_handles();
            process.lasting = lasting == 1;
            _exit(load(cache, 0, TILES) == MC_OK ? 0 : 1);
        }
        ck_assert_int_eq(wait_for(child), 0);
        ck_assert(there("-wal") == (lasting == 1));
        expect_loaded(cache, 0, TILES);
        mc_tile_key key = key_at(1, 0, 0);
        put_text(cache, &key, "one");
        end_process();
        expect_whole_file();
        expect_loaded(cache, 0, TILES);
    }
}
END_TEST

START_TEST(a_configured_journal_mode_stays)
{
    mc_cache *cache = store("sqlite3", "<pragma name='journal_mode'>wal</pragma>");
    ck_ok(load(cache, 0, TILES));
    ck_assert(there("-wal"));
}
END_TEST

/* How a file is written: everything that changes what SQLite syncs. */
static const char *const manners[] = {
    "",
    "<pragma name='journal_mode'>delete</pragma>",
    "<pragma name='journal_mode'>persist</pragma>",
    "<pragma name='journal_mode'>wal</pragma>",
    "<pragma name='journal_mode'>wal</pragma><pragma name='synchronous'>normal</pragma>",
    "<pragma name='journal_mode'>wal</pragma><pragma name='synchronous'>off</pragma>",
    "<pragma name='journal_mode'>truncate</pragma><pragma name='synchronous'>off</pragma>",
    ("<pragma name='cache_spill'>20</pragma><pragma name='cache_size'>20</pragma>"
     "<pragma name='journal_mode'>delete</pragma>"),
    "<pragma name='page_size'>65536</pragma><pragma name='wal_autocheckpoint'>3</pragma>",
};
enum { MANNERS = sizeof(manners) / sizeof(*manners) };

static void
gather(int manner)
{
    restart_cache_test();
    mc_cache *cache = store("sqlite3", manners[manner]);
    int sizes[256] = { 0 };
    unsigned state = (unsigned)manner + 1;
    for (int round = 0; round < 25; round++) {
        mc_tile_write puts[40];
        int count = (int)(state >> 8) % 40 + 1;
        for (int i = 0; i < count; i++) {
            state = state * 1664525u + 1013904223u;
            int number = (int)(state >> 10) % 256;
            sizes[number] = (int)(state >> 7) % (round % 7 == 0 ? 200000 : 12000) + 8;
            puts[i] = tile_of(number, sizes[number], pool);
        }
        ck_ok(mc_cache_put(cache, puts, count, &ctx));
        if (round % 9 == 0) {
            mc_tile_key key = tile_of((int)(state >> 9) % 256, 8, pool).key;
            sizes[key.x + key.y * 32] = 0;
            ck_ok(mc_cache_remove(cache, &key, &ctx));
        }
    }
    ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
    for (int i = 0; i < 256; i++) {
        mc_tile *tile;
        mc_tile_write wanted = tile_of(i, sizes[i] == 0 ? 8 : sizes[i], pool);
        ck_ok(mc_cache_get(&tile, cache, &wanted.key, &ctx, pool));
        ck_assert((tile == NULL) == (sizes[i] == 0));
        if (tile != NULL)
            ck_assert(tile->data->size == wanted.data->size &&
                      memcmp(tile->data->data, wanted.data->data, wanted.data->size) == 0);
    }
}

START_TEST(what_is_gathered_is_what_is_read)
{
    for (int i = 0; i < MANNERS; i++)
        gather(i);
}
END_TEST

/* Loads until it is killed, and says after each commit that it is one. */
static _Noreturn void
load_for_ever(mc_cache *cache, int told)
{
    renew_handles();
    for (int round = 0;; round++)
        if (load(cache, round % 4 * TILES, TILES) != MC_OK || write(told, &round, sizeof(round)) != sizeof(round))
            _exit(1);
}

static void
survive_kills(int manner)
{
    restart_cache_test();
    mc_cache *cache = store("sqlite3", manners[manner]);
    for (int round = 0; round < 6; round++) {
        int told[2], last = -1, number;
        ck_assert_int_eq(pipe(told), 0);
        pid_t child = fork();
        if (child == 0)
            load_for_ever(cache, told[1]);
        close(told[1]);
        usleep(3000 + (unsigned)round * 7000 + (unsigned)manner * 500);
        kill(child, SIGKILL);
        ck_assert_int_eq(wait_for(child), -SIGKILL);
        while (read(told[0], &number, sizeof(number)) == sizeof(number))
            last = number;
        close(told[0]);
        int least = last < 0 ? 0 : last < 3 ? (last + 1) * TILES : 4 * TILES;
        expect_loaded(cache, 0, least); /* first of all by a reader: it has to mend the file where that is needed */
        ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
        if (atoi(ask("SELECT count(*) FROM sqlite_master WHERE name = 'tiles'")) == 1)
            ck_assert_int_eq(atoi(ask("SELECT count(*) FROM tiles")) % TILES, 0); /* whole commits */
    }
}

START_TEST(what_is_committed_survives_a_kill)
{
    for (int i = 0; i < MANNERS; i++)
        survive_kills(i);
}
END_TEST

/* Cuts a writer off when half of its commit is in the file. */
static void
cut_a_writer_off(void)
{
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        bool done = sqlite3_open(path_of(""), &db) == SQLITE_OK &&
                    sqlite3_exec(db,
                                 "PRAGMA cache_size=2; BEGIN; UPDATE tiles SET data = zeroblob(5000);"
                                 "CREATE TABLE more(data); INSERT INTO more VALUES(zeroblob(500000))",
                                 NULL, NULL, NULL) == SQLITE_OK;
        _exit(done ? 0 : 1);
    }
    ck_assert_int_eq(wait_for(child), 0);
    ck_assert(there("-journal"));
}

START_TEST(readers_take_back_what_was_cut_off)
{
    mc_cache *cache = store("sqlite3", manners[1]);
    ck_ok(load(cache, 0, TILES));
    cut_a_writer_off();
    expect_loaded(cache, 0, TILES); /* by a new handle */
    ck_assert(!there("-journal"));
    cut_a_writer_off();
    expect_loaded(cache, 0, TILES); /* by one that was open */
    cut_a_writer_off();
    mc_cache_reads_begin(&ctx);
    expect_loaded(cache, 0, TILES);
    mc_cache_reads_end(&ctx);
    ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
}
END_TEST

static bool
count_told(void *baton, const mc_survey_file *file)
{
    *(int64_t *)baton += file->stored;
    return true;
}

static int64_t told_tiles;

static void
take_store(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    (void)baton, (void)after;
    ck_assert(error == MC_OK);
    told_tiles = before->tiles;
}

static bool
know_all(void *baton, const mc_store_group *group)
{
    (void)baton, (void)group;
    return true;
}

/* All of them by a handle that was open when the writer was cut off. */
START_TEST(whatever_reads_takes_back_what_was_cut_off)
{
    mc_cache *cache = store("sqlite3", manners[1]);
    const mc_tile_key level = key_at(5, 0, 0);
    const mc_tile_range all = { 0, 0, 32, 32 };
    const mc_survey_task task = { .area = all, .visit = count_told, .baton = &told_tiles };
    const mc_upkeep look = { .count = true, .known = know_all, .report = take_store };
    seen_tiles met = { .most = 1 << 14 };
    bool exists = false;
    int64_t pages = 0;
    ck_ok(load(cache, 0, TILES));
    expect_loaded(cache, 0, TILES);
    cut_a_writer_off();
    ck_ok(mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
    ck_assert_int_eq(met.count, TILES);
    cut_a_writer_off();
    ck_ok(mc_cache_exists(&exists, cache, &level, &ctx));
    ck_assert(exists);
    cut_a_writer_off();
    told_tiles = 0;
    ck_ok(mc_survey(cache, &level, &task, &ctx));
    ck_assert_int_eq(told_tiles, TILES);
    cut_a_writer_off();
    ck_ok(mc_sqlite_quota.total(&pages, cache, &ctx));
    ck_assert_int_gt(pages, TILES * TILE_BYTES);
    cut_a_writer_off();
    ck_ok(cache->ops->upkeep(cache, &look, &ctx));
    ck_assert_int_eq(told_tiles, TILES);
    cut_a_writer_off();
    expect_loaded(cache, 0, TILES);
}
END_TEST

START_TEST(metadata_are_read_after_a_writer_was_cut_off)
{
    mc_cache *cache = store("mbtiles", "");
    const mc_tile_key key = key_at(5, 0, 0);
    mc_buf *json;
    put_text(cache, &key, "tile");
    ask("INSERT INTO metadata VALUES('json', '{}')");
    ck_ok(cache->ops->metadata(&json, cache, &key, &ctx, pool));
    ck_assert_uint_eq(json->size, 2);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        bool done = sqlite3_open(path_of(""), &db) == SQLITE_OK &&
                    sqlite3_exec(db,
                                 "PRAGMA cache_size=2; BEGIN; UPDATE metadata SET value = '[]';"
                                 "CREATE TABLE more(data); INSERT INTO more VALUES(zeroblob(500000))",
                                 NULL, NULL, NULL) == SQLITE_OK;
        _exit(done ? 0 : 1);
    }
    ck_assert_int_eq(wait_for(child), 0);
    ck_assert(there("-journal"));
    ck_ok(cache->ops->metadata(&json, cache, &key, &ctx, pool));
    ck_assert_mem_eq(json->data, "{}", 2);
}
END_TEST

/* As a user who may only read: what is in the middle of a commit is an error, not a tile. */
START_TEST(who_may_not_write_reads_nothing_half)
{
    mc_cache *cache = store("sqlite3", manners[1]);
    ck_ok(load(cache, 0, TILES));
    cut_a_writer_off();
    mc_handles_destroy(process.handles);
    renew_handles();
    run_shell("chmod 755 %s; chmod 644 %s/*");
    pid_t child = fork();
    if (child == 0) {
        mc_tile *tile;
        mc_tile_key key = key_at(5, 0, 0);
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(3);
        renew_handles();
        mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
        _exit(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE ? 0 : 1);
    }
    if (geteuid() == 0)
        ck_assert_int_eq(wait_for(child), 0);
    else
        (void)wait_for(child); /* the owner may write */
    expect_loaded(cache, 0, TILES);
}
END_TEST

/* A file that cannot grow: by the limit of the process, or SQLite's own. */
static int
fill_up(mc_cache *cache, rlim_t limit)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit files = { limit, RLIM_INFINITY };
    renew_handles();
    if (setrlimit(RLIMIT_FSIZE, &files) != 0)
        _exit(100);
    for (int i = 0; i < 16; i++) {
        mc_error *error = load(cache, i * TILES, TILES);
        if (error != MC_OK && error->kind != MC_ERR_IO)
            return 101;
        if (error != MC_OK && load(cache, i * TILES, TILES) != MC_OK) /* a log that was taken in has made room */
            return i;
    }
    return 102;
}

static void
fill_disk(int manner)
{
    static const char *const inner[] = { "", "<pragma name='journal_mode'>delete</pragma>",
                                         "<pragma name='journal_mode'>wal</pragma>",
                                         "<pragma name='max_page_count'>800</pragma>" };
    restart_cache_test();
    mc_cache *cache = store("sqlite3", inner[manner]);
    pid_t child = fork();
    if (child == 0)
        _exit(fill_up(cache, manner == 3 ? RLIM_INFINITY : 3 << 20));
    int loaded = wait_for(child);
    ck_assert_msg(loaded > 0 && loaded < 16, "%d", loaded);
    expect_loaded(cache, 0, loaded * TILES);
    ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
    ck_assert_int_eq(atoi(ask("SELECT count(*) FROM tiles")), loaded * TILES);
    if (manner < 3) { /* there is room again */
        ck_ok(load(cache, loaded * TILES, TILES));
        expect_loaded(cache, 0, (loaded + 1) * TILES);
    }
}

START_TEST(a_full_disk_loses_nothing_that_was_stored)
{
    for (int i = 0; i < 4; i++)
        fill_disk(i);
}
END_TEST

static void
share_file(int manner)
{
    enum { WRITERS = 3, ROUNDS = 5 };
    restart_cache_test();
    mc_cache *cache = store("sqlite3", manners[manner]);
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        if (children[w] != 0)
            continue;
        renew_handles();
        for (int i = 0; i < ROUNDS; i++) {
            mc_error *error = load(cache, (i * WRITERS + w) * TILES, TILES);
            if (error != MC_OK) {
                fprintf(stderr, "%s\n", mc_error_chain(error, pool));
                _exit(1);
            }
        }
        mc_handles_destroy(process.handles);
        _exit(0);
    }
    for (int i = 0; i < 200; i++) { /* a reader meanwhile */
        mc_tile *tile;
        mc_tile_write wanted = tile_of(i % (ROUNDS * WRITERS * TILES), TILE_BYTES, pool);
        ck_ok(mc_cache_get(&tile, cache, &wanted.key, &ctx, pool));
        ck_assert(tile == NULL ||
                  (tile->data->size == TILE_BYTES && memcmp(tile->data->data, wanted.data->data, TILE_BYTES) == 0));
    }
    for (int w = 0; w < WRITERS; w++)
        ck_assert_int_eq(wait_for(children[w]), 0);
    expect_loaded(cache, 0, WRITERS * ROUNDS * TILES);
    ck_assert_str_eq(ask("PRAGMA integrity_check"), "ok");
}

START_TEST(several_writers_share_a_file)
{
    for (int i = 0; i < 4; i++)
        share_file(i);
}
END_TEST

typedef struct loader {
    pthread_t thread;
    mc_cache *cache;
    int number;
    mc_error *error;
    apr_pool_t *pool;
} loader;

/* As a seeder's thread: looks, then stores. */
static void *
load_and_look(void *baton)
{
    loader *me = baton;
    apr_allocator_t *allocator;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_unmanaged_ex(&me->pool, NULL, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, me->pool);
    mc_ctx mine = ctx;
    mine.pool = me->pool;
    for (int i = 0; i < 4 && me->error == MC_OK; i++) {
        int first = (i * 4 + me->number) * TILES;
        for (int j = 0; j < TILES && me->error == MC_OK; j++) {
            bool exists;
            mc_tile_key key = key_at(5, (first + j) % 32, (first + j) / 32 % 32);
            me->error = mc_cache_exists(&exists, me->cache, &key, &mine);
        }
        if (me->error == MC_OK)
            me->error = load_in(me->cache, first, TILES, me->pool);
    }
    return NULL;
}

/* From the moment when there is no file: none waits for a reader of its own process that never goes. */
START_TEST(several_threads_share_a_file)
{
    for (int round = 0; round < 4; round++) {
        restart_cache_test();
        loader loaders[4];
        for (int i = 0; i < 4; i++) {
            loaders[i] = (loader){ .cache = store("sqlite3", ""), .number = i };
            ck_assert_int_eq(pthread_create(&loaders[i].thread, NULL, load_and_look, &loaders[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(loaders[i].thread, NULL);
            ck_ok(loaders[i].error);
            apr_pool_destroy(loaders[i].pool);
        }
        expect_loaded(loaders[0].cache, 0, 16 * TILES);
        end_process();
        expect_whole_file();
    }
}
END_TEST

CACHE_MAIN("sqlite bulk", several_threads_share_a_file, a_load_leaves_one_file_in_rollback_mode,
           a_server_uses_wal_while_it_runs, a_server_waits_for_nobody_to_enter_wal, a_file_of_others_does_not_enter_wal,
           a_load_beside_others_stays_in_wal, what_a_removed_file_has_left_does_not_count,
           what_a_killed_writer_leaves_is_put_right, a_configured_journal_mode_stays, what_is_gathered_is_what_is_read,
           what_is_committed_survives_a_kill, readers_take_back_what_was_cut_off,
           whatever_reads_takes_back_what_was_cut_off, metadata_are_read_after_a_writer_was_cut_off,
           who_may_not_write_reads_nothing_half, a_full_disk_loses_nothing_that_was_stored,
           several_writers_share_a_file)
