/* What is particular to lmdb and bdb: keys, values, times, several processes, full and damaged files. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "cache/embedded/embedded.h"

static const char *const types[] = { "lmdb", "bdb" };

static mc_cache *
embedded(const char *type, const char *inner)
{
    return cache_of(
        apr_psprintf(pool, "<cache name='c' type='%s'><base>%s/%s</base>%s</cache>", type, cache_folder, type, inner));
}

START_TEST(keys_are_those_of_the_reference)
{
    mc_tile_key key = { .tileset = "ts", .grid = &cache_grid, .z = 5, .x = 9, .y = 12, .extension = "png" };
    mc_dimension_value values[] = { { "a", "A.1/x", false }, { "b", "B 2", false } };
    static const struct {
        const char *template, *plain, *dimensions;
    } wanted[] = {
        { "{tileset}-{grid}-{dim}-{z}-{y}-{x}.{ext}", "ts-G-{dim}-5-12-9.png", "ts-G-B 2#A.1/x-5-12-9.png" },
        { "{x}/{inv_x}/{inv_y}/{z}{z}", "9/{inv_x}/19/5{z}", "9/{inv_x}/19/5{z}" },
        { "{quadkey}.{dim:a}.{dim:b}.{dim:c}", "03201.{dim:a}.{dim:b}.{dim:c}", "03201.A.1/x.B 2.{dim:c}" },
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        key.dimension_count = 0;
        ck_assert_str_eq(mc_embedded_key(wanted[i].template, &key, pool), wanted[i].plain);
        key.dimensions = values;
        key.dimension_count = 2;
        ck_assert_str_eq(mc_embedded_key(wanted[i].template, &key, pool), wanted[i].dimensions);
    }
}
END_TEST

START_TEST(tiles_have_a_time_and_colours_are_colours)
{
    static const uint8_t colour[4] = { 0x1a, 0x22, 0x33, 0xff };
    for (int i = 0; i < 2; i++) {
        mc_cache *cache = embedded(types[i], "");
        mc_tile_key key = key_at(2, 1, 1);
        mc_tile *tile;
        apr_time_t before = apr_time_now();
        put_text(cache, &key, "text");
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert(tile->mtime >= before && tile->mtime <= apr_time_now());
        put_colour(cache, &key, colour);
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert(tile->blank && memcmp(tile->bgra, colour, 4) == 0);
    }
    /* As the libraries' own programs show it: the key with its zero byte, '#' and the colour, 8 bytes of time. */
    run_shell("mdb_dump %s/lmdb | grep -q '^ 74732d472d7b64696d7d2d322d312d312e706e6700$'");
    run_shell("mdb_dump %s/lmdb | grep -Eq '^ 231a2233ff[0-9a-f]{12}0600$'");
    run_shell("db5.3_dump %s/bdb/c.db | grep -q '^ 74732d472d7b64696d7d2d322d312d312e706e6700$'");
    run_shell("db5.3_dump %s/bdb/c.db | grep -Eq '^ 231a2233ff[0-9a-f]{12}0600$'");
    run_shell("db5.3_dump %s/bdb/c.db | grep -q '^db_pagesize=65536$'");
}
END_TEST

START_TEST(what_others_store_is_read)
{
    run_shell("mkdir -p %s/lmdb %s/bdb && cd %s && printf 'VERSION=3\\nformat=print\\ntype=btree\\nmapsize=1048576\\n"
              "HEADER=END\\n ts-G-{dim}-2-1-1.png\\\\00\\n "
              "theirs\\\\00\\\\40\\\\9c\\\\8a\\\\7f\\\\08\\\\06\\\\00\\nDATA=END\\n'"
              " > d && mdb_load -f d lmdb && sed -e /mapsize/d d > e && db5.3_load -f e bdb/c.db");
    for (int i = 0; i < 2; i++) {
        mc_tile_key key = key_at(2, 1, 1);
        expect_text(embedded(types[i], ""), &key, "theirs");
    }
}
END_TEST

/* Any eight bytes: what is reckoned with them stays within the numbers. */
START_TEST(times_of_others_are_bounded)
{
    static const char *const times[] = { "\\\\ff\\\\ff\\\\ff\\\\ff\\\\ff\\\\ff\\\\ff\\\\7f",
                                         "\\\\00\\\\00\\\\00\\\\00\\\\00\\\\00\\\\00\\\\80" };
    static const apr_time_t read[] = { INT64_C(253402300799) * APR_USEC_PER_SEC, 0 };
    for (int i = 0; i < 2; i++) {
        run_shell(apr_psprintf(pool,
                               "mkdir -p %%s/lmdb && cd %%s && printf 'VERSION=3\\nformat=print\\ntype=btree\\n"
                               "mapsize=1048576\\nHEADER=END\\n ts-G-{dim}-2-1-1.png\\\\00\\n theirs%s\\nDATA=END\\n'"
                               " > d && mdb_load -f d lmdb",
                               times[i]));
        mc_tile_key key = key_at(2, 1, 1);
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, embedded("lmdb", ""), &key, &ctx, pool));
        ck_assert_ptr_nonnull(tile);
        ck_assert_int_eq(tile->mtime, read[i]);
        run_shell("rm -r %s/lmdb");
    }
}
END_TEST

