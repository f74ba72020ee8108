/* A shape without what lies far beyond the map paints what the whole shape paints. Large records are kept. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "draw/raster/area.h"
#include "draw/raster/outline.h"
#include "vector/geometry/shape_prune.h"
#include "vector/shapefile/records.h"

enum { SIDE = 40, POINTS = 400, TURNS = 300 };

static int
next_random(int below)
{
    static uint32_t state = 7;
    state = state * 1664525U + 1013904223U;
    return (int)((state >> 8) % (uint32_t)below);
}

static int32_t
anywhere(void)
{
    return (next_random(SIDE * 6) - SIDE * 5 / 2) * MC_SUBPIXELS + next_random(MC_SUBPIXELS);
}

/* A ring or line that wanders over all sides of the map and beyond. */
static void
wander(mc_shape *shape, mc_shape_kind kind)
{
    int32_t x = anywhere(), y = anywhere();
    mc_shape_clear(shape, kind);
    for (int i = 0; i < POINTS; i++) {
        bool far = next_random(50) == 0;
        x = far ? anywhere() : x + next_random(1025) - 512;
        y = far ? anywhere() : y + next_random(1025) - 512;
        mc_shape_add(shape, x, y);
        if (i == POINTS / 2)
            mc_shape_end_part(shape);
    }
    mc_shape_end_part(shape);
}

static void
paint_area(uint8_t *out, const mc_shape *shape, mc_fill_rule rule)
{
    mc_area *area;
    ck_ok(mc_area_create(&area, SIDE, SIDE, pool));
    mc_area_add(area, shape, 0, 0);
    memset(out, 0, SIDE * SIDE);
    for (int y = 0; y < SIDE; y++) {
        int x, count;
        uint8_t mask[SIDE + MC_MASK_MARGIN];
        mc_area_take_row(area, y, rule, mask, &x, &count);
        memcpy(out + y * SIDE + x, mask, count > 0 ? (size_t)count : 0);
    }
    mc_area_done(area);
}

static void
paint_outline(uint8_t *out, const mc_shape *shape, float pen)
{
    mc_outline *outline;
    ck_ok(mc_outline_create(&outline, SIDE, SIDE, pool));
    mc_outline_add(outline, shape, pen);
    memset(out, 0, SIDE * SIDE);
    for (int y = 0; y < SIDE; y++) {
        int x, count;
        const uint8_t *row = mc_outline_row(outline, y, &x, &count);
        memcpy(out + y * SIDE + x, row, (size_t)count);
        mc_outline_clear_row(outline, y);
    }
    mc_outline_done(outline);
}

START_TEST(paints_the_same)
{
    static uint8_t whole[SIDE * SIDE], near[SIDE * SIDE];
    mc_shape shape = { 0 }, scratch = { 0 };
    int left = 0, painted = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        mc_shape_kind kind = turn % 3 == 0 ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS;
        wander(&shape, kind);
        const mc_shape *found = mc_shape_prune(&shape, &scratch, SIDE, SIDE, 2);
        left += found->point_count;
        if (kind == MC_SHAPE_POLYGONS) {
            mc_fill_rule rule = turn % 2 == 0 ? MC_NON_ZERO : MC_EVEN_ODD;
            paint_area(whole, &shape, rule);
            paint_area(near, found, rule);
            ck_assert_msg(memcmp(whole, near, sizeof(whole)) == 0, "area %d", turn);
        }
        paint_outline(whole, &shape, 2);
        paint_outline(near, found, 2);
        ck_assert_msg(memcmp(whole, near, sizeof(whole)) == 0, "outline %d", turn);
        for (int i = 0; i < SIDE * SIDE; i++)
            painted += whole[i] > 0;
        apr_pool_clear(pool);
    }
    ck_assert_int_lt(left, TURNS * POINTS / 2);
    ck_assert_int_gt(painted, TURNS * SIDE);
    mc_shape_free(&shape);
    mc_shape_free(&scratch);
}
END_TEST

START_TEST(small_shapes_are_left_alone)
{
    mc_shape shape = { 0 }, scratch = { 0 };
    mc_shape_clear(&shape, MC_SHAPE_LINES);
    for (int i = 0; i < 5; i++)
        mc_shape_add(&shape, -100000 - i, 0);
    mc_shape_end_part(&shape);
    ck_assert_ptr_eq(mc_shape_prune(&shape, &scratch, SIDE, SIDE, 1), &shape);
    for (int i = 0; i < 100; i++)
        mc_shape_add(&shape, -100000 - i, i);
    mc_shape_end_part(&shape);
    ck_assert_int_eq(mc_shape_prune(&shape, &scratch, SIDE, SIDE, 1)->part_count, 0);
    mc_shape_free(&shape);
    mc_shape_free(&scratch);
}
END_TEST

START_TEST(large_records_are_read_once)
{
    char path[] = "/tmp/mapcache-records-XXXXXX";
    static uint8_t bytes[4 << 20];
    mc_file file;
    int fd = mkstemp(path);
    memset(bytes, 'a', sizeof(bytes));
    ck_assert_int_eq(write(fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    ck_ok(mc_file_open(&file, path, pool));
    mc_records *records = mc_records_create(pool);
    const uint8_t *first = mc_records_at(records, &file, 100, 1 << 20);
    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(pwrite(fd, "b", 1, 100), 1);
    ck_assert_ptr_eq(mc_records_at(records, &file, 100, 1 << 20), first);
    ck_assert_int_eq(*first, 'a');
    ck_assert_ptr_null(mc_records_at(records, &file, 100, (1 << 20) + 1));     /* more than there is */
    ck_assert_ptr_null(mc_records_at(records, &file, sizeof(bytes) - 5, 100)); /* beyond the end */
    int kept = 1;
    for (int i = 1; i < 40; i++)
        kept += mc_records_at(records, &file, 100 + (uint64_t)i, 1 << 20) != NULL;
    ck_assert_int_eq(kept, 16);
    close(fd);
    unlink(path);
}
END_TEST

UNIT_MAIN("near", paints_the_same, small_shapes_are_left_alone, large_records_are_read_once)
