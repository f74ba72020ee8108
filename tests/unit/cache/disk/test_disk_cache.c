/* What is particular to the disk cache: paths, links to blank tiles, and that nobody ever reads half a tile. */
#include "cache_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static mc_cache *
disk(const char *layout, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='disk' layout='%s'><base>%s/c</base>%s</cache>", layout,
                                 cache_folder, inner));
}

static bool
is_file(const char *path)
{
    struct stat info;
    return stat(apr_pstrcat(pool, cache_folder, "/c/", path, NULL), &info) == 0 && S_ISREG(info.st_mode);
}

static mc_tile_key
roads(int z, int x, int y)
{
    static const mc_grid wgs84 = {
        .name = "WGS84", .tile_width = 256, .tile_height = 256, .level_count = 6, .levels = cache_levels
    };
    return (mc_tile_key){ .tileset = "roads", .grid = &wgs84, .z = z, .x = x, .y = y, .extension = "png" };
}

START_TEST(layouts_have_the_paths_of_the_reference)
{
    mc_tile_key key = roads(5, 9, 12);
    put_text(disk("tilecache", ""), &key, "tile");
    ck_assert(is_file("roads/WGS84/05/000/000/009/000/000/012.png"));
    put_text(disk("arcgis", ""), &key, "tile");
    ck_assert(is_file("roads/WGS84/L05/R0000000c/C00000009.png"));
    put_text(disk("worldwind", ""), &key, "tile");
    ck_assert(is_file("5/0012/0012_0009.png"));
    key = roads(5, 12345678, 255001002);
    put_text(disk("", ""), &key, "tile");
    ck_assert(is_file("roads/WGS84/05/012/345/678/255/001/002.png"));
    put_text(disk("arcgis", ""), &key, "tile");
    ck_assert(is_file("roads/WGS84/L05/R0f3301aa/C00bc614e.png"));
}
END_TEST

START_TEST(dimensions_are_folders_last_first)
{
    mc_dimension_value dimensions[] = { { "a", "A.1/x", true }, { "b", "../../../b", true } };
    mc_tile_key key = roads(1, 1, 0);
    key.dimensions = dimensions;
    key.dimension_count = 2;
    put_text(disk("", ""), &key, "tile");
    ck_assert(is_file("roads/WGS84/#########b/A#1#x/01/000/000/001/000/000/000.png"));
}
END_TEST

static const char *
link_at(const char *path)
{
    char text[1024];
    ssize_t size = readlink(apr_pstrcat(pool, cache_folder, "/c/", path, NULL), text, sizeof(text));
    return size < 0 ? "" : apr_pstrmemdup(pool, text, (size_t)size);
}

static const uint8_t colour[4] = { 0x1a, 0x22, 0x33, 0x80 };

START_TEST(tiles_of_one_colour_are_links_to_one_file)
{
    mc_cache *cache = disk("", "<symlink_blank/>");
    mc_tile_key key = roads(5, 9, 12);
    put_colour(cache, &key, colour);
    ck_assert(is_file("roads/WGS84/blanks/1A223380.png"));
    ck_assert_str_eq(link_at("roads/WGS84/05/000/000/009/000/000/012.png"), "../../../../../../blanks/1A223380.png");
    expect_text(cache, &key, "picture");
    put_text(cache, &key, "other"); /* takes the place of the link, not of what it points to */
    expect_text(cache, &key, "other");
    ck_assert_str_eq(link_at("roads/WGS84/05/000/000/009/000/000/012.png"), "");
    mc_tile_key second = roads(5, 10, 12);
    put_colour(cache, &second, colour);
    expect_text(cache, &second, "picture");
    mc_dimension_value dimensions[] = { { "a", "x", false }, { "b", "y", false } };
    key.dimensions = dimensions;
    key.dimension_count = 2;
    put_colour(cache, &key, colour);
    ck_assert_str_eq(link_at("roads/WGS84/y/x/05/000/000/009/000/000/012.png"),
                     "../../../../../../../../blanks/1A223380.png");
    dimensions[1].value = "bl"; /* the paths do not part at a '/' */
    put_colour(cache, &key, colour);
    ck_assert_str_eq(link_at("roads/WGS84/bl/x/05/000/000/009/000/000/012.png"),
                     apr_pstrcat(pool, cache_folder, "/c/roads/WGS84/blanks/1A223380.png", NULL));
    put_text(cache, &second, "raw"); /* without pixels, as a RAW tileset */
    ck_assert_str_eq(link_at("roads/WGS84/05/000/000/010/000/000/012.png"), "");
}
END_TEST

