/* Many products of which few are in sight: what is left out has nothing there, whatever happens to the files, and also
 * where the folder is watched and nobody looks at them. */
#include "base/clock.h"
#include "cache/cache_counters.h"
#include "db/sqlite/sqlite_counters.h"
#include "footprint/coverage_index.h"
#include "footprint/folder_watch.h"
#include "footprint/footprint_counters.h"
#include "footprint_fixture.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const patch one = { 1, 1, 8, 8, 255 }, other = { 2, 2, 9, 9, 255 };

/* Changes of folders are reported from now on. False where this system has no watch left or the folder cannot have one:
 * then all is as without. */
static bool
watch_folders(void)
{
    process.watches = mc_folder_watches_create();
    return mc_folder_watch(process.watches, cache_folder, &ctx) != 0;
}

static void
end_watches(void)
{
    mc_folder_watches_destroy(process.watches);
    process.watches = NULL;
}

static mc_footprint_sift
sift_of(const mc_dimension_value *const *dimensions, int count, int from, int to)
{
    return (mc_footprint_sift){ product_key("", 3, 0, 2), dimensions, count, { from, 2, to, 3 } };
}

/* What both ways find of some products and the tiles 0..4 of a row: all at once, and combination by combination. */
enum { SIFTED = 5, SIFTED_TILES = 5 };
static const char *const sifted_names[SIFTED] = { "a", "b", "nothing", "wal", "c" };

/* The number of wants that are left; they are the same footprints as without sifting. */
static int
compare_sifted(mc_cache *cache)
{
    const mc_dimension_value *dimensions[SIFTED];
    for (int i = 0; i < SIFTED; i++)
        dimensions[i] = product_key(sifted_names[i], 3, 0, 2).dimensions;
    mc_footprint_sift sift = sift_of(dimensions, SIFTED, 0, SIFTED_TILES);
    mc_footprints *batch;
    mc_footprint_want wants[SIFTED * SIFTED_TILES];
    int kept[SIFTED], kept_count, indexes[SIFTED * SIFTED_TILES], count = 0;
    bool wanted[SIFTED][SIFTED_TILES] = { { false } };
    ck_ok(mc_footprints_begin(&batch, kept, &kept_count, cache, &sift, &ctx, pool));
    ck_assert_ptr_nonnull(batch);
    for (int j = 0; j < kept_count; j++) {
        ck_assert(j == 0 || kept[j] < kept[j - 1]);
        for (int x = 0; x < SIFTED_TILES; x++) {
            if (!mc_footprints_may_have(batch, j, &(mc_tile_range){ x, 2, x + 1, 3 }))
                continue;
            indexes[count] = j;
            wants[count].key = product_key("", 3, x, 2);
            wants[count++].key.dimensions = dimensions[kept[j]];
            wanted[kept[j]][x] = true;
        }
    }
    ck_ok(mc_footprints_complete(batch, wants, indexes, count, &ctx, pool));
    for (int i = 0; i < count; i++)
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
    for (int i = 0, left = count; i < SIFTED * SIFTED_TILES; i++) {
        int product = i / SIFTED_TILES, x = i % SIFTED_TILES;
        const mc_footprint *sifted = NULL;
        for (int j = 0; j < left && wanted[product][x]; j++)
            if (wants[j].key.x == x && wants[j].key.dimensions == dimensions[product])
                sifted = wants[j].footprint;
        mc_tile_key key = product_key(sifted_names[product], 3, x, 2);
        shown plain = show_key(cache, &key);
        ck_ok(plain.error);
        ck_assert_int_eq(plain.footprint == NULL, sifted == NULL);
        ck_assert(sifted == NULL || sifted->tag == plain.footprint->tag);
    }
    return count;
}

