/* Files that nobody writes to are read without locks, and every change shows at once all the same. */
#include "cache_fixture.h"

#include <sqlite3.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/stamp.h"
#include "db/sqlite/handles.h"

enum { READS = 100 }; /* more than it takes until a handle without locks is open */

static mc_cache *
make_unremembered(const char *type)
{
    return cache_of(apr_psprintf(
        pool, "<cache name='c' type='%s'><dbfile>%s/a.db</dbfile><memory>false</memory></cache>", type, cache_folder));
}

static const char *
file_path(void)
{
    return apr_pstrcat(pool, cache_folder, "/a.db", NULL);
}

static mc_stamp
wait_until_settled(void)
{
    mc_stamp stamp;
    do {
        usleep(1000);
        ck_assert(mc_stamp_take(&stamp, file_path()));
    } while (!mc_stamp_settled(&stamp, apr_time_now()));
    return stamp;
}

static void
read_often(mc_cache *cache, const mc_tile_key *key, const char *text)
{
    wait_until_settled();
    for (int i = 0; i < READS; i++)
        expect_text(cache, key, text);
}

/* Another process that runs SQL on the file and keeps its connection, until it is told to end. */
typedef struct other_process {
    pid_t child;
    int go;
} other_process;

static other_process
start_other(const char *sql)
{
    int go[2], ready[2];
    char byte;
    ck_assert(pipe(go) == 0 && pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        close(go[1]);
        int code = sqlite3_open(file_path(), &db);
        if (code == SQLITE_OK)
            code = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (write(ready[1], code == SQLITE_OK ? "y" : "n", 1) != 1 || read(go[0], &byte, 1) != 0)
            _exit(1);
        _exit(sqlite3_close(db) == SQLITE_OK ? 0 : 1);
    }
    close(go[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return (other_process){ child, go[1] };
}

static void
end_other(other_process other)
{
    int status;
    close(other.go);
    ck_assert_int_eq(waitpid(other.child, &status, 0), other.child);
    ck_assert_int_eq(status, 0);
}

#define CHANGE "UPDATE tiles SET data = CAST('%s' AS BLOB)"

/* A lock of another process that changes nothing does not hold up who needs no lock. */
START_TEST(what_nobody_writes_is_read_without_locks)
{
    static const char *const types[] = { "sqlite3", "mbtiles" };
    for (int i = 0; i < 2; i++) {
        restart_cache_test();
        mc_cache *cache = make_unremembered(types[i]);
        mc_tile_key key = key_at(1, 0, 0), other_key = key_at(1, 1, 0);
        put_text(cache, &key, "tile");
        read_often(cache, &key, "tile");
        other_process other = start_other("BEGIN EXCLUSIVE");
        ctx.deadline = mc_clock_now() + apr_time_from_msec(200);
        expect_text(cache, &key, "tile");
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &other_key, &ctx, pool));
        ck_assert_ptr_null(tile);
        ctx.deadline = 0;
        end_other(other);
    }
}
END_TEST

START_TEST(changes_show_at_once)
{
    mc_cache *cache = make_unremembered("sqlite3");
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "first");
    read_often(cache, &key, "first");
    for (int i = 0; i < 5; i++) {
        const char *text = apr_psprintf(pool, "from outside %d", i);
        end_other(start_other(apr_psprintf(pool, CHANGE, text)));
        expect_text(cache, &key, text);
        read_often(cache, &key, text);
        text = apr_psprintf(pool, "from inside %d", i);
        put_text(cache, &key, text);
        expect_text(cache, &key, text);
        read_often(cache, &key, text);
    }
    put_text(cache, &key, "last");
    int before = count_open_files();
    for (int i = 0; i < 5; i++) {
        end_other(start_other(apr_psprintf(pool, CHANGE, "again")));
        read_often(cache, &key, "again");
    }
    ck_assert_int_le(count_open_files(), before + 1); /* the one handle of the last state */
}
END_TEST

