#include "unit.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vector/shapefile/quadtree.h"
#include "vector/shapefile/shp.h"

static const mc_pixel_grid pixel_grid = { .x0 = 0, .y0 = 100, .per_x = 1, .per_y = 1 };
static mc_geometry geometry;
static char folder[64];

/* Bytes that grow. */
typedef struct writer {
    uint8_t bytes[1 << 16];
    size_t size;
} writer;

static writer shapes, entries, table;

static void
put(writer *w, const void *value, size_t size)
{
    ck_assert_uint_le(w->size + size, sizeof(w->bytes));
    memcpy(w->bytes + w->size, value, size);
    w->size += size;
}

static void
put_big(writer *w, uint32_t value)
{
    const uint8_t bytes[4] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value };
    put(w, bytes, 4);
}

static void
put_little(writer *w, uint32_t value)
{
    const uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24) };
    put(w, bytes, 4);
}

static void
put_double(writer *w, double value)
{
    put(w, &value, sizeof(value)); /* the tests' machine is little-endian, as the format */
}

static const char *
path_of(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

static const char *
written(const char *name, const void *bytes, size_t size)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static void
in_new_folder(void)
{
    strcpy(folder, "/tmp/mapcache-shp-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
remove_folder(void)
{
    static const char *const names[] = { "a.shp", "a.shx", "a.dbf", "a.cpg", "a.prj", "a.qix" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(path_of(names[i]));
    ck_assert_int_eq(rmdir(folder), 0);
    mc_geometry_free(&geometry);
}

static void
put_header(writer *w, uint32_t type, double side)
{
    w->size = 0;
    put_big(w, 9994);
    for (int i = 0; i < 6; i++)
        put_big(w, 0);
    put_little(w, 1000);
    put_little(w, type);
    for (int i = 0; i < 8; i++)
        put_double(w, i < 2 ? 0 : i < 4 ? side : 0);
}

/* Begins a record of so many bytes in the .shp and its entry in the .shx. */
static void
put_record(uint32_t number, uint32_t size)
{
    put_big(&entries, (uint32_t)shapes.size / 2);
    put_big(&entries, size / 2);
    put_big(&shapes, number);
    put_big(&shapes, size / 2);
}

static void
put_square(double x, double y, double side, bool outer)
{
    const double corners[5][2] = { { x, y }, { x, y + side }, { x + side, y + side }, { x + side, y }, { x, y } };
    for (int i = 0; i < 5; i++) {
        put_double(&shapes, corners[outer ? i : 4 - i][0]);
        put_double(&shapes, corners[outer ? i : 4 - i][1]);
    }
}

/* A square with a hole. */
static void
put_polygon(uint32_t number, double x, double y, double side)
{
    put_record(number, 44 + 2 * 4 + 10 * 16);
    put_little(&shapes, 5);
    put_double(&shapes, x);
    put_double(&shapes, y);
    put_double(&shapes, x + side);
    put_double(&shapes, y + side);
    put_little(&shapes, 2);
    put_little(&shapes, 10);
    put_little(&shapes, 0);
    put_little(&shapes, 5);
    put_square(x, y, side, true);
    put_square(x + side / 4, y + side / 4, side / 2, false);
}

static void
put_null(uint32_t number)
{
    put_record(number, 4);
    put_little(&shapes, 0);
}

/* 10 x 10 squares, the last of which is a null shape. */
static void
make_squares(void)
{
    put_header(&shapes, 5, 100);
    put_header(&entries, 5, 100);
    for (uint32_t i = 0; i < 99; i++)
        put_polygon(i + 1, i % 10 * 10, i / 10 * 10, 8);
    put_null(100);
    written("a.shp", shapes.bytes, shapes.size);
    written("a.shx", entries.bytes, entries.size);
}

static int
count_in(const mc_shp *shp, const mc_extent *box, uint32_t *last)
{
    mc_shp_reader reader;
    mc_shp_record record;
    int count = 0;
    mc_shp_begin(&reader, shp, box, pool);
    while (mc_shp_next(&reader, &record)) {
        ck_assert(count == 0 || record.number > *last); /* in the order of the file */
        *last = record.number;
        count++;
        if (record.has_box)
            ck_ok(mc_shp_geometry(&geometry, &record, &pixel_grid, pool));
    }
    mc_shp_end(&reader);
    return count;
}

START_TEST(windows_find_the_same_by_every_index)
{
    static const mc_extent window = { 15, 15, 31, 31 }, all = { 0, 0, 100, 100 }, none = { 200, 200, 300, 300 };
    mc_shp *shp;
    uint32_t last = 0, count;
    in_new_folder();
    make_squares();
    for (int kind = 0; kind < 4; kind++) { /* scan, boxes in memory, .qix, no .shx */
        if (kind == 2)
            ck_ok(mc_shp_write_tree(&count, path_of("a.shp"), pool));
        if (kind == 3)
            ck_assert_int_eq(unlink(path_of("a.shx")), 0);
        ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
        if (kind > 0)
            mc_shp_prepare(shp, pool);
        ck_assert_int_eq(shp->search, kind == 0 ? MC_SHP_SCAN : kind == 1 ? MC_SHP_IN_MEMORY : MC_SHP_TREE);
        ck_assert_uint_eq(shp->count, 100);
        ck_assert_int_eq(count_in(shp, &window, &last), 9);
        ck_assert_uint_eq(last, 33);
        ck_assert_int_eq(count_in(shp, &all, &last), 99);
        ck_assert_int_eq(count_in(shp, &none, &last), 0);
        ck_assert_int_eq(count_in(shp, NULL, &last), 100);
        ck_assert_int_eq(geometry.shapes[MC_SHAPE_POLYGONS].part_count, 2);
    }
    remove_folder();
}
END_TEST

enum { SPARSE_TO = 66 }; /* records before it are far from each other, those from it on all wanted */

static bool
is_wanted(int record)
{
    return record == 0 || record == 32 || record == 49 || record == 58 || record == 63 || record >= SPARSE_TO;
}

/* How often the file is read for the records from SPARSE_TO on. Those before teach the reader to read little ahead. */
static int
count_reads(const mc_shp *shp, const mc_extent *box)
{
    mc_shp_reader reader;
    mc_shp_record record;
    uint64_t begin = 0;
    int reads = 0;
    mc_shp_begin(&reader, shp, box, pool);
    ck_assert_ptr_nonnull(reader.wanted);
    for (int i = 0; i < SPARSE_TO; i++)
        if (!is_wanted(i))
            reader.wanted[i / 64] &= ~((uint64_t)1 << i % 64);
    while (mc_shp_next(&reader, &record)) {
        ck_assert(is_wanted((int)record.number));
        reads += record.number >= SPARSE_TO && reader.content.begin != begin;
        begin = reader.content.begin;
    }
    ck_assert_uint_eq(reader.at, shp->count);
    mc_shp_end(&reader);
    return reads;
}

/* Also where each is larger than the least that is read ahead. */
START_TEST(records_that_follow_each_other_are_read_together)
{
    enum { RECORDS = 110, PADDING = 320, POLYGON = 44 + 2 * 4 + 10 * 16, UNITS = (POLYGON + PADDING) / 2 };
    static const uint8_t padding[PADDING];
    mc_shp *shp;
    in_new_folder();
    put_header(&shapes, 5, 10 * RECORDS);
    put_header(&entries, 5, 10 * RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++) {
        size_t begin = shapes.size;
        put_polygon(i + 1, i * 10, 0, 8);
        put(&shapes, padding, PADDING);
        shapes.bytes[begin + 6] = entries.bytes[entries.size - 2] = UNITS >> 8;
        shapes.bytes[begin + 7] = entries.bytes[entries.size - 1] = UNITS & 0xFF;
    }
    written("a.shp", shapes.bytes, shapes.size);
    written("a.shx", entries.bytes, entries.size);
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    mc_shp_prepare(shp, pool);
    ck_assert_int_le(count_reads(shp, &(mc_extent){ 0, 0, 10 * RECORDS - 5, 5 }), (RECORDS - SPARSE_TO) / 4);
    remove_folder();
}
END_TEST

START_TEST(a_tree_of_other_shapes_is_left_alone)
{
    mc_shp *shp;
    uint32_t count;
    const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    in_new_folder();
    make_squares();
    ck_ok(mc_shp_write_tree(&count, path_of("a.shp"), pool));
    ck_assert_uint_eq(count, 100);
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    ck_assert(!shp->stale_tree);
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of("a.qix"), old, 0), 0);
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    ck_assert(shp->stale_tree);
    mc_shp_prepare(shp, pool);
    ck_assert_int_eq(shp->search, MC_SHP_IN_MEMORY);
    ck_fails(IO, mc_quadtree_write("/nowhere/a.qix", NULL, 0, pool));
    remove_folder();
}
END_TEST

/* Every beginning of the files, and every word of them as something absurd: fewer shapes, never a crash. */
START_TEST(files_that_are_cut_short_or_lie)
{
    static const mc_extent window = { 5, 5, 45, 45 };
    mc_shp *shp;
    mc_shp_reader reader;
    mc_shp_record record;
    in_new_folder();
    make_squares();
    for (size_t cut = 100; cut < shapes.size; cut += 37) {
        written("a.shp", shapes.bytes, cut);
        ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
        mc_shp_prepare(shp, pool);
        mc_shp_begin(&reader, shp, NULL, pool);
        while (mc_shp_next(&reader, &record))
            if (record.size == 0)
                ck_fails(CORRUPT, mc_shp_geometry(&geometry, &record, &pixel_grid, pool));
        mc_shp_end(&reader);
    }
    for (size_t at = 100; at + 4 <= 600; at += 4) {
        static writer lying;
        memcpy(&lying, &shapes, sizeof(lying));
        memset(lying.bytes + at, 0xEE, 4);
        written("a.shp", lying.bytes, lying.size);
        ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
        mc_shp_prepare(shp, pool);
        mc_shp_begin(&reader, shp, &window, pool);
        while (mc_shp_next(&reader, &record))
            mc_error_ignore(mc_shp_geometry(&geometry, &record, &pixel_grid, pool));
        mc_shp_end(&reader);
    }
    ck_fails(CORRUPT, mc_shp_open(&shp, written("a.shp", shapes.bytes, 99), NULL, pool));
    shapes.bytes[32] = 31;
    ck_fails(NOT_BUILT, mc_shp_open(&shp, written("a.shp", shapes.bytes, shapes.size), NULL, pool));
    unlink(path_of("a.shp"));
    ck_fails(IO, mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    ck_fails(CONFIG, mc_shp_open(&shp, path_of("a.txt"), NULL, pool));
    remove_folder();
}
END_TEST

/* What a program appends that has made a shape larger: the old record stays in the file. */
START_TEST(of_several_records_with_one_number_the_last_counts)
{
    mc_shp *shp;
    uint32_t last = 0;
    in_new_folder();
    put_header(&shapes, 5, 100);
    put_polygon(1, 0, 0, 8);
    put_polygon(2, 20, 20, 8);
    put_polygon(1, 50, 50, 8);
    written("a.shp", shapes.bytes, shapes.size);
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    mc_shp_prepare(shp, pool);
    ck_assert_uint_eq(shp->count, 2);
    ck_assert_int_eq(count_in(shp, &(mc_extent){ 0, 0, 10, 10 }, &last), 0);
    ck_assert_int_eq(count_in(shp, &(mc_extent){ 50, 50, 60, 60 }, &last), 1);
    put_header(&shapes, 5, 100);
    written("a.shp", shapes.bytes, shapes.size);
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), NULL, pool));
    mc_shp_prepare(shp, pool);
    ck_assert_int_eq(count_in(shp, &(mc_extent){ 0, 0, 10, 10 }, &last), 0);
    remove_folder();
}
END_TEST