/* Whatever happens to the files is seen by the next who sifts. */
static void
check_changes(void)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, one);
    put_patch(cache, "a", 3, 3, 2, one);
    put_patch(cache, "b", 3, 0, 7, one);
    put_patch(cache, "c", 4, 1, 2, one);
    put_patch(cache, "wal", 3, 0, 5, one);
    write_outside("wal", "PRAGMA journal_mode=wal");
    wait_settled();
    ck_assert_int_eq(compare_sifted(cache), 4 * SIFTED_TILES); /* nothing is known but that one file is not there */
    wait_settled();                                            /* whoever reads in WAL mode makes the -wal */
    compare_sifted(cache);
    uint64_t skips = counted_events(MC_COUNT_coverage_skips_total);
    ck_assert_int_eq(compare_sifted(cache), 2);
    ck_assert_uint_gt(counted_events(MC_COUNT_coverage_skips_total), skips);
    write_outside("b", apr_psprintf(pool, "UPDATE tiles SET y = 2, data = %s", patch_literal(other)));
    write_outside("wal", "UPDATE tiles SET y = 2");
    put_patch(cache, "nothing", 3, 4, 2, other);
    compare_sifted(cache);
    wait_settled();
    compare_sifted(cache);
    ck_assert_int_eq(compare_sifted(cache), 5);
    write_outside("b", "UPDATE tiles SET dim = 'c'");
    ck_assert_int_eq(
        rename(apr_pstrcat(pool, cache_folder, "/b.db", NULL), apr_pstrcat(pool, cache_folder, "/c.db", NULL)), 0);
    ck_assert_int_eq(unlink(apr_pstrcat(pool, cache_folder, "/a.db", NULL)), 0);
    compare_sifted(cache);
    wait_settled();
    compare_sifted(cache);
    ck_assert_int_eq(compare_sifted(cache), 3);
}

START_TEST(sifting_leaves_out_what_is_not_there)
{
    check_changes();
    ck_assert_uint_eq(counted_events(MC_COUNT_watched_files_total), 0);
}
END_TEST

START_TEST(so_it_does_where_the_folder_is_watched)
{
    bool watched = watch_folders();
    check_changes();
    ck_assert_int_eq(counted_events(MC_COUNT_watched_files_total) > 0, watched);
    end_watches();
}
END_TEST

START_TEST(files_by_tile_are_not_sifted)
{
    const mc_dimension_value *dimensions[1] = { product_key("a", 3, 0, 2).dimensions };
    mc_cache *cache = cache_of(
        apr_psprintf(pool,
                     "<cache name='c' type='sqlite3'><dbfile>%s/{dim:product}-{x}.db</dbfile><xcount>1</xcount>"
                     "<ycount>1</ycount></cache>",
                     cache_folder));
    mc_footprint_sift sift = sift_of(dimensions, 1, 0, SIFTED_TILES);
    mc_footprints *batch;
    int kept[1], count;
    ck_ok(mc_footprints_begin(&batch, kept, &count, cache, &sift, &ctx, pool));
    ck_assert_ptr_null(batch);
}
END_TEST

/* --- a catalogue of a thousand products, of which none is in sight at first --------------------------------------- */

enum { PRODUCTS = 1000, COMMITS = 200 };
static const mc_dimension_value *products[PRODUCTS]; /* their files are in a folder that a link leads to */
static mc_cache *catalogue;

static const char *
product_name(int product)
{
    return apr_psprintf(pool, "p%03d", product);
}

static const char *
path_of_product(int product)
{
    return apr_pstrcat(pool, cache_folder, "/now/", product_name(product), ".db", NULL);
}

static void
make_products(void)
{
    mc_memory_destroy(process.memory);
    process.memory = mc_memory_create(64 << 20);
    catalogue = cache_of(
        apr_psprintf(pool,
                     "<cache name='c' type='sqlite3'><dbfile>%s/now/{dim:product}.db</dbfile>"
                     "<queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z</get></queries></cache>",
                     cache_folder));
    run_shell("mkdir %s/first && ln -s first %s/now");
    put_patch(catalogue, "p000", 3, 0, 2, one);
    write_outside("now/p000", "CREATE UNIQUE INDEX xyz ON tiles(x, y, z)");
    run_shell("cd %s/now && tee $(seq -f p%03g.db 1 999) < p000.db > /dev/null");
    for (int i = 0; i < PRODUCTS; i++)
        products[i] = product_key(product_name(i), 3, 0, 2).dimensions;
    wait_settled();
}

