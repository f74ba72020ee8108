/* Every back end through the same cases, by table; then what is particular to one. */
#include "cache_fixture.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "mapcache/trace.h"

static const char *const kinds[] = {
    "<cache name='c' type='sqlite3'><dbfile>%s/a.db</dbfile></cache>",
    ("<cache name='c' type='sqlite3'><dbfile>%s/{tileset}/{z}/{x}_{y}.db</dbfile>"
     "<xcount>2</xcount><ycount>2</ycount></cache>"),
    "<cache name='c' type='sqlite3'><dbfile>%s/m.db</dbfile><memory>false</memory></cache>",
    "<cache name='c' type='mbtiles'><dbfile>%s/a.mbtiles</dbfile></cache>",
    "<cache name='c' type='geopackage'><dbfile>%s/a.gpkg</dbfile></cache>",
    "<cache name='c' type='geopackage'><dbfile>%s/b.gpkg</dbfile><table>a \"b\" 'c'; --</table></cache>",
    "<cache name='c' type='disk'><base>%s/t</base></cache>",
    "<cache name='c' type='disk' layout='arcgis'><base>%s/g</base></cache>",
    "<cache name='c' type='disk' layout='worldwind'><base>%s/w</base></cache>",
    "<cache name='c' type='disk' layout='template'><template>%s/x/{tileset}/{z}/{x}/{inv_y}.{ext}</template></cache>",
};

START_TEST(every_kind_conforms)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        conform_cache(cache_of(mc_replace_all(kinds[i], "%s", cache_folder, pool)));
}
END_TEST

/* Kinds that no sample can be given of: some need a server (test_postgresql_cache, cache/keyvalue, cache/rest), one
 * keeps nothing, others are of other caches, tiff takes JPEG only (test_tiff_cache), and bundle, mrf, rok4, mod_tile
 * and cog are only read (test_block_archives.py, test_cog_cache.py). */