static void
put_field(writer *w, const char *name, char type, uint8_t width)
{
    uint8_t bytes[32] = { [11] = (uint8_t)type, [16] = width };
    memcpy(bytes, name, strlen(name));
    put(w, bytes, 32);
}

/* Two records and one that has been deleted; every type of a field. */
static void
make_table(uint8_t driver)
{
    static const double half = 2.5;
    static const uint8_t stamp[8] = { 0x72, 0x8D, 0x25, 0, 0x40, 0x77, 0x1B, 0 }, seven[4] = { 0xF9, 0xFF, 0xFF, 0xFF },
                         money[8] = { 0x3E, 0x4E };
    const uint16_t header = 32 * 10 + 1, record = 1 + 8 + 4 + 8 + 1 + 4 + 8 + 8 + 8 + 10;
    uint8_t head[32] = {
        0x30, 0, 0, 0, 3, 0, 0, 0, (uint8_t)(header & 255), (uint8_t)(header >> 8), (uint8_t)record, 0, [29] = driver
    };
    table.size = 0;
    put(&table, head, 32);
    put_field(&table, "NAME", 'C', 8);
    put_field(&table, "N", 'N', 4);
    put_field(&table, "DAY", 'D', 8);
    put_field(&table, "YES", 'L', 1);
    put_field(&table, "SEVEN", 'I', 4);
    put_field(&table, "HALF", 'B', 8);
    put_field(&table, "MONEY", 'Y', 8);
    put_field(&table, "STAMP", 'T', 8);
    put_field(&table, "MEMO", 'M', 10);
    put(&table, "\x0D", 1);
    put(&table, " Z\xFCrich    4220261231T", 22);
    put(&table, seven, 4);
    put(&table, &half, 8);
    put(&table, money, 8);
    put(&table, stamp, 8);
    put(&table, "         1", 10);
    put(&table, "*Bern    ", 9);
    put(&table, "****        ?", 13);
    for (int i = 0; i < 38; i++)
        put(&table, "\0", 1);
    put(&table, " Bern    ****00000000?", 22);
    for (int i = 0; i < 38; i++)
        put(&table, "\0", 1);
    written("a.dbf", table.bytes, table.size);
}

