/* Well-known binary as tiny well-known binary: the bytes that PostGIS makes, read back as the same shape, broken bytes
 * are refused. */
#include "vector/geometry/wkb_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "vector/geometry/geometry.h"

enum { POINT = 1, LINE, POLYGON, POINTS, LINES, COLLECTION = 7 };

static const mc_pixel_grid grid = { .x0 = 0, .y0 = 100, .per_x = 4, .per_y = 4 };
static mc_wkb_buffer input, output;

static void
add_number(uint32_t number)
{
    mc_wkb_append(&input, &number, sizeof(number)); /* the machine is little-endian, as the bytes are */
}

static void
add_head(uint32_t type)
{
    mc_wkb_append(&input, "\1", 1);
    add_number(type);
}

static void
begin_geometry(uint32_t type)
{
    input.size = output.size = 0;
    add_head(type);
}

static void
add_vertices(const double (*vertices)[2], uint32_t count)
{
    add_number(count);
    mc_wkb_append(&input, vertices, sizeof(double) * 2 * count);
}

static void
expect_bytes(int digits, const char *bytes, size_t size)
{
    output.size = 0;
    ck_assert(mc_wkb_pack(&output, input.data, input.size, digits));
    ck_assert_uint_eq(output.size, size);
    ck_assert_mem_eq(output.data, bytes, size);
}

/* Examples of the PostGIS manual, ST_AsTWKB and ST_GeomFromTWKB, and what PostGIS 3.3 gives for others. */
START_TEST(bytes_are_those_of_postgis)
{
    const double line[][2] = { { 1, 1 }, { 5, 5 } }, ring[][2] = { { 0, 0 }, { 2, 0 }, { 0, 2 }, { 0, 0 } };
    begin_geometry(LINE);
    add_vertices(line, 2);
    expect_bytes(0, "\x02\x00\x02\x02\x02\x08\x08", 7);
    expect_bytes(1, "\x22\x00\x02\x14\x14\x50\x50", 7);
    expect_bytes(-1, "\x12\x00\x02\x00\x00\x02\x02", 7);
    begin_geometry(POLYGON);
    add_number(1);
    add_vertices(ring, 4);
    expect_bytes(0, "\x03\x00\x01\x04\x00\x00\x04\x00\x03\x04\x00\x03", 12);
}
END_TEST

static void
expect_same_shape(mc_shape_kind kind)
{
    mc_geometry plain = { 0 }, packed = { 0 };
    output.size = 0;
    ck_assert(mc_wkb_pack(&output, input.data, input.size, 6));
    ck_assert(mc_wkb_read(&plain, input.data, input.size, &grid, pool) == MC_OK);
    ck_assert(mc_twkb_read(&packed, output.data, output.size, &grid, pool) == MC_OK);
    const mc_shape *a = &plain.shapes[kind], *b = &packed.shapes[kind];
    ck_assert_int_gt(a->point_count, 0);
    ck_assert_int_eq(a->point_count, b->point_count);
    ck_assert_int_eq(a->part_count, b->part_count);
    ck_assert_mem_eq(a->points, b->points, sizeof(*a->points) * (size_t)a->point_count);
    mc_geometry_free(&plain);
    mc_geometry_free(&packed);
}

START_TEST(shapes_are_read_back)
{
    double line[300][2]; /* more vertices than are read at once, with steps of every length */
    srand(3);
    for (int i = 0; i < 300; i++)
        for (int v = 0; v < 2; v++)
            line[i][v] = 50 + round(rand() / (RAND_MAX + 1.0) * 1e8 / pow(10, i % 8)) / 1e6;
    begin_geometry(LINE);
    add_vertices((const double(*)[2])line, 300);
    expect_same_shape(MC_SHAPE_LINES);
    begin_geometry(POLYGON);
    add_number(2);
    add_vertices((const double(*)[2])line, 200);
    add_vertices((const double(*)[2])line + 200, 100);
    expect_same_shape(MC_SHAPE_POLYGONS);
    begin_geometry(LINES);
    add_number(3);
    for (int i = 0; i < 3; i++) {
        add_head(LINE);
        add_vertices((const double(*)[2])line + 70 * i, 70);
    }
    expect_same_shape(MC_SHAPE_LINES);
    begin_geometry(POINTS);
    add_number(20);
    for (int i = 0; i < 20; i++) {
        add_head(POINT);
        mc_wkb_append(&input, line[i], sizeof(line[i]));
    }
    expect_same_shape(MC_SHAPE_POINTS);
}
END_TEST

static void
expect_refusal(void)
{
    output.size = 0;
    ck_assert(!mc_wkb_pack(&output, input.data, input.size, 0));
    ck_assert_uint_eq(output.size, 0);
}

START_TEST(what_cannot_be_packed_is_refused)
{
    const double broken[][2] = { { NAN, 0 }, { 0, INFINITY }, { 1e300, 0 } }, line[][2] = { { 0, 0 }, { 5, 5 } };
    for (int i = 0; i < 3; i++) {
        begin_geometry(POINT);
        mc_wkb_append(&input, broken[i], sizeof(broken[i]));
        expect_refusal();
    }
    begin_geometry(COLLECTION);
    add_number(0);
    expect_refusal();
    begin_geometry(LINES);
    add_number(1);
    add_head(POINT); /* of another kind than its collection */
    mc_wkb_append(&input, line[0], sizeof(line[0]));
    expect_refusal();
    begin_geometry(LINE);
    add_vertices(line, 2);
    ck_assert(!mc_wkb_pack(&output, input.data, input.size, 8));
    for (const size_t whole = input.size; input.size > 0;) { /* cut short anywhere */
        input.size--;
        ck_assert_uint_lt(input.size, whole);
        expect_refusal();
    }
}
END_TEST

UNIT_MAIN("wkb_pack", bytes_are_those_of_postgis, shapes_are_read_back, what_cannot_be_packed_is_refused)
