/* Thinning of well-known binary: ends of runs stay where they are, shared borders stay shared, broken bytes are
 * refused. */
#include "vector/geometry/wkb_thin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "vector/geometry/geometry.h"
#include "vector/geometry/wkb_pack.h"

enum { LINE = 2, POLYGON = 3, COLLECTION = 7, POINTS_MAX = 64 };

static const mc_wkb_cells cells = { 0, 0, 1 };
static mc_wkb_buffer input, output, packed;

static void
add_number(uint32_t number)
{
    mc_wkb_append(&input, &number, sizeof(number)); /* the machine is little-endian, as the bytes are */
}

static void
begin_geometry(uint32_t type)
{
    input.size = output.size = 0;
    mc_wkb_append(&input, "\1", 1);
    add_number(type);
}

static void
add_vertices(const double (*vertices)[2], uint32_t count)
{
    add_number(count);
    mc_wkb_append(&input, vertices, sizeof(double) * 2 * count);
}

static bool
thin_input(void)
{
    return mc_wkb_thin(&output, input.data, input.size, 3857, &cells);
}

/* The vertices of the only line or ring of the output, behind `head` bytes. */
static uint32_t
output_vertices(double (*vertices)[2], size_t head)
{
    uint32_t count;
    memcpy(&count, output.data + head, sizeof(count));
    ck_assert_uint_le(count, POINTS_MAX);
    ck_assert_uint_eq(output.size, head + 4 + (size_t)count * 16);
    memcpy(vertices, output.data + head + 4, (size_t)count * 16);
    return count;
}

enum { LINE_HEAD = 1 + 4 + 4, POLYGON_HEAD = LINE_HEAD + 4 };

START_TEST(ends_of_runs_are_kept)
{
    double line[20][2], kept[8][2], found[POINTS_MAX][2];
    for (int i = 0; i < 20; i++) { /* four cells, of five vertices each */
        line[i][0] = i / 5 + .1 + .15 * (i % 5);
        line[i][1] = .3 + .1 * (i % 3);
    }
    for (int i = 0; i < 8; i++)
        memcpy(kept[i], line[i / 2 * 5 + i % 2 * 4], sizeof(kept[i]));
    begin_geometry(LINE);
    add_vertices((const double(*)[2])line, 20);
    ck_assert(thin_input());
    ck_assert_uint_eq(output_vertices(found, LINE_HEAD), 8);
    ck_assert_mem_eq(found, kept, sizeof(kept));
    ck_assert_mem_eq(output.data, "\1\2\0\0\x20\x11\x0f\0\0", LINE_HEAD); /* with SRID 3857 */
}
END_TEST

START_TEST(a_short_line_keeps_all_vertices)
{
    const double line[][2] = { { .1, .1 }, { .5, .9 }, { .9, .2 }, { .2, .2 } };
    double found[POINTS_MAX][2];
    begin_geometry(LINE);
    add_vertices(line, 4);
    ck_assert(thin_input());
    ck_assert_uint_eq(output_vertices(found, LINE_HEAD), 4);
    ck_assert_mem_eq(found, line, sizeof(line));
}
END_TEST

START_TEST(a_border_is_thinned_alike_from_both_sides)
{
    double line[40][2], back[40][2], found[2][POINTS_MAX][2];
    srand(7);
    for (int i = 0; i < 40; i++) {
        line[i][0] = i * .3;
        line[i][1] = rand() / (RAND_MAX + 1.0) * 2;
    }
    for (int i = 0; i < 40; i++)
        memcpy(back[i], line[39 - i], sizeof(back[i]));
    begin_geometry(LINE);
    add_vertices((const double(*)[2])line, 40);
    ck_assert(thin_input());
    uint32_t count = output_vertices(found[0], LINE_HEAD);
    begin_geometry(LINE);
    add_vertices((const double(*)[2])back, 40);
    ck_assert(thin_input());
    ck_assert_uint_eq(output_vertices(found[1], LINE_HEAD), count);
    ck_assert_uint_lt(count, 40);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_mem_eq(found[0][i], found[1][count - 1 - i], sizeof(found[0][i]));
}
END_TEST

START_TEST(a_ring_stays_a_ring)
{
    const double ring[][2] = { { .1, .1 }, { .2, .1 }, { .3, .2 }, { .2, .3 }, { .1, .2 }, { .1, .1 } };
    double found[POINTS_MAX][2];
    begin_geometry(POLYGON);
    add_number(1);
    add_vertices(ring, 6);
    ck_assert(thin_input());
    ck_assert_uint_eq(output_vertices(found, POLYGON_HEAD), 4);
    ck_assert_mem_eq(found[0], found[3], sizeof(found[0]));
    ck_assert_mem_eq(found[0], ring[0], sizeof(found[0]));
    ck_assert(memcmp(found[1], found[2], sizeof(found[1])) != 0);
}
END_TEST