START_TEST(two_caches_stay_apart)
{
    for (int i = 0; i < 2; i++) {
        mc_cache *one = embedded(types[i], ""), *other;
        const char *text =
            apr_psprintf(pool, "<cache name='d' type='%s'><base>%s/other</base></cache>", types[i], cache_folder);
        mc_tile_key key = key_at(2, 1, 1);
        other = cache_of(text);
        put_text(one, &key, "one");
        expect_text(other, &key, NULL);
        put_text(other, &key, "other");
        expect_text(one, &key, "one");
    }
}
END_TEST

/* Processes write beside each other, and each finds what the others have stored. */
START_TEST(processes_share_a_cache)
{
    for (int i = 0; i < 2; i++) {
        mc_tile_key key = key_at(5, 0, 31);
        put_text(embedded(types[i], ""), &key, "parent"); /* open before the fork: children open it anew */
        pid_t children[3];
        for (int child = 0; child < 3; child++)
            if ((children[child] = fork()) == 0) {
                mc_cache *cache = embedded(types[i], "");
                for (int x = 0; x < 20; x++) {
                    mc_tile_key own = key_at(5, x, child);
                    put_text(cache, &own, "child");
                    expect_text(cache, &own, "child");
                }
                _exit(0);
            }
        for (int child = 0; child < 3; child++) {
            int status;
            ck_assert_int_eq(waitpid(children[child], &status, 0), children[child]);
            ck_assert_int_eq(status, 0);
        }
        mc_cache *cache = embedded(types[i], "");
        for (int tile = 0; tile < 60; tile++) {
            mc_tile_key own = key_at(5, tile / 3, tile % 3);
            expect_text(cache, &own, "child");
        }
    }
}
END_TEST

START_TEST(a_full_lmdb_says_so)
{
    mc_cache *cache = embedded("lmdb", "<max_size>1</max_size>");
    char *large = apr_pcalloc(pool, 1000001);
    memset(large, 'x', 1000000);
    mc_error *error = MC_OK;
    int stored = 0;
    for (; stored < 10 && error == MC_OK; stored++) {
        mc_tile_write tile = { .key = key_at(5, stored, 0), .data = mc_buf_attach(mc_buf_copy(large, 1000000), pool) };
        error = mc_cache_put(cache, &tile, 1, &ctx);
    }
    ck_assert(error != MC_OK && error->kind == MC_ERR_LIMIT && strstr(error->message, "<max_size>") != NULL);
    mc_tile_key first = key_at(5, 0, 0);
    expect_text(cache, &first, large); /* what was stored before is there, and a larger bound takes more */
    restart_cache_test();
}
END_TEST

START_TEST(damaged_files_are_errors)
{
    mc_tile *tile;
    mc_tile_key key = key_at(2, 1, 1);
    run_shell("mkdir -p %s/lmdb %s/bdb && head -c 100000 /dev/urandom | tee %s/lmdb/data.mdb > %s/bdb/c.db");
    for (int i = 0; i < 2; i++) {
        mc_error *error = mc_cache_get(&tile, embedded(types[i], ""), &key, &ctx, pool);
        ck_assert(error != MC_OK);
        mc_tile_write write = { .key = key, .data = mc_buf_attach(mc_buf_copy("x", 1), pool) };
        ck_assert(mc_cache_put(embedded(types[i], ""), &write, 1, &ctx) != MC_OK);
    }
}
END_TEST

START_TEST(a_replaced_lmdb_is_opened_anew)
{
    mc_cache *cache = embedded("lmdb", "");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "old");
    run_shell("cp -r %s/lmdb %s/kept");
    put_text(cache, &key, "new");
    run_shell("rm -r %s/lmdb && mv %s/kept %s/lmdb");
    expect_text(cache, &key, "old");
    put_text(cache, &key, "again");
    expect_text(cache, &key, "again");
}
END_TEST

