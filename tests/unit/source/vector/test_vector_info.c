#include "unit.h"

#include <math.h>
#include <string.h>

#include "source/vector/vector_info.h"

static const mc_info_layer layer = { .name = "a" };
static const mc_feature_query map = { .pixel_grid = { .per_x = 1, .per_y = 1 } };

/* Squares of that corner and side, in pixels; a hole runs the other way round. */
static void
add_square(mc_shape *shape, int x, int y, int side, bool hole)
{
    const int corners[4][2] = { { 0, 0 }, { side, 0 }, { side, side }, { 0, side } };
    for (int i = 0; i < 4; i++) {
        const int *corner = corners[hole ? 3 - i : i];
        mc_shape_add(shape, (x + corner[0]) * MC_SUBPIXELS, (y + corner[1]) * MC_SUBPIXELS);
    }
    mc_shape_end_part(shape);
}

static const char *
text_of(mc_geometry *geometry)
{
    const mc_feature feature = { .geometry = geometry, .query = &map };
    const char *text = mc_info_geojson(&layer, &feature, pool);
    mc_geometry_free(geometry);
    return text;
}

static int
count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

/* In files holes come before and behind the rings that they are in, and rings run the wrong way. */
START_TEST(holes_are_in_their_rings)
{
    for (int turned = 0; turned < 2; turned++)
        for (int order = 0; order < 3; order++) {
            mc_geometry geometry = { 0 };
            mc_geometry_clear(&geometry);
            mc_shape *areas = &geometry.shapes[MC_SHAPE_POLYGONS];
            if (order == 0)
                add_square(areas, 2, 2, 3, !turned);
            add_square(areas, 0, 0, 9, turned);
            if (order == 1)
                add_square(areas, 2, 2, 3, !turned);
            add_square(areas, 20, 20, 5, turned);
            if (order == 2)
                add_square(areas, 2, 2, 3, !turned);
            const char *text = text_of(&geometry);
            ck_assert_msg(count_of(text, "]]],[[[") == 1 && count_of(text, "]],[[") == 2, "%s", text);
            const char *hole = strstr(text, "]],[[2.0") != NULL ? strstr(text, "]],[[2.0") : strstr(text, "]],[[5.0");
            ck_assert_msg(hole != NULL && hole < strstr(text, "20.0"), "%s", text);
        }
}
END_TEST

/* Points that a transformation does not know are infinite, and JSON has no such numbers. */
START_TEST(no_infinite_numbers)
{
    static const mc_pixel_grid pixel_grids[] = { { .x0 = HUGE_VAL, .per_x = 1, .per_y = 1 },
                                                 { .y0 = NAN, .per_x = 1, .per_y = 1 },
                                                 { .x0 = 1e300, .per_x = 1, .per_y = 1 } };
    for (size_t i = 0; i < sizeof(pixel_grids) / sizeof(pixel_grids[0]); i++) {
        mc_geometry geometry = { 0 };
        mc_geometry_clear(&geometry);
        add_square(&geometry.shapes[MC_SHAPE_POLYGONS], 0, 0, 9, false);
        const mc_feature_query query = { .pixel_grid = pixel_grids[i] };
        const mc_feature feature = { .geometry = &geometry, .query = &query };
        ck_assert_str_eq(mc_info_geojson(&layer, &feature, pool), "null");
        mc_geometry_free(&geometry);
    }
}
END_TEST

UNIT_MAIN("vector_info", holes_are_in_their_rings, no_infinite_numbers)
