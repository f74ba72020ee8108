/* Polygons that are added with their shared edges remembered give the planes that they give one by one. */
#include "random_numbers.h"
#include "unit.h"

#include <string.h>

#include "draw/raster/edges.h"

enum { SIDE = 120, KNOTS = 14 };

/* A mesh of knots that are pushed about, some of them outside of the map: its cells share all their borders. */
static void
make_knots(mc_shape_point knots[KNOTS][KNOTS])
{
    for (int j = 0; j < KNOTS; j++)
        for (int i = 0; i < KNOTS; i++)
            knots[j][i] = (mc_shape_point){ (i - 2) * 3000 + (int32_t)(next_random() % 2500),
                                            (j - 2) * 3000 + (int32_t)(next_random() % 2500) };
}

static void
cell_of(mc_shape *shape, mc_shape_point knots[KNOTS][KNOTS], int i, int j)
{
    mc_shape_clear(shape, MC_SHAPE_POLYGONS);
    for (int corner = 0; corner < 4; corner++) {
        mc_shape_point p = knots[j + (corner > 1)][i + (corner == 1 || corner == 2)];
        mc_shape_add(shape, p.x, p.y);
    }
    mc_shape_end_ring(shape, next_random() % 8 == 0);
}

static void
take_planes(uint8_t *areas, uint8_t *lines, mc_area *area, mc_outline *outline)
{
    memset(areas, 0, SIDE * SIDE);
    memset(lines, 0, SIDE * SIDE);
    for (int y = 0; y < SIDE; y++) {
        int x, count;
        uint8_t mask[SIDE + MC_MASK_MARGIN];
        mc_area_take_row(area, y, MC_NON_ZERO, mask, &x, &count);
        memcpy(areas + y * SIDE + x, mask, count > 0 ? (size_t)count : 0);
        const uint8_t *row = mc_outline_row(outline, y, &x, &count);
        memcpy(lines + y * SIDE + x, row, (size_t)count);
        mc_outline_clear_row(outline, y);
    }
    mc_area_done(area);
    mc_outline_done(outline);
}

START_TEST(planes_are_those_of_single_polygons)
{
    static uint8_t areas[2][SIDE * SIDE], lines[2][SIDE * SIDE];
    mc_shape_point knots[KNOTS][KNOTS];
    mc_area *area;
    mc_outline *outline;
    mc_shape shape = { 0 };
    ck_ok(mc_area_create(&area, SIDE, SIDE, pool));
    ck_ok(mc_outline_create(&outline, SIDE, SIDE, pool));
    mc_edges *edges = mc_edges_create(pool);
    for (int round = 0; round < 20; round++) {
        float pen = round % 2 == 0 ? 1.0F : 0.4F;
        area->coarse = outline->coarse = round % 3 == 0;
        make_knots(knots);
        for (int way = 0; way < 2; way++) {
            for (int j = 0; j < KNOTS - 1; j++)
                for (int i = 0; i < KNOTS - 1; i++) {
                    if ((i * 7 + j * 3 + round) % 9 == 0)
                        continue; /* a gap */
                    cell_of(&shape, knots, i, j);
                    if (way == 0) {
                        mc_area_add(area, &shape, 0, 0);
                        mc_outline_add(outline, &shape, pen);
                    } else
                        mc_edges_add(edges, area, outline, &shape, pen);
                }
            mc_edges_flush(edges, area);
            take_planes(areas[way], lines[way], area, outline);
        }
        ck_assert_mem_eq(lines[0], lines[1], sizeof(lines[0]));
    }
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("edges", planes_are_those_of_single_polygons)
