/* Grids that have the same tiles, and the first thing in which others differ. */
#include "unit.h"

#include <string.h>

#include "grid/same.h"

enum { LEVELS = 4 };

typedef struct plane {
    mc_grid grid;
    mc_level levels[LEVELS];
} plane;

static plane
make_plane(const char *name, mc_origin origin)
{
    plane made = { .grid = { .name = name,
                             .srs = "EPSG:3857",
                             .epsg = 3857,
                             .aliases = apr_array_make(pool, 1, sizeof(const char *)),
                             .extent = { -1000, -1000, 1000, 1000 },
                             .origin = origin,
                             .tile_width = 100,
                             .tile_height = 100,
                             .level_count = LEVELS } };
    for (int z = 0; z < LEVELS; z++)
        made.levels[z] = (mc_level){ 20.0 / (1 << z), 1 << z, 1 << z };
    return made;
}

static const char *
compare(plane *one, plane *other, int last)
{
    one->grid.levels = one->levels;
    other->grid.levels = other->levels;
    return mc_grid_difference(&one->grid, &other->grid, 0, last, pool);
}

START_TEST(a_name_and_a_corner_are_no_difference)
{
    for (mc_origin a = MC_BOTTOM_LEFT; a <= MC_BOTTOM_RIGHT; a++)
        for (mc_origin b = MC_BOTTOM_LEFT; b <= MC_BOTTOM_RIGHT; b++) {
            plane one = make_plane("one", a), other = make_plane("other", b);
            ck_assert_ptr_null(compare(&one, &other, LEVELS - 1));
            for (int x = 0; x < 8; x++)
                for (int y = 0; y < 8; y++) {
                    int column = x, row = y;
                    mc_grid_renumber(&column, &row, &one.grid, &other.grid, 3);
                    mc_extent here = mc_grid_tile_extent(&one.grid, 3, x, y),
                              there = mc_grid_tile_extent(&other.grid, 3, column, row);
                    ck_assert_mem_eq(&here, &there, sizeof(here));
                }
        }
}
END_TEST

START_TEST(another_code_of_the_same_crs_is_no_difference)
{
    plane one = make_plane("one", MC_BOTTOM_LEFT), other = make_plane("other", MC_BOTTOM_LEFT);
    other.grid.srs = "EPSG:900913";
    other.grid.epsg = 900913;
    ck_assert_ptr_nonnull(compare(&one, &other, 0));
    apr_array_header_t *aliases = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(aliases, const char *) = "EPSG:900913";
    one.grid.aliases = aliases;
    ck_assert_ptr_null(compare(&one, &other, 0));
}
END_TEST

static void
ck_told(plane *one, plane *other, int last, const char *words)
{
    const char *told = compare(one, other, last);
    ck_assert_ptr_nonnull(told);
    ck_assert_msg(strstr(told, words) != NULL, "\"%s\" has no \"%s\"", told, words);
}

START_TEST(what_differs_is_named)
{
    plane one = make_plane("one", MC_BOTTOM_LEFT), other = make_plane("other", MC_TOP_LEFT);
    other.grid.srs = "EPSG:2056";
    other.grid.epsg = 2056;
    ck_told(&one, &other, 0, "EPSG:2056");
    other = make_plane("other", MC_TOP_LEFT);
    other.grid.tile_height = 200;
    ck_told(&one, &other, 0, "100 x 200");
    other = make_plane("other", MC_TOP_LEFT);
    other.grid.level_count = 3;
    ck_assert_ptr_null(compare(&one, &other, 2));
    ck_told(&one, &other, 3, "ends with level 2");
    other = make_plane("other", MC_TOP_LEFT);
    other.levels[2].resolution *= 1.01;
    ck_assert_ptr_null(compare(&one, &other, 1));
    ck_told(&one, &other, 2, "a pixel of level 2");
    other = make_plane("other", MC_TOP_LEFT);
    other.levels[1].rows = 3;
    ck_told(&one, &other, 1, "2 x 3 in grid \"other\"");
    other = make_plane("other", MC_BOTTOM_LEFT);
    other.grid.extent.minx += 0.02 * 2.4; /* less than 0.02 pixels of level 3 is nothing: they are 2.5 units wide */
    ck_assert_ptr_null(compare(&one, &other, 3));
    other.grid.extent.minx += 0.02;
    ck_told(&one, &other, 3, "level 3 lie in");
}
END_TEST

UNIT_MAIN("same", a_name_and_a_corner_are_no_difference, another_code_of_the_same_crs_is_no_difference,
          what_differs_is_named)