START_TEST(transparent_tiles_are_not_written_when_asked_for)
{
    static const uint8_t nothing[4] = { 0, 0, 0, 0 };
    mc_cache *cache =
        disk("", "<detect_blank>false</detect_blank>"); /* its presence counts (docs/reference/configuration.md 5.5) */
    mc_tile_key key = roads(5, 9, 12);
    put_colour(cache, &key, nothing);
    expect_text(cache, &key, NULL);
    put_colour(cache, &key, colour);
    expect_text(cache, &key, "picture");
    put_colour(cache, &key, nothing); /* where there was something */
    expect_text(cache, &key, NULL);
    cache = disk("", "");
    key = roads(5, 10, 12);
    put_colour(cache, &key, nothing);
    expect_text(cache, &key, "picture");
}
END_TEST

START_TEST(a_stored_colour_is_expanded)
{
    mc_cache *cache = disk("", "");
    mc_tile_key key = roads(1, 0, 0);
    mc_tile_write stored = { .key = key, .data = mc_buf_attach(mc_buf_copy("#\x1a\x22\x33\x80", 5), pool) };
    ck_ok(mc_cache_put(cache, &stored, 1, &ctx));
    usleep(60000);
    for (int i = 0; i < 3; i++) { /* also from memory */
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert(tile->blank && tile->coding == MC_CODING_PNG && memcmp(tile->bgra, colour, 4) == 0);
        ck_assert_int_eq(memcmp(tile->data->data, "\x89PNG", 4), 0);
    }
}
END_TEST

enum { RACE_BYTES = 300000, RACE_PUTS = 200 };
static atomic_bool writing;

static void *
write_by_turns(void *baton)
{
    apr_pool_t *own;
    apr_pool_create_unmanaged_ex(&own, NULL, NULL);
    mc_ctx mine = { .pool = own, .process = &process, .log = &mc_log_stderr };
    intptr_t failures = 0;
    for (int i = 0; i < RACE_PUTS; i++) {
        mc_tile_write tile = { .key = roads(1, 1, 1), .data = mc_buf_create(RACE_BYTES, RACE_BYTES) };
        tile.data->size = i % 2 == 0 ? RACE_BYTES : RACE_BYTES / 2;
        memset(tile.data->data, i % 2 == 0 ? 'a' : 'b', tile.data->size);
        failures += mc_cache_put(baton, &tile, 1, &mine) != MC_OK;
        mc_buf_unref(tile.data);
    }
    atomic_store(&writing, false);
    apr_pool_destroy(own);
    return (void *)failures;
}

START_TEST(nobody_reads_half_a_tile)
{
    mc_cache *cache = disk("", "");
    mc_tile_key key = roads(1, 1, 1);
    put_text(cache, &key, "a");
    atomic_store(&writing, true);
    pthread_t writer;
    ck_assert_int_eq(pthread_create(&writer, NULL, write_by_turns, cache), 0);
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    while (atomic_load(&writing)) {
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, scratch));
        ck_assert_ptr_nonnull(tile);
        size_t size = tile->data->size;
        char first = (char)tile->data->data[0];
        ck_assert(size == 1 || (size == RACE_BYTES && first == 'a') || (size == RACE_BYTES / 2 && first == 'b'));
        ck_assert_int_eq(tile->data->data[size - 1], first);
        apr_pool_clear(scratch);
    }
    void *failures;
    pthread_join(writer, &failures);
    ck_assert_int_eq((intptr_t)failures, 0);
    run_shell("! ls %s/c/roads/WGS84/01/000/000/001/000/000 | grep -q tmp");
}
END_TEST

START_TEST(unwritable_places_give_errors_without_their_path)
{
    mc_cache *cache = disk("", "<creation_retry>2</creation_retry>");
    mc_tile_key key = roads(1, 1, 1);
    run_shell(": > %s/c"); /* a file where the folder should be */
    mc_tile_write tile = { .key = key, .data = mc_buf_attach(mc_buf_copy("x", 1), pool) };
    mc_error *error = mc_cache_put(cache, &tile, 1, &ctx);
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
    ck_assert_ptr_null(strstr(error->message, cache_folder));
    expect_text(cache, &key, NULL);
    char longest[5000];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    mc_dimension_value dimension = { "a", longest, true };
    key.dimensions = &dimension;
    key.dimension_count = 1;
    mc_tile *found;
    ck_fails(INVALID_DIMENSION, mc_cache_get(&found, cache, &key, &ctx, pool));
}
END_TEST