static bool
is_tested_elsewhere(const char *type)
{
    static const char *const types[] = { "postgresql", "memcache",  "redis",    "rest",      "s3",   "azure",
                                         "google",     "tiff",      "bundle",   "mrf",       "rok4", "cog",
                                         "mod_tile",   "composite", "fallback", "multitier", "none" };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

/* A new kind is tested with its first line. */
START_TEST(every_sample_conforms)
{
    for (int i = 0; mc_cache_kinds[i] != NULL; i++) {
        const mc_cache_ops *kind = mc_cache_kinds[i];
        ck_assert_msg((kind->sample == NULL) == is_tested_elsewhere(kind->type), "the sample of %s", kind->type);
        if (kind->sample != NULL)
            conform_cache(cache_of(apr_psprintf(pool, "<cache name='c' type='%s'>%s</cache>", kind->type,
                                                mc_replace_all(kind->sample, "{folder}", cache_folder, pool))));
    }
}
END_TEST

START_TEST(none_keeps_nothing)
{
    mc_cache *cache = cache_of("<cache name='c' type='none'/>");
    const mc_tile_key key = key_at(3, 1, 2);
    mc_tile *tile = NULL;
    bool exists = true;
    put_text(cache, &key, "gone");
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert_ptr_null(tile);
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(!exists && cache->ops->keeps_nothing);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
}
END_TEST

START_TEST(layered_caches_conform)
{
    conform_cache(cache_of_two("<cache name='l' type='composite'><cache max-zoom='5'>a</cache></cache>"));
    run_shell("rm -rf %s/la.db* %s/lb");
    conform_cache(cache_of_two("<cache name='l' type='fallback'><cache>a</cache><cache>b</cache></cache>"));
    run_shell("rm -rf %s/la.db* %s/lb");
    conform_cache(cache_of_two("<cache name='l' type='multitier'><cache>a</cache><cache>b</cache></cache>"));
}
END_TEST

START_TEST(a_composite_chooses_by_level_and_dimension)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='composite'><cache max-zoom='2' dimensions='d=1'>a</cache>"
                                   "<cache min-zoom='2' grids='H,G'>b</cache></cache>");
    mc_dimension_value dimension = { "d", "1", false };
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "second");
    expect_text(child_named("b"), &key, "second");
    key.dimensions = &dimension;
    key.dimension_count = 1;
    put_text(cache, &key, "first");
    expect_text(child_named("a"), &key, "first");
    expect_text(child_named("b"), &key, NULL);
    mc_tile *tile;
    key = key_at(1, 0, 0);
    ck_fails(CONFIG, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

START_TEST(a_composite_parts_a_series_by_child)
{
    mc_cache *cache =
        cache_of_two("<cache name='l' type='composite'><cache max-zoom='1'>a</cache><cache>b</cache></cache>");
    mc_tile_write puts[6];
    for (int i = 0; i < 6; i++)
        puts[i] =
            (mc_tile_write){ .key = key_at(i % 3, i / 3, 0), .data = mc_buf_attach(mc_buf_copy("tile", 4), pool) };
    puts[3].key = key_at(2, 3, 3);
    ctx.writes = mc_cache_writes_create(pool);
    ck_ok(mc_cache_put(cache, puts, 6, &ctx));
    ck_ok(mc_cache_writes_flush(&ctx));
    ctx.writes = NULL;
    for (int i = 0; i < 6; i++) {
        expect_text(child_named("a"), &puts[i].key, puts[i].key.z <= 1 ? "tile" : NULL);
        expect_text(child_named("b"), &puts[i].key, puts[i].key.z <= 1 ? NULL : "tile");
    }
}
END_TEST

START_TEST(what_has_no_stamp_is_remembered_for_a_time)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='composite'><memory>60</memory><cache>b</cache></cache>");
    mc_tile_key key = key_at(2, 1, 1);
    mc_tile_key absent = key_at(2, 0, 0);
    absent.renderable = false;
    put_text(cache, &key, "one");
    expect_text(cache, &key, "one");
    expect_text(cache, &absent, NULL);
    put_text(child_named("b"), &key, "two"); /* behind its back */
    put_text(child_named("b"), &absent, "new");
    expect_text(cache, &key, "one");
    expect_text(cache, &absent, NULL);
    mc_cache *shortly = cache_of_two("<cache name='l' type='composite'><memory>0.05</memory><cache>b</cache></cache>");
    expect_text(shortly, &key, "two");
    put_text(child_named("b"), &key, "two and a half");
    usleep(60000);
    expect_text(shortly, &key, "two and a half");
    expect_text(shortly, &absent, "new");
    put_text(cache, &key, "three"); /* what is written here shows at once */
    expect_text(cache, &key, "three");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &key, NULL);
    put_text(child_named("b"), &key, "four"); /* the absence of what may be rendered is not remembered */
    expect_text(cache, &key, "four");
    mc_cache *next = cache_of_two("<cache name='l' type='composite'><memory>60</memory><cache>b</cache></cache>");
    put_text(child_named("b"), &key, "five"); /* after a reload nothing of before counts */
    expect_text(next, &key, "five");
    ck_assert_int_eq(
        cache_complaint_of("<cache name='c' type='composite'><memory>true</memory><cache>b</cache></cache>"),
        MC_REFUSED);
}
END_TEST

static char lines[4096];

static void
keep_lines(void *baton, const char *text, size_t size)
{
    (void)baton;
    apr_snprintf(lines, sizeof(lines), "%.*s", (int)size, text);
}

