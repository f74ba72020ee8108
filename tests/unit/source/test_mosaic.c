#include "unit.h"

#include <math.h>

#include "source/tiles/mosaic.h"
#include "source_fixture.h"

#define HALF 20037508.3427892480

static const mc_grid *
web_grid(const char *name)
{
    apr_hash_t *grids = apr_hash_make(pool);
    mc_grid_builtins(grids, pool);
    return apr_hash_get(grids, name, APR_HASH_KEY_STRING);
}

static mc_mosaic_supply
supply_of(const mc_grid *grid, int size)
{
    return (mc_mosaic_supply){
        .source = "s", .grid = grid, .tile_width = size, .tile_height = size, .last = grid->level_count - 1
    };
}

static mc_mosaic
planned(const mc_mosaic_supply *supply, const mc_render *wanted)
{
    mc_mosaic mosaic;
    ck_ok(mc_mosaic_plan(&mosaic, supply, wanted, pool));
    return mosaic;
}

START_TEST(a_tile_is_one_tile_whatever_its_size)
{
    const mc_grid *grid = web_grid("GoogleMapsCompatible");
    mc_mosaic_supply usual = supply_of(grid, 256), high = supply_of(grid, 512);
    mc_render wanted = fixture_map(grid, 0, 0, HALF / 2, HALF / 2, 256, 256);
    mc_mosaic mosaic = planned(&usual, &wanted);
    ck_assert(mosaic.exact && mosaic.z == 2 && mc_mosaic_is_one_tile(&mosaic, &wanted));
    mosaic = planned(&high, &wanted);
    ck_assert(mosaic.exact && mosaic.z == 1 && !mc_mosaic_is_one_tile(&mosaic, &wanted));
    ck_assert(mosaic.width == 512 && mosaic.left == 0 && mosaic.top == 256);
    wanted.width = wanted.height = 512;
    mosaic = planned(&high, &wanted);
    ck_assert(mosaic.z == 2 && mc_mosaic_is_one_tile(&mosaic, &wanted));
    wanted.box.minx += 0.3 * HALF / 2 / 512;
    ck_assert(!planned(&high, &wanted).exact);
}
END_TEST

START_TEST(maps_beyond_the_levels_and_the_extent_are_told)
{
    const mc_grid *grid = web_grid("GoogleMapsCompatible");
    mc_mosaic_supply supply = supply_of(grid, 256);
    supply.last = 3;
    mc_render wanted = fixture_map(grid, 0, 0, HALF / 16, HALF / 16, 256, 256);
    ck_assert(planned(&supply, &wanted).beyond);
    wanted = fixture_map(grid, 0, 0, HALF / 4, HALF / 4, 256, 256);
    ck_assert(!planned(&supply, &wanted).beyond);
    const mc_extent limit = { -HALF, -HALF, -1, HALF };
    supply.limit = &limit;
    mc_mosaic mosaic = planned(&supply, &wanted);
    ck_assert_int_eq(mosaic.range.minx, mosaic.range.maxx);
    mc_pixels *map;
    ck_ok(mc_mosaic_finish(&map, NULL, &mosaic, &wanted, &ctx, pool));
    uint8_t color[4];
    ck_assert(map->width == 256 && mc_pixels_uniform(map, color) && color[3] == 0);
    supply = supply_of(grid, 256);
    supply.first = 12;
    wanted = fixture_map(grid, -HALF, -HALF, HALF, HALF, 256, 256);
    mc_mosaic many;
    ck_fails(LIMIT, mc_mosaic_plan(&many, &supply, &wanted, pool));
}
END_TEST

/* Each pixel of the mosaic has its column in blue and its row in green. */
START_TEST(a_warped_map_has_each_pixel_where_it_belongs)
{
    const mc_grid *grid = web_grid("GoogleMapsCompatible"), *degrees = web_grid("WGS84");
    mc_mosaic_supply supply = supply_of(grid, 256);
    supply.last = 0;
    mc_render wanted = fixture_map(degrees, -180, -90, 180, 90, 200, 100);
    mc_mosaic mosaic = planned(&supply, &wanted);
    ck_assert(mosaic.projection != NULL && mosaic.width == 256 && mosaic.height == 256);
    mc_pixels *pixels, *map;
    ck_ok(mc_pixels_create(&pixels, 256, 256, true, pool));
    mc_pixels_attach(pixels, pool);
    for (int y = 0; y < 256; y++)
        for (int x = 0; x < 256; x++)
            memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4,
                   (uint8_t[]){ (uint8_t)x, (uint8_t)y, 0, 255 }, 4);
    ck_ok(mc_mosaic_finish(&map, pixels, &mosaic, &wanted, &ctx, pool));
    for (int y = 0; y < 100; y++) {
        double latitude = (90 - (y + 0.5) * 1.8) * 3.14159265358979323846 / 180;
        double row = 128 - asinh(tan(latitude)) / 3.14159265358979323846 * 128;
        const uint8_t *pixel = map->data + (size_t)y * map->stride + 100 * 4;
        ck_assert_int_eq(pixel[3] == 255, row >= 0 && row <= 256);
        if (pixel[3] == 255 && row > 1 && row < 255)
            ck_assert_double_eq_tol(pixel[1], row - 0.5, 0.6);
        if (pixel[3] == 255)
            ck_assert_double_eq_tol(pixel[0], 100.5 * 1.28 - 0.5, 0.6);
    }
}
END_TEST

UNIT_MAIN("mosaic", a_tile_is_one_tile_whatever_its_size, maps_beyond_the_levels_and_the_extent_are_told,
          a_warped_map_has_each_pixel_where_it_belongs)