START_TEST(keys_that_cannot_be_are_refused)
{
    mc_tile *tile;
    char *text = apr_pcalloc(pool, 601);
    memset(text, 'v', 600);
    mc_dimension_value value = { "d", text, false };
    mc_tile_key key = key_at(2, 1, 1);
    key.dimensions = &value;
    key.dimension_count = 1;
    ck_fails(INVALID_DIMENSION, mc_cache_get(&tile, embedded("lmdb", ""), &key, &ctx, pool));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cache_complaint_of(apr_psprintf(pool, "<cache name='c' type='%s'/>", types[i])), MC_REFUSED);
        ck_assert_int_eq(
            cache_complaint_of(apr_psprintf(
                pool, "<cache name='c' type='%s'><base>/x</base><key_template>{tileset}-{z}</key_template></cache>",
                types[i])),
            MC_REFUSED);
        mc_grid one = cache_grid, other = cache_grid;
        one.name = "c";
        other.name = "b-c";
        mc_cache *cache = embedded(types[i], "");
        mc_build build = config_build();
        mc_cache_used_by(cache, &(mc_cache_use){ "a-b", &one, false, "png", false }, config_elements("<t/>"), &build);
        ck_assert_int_eq(build.diagnostics->complaints->nelts, 0);
        mc_cache_used_by(cache, &(mc_cache_use){ "a", &other, false, "png", false }, config_elements("<t/>"), &build);
        ck_assert_int_eq(build.diagnostics->complaints->nelts, 1);
    }
}
END_TEST

/* A process that is stopped while it writes has the library's lock, for which the library waits without an end. Readers
 * of LMDB wait for nobody; those of Berkeley DB until their deadline. */
static void
stop_writer_of(const char *type, bool readers_wait)
{
    mc_tile_write puts[64];
    mc_cache *cache = embedded(type, "");
    for (int i = 0; i < 64; i++)
        puts[i] = (mc_tile_write){ .key = key_at(3, i % 8, i / 8), .data = buf_of_text("text") };
    ck_ok(mc_cache_put(cache, puts, 64, &ctx));
    const pid_t writer = fork();
    while (writer == 0)
        if (mc_cache_put(cache, puts, 64, &ctx) != MC_OK)
            _exit(1);
    int refused = 0, stored = 0;
    for (int i = 0; i < 400 && (i < 40 || refused == 0 || stored == 0); i++) {
        usleep(3000 + i * 37 % 5000);
        kill(writer, SIGSTOP);
        ck_assert_int_eq(waitpid(writer, NULL, WUNTRACED), writer);
        const apr_time_t begun = mc_clock_now();
        ctx.deadline = begun + APR_USEC_PER_SEC / 20;
        mc_error *error = mc_cache_put(cache, puts, 1, &ctx);
        ck_assert(error == MC_OK || error->kind == MC_ERR_UNAVAILABLE);
        ck_assert_int_lt(mc_clock_now() - begun, 30 * APR_USEC_PER_SEC);
        refused += error != MC_OK;
        stored += error == MC_OK;
        ctx.deadline = readers_wait ? mc_clock_now() + APR_USEC_PER_SEC / 20 : 0;
        mc_tile *tile;
        error = mc_cache_get(&tile, cache, &puts[0].key, &ctx, pool);
        ck_assert(error == MC_OK || (readers_wait && error->kind == MC_ERR_UNAVAILABLE));
        ctx.deadline = 0;
        kill(writer, SIGCONT);
        expect_text(cache, &puts[0].key, "text");
    }
    ck_assert_int_gt(refused, 0);
    kill(writer, SIGKILL);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    put_text(cache, &puts[0].key, "after");
    expect_text(cache, &puts[0].key, "after");
}

START_TEST(a_stopped_writer_holds_nobody_up)
{
    stop_writer_of("lmdb", false);
    stop_writer_of("bdb", true);
}
END_TEST

/* What a writer of `killed` stores without an end: 64 tiles at a time, all with the number of the round. */
static void
write_rounds(mc_cache *cache)
{
    mc_tile_write puts[64];
    for (int round = 0;; round++) {
        char *text = apr_pcalloc(pool, 30001);
        memset(text, 'a' + round % 26, 30000);
        for (int i = 0; i < 64; i++)
            puts[i] = (mc_tile_write){ .key = key_at(3, i % 8, i / 8), .data = buf_of_text(text) };
        if (mc_cache_put(cache, puts, 64, &ctx) != MC_OK)
            _exit(1);
    }
}

static char
first_letter_of(mc_cache *cache, int x, int y)
{
    mc_tile *tile;
    mc_tile_key key = key_at(3, x, y);
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    return tile == NULL ? '-' : (char)tile->data->data[0];
}