START_TEST(spans_of_failures_say_so)
{
    static const char *const broken[] = {
        "<cache name='c' type='sqlite3'><dbfile>%s</dbfile></cache>",
        "<cache name='c' type='disk' layout='template'><template>%s</template></cache>"
    };
    static const char *const spans[] = { "_mapcache_cache_sqlite_get", "_mapcache_cache_disk_get" };
    for (int i = 0; i < 2; i++) { /* a folder where a file should be */
        mc_cache *cache = cache_of(mc_replace_all(broken[i], "%s", cache_folder, pool));
        mc_tile_key key = key_at(2, 1, 1);
        mc_tile *tile;
        ctx.trace = mc_trace_create(keep_lines, NULL, NULL, NULL, pool);
        ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
        mc_trace_flush(ctx.trace);
        int errors = 0;
        bool inner = false;
        char *state;
        for (char *line = apr_strtok(lines, "\n", &state); line != NULL; line = apr_strtok(NULL, "\n", &state)) {
            errors += strstr(line, "ERROR") != NULL;
            inner = inner || (strstr(line, spans[i]) != NULL && strstr(line, "ERROR") != NULL);
        }
        ck_assert_int_eq(errors, 2);
        ck_assert(inner);
    }
    ctx.trace = NULL;
}
END_TEST

START_TEST(open_files_stay_bounded)
{
    mc_cache *cache = cache_of(mc_replace_all(
        "<cache name='c' type='sqlite3'><dbfile>%s/{z}-{x}-{y}.db</dbfile><xcount>1</xcount><ycount>1</ycount></cache>",
        "%s", cache_folder, pool));
    for (int i = 0; i < 1000; i++) {
        mc_tile_key key = key_at(5, i % 32, i / 32);
        put_text(cache, &key, "tile");
        ck_assert_int_le(count_open_files(), 16);
        expect_text(cache, &key, "tile");
        ck_assert_int_le(count_open_files(), 16);
    }
}
END_TEST

static void
another_process_writes(sqlite3 *db, sqlite3_stmt *write, int number)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%09d", number);
    sqlite3_bind_text(write, 1, text, size, SQLITE_TRANSIENT);
    ck_assert_int_eq(sqlite3_step(write), SQLITE_DONE);
    ck_assert_int_eq(sqlite3_reset(write), SQLITE_OK);
    (void)db;
}

/* The child answers each byte of the pipe with a write; the parent reads right after. */
static void
never_stale(const char *journal)
{
    restart_cache_test();
    const char *path = apr_psprintf(pool, "%s/a.db", cache_folder);
    int go[2];
    int done[2];
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        sqlite3_stmt *insert;
        sqlite3_open(path, &db);
        sqlite3_busy_timeout(db, 5000);
        sqlite3_exec(db, apr_psprintf(pool, "PRAGMA journal_mode=%s; PRAGMA synchronous=off", journal), NULL, NULL,
                     NULL);
        sqlite3_exec(db,
                     "CREATE TABLE tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
                     " ctime datetime, PRIMARY KEY(tileset, grid, x, y, z, dim))",
                     NULL, NULL, NULL);
        sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO tiles VALUES('ts','G',1,1,1,?,'',datetime('now'))", -1, &insert,
                           NULL);
        char byte;
        for (int i = 0; read(go[0], &byte, 1) == 1 && byte == 'w'; i++) {
            another_process_writes(db, insert, i);
            if (write(done[1], "d", 1) != 1)
                break;
        }
        _exit(0);
    }
    mc_cache *cache = cache_of(mc_replace_all(kinds[0], "%s", cache_folder, pool));
    mc_tile_key key = key_at(1, 1, 1);
    for (int i = 0; i < 1000; i++) {
        char byte;
        char text[32];
        ck_assert_int_eq(write(go[1], "w", 1), 1);
        ck_assert_int_eq(read(done[0], &byte, 1), 1);
        snprintf(text, sizeof(text), "%09d", i);
        expect_text(cache, &key, text);
        if (i % 100 == 0) {
            usleep(60000);
            expect_text(cache, &key, text); /* settled now: it is remembered */
            expect_text(cache, &key, text);
        }
    }
    ck_assert_int_eq(write(go[1], "q", 1), 1);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(writes_of_others_show_at_once_in_rollback_mode)
{
    never_stale("delete");
}
END_TEST

START_TEST(writes_of_others_show_at_once_in_wal_mode)
{
    never_stale("wal");
}
END_TEST

