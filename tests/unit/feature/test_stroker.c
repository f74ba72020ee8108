/* Strokes: what they cover, and that it does not depend on where the map ends. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "feature/stroker.h"

enum { SIDE = 96 };

static uint32_t
next_random(void)
{
    static uint32_t state = 2024;
    state = state * 1664525U + 1013904223U;
    return state >> 8;
}

static int32_t
between(int32_t low, int32_t high)
{
    return low + (int32_t)(next_random() % (uint32_t)(high - low));
}

static void
random_line(mc_shape *shape, mc_shape_kind kind, int corners, int32_t reach, int32_t step)
{
    mc_shape_clear(shape, kind);
    mc_shape_point p = { between(-reach, SIDE * MC_SUBPIXELS + reach), between(-reach, SIDE * MC_SUBPIXELS + reach) };
    for (int i = 0; i < corners; i++) {
        mc_shape_add(shape, p.x, p.y);
        if (next_random() % 8 != 0) /* now and then the same point again */
            p = (mc_shape_point){ p.x + between(-step, step), p.y + between(-step, step) };
    }
    mc_shape_end_part(shape);
}

static mc_pen
random_pen(const double *dashes)
{
    return (mc_pen){ .width = 0.5 + next_random() % 200 / 10.0,
                     .join = (mc_line_join)(next_random() % 3),
                     .cap = (mc_line_cap)(next_random() % 3),
                     .dashes = next_random() % 3 == 0 ? dashes : NULL,
                     .dash_count = 4,
                     .dash_offset = next_random() % 30,
                     .dash_unit = 1,
                     .offset = next_random() % 4 == 0 ? (double)(next_random() % 20) - 10 : 0 };
}

/* The coverage of the whole plane. */
static void
stroke(uint8_t *to, mc_area *area, const mc_shape *shape, const mc_pen *pen)
{
    uint8_t mask[SIDE + MC_MASK_MARGIN];
    mc_shape scratch = { 0 };
    memset(to, 0, SIDE * SIDE);
    mc_stroker_add(area, shape, pen, &scratch);
    for (int y = area->top; y <= area->bottom; y++) {
        int x, count;
        mc_area_take_row(area, y, MC_NON_ZERO, mask, &x, &count);
        if (count > 0)
            memcpy(to + y * SIDE + x, mask, (size_t)count);
    }
    mc_area_done(area);
    mc_shape_free(&scratch);
}

static void
move(mc_shape *shape, int dx, int dy)
{
    for (int i = 0; i < shape->point_count; i++) {
        shape->points[i].x += dx * MC_SUBPIXELS;
        shape->points[i].y += dy * MC_SUBPIXELS;
    }
}

START_TEST(a_plane_that_is_moved_shows_the_same)
{
    const double dashes[] = { 13, 4, 0, 4 };
    mc_area *area;
    mc_shape shape = { 0 };
    static uint8_t here[SIDE * SIDE], there[SIDE * SIDE];
    ck_ok(mc_area_create(&area, SIDE, SIDE, pool));
    for (int round = 0; round < 3000; round++) {
        mc_pen pen = random_pen(dashes);
        random_line(&shape, round % 2 ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS, 3 + round % 12, 30000,
                    round % 5 == 0 ? 300 : 20000);
        int dx = between(-SIDE + 1, SIDE), dy = between(-SIDE + 1, SIDE);
        stroke(here, area, &shape, &pen);
        move(&shape, dx, dy);
        stroke(there, area, &shape, &pen);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
                    ck_assert_msg(here[y * SIDE + x] == there[(y + dy) * SIDE + x + dx],
                                  "round %d, moved by %d,%d: %d,%d is %d and %d", round, dx, dy, x, y,
                                  here[y * SIDE + x], there[(y + dy) * SIDE + x + dx]);
    }
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("stroker", a_plane_that_is_moved_shows_the_same)