/* Tiles that a map of the columns 4 to 7 shows. */
static int
count_shown(void)
{
    apr_pool_t *whole = ctx.pool, *request;
    apr_pool_create(&request, whole);
    ctx.pool = request;
    mc_footprint_sift sift = sift_of(products, PRODUCTS, 4, 8);
    mc_footprints *batch;
    int kept[PRODUCTS], kept_count, count = 0, shown_tiles = 0;
    ck_ok(mc_footprints_begin(&batch, kept, &kept_count, catalogue, &sift, &ctx, request));
    mc_footprint_want *wants = apr_pcalloc(request, sizeof(*wants) * PRODUCTS * 4);
    int *indexes = apr_pcalloc(request, sizeof(int) * PRODUCTS * 4);
    for (int j = 0; j < kept_count; j++)
        for (int x = 4; x < 8; x++)
            if (mc_footprints_may_have(batch, j, &(mc_tile_range){ x, 2, x + 1, 3 })) {
                indexes[count] = j;
                wants[count].key = sift.key;
                wants[count].key.x = x;
                wants[count++].key.dimensions = products[kept[j]];
            }
    ck_ok(mc_footprints_complete(batch, wants, indexes, count, &ctx, request));
    for (int i = 0; i < count; i++) {
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
        shown_tiles += wants[i].footprint != NULL;
    }
    apr_pool_destroy(request);
    ctx.pool = whole;
    return shown_tiles;
}

/* Until nothing is looked at that is not in sight. */
static void
learn_products(bool watched)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(count_shown(), 0);
    ck_assert_uint_eq(counted_events(MC_COUNT_watched_files_total), watched ? PRODUCTS : 0);
}

static void
move_into_sight(const char *path)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA synchronous=off; UPDATE tiles SET x = 5", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Another process: commits when it is told to, and says so at once. */
static pid_t
start_writer(int *order, int *done)
{
    int orders[2], answers[2];
    ck_assert_int_eq(pipe(orders), 0);
    ck_assert_int_eq(pipe(answers), 0);
    pid_t writer = fork();
    if (writer == 0) {
        int product;
        close(orders[1]);
        while (read(orders[0], &product, sizeof(product)) == sizeof(product)) {
            move_into_sight(path_of_product(product));
            if (write(answers[1], &product, sizeof(product)) != sizeof(product))
                break;
        }
        _exit(0);
    }
    close(orders[0]);
    close(answers[1]);
    *order = orders[1];
    *done = answers[0];
    return writer;
}

START_TEST(commits_of_another_process_are_seen_by_the_next_map)
{
    int order, done, status;
    make_products();
    run_shell("mv %s/now/p999.db %s");
    bool watched = watch_folders();
    learn_products(watched);
    pid_t writer = start_writer(&order, &done);
    for (int i = 0; i < COMMITS; i++) {
        int product = (i * 7 + 3) % PRODUCTS;
        ck_assert_int_eq(write(order, &product, sizeof(product)), sizeof(product));
        ck_assert_int_eq(read(done, &product, sizeof(product)), sizeof(product));
        ck_assert_int_eq(count_shown(), i + 1);
    }
    close(order);
    close(done);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    move_into_sight(apr_pstrcat(pool, cache_folder, "/p999.db", NULL));
    ck_assert_int_eq(count_shown(), COMMITS);
    run_shell("mv %s/p999.db %s/now");
    ck_assert_int_eq(count_shown(), COMMITS + 1);
    uint64_t unlooked = counted_events(MC_COUNT_watched_files_total);
    ck_assert_int_eq(unlooked > (uint64_t)COMMITS * PRODUCTS / 2, watched); /* the watch has answered all the while */
    end_watches();
}
END_TEST