START_TEST(a_file_renamed_over_another_shows_at_once)
{
    mc_cache *cache = cache_of(mc_replace_all(kinds[0], "%s", cache_folder, pool));
    mc_cache *next = cache_of(
        mc_replace_all("<cache name='n' type='sqlite3'><dbfile>%s/n.db</dbfile><pragma name='journal_mode'>delete"
                       "</pragma></cache>",
                       "%s", cache_folder, pool));
    mc_tile_key key = key_at(2, 1, 1);
    put_text(next, &key, "new");
    process.lasting = true;
    put_text(cache, &key, "old"); /* in WAL: its -wal is there */
    process.lasting = false;
    run_shell("test -s %s/a.db-wal");
    expect_text(cache, &key, "old");
    run_shell("cp %s/a.db-wal %s/kept && mv %s/n.db %s/a.db");
    for (int i = 0; i < 3; i++)
        expect_text(cache, &key, "new");
}
END_TEST

START_TEST(paths_are_those_of_the_reference)
{
    mc_dimension_value dimensions[] = { { "a", "A.1/x", false }, { "b", "B 2", false } };
    mc_tile_key key = { .tileset = "ts",
                        .grid = &cache_grid,
                        .z = 5,
                        .x = 9,
                        .y = 12,
                        .extension = "png",
                        .dimension_count = 2,
                        .dimensions = dimensions };
    const char *formats[MC_FORMAT_COUNT] = { [MC_FORMAT_x] = "%03d" };
    mc_template_rules rules = { .sqlite = true, .columns = 8, .rows = 8, .formats = formats };
    char path[MC_PATH_MAX];
    ck_ok(mc_template_expand(
        path,
        mc_template_compile("{tileset}-{dim}-{dim:a}-{z}-{x}-{y}-{inv_x}-{inv_y}-{div_x}-{inv_div_y}.db", &rules, pool),
        &key, pool));
    ck_assert_str_eq(path, "ts-#B 2#A#1#x-A#1#x-5-008-8-16-16-1-2.db");
    mc_template_rules disk = { .sqlite = false };
    ck_ok(mc_template_expand(path, mc_template_compile("{z}/{z}_{x}{dim}/{y}{inv_y}.{ext}", &disk, pool), &key, pool));
    ck_assert_str_eq(path, "5/5_9#b#B 2#a#A#1#x/12{inv_y}.png");
    rules.columns = rules.rows = -1;
    key.dimension_count = 0;
    ck_ok(
        mc_template_expand(path, mc_template_compile("{dim}{dim:a}{x}{grid}{grid}{top_x}", &rules, pool), &key, pool));
    ck_assert_str_eq(path, "{dim}{dim:a}{x}G{grid}{top_x}");
    static const char *const attacks[] = { "../../etc", "..", "a/..", "....//", "..././x" };
    for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
        mc_dimension_value hostile = { "a", attacks[i], true };
        key.dimensions = &hostile;
        key.dimension_count = 1;
        rules.allow_paths = true;
        ck_ok(mc_template_expand(path, mc_template_compile("/r/{dim:a}/x", &rules, pool), &key, pool));
        ck_assert_ptr_null(strstr(path, "/../"));
        rules.allow_paths = false;
        ck_ok(mc_template_expand(path, mc_template_compile("/r/{dim:a}/x", &rules, pool), &key, pool));
        ck_assert_ptr_null(strchr(path, '.'));
    }
    static const char *const bad[] = { "%s", "%n", "%d%d", "", "%", "%ld", "%*d", "%999d", "%%d" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(!mc_number_format_valid(bad[i]), "%s", bad[i]);
    ck_assert(mc_number_format_valid("%d") && mc_number_format_valid("L%08x") && mc_number_format_valid("%%%03d"));
}
END_TEST

