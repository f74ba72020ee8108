/* Files that lose bytes while a map is read: the map fails, as a part of it would be taken for all of it, and stored.
 */
#include "vector/shapefile/shapefile.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/stamp.h"
#include "unit.h"
#include "vector/shapefile/shp.h"

enum { POINTS = 5000, HEAD = 100, RECORD = 8 + 20, ROW = 1 + 40, TABLE_HEAD = 32 + 32 + 1, POINT = 1 };

static char folder[] = "/tmp/mapcache-shp-cut-XXXXXX";
static uint8_t shapes[HEAD + POINTS * RECORD], entries[HEAD + POINTS * 8], table[TABLE_HEAD + POINTS * ROW];

static const char *
path_of(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

/* In place, as careless programs do. */
static void
write_file(const char *name, const uint8_t *bytes, size_t size)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static void
store_head(uint8_t *head, size_t size)
{
    (void)mc_store_big32(head, 9994);
    (void)mc_store_big32(head + 24, (uint32_t)(size / 2));
    (void)mc_store_little32(head + 32, POINT);
    (void)mc_store_little_double(mc_store_little_double(head + 36, 0), 0);
    (void)mc_store_little_double(mc_store_little_double(head + 52, POINTS), 1);
}

/* Points in a row, and a table of a text for each. */
static void
make_points(void)
{
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    store_head(shapes, sizeof(shapes));
    store_head(entries, sizeof(entries));
    table[0] = 3;
    (void)mc_store_little32(table + 4, POINTS);
    table[8] = TABLE_HEAD;
    table[10] = ROW;
    memcpy(table + 32, "name", 5);
    table[32 + 11] = 'C';
    table[32 + 16] = ROW - 1;
    table[TABLE_HEAD - 1] = 0x0D;
    for (uint32_t i = 0; i < POINTS; i++) {
        uint8_t *shape = shapes + HEAD + i * RECORD, *entry = entries + HEAD + i * 8;
        (void)mc_store_big32(mc_store_big32(shape, i + 1), 10);
        (void)mc_store_little_double(mc_store_little_double(mc_store_little32(shape + 8, POINT), i + 0.5), 0.5);
        (void)mc_store_big32(mc_store_big32(entry, (HEAD + i * RECORD) / 2), 10);
        memset(table + TABLE_HEAD + i * ROW, ' ', ROW);
        memcpy(table + TABLE_HEAD + i * ROW + 1, "here", 4);
    }
    write_file("a.shp", shapes, sizeof(shapes));
    write_file("a.shx", entries, sizeof(entries));
    write_file("a.dbf", table, sizeof(table));
}

static void
remove_points(void)
{
    static const char *const names[] = { "a.shp", "a.shx", "a.dbf", "a.qix" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(path_of(names[i]));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Until a look at the files is enough to know that they have not changed. */
static void
let_files_settle(void)
{
    static const char *const names[] = { "a.shp", "a.dbf", "a.qix" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        mc_stamp stamp;
        while (mc_stamp_take_plain(&stamp, path_of(names[i])) && !mc_stamp_settled(&stamp, apr_time_now()))
            apr_sleep(1000);
    }
}

/* What a map sees; and what is cut as soon as it has seen something. */
typedef struct seen {
    int features, named;
    const char *cut;
    size_t size;
} seen;

static mc_error *
see_feature(void *baton, const mc_feature *feature, mc_ctx *request)
{
    seen *s = baton;
    (void)request;
    s->features++;
    s->named += feature->values[0] != NULL;
    if (s->cut != NULL)
        ck_assert_int_eq(truncate(path_of(s->cut), (off_t)s->size), 0);
    s->cut = NULL;
    return MC_OK;
}

/* All but the first point. */
static mc_error *
read_points(seen *s, mc_feature_data *data)
{
    static const char *const attributes[] = { "name" };
    const mc_feature_query query = { .srs = "EPSG:3857",
                                     .box = { 1, 0, POINTS, 1 },
                                     .pixel_grid = { .x0 = 0, .y0 = 1, .per_x = 1, .per_y = 1 },
                                     .resolution = 1,
                                     .scale = 1,
                                     .attributes = attributes,
                                     .attribute_count = 1 };
    int64_t skipped = 0;
    mc_error *error = data->ops->read(data, &query, see_feature, s, &skipped, &ctx, pool);
    ck_assert_int_eq(skipped, 0);
    return error;
}

static mc_feature_data *
open_layer(void)
{
    const mc_shapefile_config config = { .path = path_of("a.shp"), .srs = "EPSG:3857" };
    return mc_shapefile_create(&config, "points", pool);
}

static void
check_whole(mc_feature_data *data)
{
    seen s = { 0 };
    ck_ok(read_points(&s, data));
    ck_assert_int_eq(s.features, POINTS - 1);
    ck_assert_int_eq(s.named, POINTS - 1);
}

/* Each file at many lengths, after the first feature of a map, with an index in memory and with a .qix. */
START_TEST(a_file_that_is_cut_during_a_map_fails_the_map)
{
    static const struct {
        const char *name;
        const uint8_t *bytes;
        size_t size;
    } files[] = { { "a.shp", shapes, sizeof(shapes) }, { "a.dbf", table, sizeof(table) } };
    make_points();
    for (int indexed = 0; indexed < 2; indexed++) {
        uint32_t count;
        mc_feature_data *data = open_layer();
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
            for (size_t size = 0; size < files[i].size; size += files[i].size / 13) {
                let_files_settle();
                check_whole(data);
                seen s = { .cut = files[i].name, .size = size };
                ck_fails(IO, read_points(&s, data));
                write_file(files[i].name, files[i].bytes, files[i].size);
            }
        ck_ok(mc_shp_write_tree(&count, path_of("a.shp"), pool));
    }
    remove_points();
}
END_TEST

/* The places of records are read from the .shx with each map where a .qix finds them. No look at the files tells that
 * the .shx has changed. */
START_TEST(a_list_of_places_that_is_cut_between_two_maps_fails_the_next_one)
{
    uint32_t count;
    make_points();
    ck_ok(mc_shp_write_tree(&count, path_of("a.shp"), pool));
    mc_feature_data *data = open_layer();
    for (size_t size = 0; size < sizeof(entries); size += sizeof(entries) / 13) {
        seen s = { 0 };
        let_files_settle();
        check_whole(data);
        ck_assert_int_eq(truncate(path_of("a.shx"), (off_t)size), 0);
        ck_fails(IO, read_points(&s, data));
        write_file("a.shx", entries, sizeof(entries));
        check_whole(data);
    }
    remove_points();
}
END_TEST

/* While it is short and was changed just now; what has been short for long is drawn as far as it goes. */
START_TEST(a_file_that_is_being_copied_to_its_place_is_waited_for)
{
    const struct timespec old[2] = { { 1500000000, 0 }, { 1500000000, 0 } };
    make_points();
    mc_feature_data *data = open_layer();
    check_whole(data);
    const struct {
        const char *name;
        const uint8_t *bytes;
        size_t size;
    } files[] = { { "a.shp", shapes, sizeof(shapes) }, { "a.dbf", table, sizeof(table) } };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        seen s = { 0 };
        write_file(files[i].name, files[i].bytes, files[i].size / 2);
        ck_fails(UNAVAILABLE, read_points(&s, data));
        ck_assert_int_eq(s.features, 0);
        ck_assert_int_eq(utimensat(AT_FDCWD, path_of(files[i].name), old, 0), 0);
        mc_shp *shp;
        ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
        ck_assert(!mc_shp_is_growing(shp, apr_time_now()));
        write_file(files[i].name, files[i].bytes, files[i].size);
        check_whole(data);
    }
    remove_points();
}
END_TEST

/* What a .qix leaves out is found by no map, for as long as the .qix lasts. */
START_TEST(no_tree_is_made_of_a_file_that_is_cut_meanwhile)
{
    mc_shp *shp;
    mc_shp_reader reader;
    mc_shp_record record;
    make_points();
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    ck_assert_int_eq(truncate(path_of("a.shx"), HEAD), 0);
    mc_shp_prepare(shp, pool);
    ck_assert_int_eq(shp->search, MC_SHP_SCAN); /* no index of the boxes that could be read */
    mc_shp_begin(&reader, shp, NULL, pool);
    ck_assert(!mc_shp_next(&reader, &record));
    ck_fails(IO, mc_shp_check(&reader, pool));
    mc_shp_end(&reader);
    remove_points();
}
END_TEST

/* Without a .shx the records are looked for from one to the next; those behind the cut are not known to be none. */
START_TEST(a_file_without_a_list_that_is_cut_while_it_is_opened_is_an_error)
{
    mc_shp *shp;
    make_points();
    ck_assert_int_eq(unlink(path_of("a.shx")), 0);
    ck_ok(mc_shp_begin_opening(&shp, path_of("a.shp"), NULL, pool));
    ck_assert_int_eq(truncate(path_of("a.shp"), HEAD + RECORD), 0);
    ck_fails(IO, mc_shp_go_on_opening(shp, &ctx, pool));
    write_file("a.shp", shapes, sizeof(shapes));
    ck_ok(mc_shp_begin_opening(&shp, path_of("a.shp"), NULL, pool));
    ck_ok(mc_shp_go_on_opening(shp, &ctx, pool));
    ck_assert_uint_eq(shp->count, POINTS);
    remove_points();
}
END_TEST

UNIT_MAIN("shapefile_cut", a_file_that_is_cut_during_a_map_fails_the_map,
          a_list_of_places_that_is_cut_between_two_maps_fails_the_next_one,
          a_file_that_is_being_copied_to_its_place_is_waited_for, no_tree_is_made_of_a_file_that_is_cut_meanwhile,
          a_file_without_a_list_that_is_cut_while_it_is_opened_is_an_error)
