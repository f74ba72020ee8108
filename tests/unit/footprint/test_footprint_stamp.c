/* What is remembered of product files, and that nothing outlives a change of them. */
#include "cache/cache_counters.h"
#include "db/sqlite/sqlite_counters.h"
#include "footprint/footprint_counters.h"
#include "footprint_fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "grid/grid_private.h"

static const patch first = { 10, 20, 30, 40, 200 }, second = { 50, 60, 71, 80, 255 }, other = { 1, 2, 3, 4, 100 },
                   nothing = { 0 };

#define ROLLBACK "<pragma name='journal_mode'>delete</pragma>"

START_TEST(a_footprint_is_remembered)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    put_patch(cache, "b", 3, 1, 2, second);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 2, first, false);
    uint64_t read = counted_events(MC_COUNT_cache_hits_total);
    expect_patch(cache, "a", 3, 1, 2, first, true);
    expect_patch(cache, "b", 3, 1, 2, second, false);
    expect_patch(cache, "b", 3, 1, 2, second, true);
    ck_assert_uint_eq(counted_events(MC_COUNT_cache_hits_total), read + 1);
    ck_assert_uint_eq(counted_events(MC_COUNT_footprint_hits_total), 2);
    ck_assert_uint_eq(counted_events(MC_COUNT_footprint_misses_total), 2);
}
END_TEST

START_TEST(what_changed_a_moment_ago_is_not)
{
    mc_cache *cache = product_cache("");
    wait_settled();
    put_patch(cache, "a", 3, 1, 2, first);
    expect_patch(cache, "a", 3, 1, 2, first, false);
    bool known = show_patch(cache, "a", 3, 1, 2).known;
    struct stat info;
    ck_assert_int_eq(stat(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &info), 0);
    apr_time_t age = apr_time_now() - ((apr_time_t)info.st_mtim.tv_sec * 1000000 + info.st_mtim.tv_nsec / 1000);
    if (age < 50000) /* on a machine that was held up there is nothing to see here */
        ck_assert(!known);
}
END_TEST

/* A reload may define a grid anew under its name: what was remembered of the one before is not found. The rows of the
 * last level are as many as before, and tiles lie at other places. */
START_TEST(a_grid_that_is_defined_anew_knows_nothing)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 2, first, false);
    expect_patch(cache, "a", 3, 1, 3, nothing, false); /* the file is asked for all of its tiles */
    expect_patch(cache, "a", 3, 1, 4, nothing, true);
    mc_tile_key stored = product_key("a", 3, 1, 2), absent = product_key("a", 3, 1, 4);
    mc_grid *shifted = apr_pmemdup(pool, stored.grid, sizeof(*shifted));
    shifted->srs = "EPSG:3857";
    shifted->extent.minx += 1000;
    mc_grid_set_definition(shifted);
    stored.grid = absent.grid = shifted;
    ck_assert(!show_key(cache, &stored).known);
    ck_assert(!show_key(cache, &absent).known);
    ck_assert(show_key(cache, &stored).known); /* and has a memory of its own */
    expect_patch(cache, "a", 3, 1, 2, first, true);
}
END_TEST

START_TEST(the_first_absence_asks_for_all)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    put_patch(cache, "a", 2, 1, 1, second);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    for (int i = 0; i < 8; i++)
        expect_patch(cache, "a", 3, i, 5, nothing, true);
    expect_patch(cache, "a", 5, 1, 2, nothing, true);
    ck_assert_uint_eq(counted_events(MC_COUNT_coverage_skips_total), 9);
    ck_assert_uint_eq(counted_events(MC_COUNT_footprint_absences_total), 0);
    expect_patch(cache, "a", 3, 1, 2, first, false); /* what is covered is still read */
    expect_patch(cache, "a", 2, 1, 1, second, false);
    ck_assert_uint_eq(counted_events(MC_COUNT_cache_misses_total), 1);
}
END_TEST

START_TEST(other_statements_remember_absences_one_by_one)
{
    mc_cache *cache =
        product_cache("<queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z LIMIT 1</get></queries>");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    expect_patch(cache, "a", 3, 1, 3, nothing, true);
    expect_patch(cache, "a", 3, 1, 4, nothing, false);
    ck_assert_uint_eq(counted_events(MC_COUNT_coverage_skips_total), 0);
    ck_assert_uint_eq(counted_events(MC_COUNT_footprint_absences_total), 1);
}
END_TEST