/* Its pages have been in the file for a while, without a journal that could be seen: only its lock tells. */
START_TEST(a_writer_in_the_middle_is_waited_for)
{
    mc_cache *cache = make_unremembered("sqlite3");
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "whole");
    read_often(cache, &key, "whole");
    other_process other = start_other("PRAGMA journal_mode=MEMORY; PRAGMA cache_size=1; BEGIN EXCLUSIVE;"
                                      "UPDATE tiles SET data = CAST('half' AS BLOB); CREATE TABLE more(a);"
                                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200)"
                                      " INSERT INTO more SELECT zeroblob(4000) FROM n");
    wait_until_settled();
    for (int i = 0; i < 3; i++) {
        mc_tile *tile;
        ctx.deadline = mc_clock_now() + apr_time_from_msec(100);
        ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    }
    ctx.deadline = 0;
    end_other(other); /* which rolls it back */
    expect_text(cache, &key, "whole");
    read_often(cache, &key, "whole");
}
END_TEST

START_TEST(a_log_that_comes_later_is_read)
{
    mc_cache *cache = make_unremembered("sqlite3");
    mc_tile_key key = key_at(1, 0, 0);
    put_text(cache, &key, "in the file");
    read_often(cache, &key, "in the file");
    other_process other = start_other("PRAGMA journal_mode=WAL");
    read_often(cache, &key, "in the file");
    end_other(start_other(apr_psprintf(pool, CHANGE, "in the log")));
    expect_text(cache, &key, "in the log");
    read_often(cache, &key, "in the log");
    end_other(other);
    expect_text(cache, &key, "in the log");
}
END_TEST

static mc_handle *
read_version(mc_handles *handles, const mc_stamp *stamp, const mc_open_options *how)
{
    mc_handle *handle;
    sqlite3_stmt *statement;
    int64_t version;
    ck_ok(mc_handle_acquire(&handle, handles, file_path(), stamp, how, &ctx, pool));
    ck_ok(mc_handle_statement(&statement, handle, "PRAGMA schema_version", pool));
    ck_ok(mc_handle_number(&version, handle, statement, "reading", pool));
    return handle;
}

/* What is read while somebody changes the file does not count, and no handle outlives its stamp. */
START_TEST(what_changes_meanwhile_does_not_count)
{
    end_other(start_other("CREATE TABLE t(a)"));
    mc_open_options reading = { .profile = 0 }, settled = { .immutable = true, .settled = true };
    reading.profile = mc_open_options_profile(&reading);
    settled.profile = mc_open_options_profile(&settled);
    ck_assert(reading.profile != settled.profile);
    mc_handles *handles = mc_handles_create(4);
    mc_stamp stamp = wait_until_settled();
    apr_time_t taken = apr_time_now();
    for (int i = 0; i < READS; i++) {
        mc_handle *reader = read_version(handles, &stamp, &reading);
        mc_handle_settle(reader, &stamp, taken, &settled, &ctx, pool);
        mc_handle_release(reader, true);
    }
    ck_assert_int_eq(mc_handles_open(handles), 2);
    mc_handle *handle = mc_handle_take_settled(handles, file_path(), &stamp, taken, &settled, &ctx, pool);
    ck_assert_ptr_nonnull(handle);
    ck_assert_ptr_null(mc_handle_take_settled(handles, file_path(), &stamp, taken, &settled, &ctx, pool)); /* busy */
    ck_assert(mc_handle_was_settled(handle));
    end_other(start_other("INSERT INTO t VALUES(1)"));
    ck_assert(!mc_handle_was_settled(handle));
    mc_handle_release(handle, false);
    ck_assert_ptr_null(mc_handle_take_settled(handles, file_path(), &stamp, taken, &settled, &ctx, pool));
    mc_handle *late = read_version(handles, &stamp, &reading); /* the stamp is not the file's any more */
    for (int i = 0; i < READS; i++)
        mc_handle_settle(late, &stamp, taken, &settled, &ctx, pool);
    mc_handle_release(late, true);
    ck_assert_int_eq(mc_handles_open(handles), 1);
    mc_handles_destroy(handles);
}
END_TEST

CACHE_MAIN("sqlite settled", what_nobody_writes_is_read_without_locks, changes_show_at_once,
           a_writer_in_the_middle_is_waited_for, a_log_that_comes_later_is_read, what_changes_meanwhile_does_not_count)