START_TEST(what_is_no_plain_geometry_is_refused)
{
    const double line[][2] = { { 0, 0 }, { 5, 5 } };
    begin_geometry(LINE);
    add_vertices(line, 2);
    for (size_t size = 0; size < input.size; size++) { /* cut short anywhere */
        output.size = 0;
        ck_assert(!mc_wkb_thin(&output, input.data, size, 0, &cells));
        ck_assert_uint_eq(output.size, 0);
    }
    begin_geometry(COLLECTION);
    add_number(0);
    ck_assert(!thin_input());
    begin_geometry(LINE);
    add_number(0xffffffff); /* vertices */
    ck_assert(!thin_input());
}
END_TEST

/* A lattice as vector tiles have it, `times` as wide, with the same corner: not at the origin of the data. */
static mc_pixel_grid
snapping_grid(double times)
{
    return (mc_pixel_grid){
        .x0 = -1234.5678, .y0 = 777.777, .per_x = .3 / times, .per_y = .3 / times, .left = 3, .top = -2
    };
}

/* The shape that is read of both, on a lattice so many times as wide as that of the snapping. */
static int
expect_same_reading(mc_shape_kind kind, double times)
{
    const mc_pixel_grid grid = snapping_grid(times);
    mc_geometry plain = { 0 }, snapped = { 0 };
    ck_assert(mc_wkb_read(&plain, input.data, input.size, &grid, pool) == MC_OK);
    ck_assert(mc_twkb_read(&snapped, packed.data, packed.size, &grid, pool) == MC_OK);
    const mc_shape *a = &plain.shapes[kind], *b = &snapped.shapes[kind];
    const int parts = a->part_count;
    ck_assert_int_eq(a->point_count, b->point_count);
    ck_assert_int_eq(a->part_count, b->part_count);
    for (int i = 0; i < a->point_count; i++)
        ck_assert_msg(mc_shape_same_point(a->points[i], b->points[i]), "vertex %d at %g", i, times);
    for (int i = 0; i < a->part_count; i++)
        ck_assert_int_eq(a->ends[i], b->ends[i]);
    mc_geometry_free(&plain);
    mc_geometry_free(&snapped);
    return parts;
}

/* Paths of all sizes, down to a part of a step, whose vertices follow each other closely; closed where they are rings.
 */
static void
add_path(double size, bool ring)
{
    double vertices[POINTS_MAX][2], x = rand() % 1000 - 500, y = rand() % 1000 - 500;
    const uint32_t count = 4 + (uint32_t)rand() % (POINTS_MAX - 4);
    for (uint32_t i = 0; i < count; i++) {
        vertices[i][0] = x += (rand() / (RAND_MAX + 1.0) - .5) * size;
        vertices[i][1] = y += (rand() / (RAND_MAX + 1.0) - .5) * size;
    }
    if (ring)
        memcpy(vertices[count - 1], vertices[0], sizeof(vertices[0]));
    begin_geometry(ring ? POLYGON : LINE);
    if (ring)
        add_number(1);
    add_vertices((const double(*)[2])vertices, count);
}

START_TEST(what_is_snapped_is_read_the_same_on_coarser_lattices_too)
{
    const mc_pixel_grid grid = snapping_grid(1);
    const double step = 1 / (grid.per_x * MC_SUBPIXELS);
    int read = 0, nothing = 0;
    srand(11);
    for (int i = 0; i < 600; i++) {
        const bool ring = i % 2 == 0;
        add_path(step * pow(10, i % 7 / 3.0 - 1), ring);
        output.size = packed.size = 0;
        ck_assert(mc_wkb_snap(&output, input.data, input.size, &grid));
        ck_assert(mc_wkb_pack(&packed, output.data, output.size, mc_twkb_digits(step)));
        ck_assert_uint_le(output.size, input.size);
        for (int times = 1; times <= 64; times = times < 4 ? times + 1 : times * 2) {
            const int parts = expect_same_reading(ring ? MC_SHAPE_POLYGONS : MC_SHAPE_LINES, times);
            read += parts;
            nothing += parts == 0;
        }
    }
    ck_assert_int_gt(read, 1000);
    ck_assert_int_gt(nothing, 100);
}
END_TEST

UNIT_MAIN("wkb_thin", ends_of_runs_are_kept, a_short_line_keeps_all_vertices, a_border_is_thinned_alike_from_both_sides,
          a_ring_stays_a_ring, what_is_no_plain_geometry_is_refused,
          what_is_snapped_is_read_the_same_on_coarser_lattices_too)