START_TEST(coverage_is_of_what_the_statement_asks_for)
{
    char dbfile[128];
    snprintf(dbfile, sizeof(dbfile), "<cache name='c' type='sqlite3'><dbfile>%s/all.db</dbfile></cache>", cache_folder);
    mc_cache *cache = cache_of(dbfile); /* one file; its default statement compares dim, too */
    put_patch(cache, "a", 3, 1, 2, first);
    put_patch(cache, "b", 3, 5, 6, second);
    wait_settled();
    expect_patch(cache, "a", 3, 5, 6, nothing, false);
    expect_patch(cache, "a", 3, 1, 2, first, false);
    expect_patch(cache, "a", 3, 5, 6, nothing, true);
    expect_patch(cache, "b", 3, 1, 2, nothing, false);
    expect_patch(cache, "b", 3, 5, 6, second, false);
    mc_tile_key elsewhere = product_key("a", 3, 1, 2);
    elsewhere.tileset = "another";
    shown found = show_key(cache, &elsewhere);
    ck_ok(found.error);
    ck_assert_ptr_null(found.footprint);
}
END_TEST

START_TEST(files_with_too_many_tiles_keep_their_coverage)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    write_outside(
        "a", "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
             " INSERT INTO tiles(tileset, grid, x, y, z, data, dim) SELECT 'ts', 'G', i, 0, 20, x'23', 'a' FROM n");
    wait_settled();
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    expect_patch(cache, "a", 3, 1, 3, nothing, true);
    expect_patch(cache, "a", 3, 1, 4, nothing, false);
    expect_patch(cache, "a", 3, 1, 2, first, false);
    ck_assert_uint_eq(counted_events(MC_COUNT_coverage_skips_total), 0);
}
END_TEST

START_TEST(numbers_that_are_no_tiles_do_not_hide_any)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    write_outside("a", "INSERT INTO tiles(tileset, grid, x, y, z, data, dim) VALUES"
                       " ('ts', 'G', 99999999999, 0, 3, x'00', 'a'), ('ts', 'G', NULL, 'x', 1.5, x'00', 'a')");
    wait_settled();
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    expect_patch(cache, "a", 3, 1, 2, first, false);
}
END_TEST

START_TEST(what_may_render_has_no_final_word)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 3, nothing, false); /* another tileset of the same name learns the coverage */
    mc_tile_key key = product_key("a", 3, 1, 3);
    key.renderable = true;
    for (int i = 0; i < 2; i++) {
        shown found = show_key(cache, &key);
        ck_ok(found.error);
        ck_assert(!found.known && found.footprint == NULL);
    }
}
END_TEST

/* Each of these is remembered before, and must show after. */
static void
remember_all(mc_cache *cache)
{
    put_patch(cache, "a", 3, 1, 2, first);
    put_patch(cache, "a", 3, 1, 3, other);
    wait_settled();
    for (int i = 0; i < 2; i++) {
        expect_patch(cache, "a", 3, 1, 2, first, i > 0);
        expect_patch(cache, "a", 3, 1, 3, other, i > 0);
        expect_patch(cache, "a", 3, 1, 4, nothing, i > 0);
    }
}

static void
check_writes(mc_cache *cache)
{
    remember_all(cache);
    write_outside("a", apr_pstrcat(pool, "UPDATE tiles SET data=", patch_literal(second), " WHERE y=2", NULL));
    expect_patch(cache, "a", 3, 1, 2, second, false);
    write_outside("a",
                  apr_pstrcat(pool, "INSERT INTO tiles(tileset, grid, x, y, z, data, dim) VALUES('ts', 'G', 1, 4, 3, ",
                              patch_literal(first), ", 'a')", NULL));
    expect_patch(cache, "a", 3, 1, 4, first, false);
    write_outside("a", "DELETE FROM tiles WHERE y=3");
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    wait_settled();
    expect_content(cache, "a", 3, 1, 3, nothing);
    expect_patch(cache, "a", 3, 1, 2, second, false);
    expect_patch(cache, "a", 3, 1, 2, second, true);
    expect_patch(cache, "a", 3, 1, 3, nothing, true);
}

START_TEST(writes_of_others_show_in_rollback_mode)
{
    check_writes(product_cache(ROLLBACK));
}
END_TEST

START_TEST(writes_of_others_show_in_wal_mode)
{
    check_writes(product_cache("<pragma name='journal_mode'>wal</pragma>"));
}
END_TEST

START_TEST(a_file_that_turns_to_wal_mode_shows_its_writes)
{
    mc_cache *cache = product_cache(ROLLBACK);
    remember_all(cache);
    /* Somebody holds the log open, so that the change stays there. */
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA journal_mode=wal", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 3; i++) {
        patch wanted = i % 2 == 0 ? second : first;
        char *sql = apr_pstrcat(pool, "UPDATE tiles SET data=", patch_literal(wanted), " WHERE y=2", NULL);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        expect_patch(cache, "a", 3, 1, 2, wanted, false);
        wait_settled();
        expect_content(cache, "a", 3, 1, 2, wanted);
        expect_patch(cache, "a", 3, 1, 2, wanted, true);
    }
    sqlite3_close(db);
    shown found = show_patch(cache, "a", 3, 1, 2);
    ck_ok(found.error);
    check_patch(found.footprint, second);
}
END_TEST