/* Killed at any moment: within the deadline the others go on, and a put is there as a whole or not at all. */
START_TEST(a_killed_writer_leaves_all_or_nothing)
{
    for (int type = 0; type < 2; type++)
        for (int round = 0; round < 40; round++) {
            mc_cache *cache = embedded(types[type], "");
            const char before = first_letter_of(cache, 0, 0);
            const pid_t writer = fork();
            if (writer == 0)
                write_rounds(cache);
            if (round % 4 != 0) /* else it may be killed at its very first write */
                while (first_letter_of(cache, 0, 0) == before)
                    usleep(100);
            usleep((unsigned)(round * 7919 % 9000));
            kill(writer, SIGKILL);
            ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
            ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
            const char now = first_letter_of(cache, 0, 0);
            for (int i = 0; i < 64; i++)
                ck_assert_int_eq(first_letter_of(cache, i % 8, i / 8), now);
            mc_tile_key other = key_at(4, 0, 0);
            put_text(cache, &other, "after");
            expect_text(cache, &other, "after");
            ctx.deadline = 0;
        }
    run_shell("cd %s/bdb && db5.3_verify -q c.db && test ! -e mapcache.undo");
}
END_TEST

/* Killed while they read: writers wait for none of them. */
START_TEST(killed_readers_hold_no_writer_up)
{
    mc_cache *cache = embedded("bdb", "");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "text");
    for (int round = 0; round < 40; round++) {
        pid_t readers[4];
        for (int i = 0; i < 4; i++)
            while ((readers[i] = fork()) == 0)
                for (;;)
                    expect_text(cache, &key, "text");
        usleep((unsigned)(2000 + round * 7919 % 5000));
        for (int i = 0; i < 4; i++) {
            kill(readers[i], SIGKILL);
            ck_assert_int_eq(waitpid(readers[i], NULL, 0), readers[i]);
        }
        ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
        put_text(cache, &key, "text");
        ctx.deadline = 0;
    }
}
END_TEST

/* A program that takes no turns keeps the environment from being mended under its feet, and is named. */
START_TEST(what_others_have_open_is_not_mended)
{
    mc_tile *tile;
    mc_cache *cache = embedded("bdb", "");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "text");
    char *region = apr_pstrcat(pool, cache_folder, "/bdb/__db.001", NULL);
    char *turns = apr_pstrcat(pool, cache_folder, "/bdb/mapcache.turns", NULL);
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t other = fork();
    if (other == 0) {
        (void)dup2(pipes[1], 1);
        execlp(
            "python3", "python3", "-c",
            "import mmap, sys, time; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 4096); print(flush=True);"
            " time.sleep(600)",
            region, NULL);
        _exit(1);
    }
    char byte;
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    int file = open(turns, O_RDWR);
    ck_assert_int_eq(pwrite(file, "\1", 1, 7), 1); /* as a reader that was killed leaves it */
    (void)close(file);
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE && strstr(error->message, "(python3)") != NULL);
    kill(other, SIGKILL);
    ck_assert_int_eq(waitpid(other, NULL, 0), other);
    expect_text(cache, &key, "text");
}
END_TEST

/* A file of undone writes that is not ours, or cut off anywhere. */
START_TEST(bad_undo_files_change_nothing)
{
    static const char *const files[] = { "printf ''",
                                         "printf mcundo",
                                         "head -c 5000 /dev/zero",
                                         "printf 'mcundo\\000\\001\\000\\000\\000\\000\\000\\000\\000\\000\\004"
                                         "\\000\\000\\000../x'",
                                         "printf 'mcundo\\000\\001\\000\\000\\000\\000\\000\\000\\000\\000\\377"
                                         "\\377\\377\\377c.db'",
                                         "printf 'mcundo\\000\\001\\377\\377\\377\\377\\377\\377\\377\\377\\001"
                                         "\\000\\000\\000x'" }; /* no database */
    mc_cache *cache = embedded("bdb", "");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "text");
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        run_shell(apr_psprintf(pool,
                               "touch %%s/x %%s/bdb/x && %s > %%s/bdb/mapcache.undo && printf '\\001' > "
                               "%%s/bdb/mapcache.turns",
                               files[i]));
        expect_text(cache, &key, "text");
        run_shell("test -e %s/x && test -e %s/bdb/x && test ! -e %s/bdb/mapcache.undo");
    }
}
END_TEST

CACHE_MAIN("embedded", keys_are_those_of_the_reference, tiles_have_a_time_and_colours_are_colours,
           what_others_store_is_read, times_of_others_are_bounded, two_caches_stay_apart, processes_share_a_cache,
           a_full_lmdb_says_so, damaged_files_are_errors, a_replaced_lmdb_is_opened_anew,
           keys_that_cannot_be_are_refused, a_stopped_writer_holds_nobody_up, a_killed_writer_leaves_all_or_nothing,
           killed_readers_hold_no_writer_up, what_others_have_open_is_not_mended, bad_undo_files_change_nothing)