START_TEST(broken_files_give_errors)
{
    mc_cache *cache = cache_of(mc_replace_all(kinds[0], "%s", cache_folder, pool));
    mc_tile_key key = key_at(1, 0, 0);
    mc_tile *tile;
    key.renderable = false;
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
    run_shell("head -c 5000 /dev/urandom > %s/a.db");
    ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    run_shell("rm %s/a.db && mkdir %s/a.db");
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert_int_eq(count_open_files(), 0);
    mc_cache *disk = cache_of(mc_replace_all(kinds[8], "%s", cache_folder, pool));
    run_shell("mkdir -p %s/w/1/0000 && : > %s/w/1/0000/0000_0000.png");
    expect_text(disk, &key, NULL);
}
END_TEST

START_TEST(configurations_are_checked)
{
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='riak'/>"), MC_NOT_BUILT);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='nonsense'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='sqlite3'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='mbtiles'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='disk'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='disk' layout='default'><base>/x</base></cache>"),
                     MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='sqlite3'><dbfile x_fmt='%s'>/x</dbfile></cache>"),
                     MC_REFUSED);
    ck_assert_int_eq(
        cache_complaint_of("<cache name='c' type='sqlite3'><dbfile>/x</dbfile><hitstats>true</hitstats></cache>"),
        MC_REFUSED);
    static const char *const taken[] = { "gpkg_contents", "GPKG_x", "sqlite_tiles", "rtree_tiles" };
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            cache_complaint_of(apr_pstrcat(pool, "<cache name='c' type='geopackage'><dbfile>/x</dbfile><table>",
                                           taken[i], "</table></cache>", NULL)),
            MC_REFUSED);
}
END_TEST

static void *
hammer(void *baton)
{
    mc_cache *cache = baton;
    apr_allocator_t *allocator;
    apr_pool_t *own;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&own, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, own);
    mc_ctx mine = { .pool = own, .process = &process, .log = &mc_log_stderr };
    intptr_t failures = 0;
    for (int i = 0; i < 60; i++) {
        mc_tile_key key = key_at(3, i % 8, i / 8);
        mc_tile_write tile = { .key = key, .data = mc_buf_attach(mc_buf_copy("hammer", 6), own) };
        if (i % 3 == 0 && mc_cache_put(cache, &tile, 1, &mine) != MC_OK)
            failures++;
        mc_tile *found = NULL;
        if (mc_cache_get(&found, cache, &key, &mine, own) != MC_OK || (i % 3 == 0 && found == NULL))
            failures++;
    }
    apr_pool_destroy(own);
    return (void *)failures;
}

static void
hammer_together(mc_cache *cache)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, cache), 0);
    for (int i = 0; i < 16; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        ck_assert_int_eq((intptr_t)failures, 0);
    }
    ck_assert_int_le(count_open_files(), 16);
}

START_TEST(threads_share_a_cache)
{
    hammer_together(cache_of(mc_replace_all(kinds[1], "%s", cache_folder, pool)));
    for (int i = 0; mc_cache_kinds[i] != NULL; i++) {
        const mc_cache_ops *kind = mc_cache_kinds[i];
        if (kind->sample == NULL)
            continue;
        mc_cache *cache = cache_of(apr_psprintf(pool, "<cache name='c' type='%s'>%s</cache>", kind->type,
                                                mc_replace_all(kind->sample, "{folder}", cache_folder, pool)));
        hammer_together(cache);
        ck_ok(mc_cache_finish(cache, &ctx));
        hammer_together(cache);
    }
}
END_TEST

CACHE_MAIN("cache", every_kind_conforms, every_sample_conforms, none_keeps_nothing, layered_caches_conform,
           a_composite_chooses_by_level_and_dimension, a_composite_parts_a_series_by_child,
           what_has_no_stamp_is_remembered_for_a_time, spans_of_failures_say_so, open_files_stay_bounded,
           writes_of_others_show_at_once_in_rollback_mode, writes_of_others_show_at_once_in_wal_mode,
           a_file_renamed_over_another_shows_at_once, paths_are_those_of_the_reference, broken_files_give_errors,
           configurations_are_checked, threads_share_a_cache)