START_TEST(writes_of_our_own_show)
{
    mc_cache *cache = product_cache("");
    remember_all(cache);
    put_patch(cache, "a", 3, 1, 2, second);
    expect_patch(cache, "a", 3, 1, 2, second, false);
    put_patch(cache, "a", 3, 1, 4, first);
    expect_patch(cache, "a", 3, 1, 4, first, false);
    mc_tile_key key = product_key("a", 3, 1, 3);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
}
END_TEST

START_TEST(our_own_writes_show_though_the_times_lie)
{
    mc_cache *cache = product_cache(ROLLBACK);
    remember_all(cache);
    const char *path = apr_pstrcat(pool, cache_folder, "/a.db", NULL);
    unsigned before = mc_memory_generation(process.memory, path);
    put_patch(cache, "a", 3, 1, 2, second);
    ck_assert_uint_ne(mc_memory_generation(process.memory, path), before);
}
END_TEST

START_TEST(a_file_renamed_over_another_shows)
{
    mc_cache *cache = product_cache(ROLLBACK);
    remember_all(cache);
    put_patch(cache, "new", 3, 1, 4, second);
    write_outside("new", "UPDATE tiles SET dim='a'");
    run_shell("touch -r %s/a.db %s/new.db && mv %s/new.db %s/a.db"); /* not even younger */
    wait_settled();
    expect_patch(cache, "a", 3, 1, 2, nothing, false);
    expect_patch(cache, "a", 3, 1, 4, second, false);
    expect_patch(cache, "a", 3, 1, 3, nothing, true); /* the look of a moment ago says so */
}
END_TEST

START_TEST(files_come_and_go)
{
    mc_cache *cache = product_cache(ROLLBACK);
    expect_patch(cache, "a", 3, 1, 2, nothing, true); /* its look says so */
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    expect_patch(cache, "a", 3, 1, 2, first, false);
    expect_patch(cache, "a", 3, 1, 2, first, true);
    run_shell("mv %s/a.db %s/aside.db");
    expect_patch(cache, "a", 3, 1, 2, nothing, true);
    run_shell("mv %s/aside.db %s/a.db"); /* its ctime tells; what was read may be used again */
    shown found = show_patch(cache, "a", 3, 1, 2);
    ck_ok(found.error);
    check_patch(found.footprint, first);
}
END_TEST

START_TEST(damaged_files_are_errors_and_not_remembered)
{
    mc_cache *cache = product_cache(ROLLBACK);
    remember_all(cache);
    run_shell("cp %s/a.db %s/good.db && truncate -s 5000 %s/a.db");
    for (int i = 0; i < 2; i++) {
        ck_fails(CORRUPT, show_patch(cache, "a", 3, 1, 2).error);
        wait_settled();
    }
    run_shell("head -c 20000 /dev/zero | tr '\\0' 'x' > %s/a.db");
    ck_fails(CORRUPT, show_patch(cache, "a", 3, 1, 2).error);
    run_shell("truncate -s 0 %s/a.db"); /* a database without tables */
    ck_fails(IO, show_patch(cache, "a", 3, 1, 2).error);
    run_shell("cat %s/good.db > %s/a.db");
    expect_patch(cache, "a", 3, 1, 2, first, false);
}
END_TEST

START_TEST(a_damaged_tile_is_an_error_and_not_remembered)
{
    mc_cache *cache = product_cache(ROLLBACK);
    remember_all(cache);
    write_outside("a", "UPDATE tiles SET data=substr(data, 1, length(data) / 2) WHERE y=2");
    wait_settled();
    for (int i = 0; i < 2; i++) {
        shown found = show_patch(cache, "a", 3, 1, 2);
        ck_fails(CORRUPT, found.error);
        ck_assert(!found.known);
        ck_assert_ptr_nonnull(strstr(found.error->message, "3/1/2"));
        ck_assert_ptr_null(strstr(found.error->message, cache_folder));
    }
    expect_patch(cache, "a", 3, 1, 3, other, false);
    write_outside("a", apr_pstrcat(pool, "UPDATE tiles SET data=", patch_literal(second), " WHERE y=2", NULL));
    expect_patch(cache, "a", 3, 1, 2, second, false);
}
END_TEST