static mc_shp *
open_with_table(const char *encoding)
{
    mc_shp *shp;
    make_squares();
    ck_ok(mc_shp_open(&shp, path_of("a.shp"), encoding, pool));
    return shp;
}

START_TEST(tables_of_all_types)
{
    static const char *const expected[] = { "Z\xC3\xBCrich", "42",     "2026-12-31",         "true", "-7",
                                            "2.5",           "2.0030", "2026-01-01T00:30:00" };
    mc_dbf_reader reader;
    in_new_folder();
    make_table(0x57);
    mc_shp *shp = open_with_table(NULL);
    const mc_dbf *dbf = shp->attributes;
    ck_assert_ptr_nonnull(dbf);
    ck_assert_int_eq(dbf->field_count, 8);
    ck_assert_int_eq(dbf->memo_count, 1);
    ck_assert_int_eq(mc_dbf_find(dbf, "name"), 0);
    ck_assert_int_eq(mc_dbf_find(dbf, "memo"), -1);
    mc_dbf_begin(&reader, dbf);
    ck_assert(mc_dbf_row(&reader, 0));
    for (int i = 0; i < 8; i++)
        ck_assert_str_eq(mc_dbf_value(&reader, i, pool), expected[i]);
    ck_assert(!mc_dbf_row(&reader, 1));
    ck_assert(mc_dbf_row(&reader, 2));
    ck_assert_str_eq(mc_dbf_value(&reader, 0, pool), "Bern");
    for (int i = 1; i < 4; i++)
        ck_assert_ptr_null(mc_dbf_value(&reader, i, pool));
    ck_assert(mc_dbf_row(&reader, 3)); /* the table has none */
    ck_assert_ptr_null(mc_dbf_value(&reader, 0, pool));
    mc_dbf_end(&reader);
    remove_folder();
}
END_TEST