/* What comes by a way that no watch reports is seen by a look at each file in turn. */
START_TEST(a_write_by_another_name_is_seen_soon)
{
    make_products();
    bool watched = watch_folders();
    learn_products(watched);
    run_shell("ln %s/now/p500.db %s/linked.db");
    move_into_sight(apr_pstrcat(pool, cache_folder, "/linked.db", NULL));
    for (int i = 0; i < 5000 && count_shown() == 0; i++)
        usleep(20000);
    ck_assert_int_eq(count_shown(), 1);
    end_watches();
}
END_TEST

/* Links, whose files may be written to under other names, are looked at each time; so is all of a folder that a link
 * leads to, once the link leads elsewhere. */
START_TEST(links_are_looked_at)
{
    make_products();
    run_shell("mv %s/now/p100.db %s && ln -s ../p100.db %s/now && ln %s/now/p200.db %s");
    wait_settled();
    bool watched = watch_folders();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(count_shown(), 0);
    ck_assert_uint_eq(counted_events(MC_COUNT_watched_files_total), watched ? PRODUCTS - 2 : 0);
    move_into_sight(apr_pstrcat(pool, cache_folder, "/p100.db", NULL));
    ck_assert_int_eq(count_shown(), 1);
    move_into_sight(apr_pstrcat(pool, cache_folder, "/p200.db", NULL));
    ck_assert_int_eq(count_shown(), 2);
    end_watches();
}
END_TEST

START_TEST(a_folder_that_is_exchanged_is_looked_at)
{
    make_products();
    bool watched = watch_folders();
    learn_products(watched);
    run_shell("cp -r %s/first %s/second");
    move_into_sight(apr_pstrcat(pool, cache_folder, "/second/p300.db", NULL));
    run_shell("ln -s second %s/next && mv -T %s/next %s/now");
    ck_assert_int_eq(count_shown(), 1);
    run_shell("mv %s/second %s/third && mv %s/first %s/second");
    ck_assert_int_eq(count_shown(), 0);
    end_watches();
}
END_TEST

/* More changes than anybody has counted, or than the system keeps: all is looked at again. */
START_TEST(too_many_changes_are_no_error)
{
    make_products();
    bool watched = watch_folders();
    learn_products(watched);
    run_shell("cd %s/now && for i in $(seq 1 10000); do echo t$i; done | xargs touch");
    move_into_sight(path_of_product(7));
    ck_assert_int_eq(count_shown(), 1);
    run_shell("touch %s/now/t1");
    uint64_t unlooked = counted_events(MC_COUNT_watched_files_total);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(count_shown(), 1);
    ck_assert_int_eq(counted_events(MC_COUNT_watched_files_total) > unlooked, watched);
    end_watches();
}
END_TEST