START_TEST(a_locked_file_is_an_error_until_it_is_free)
{
    mc_cache *cache = product_cache(ROLLBACK);
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    ctx.deadline = mc_clock_now() + 200000;
    ck_fails(UNAVAILABLE, show_patch(cache, "a", 3, 1, 2).error);
    ctx.deadline = 0;
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    expect_patch(cache, "a", 3, 1, 2, first, false);
    expect_patch(cache, "a", 3, 1, 2, first, true);
    /* What is known needs no lock. */
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    expect_patch(cache, "a", 3, 1, 2, first, true);
    sqlite3_close(db);
}
END_TEST

START_TEST(an_older_transaction_is_not_read_for_a_newer_look)
{
    mc_cache *cache = product_cache("<pragma name='journal_mode'>wal</pragma>");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    mc_tile_key key = product_key("a", 3, 1, 2);
    mc_cache_reads_begin(&ctx);
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool)); /* its transaction stays open */
    write_outside("a", apr_pstrcat(pool, "UPDATE tiles SET data=", patch_literal(second), NULL));
    wait_settled();
    expect_patch(cache, "a", 3, 1, 2, second, false);
    mc_cache_reads_end(&ctx);
    expect_patch(cache, "a", 3, 1, 2, second, true);
}
END_TEST

START_TEST(a_change_between_look_and_fetch_is_not_kept_for_the_old_stamp)
{
    mc_cache *cache = product_cache(ROLLBACK);
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    mc_footprint_want want = { .key = product_key("a", 3, 1, 2) };
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, &want, 1, &ctx, pool));
    write_outside("a", apr_pstrcat(pool, "UPDATE tiles SET data=", patch_literal(second), NULL));
    ck_ok(mc_footprints_fetch(batch, 0, &ctx));
    check_patch(want.footprint, second);
    expect_patch(cache, "a", 3, 1, 2, second, false);
}
END_TEST

/* No file is left open, and none is opened by SQLite. */
START_TEST(small_files_are_read_without_handles)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    uint64_t handles = counted_events(MC_COUNT_handles_opened_total);
    int files = count_open_files();
    expect_patch(cache, "a", 3, 1, 2, first, false);
    expect_patch(cache, "a", 3, 1, 3, nothing, false);
    expect_patch(cache, "a", 3, 1, 4, nothing, true);
    ck_assert_uint_eq(counted_events(MC_COUNT_handles_opened_total), handles);
    ck_assert_uint_gt(counted_events(MC_COUNT_bare_opens_total), 0);
    ck_assert_int_eq(count_open_files(), files);
}
END_TEST

/* The writer ends with half of its pages in the file and the rest of the old ones in the journal. */
START_TEST(half_of_a_commit_is_not_shown)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        bool spilt = sqlite3_open(apr_pstrcat(pool, cache_folder, "/a.db", NULL), &db) == SQLITE_OK &&
                     sqlite3_exec(db,
                                  "pragma journal_mode=delete; pragma cache_size=1; pragma cache_spill=1; begin;"
                                  "update tiles set data = zeroblob(100); create table much(a);"
                                  "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)"
                                  "insert into much select zeroblob(2000) from n;",
                                  NULL, NULL, NULL) == SQLITE_OK;
        _exit(spilt ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    struct stat info;
    ck_assert_int_eq(stat(apr_pstrcat(pool, cache_folder, "/a.db-journal", NULL), &info), 0);
    ck_assert_int_gt(info.st_size, 0);
    expect_patch(cache, "a", 3, 1, 2, first, false);
}
END_TEST

CACHE_MAIN("footprint stamp", a_footprint_is_remembered, what_changed_a_moment_ago_is_not,
           a_grid_that_is_defined_anew_knows_nothing, the_first_absence_asks_for_all,
           other_statements_remember_absences_one_by_one, coverage_is_of_what_the_statement_asks_for,
           files_with_too_many_tiles_keep_their_coverage, numbers_that_are_no_tiles_do_not_hide_any,
           what_may_render_has_no_final_word, writes_of_others_show_in_rollback_mode, writes_of_others_show_in_wal_mode,
           a_file_that_turns_to_wal_mode_shows_its_writes, writes_of_our_own_show,
           our_own_writes_show_though_the_times_lie, a_file_renamed_over_another_shows, files_come_and_go,
           damaged_files_are_errors_and_not_remembered, a_damaged_tile_is_an_error_and_not_remembered,
           a_locked_file_is_an_error_until_it_is_free, an_older_transaction_is_not_read_for_a_newer_look,
           a_change_between_look_and_fetch_is_not_kept_for_the_old_stamp, small_files_are_read_without_handles,
           half_of_a_commit_is_not_shown)