typedef struct met_tiles {
    int count, sum;
    int most;
} met_tiles;

static bool
meet_tile(void *baton, int x, int y)
{
    met_tiles *met = baton;
    met->sum += x * 7 + y;
    return ++met->count < met->most;
}

/* In a layout, beside files of something else in a folder of its own. */
static void
check_folders(const char *layout, const char *noise)
{
    static const int places[][2] = { { 0, 0 },       { 999, 1000 },  { 1000, 999 },     { 1000000, 2 },
                                     { 1000001, 3 }, { 2001002, 5 }, { 2001002, 1005 }, { 2001003, 1000005 } };
    const mc_tile_range areas[] = { { 0, 0, 3000000, 3000000 },       { 999, 0, 1001, 1001 },
                                    { 1000000, 2, 1000001, 3 },       { 2001002, 5, 2001003, 6 },
                                    { 2001000, 6, 3000000, 5000000 }, { 5, 5, 900, 900 } };
    mc_cache *cache = disk(layout, "");
    run_shell("rm -rf %s/c");
    ck_assert_msg(cache->ops->lists_folders(cache), "%s", layout);
    mc_tile_key key = roads(5, 0, 0);
    met_tiles none = { 0, 0, 100 };
    ck_ok(cache->ops->list_folders(cache, &key, &areas[0], meet_tile, &none, &ctx)); /* there is no folder */
    ck_assert_int_eq(none.count, 0);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        key = roads(5, places[i][0], places[i][1]);
        put_text(cache, &key, "tile");
    }
    run_shell(apr_pstrcat(pool, "cd %s/c/", noise, NULL));
    for (size_t a = 0; a < sizeof(areas) / sizeof(areas[0]); a++) {
        met_tiles met = { 0, 0, 100 };
        int count = 0, sum = 0;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            if (places[i][0] >= areas[a].minx && places[i][0] < areas[a].maxx && places[i][1] >= areas[a].miny &&
                places[i][1] < areas[a].maxy) {
                count++;
                sum += places[i][0] * 7 + places[i][1];
            }
        ck_ok(cache->ops->list_folders(cache, &key, &areas[a], meet_tile, &met, &ctx));
        ck_assert_msg(met.count == count && met.sum == sum, "%s, area %d: %d of %d", layout, (int)a, met.count, count);
    }
    met_tiles two = { 0, 0, 2 };
    ck_ok(cache->ops->list_folders(cache, &key, &areas[0], meet_tile, &two, &ctx));
    ck_assert_int_eq(two.count, 2);
}

START_TEST(folders_tell_the_tiles_of_an_area)
{
    static const char tilecache_noise[] =
        "mkdir -p abc 000/x 000/000/12 && : > 000/000/000/000/000/000.png.1.2.tmp && : > 7 &&"
        " mkdir 000/000/000/000/000/001.png.d && : > 000/000/0x0";
    static const char arcgis_noise[] =
        "mkdir -p abc R0x00000 R000 && : > R00000000/C00000000.png.1.tmp && : > R00000000/C0000000g.png &&"
        " : > R00000000/R00000000.png && : > R00000002/C0x000000.png && : > 7";
    check_folders("tilecache", apr_pstrcat(pool, "roads/WGS84/05 && ", tilecache_noise, NULL));
    check_folders("mapproxy-tc", apr_pstrcat(pool, "05 && ", tilecache_noise, NULL));
    check_folders("mapproxy-mp", "05 && mkdir -p abc 0000/x 000 && : > 0000/0000/0000/0000.png.tmp && : > 7");
    check_folders("arcgis", apr_pstrcat(pool, "roads/WGS84/L05 && ", arcgis_noise, NULL));
    check_folders("mapproxy-arcgis", apr_pstrcat(pool, "L05 && ", arcgis_noise, NULL));
    mc_cache *other = disk("worldwind", "");
    ck_assert(!other->ops->lists_folders(other));
}
END_TEST