static const char *
first_value(const mc_shp *shp)
{
    mc_dbf_reader reader;
    mc_dbf_begin(&reader, shp->attributes);
    ck_assert(mc_dbf_row(&reader, 0));
    const char *value = mc_dbf_value(&reader, 0, pool);
    mc_dbf_end(&reader);
    return value;
}

/* The option wins over the .cpg, that over the table's own byte; without any it is guessed. */
START_TEST(code_pages_from_four_places)
{
    in_new_folder();
    make_table(0x65); /* CP866, where 0xFC is a number sign */
    ck_assert_str_eq(first_value(open_with_table(NULL)), "Z\xE2\x84\x96rich");
    written("a.cpg", "ANSI 1251\r\n", 11);
    ck_assert_str_eq(first_value(open_with_table(NULL)), "Z\xD1\x8Crich");
    ck_assert_str_eq(first_value(open_with_table("850")), "Z\xC2\xB3rich");
    ck_assert_str_eq(first_value(open_with_table("UTF-8")), "Z\xEF\xBF\xBDrich");
    written("a.cpg", "no such page", 12);
    ck_assert_str_eq(first_value(open_with_table(NULL)), "Z\xE2\x84\x96rich");
    unlink(path_of("a.cpg"));
    make_table(0);
    ck_assert_str_eq(first_value(open_with_table(NULL)), "Z\xC3\xBCrich");
    mc_shp *shp;
    ck_fails(CONFIG, mc_shp_open(&shp, path_of("a.shp"), "Klingon", pool));
    static const char *const names[][2] = { { "65001", "UTF-8" },         { "88591", "ISO-8859-1" },
                                            { "8859-15", "ISO-8859-15" }, { "OEM 850", "CP850" },
                                            { "LDID/87", "CP1252" },      { "Shift_JIS", "Shift_JIS" } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_str_eq(mc_codepage_name(names[i][0], pool), names[i][1]);
    remove_folder();
}
END_TEST

START_TEST(tables_that_lie)
{
    in_new_folder();
    make_table(0x57);
    for (size_t cut = 0; cut < table.size; cut++) {
        written("a.dbf", table.bytes, cut);
        mc_shp *shp = open_with_table(NULL);
        ck_assert((shp->attributes == NULL) == (cut < 32 * 10 + 1));
        if (shp->attributes != NULL)
            (void)first_value(shp);
        else
            ck_assert_ptr_nonnull(shp->table_error);
    }
    for (size_t at = 0; at < 64; at++) {
        static writer lying;
        memcpy(&lying, &table, sizeof(lying));
        lying.bytes[at] = 0xFF;
        written("a.dbf", lying.bytes, lying.size);
        mc_shp *shp = open_with_table(NULL);
        if (shp->attributes != NULL)
            (void)first_value(shp);
    }
    remove_folder();
}
END_TEST

/* Against a look at every box, of boxes of all sizes. */
START_TEST(trees_find_what_a_look_at_all_finds)
{
    enum { COUNT = 5000 };
    static mc_extent boxes[COUNT];
    static mc_small_box small[COUNT];
    in_new_folder();
    srand(1);
    for (int i = 0; i < COUNT; i++) {
        double x = rand() % 10000, y = rand() % 10000, side = exp(rand() % 80 / 10.0);
        boxes[i] = i % 50 == 0 ? (mc_extent){ 1, 1, 0, 0 } : (mc_extent){ x, y, x + side, y + side / 2 };
        small[i] = mc_small_box_of(&boxes[i]);
    }
    ck_ok(mc_quadtree_write(path_of("a.qix"), boxes, COUNT, pool));
    mc_file file;
    ck_ok(mc_file_open(&file, path_of("a.qix"), pool));
    mc_box_index *index = mc_box_index_create(small, COUNT, pool);
    int found = 0, seen_by_tree = 0;
    for (int round = 0; round < 200; round++) {
        uint64_t by_tree[COUNT / 64 + 1] = { 0 }, by_boxes[COUNT / 64 + 1] = { 0 };
        double x = rand() % 10000, y = rand() % 10000;
        mc_extent window = { x, y, x + 300, y + 300 };
        ck_assert(mc_quadtree_search(by_tree, &file, COUNT, &window));
        mc_box_index_search(by_boxes, index, &window);
        for (int i = 0; i < COUNT; i++) {
            const mc_extent *b = &boxes[i];
            bool meets = b->minx <= b->maxx && b->minx <= window.maxx && b->maxx >= window.minx &&
                         b->miny <= window.maxy && b->maxy >= window.miny;
            bool in_tree = by_tree[i / 64] >> i % 64 & 1;
            ck_assert(!meets || in_tree);
            ck_assert(meets == (by_boxes[i / 64] >> i % 64 & 1));
            found += meets;
            seen_by_tree += in_tree;
        }
    }
    ck_assert_int_gt(found, 4000);
    ck_assert_int_lt(seen_by_tree, COUNT * 200 / 20);
    ck_assert(!mc_quadtree_search((uint64_t[COUNT]){ 0 }, &file, COUNT - 1, &(mc_extent){ 0, 0, 1, 1 }));
    remove_folder();
}
END_TEST

UNIT_MAIN("shapefile", windows_find_the_same_by_every_index, records_that_follow_each_other_are_read_together,
          a_tree_of_other_shapes_is_left_alone, files_that_are_cut_short_or_lie,
          of_several_records_with_one_number_the_last_counts, tables_of_all_types, code_pages_from_four_places,
          tables_that_lie, trees_find_what_a_look_at_all_finds)