/* A child shares the kernel's queue with its parent: what one takes the other would miss. */
START_TEST(a_forked_process_does_not_use_the_watch)
{
    int status;
    make_products();
    bool watched = watch_folders();
    learn_products(watched);
    pid_t child = fork();
    if (child == 0) {
        bool nothing = mc_folder_watches_take(process.watches) == 0;
        uint64_t unlooked = counted_events(MC_COUNT_watched_files_total);
        move_into_sight(path_of_product(1));
        _exit(nothing && count_shown() == 1 && counted_events(MC_COUNT_watched_files_total) == unlooked ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(count_shown(), 1);
    end_watches();
}
END_TEST

/* --- the index of coverage ------------------------------------------------------------------------------------------
 */

static void
end_process(void)
{
    mc_coverage_index_destroy(process.coverages);
    process.coverages = NULL;
    end_watches();
}

/* A process without a memory of its own, but with the file that the one before has left. */
static void
restart_process(void)
{
    end_process();
    mc_memory_destroy(process.memory);
    process.memory = mc_memory_create(64 << 20);
    process.coverages = mc_coverage_index_create(cache_folder);
    watch_folders();
}

/* Files that a map of some tiles has read. */
static uint64_t
count_reads(int shown_tiles)
{
    uint64_t before = counted_events(MC_COUNT_cache_misses_total) + counted_events(MC_COUNT_cache_hits_total);
    ck_assert_int_eq(count_shown(), shown_tiles);
    return counted_events(MC_COUNT_cache_misses_total) + counted_events(MC_COUNT_cache_hits_total) - before;
}

static const char *
path_of_index(void)
{
    glob_t found;
    ck_assert_int_eq(glob(apr_pstrcat(pool, cache_folder, "/mapcache-coverage-*", NULL), 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    const char *path = apr_pstrdup(pool, found.gl_pathv[0]);
    globfree(&found);
    return path;
}

/* False where folders cannot be watched: then no file is written either. */
static bool
write_index(void)
{
    make_products();
    process.coverages = mc_coverage_index_create(cache_folder);
    bool watched = watch_folders();
    learn_products(watched);
    return watched;
}

START_TEST(the_first_map_of_a_process_reads_what_has_changed)
{
    if (write_index()) {
        struct stat info;
        ck_assert(stat(path_of_index(), &info) == 0 && (info.st_mode & 0777) == 0600);
        restart_process();
        ck_assert_uint_eq(count_reads(0), 0);
        move_into_sight(path_of_product(5));
        wait_settled();
        restart_process();
        ck_assert_uint_ge(count_reads(1), 1);
        restart_process();
        ck_assert_uint_lt(count_reads(1), 10);
    }
    end_process();
}
END_TEST

static void
put_byte(const char *path, long at, int value)
{
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
    ck_assert_int_eq(fputc(value, file), value);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(an_index_that_is_broken_or_foreign_is_not_there)
{
    if (write_index()) {
        const char *path = path_of_index();
        run_shell("cp %s/mapcache-coverage-* %s/whole");
        for (int i = 0; i < 6; i++) {
            run_shell("rm -f %s/mapcache-coverage-*");
            run_shell(apr_psprintf(pool, "cp -p %s/whole %s", "%s", path));
            if (i < 3)
                put_byte(path, (long)i * 20000 + 3, 0x5a);
            else if (i == 3)
                ck_assert_int_eq(truncate(path, 50000), 0);
            else if (i == 4)
                ck_assert_int_eq(chmod(path, 0666), 0);
            else
                run_shell(apr_psprintf(pool, "rm %s && ln -s whole %s", path, path));
            restart_process();
            ck_assert_uint_ge(count_reads(0), PRODUCTS);
        }
    }
    end_process();
}
END_TEST

START_TEST(an_index_that_cannot_be_written_is_no_error)
{
    make_products();
    process.coverages = mc_coverage_index_create("/proc/self");
    bool watched = watch_folders();
    learn_products(watched);
    ck_assert_uint_eq(count_reads(0), 0);
    end_process();
}
END_TEST

/* --- before the first map ---------------------------------------------------------------------------------------- */

static mc_error *
learn_ahead(void)
{
    apr_pool_t *whole = ctx.pool;
    apr_pool_create(&ctx.pool, whole);
    mc_footprint_sift sift = sift_of(products, PRODUCTS, 0, 1);
    sift.key = product_key("", 4, 0, 0);
    mc_error *error = mc_error_copy(mc_footprints_ahead(catalogue, &sift, &ctx), whole);
    apr_pool_destroy(ctx.pool);
    ctx.pool = whole;
    return error;
}

/* Products that may have a tile in sight. */
static int
count_candidates(void)
{
    mc_footprint_sift sift = sift_of(products, PRODUCTS, 4, 8);
    mc_footprints *batch;
    int kept[PRODUCTS], kept_count;
    ck_ok(mc_footprints_begin(&batch, kept, &kept_count, catalogue, &sift, &ctx, pool));
    return kept_count;
}

/* Files that are broken, empty or away take nothing from the others, and are left to who wants their tiles. */
START_TEST(the_first_map_finds_known_what_was_learnt_ahead)
{
    make_products();
    run_shell("cd %s/now && rm p100.db && echo nonsense > p200.db && : > p300.db && rm p400.db && mkdir p400.db");
    wait_settled();
    bool watched = watch_folders();
    ck_ok(learn_ahead());
    ck_assert_uint_eq(counted_events(MC_COUNT_watched_files_total), 0);
    ck_assert_int_eq(count_candidates(), 3);
    ck_assert_uint_eq(counted_events(MC_COUNT_watched_files_total), watched ? PRODUCTS - 3 : 0);
    move_into_sight(path_of_product(7));
    ck_assert_int_eq(count_candidates(), 4);
    ck_assert_uint_eq(counted_events(MC_COUNT_cache_misses_total), 0); /* no map has asked for a tile */
    end_watches();
}
END_TEST

START_TEST(learning_ahead_reads_no_file_that_the_index_knows)
{
    make_products();
    process.coverages = mc_coverage_index_create(cache_folder);
    bool watched = watch_folders();
    ck_ok(learn_ahead());
    ck_assert_uint_eq(counted_events(MC_COUNT_bare_opens_total), PRODUCTS);
    if (watched) {
        restart_process();
        ck_ok(learn_ahead());
        ck_assert_uint_eq(count_reads(0), 0);
        ck_assert_uint_eq(counted_events(MC_COUNT_bare_opens_total), PRODUCTS);
    }
    end_process();
}
END_TEST

/* The index is let go once it has served; a catalogue with more products, which comes later, has it all the same. */
START_TEST(the_index_serves_a_larger_catalogue_after_a_smaller_one)
{
    if (write_index()) {
        mc_footprint_sift some = sift_of(products, PRODUCTS / 4, 0, 1);
        uint64_t opens = counted_events(MC_COUNT_bare_opens_total);
        restart_process();
        ck_ok(mc_footprints_ahead(catalogue, &some, &ctx));
        ck_ok(learn_ahead());
        ck_assert_uint_eq(counted_events(MC_COUNT_bare_opens_total), opens);
    }
    end_process();
}
END_TEST

/* Asked once for 64 files, while these are looked at and while they are read. */
static bool
is_given_up(void *asked)
{
    return ++*(int *)asked > PRODUCTS / 64 + 4;
}

START_TEST(learning_ahead_ends_when_it_is_told_to)
{
    int asked = 0;
    make_products();
    bool watched = watch_folders();
    ctx.deadline = mc_clock_now() - 1;
    ck_assert_ptr_nonnull(learn_ahead());
    ck_assert_uint_eq(counted_events(MC_COUNT_bare_opens_total), 0);
    ctx.deadline = 0;
    ctx.abandoned = is_given_up;
    ctx.abandoned_baton = &asked;
    ck_assert_ptr_nonnull(learn_ahead());
    ctx.abandoned = NULL;
    uint64_t opens = counted_events(MC_COUNT_bare_opens_total);
    ck_assert(opens > 0 && opens < PRODUCTS / 2);
    learn_products(watched);
    end_watches();
}
END_TEST

CACHE_MAIN("roster", sifting_leaves_out_what_is_not_there, so_it_does_where_the_folder_is_watched,
           files_by_tile_are_not_sifted, commits_of_another_process_are_seen_by_the_next_map,
           a_write_by_another_name_is_seen_soon, links_are_looked_at, a_folder_that_is_exchanged_is_looked_at,
           too_many_changes_are_no_error, a_forked_process_does_not_use_the_watch,
           the_first_map_of_a_process_reads_what_has_changed, an_index_that_is_broken_or_foreign_is_not_there,
           an_index_that_cannot_be_written_is_no_error, the_first_map_finds_known_what_was_learnt_ahead,
           learning_ahead_reads_no_file_that_the_index_knows, the_index_serves_a_larger_catalogue_after_a_smaller_one,
           learning_ahead_ends_when_it_is_told_to)