START_TEST(a_file_has_the_time_that_its_tile_was_put_with)
{
    mc_cache *cache = disk("", "");
    mc_tile_key key = roads(5, 9, 12);
    mc_tile *tile;
    mc_tile_write put = { .key = key, .data = buf_of_text("tile"), .made = INT64_C(1600000000123456) };
    ck_assert(mc_cache_keeps_time(cache));
    ck_assert(!mc_cache_keeps_time(disk("", "<symlink_blank/>")));
    ck_ok(mc_cache_put(cache, &put, 1, &ctx));
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert_int_eq(tile->mtime, put.made);
}
END_TEST

START_TEST(a_put_tells_the_time_that_a_get_finds)
{
    mc_cache *cache = disk("", ""), *links = disk("", "<symlink_blank/>");
    mc_tile_key key = roads(5, 9, 13);
    mc_tile *tile;
    apr_time_t read_as = 0, made[] = { 0, INT64_C(1600000000123456) };
    mc_tile_write put = { .key = key, .data = buf_of_text("tile"), .read_as = &read_as };
    ck_assert(cache->ops->tells_time);
    for (int i = 0; i < 2; i++) {
        put.made = made[i];
        read_as = 0;
        ck_ok(mc_cache_put(cache, &put, 1, &ctx));
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert_int_gt(read_as, 0);
        ck_assert_int_eq(tile->mtime, read_as);
    }
    put.uniform = true; /* what is found is another file */
    read_as = 0;
    ck_ok(mc_cache_put(links, &put, 1, &ctx));
    ck_assert_int_eq(read_as, 0);
}
END_TEST

/* In place of the C library's, for this program and the library that it tests. */
static atomic_int bytes_at_once; /* 0: as many as are asked for; below 0: the disk fails */
static atomic_bool ends_early;   /* a file ends after the first of these */

ssize_t
read(int file, void *bytes, size_t size)
{
    const int most = atomic_load(&bytes_at_once);
    if (atomic_load(&ends_early) && most == 0)
        return 0;
    if (atomic_load(&ends_early))
        atomic_store(&bytes_at_once, 0);
    errno = EIO;
    return most < 0 ? -1 : syscall(SYS_read, file, bytes, most > 0 && size > (size_t)most ? (size_t)most : size);
}

static mc_error *
get_from_failing_disk(mc_cache *cache, const mc_tile_key *key)
{
    mc_tile *tile;
    atomic_store(&bytes_at_once, -1);
    mc_error *error = mc_cache_get(&tile, cache, key, &ctx, pool);
    atomic_store(&bytes_at_once, 0);
    return error;
}

/* It may be there, or be whole. */
START_TEST(what_cannot_be_read_is_an_error)
{
    mc_cache *cache = disk("", "");
    const mc_tile_key key = roads(5, 9, 12), other = roads(5, 10, 12);
    mc_tile_key none = other;
    mc_tile *tile;
    bool exists = true;
    put_text(cache, &key, "a whole tile");
    atomic_store(&bytes_at_once, 5);
    expect_text(cache, &key, "a whole tile");
    atomic_store(&bytes_at_once, 0);
    restart_cache_test();
    cache = disk("", "");
    put_text(cache, &key, "a whole tile");
    ck_fails(IO, get_from_failing_disk(cache, &key));
    atomic_store(&ends_early, true);
    atomic_store(&bytes_at_once, 5);
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    atomic_store(&ends_early, false);
    expect_text(cache, &key, "a whole tile");
    run_shell("mkdir -p %s/c/roads/WGS84/05/000/000/010/000/000;"
              "ln -s 012.png %s/c/roads/WGS84/05/000/000/010/000/000/012.png");
    ck_fails(IO, mc_cache_exists(&exists, cache, &other, &ctx)); /* ELOOP, also for root */
    none.tileset = "rails";
    ck_ok(mc_cache_exists(&exists, cache, &none, &ctx));
    ck_assert(!exists);
}
END_TEST

CACHE_MAIN("disk cache", layouts_have_the_paths_of_the_reference, dimensions_are_folders_last_first,
           tiles_of_one_colour_are_links_to_one_file, transparent_tiles_are_not_written_when_asked_for,
           a_stored_colour_is_expanded, nobody_reads_half_a_tile, unwritable_places_give_errors_without_their_path,
           folders_tell_the_tiles_of_an_area, a_file_has_the_time_that_its_tile_was_put_with,
           a_put_tells_the_time_that_a_get_finds, what_cannot_be_read_is_an_error)
