#include "unit.h"

#include <math.h>

#include "source/tiles/mosaic.h"
#include "source_fixture.h"
#include "vector/crs/projection.h"

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
planned_in(const mc_mosaic_supply *supply, const mc_render *wanted, apr_pool_t *of)
{
    mc_mosaic mosaic;
    ck_ok(mc_mosaic_plan(&mosaic, supply, wanted, of));
    return mosaic;
}

static mc_mosaic
planned(const mc_mosaic_supply *supply, const mc_render *wanted)
{
    return planned_in(supply, wanted, pool);
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

/* A grid of square tiles in which level z has 2^z rows. */
static mc_grid *
made_grid(const char *srs, double minx, double miny, double maxx, double maxy)
{
    enum { LEVELS = 14 };
    mc_grid *grid = apr_pcalloc(pool, sizeof(*grid));
    mc_level *levels = apr_pcalloc(pool, sizeof(*levels) * LEVELS);
    for (int z = 0; z < LEVELS; z++)
        levels[z] = (mc_level){ .resolution = (maxy - miny) / (256 << z),
                                .columns = (int)lround((maxx - minx) / (maxy - miny)) << z,
                                .rows = 1 << z };
    *grid = (mc_grid){ .name = srs,
                       .srs = srs,
                       .aliases = apr_array_make(pool, 1, sizeof(char *)),
                       .extent = { minx, miny, maxx, maxy },
                       .tile_width = 256,
                       .tile_height = 256,
                       .level_count = LEVELS,
                       .levels = levels };
    return grid;
}

/* Whether the mosaic has each pixel of the map that the grid has, looked for one by one. */
static void
check_mosaic_has_all(const mc_mosaic *mosaic, const mc_render *wanted)
{
    const mc_extent *all = &mosaic->supply->grid->extent, *has = &mosaic->extent;
    const mc_projection *projection = mosaic->projection;
    for (double y = 0.5; y < wanted->height; y += 5.3)
        for (double x = 0.5; x < wanted->width; x += 5.3) {
            double xy[2] = { wanted->box.minx + (wanted->box.maxx - wanted->box.minx) * x / wanted->width,
                             wanted->box.maxy - (wanted->box.maxy - wanted->box.miny) * y / wanted->height };
            mc_projection_points(projection, xy, 1);
            if (!(xy[0] >= all->minx && xy[0] <= all->maxx && xy[1] >= all->miny && xy[1] <= all->maxy))
                continue;
            if (mosaic->turn > 0)
                xy[0] -= mosaic->turn * round((xy[0] - (has->minx + has->maxx) / 2) / mosaic->turn);
            ck_assert_msg(xy[0] >= has->minx && xy[0] <= has->maxx && xy[1] >= has->miny && xy[1] <= has->maxy,
                          "pixel %g %g of %g %g %g %g is at %g %g, the tiles are %g %g %g %g", x, y, wanted->box.minx,
                          wanted->box.miny, wanted->box.maxx, wanted->box.maxy, xy[0], xy[1], has->minx, has->miny,
                          has->maxx, has->maxy);
        }
}

/* Tiles of polar grids, around the pole, over the antimeridian and elsewhere: all that is needed, and not much more. */
START_TEST(maps_around_poles_have_all_their_tiles)
{
    const mc_grid *grids[] = {
        made_grid("EPSG:3413", -4194304, -4194304, 4194304, 4194304),
        made_grid("EPSG:3031", -4194304, -4194304, 4194304, 4194304),
        made_grid("EPSG:3575", -6371007, -6371007, 6371007, 6371007),
        made_grid("EPSG:3995", -4194304, -4194304, 4194304, 4194304),
        made_grid("EPSG:3857", -HALF, -HALF, HALF, HALF),
        made_grid("EPSG:4326", -180, -90, 180, 90),
    };
    const int count = sizeof(grids) / sizeof(grids[0]);
    apr_pool_t *scratch; /* of one mosaic: transformations are kept for the next one */
    apr_pool_create(&scratch, pool);
    for (int to = 0; to < count; to++)
        for (int from = 0; from < count; from++) {
            mc_mosaic_supply supply = supply_of(grids[from], 256);
            for (int z = 0; z < 9 && from != to && to < 4; z++)
                for (int i = 0; i < 6; i++) {
                    int side = 1 << z, near = side > 4 ? side / 2 - 2 : 0; /* half of them beside the pole */
                    int x = i % 2 == 0 ? rand() % side : near + rand() % (side > 4 ? 4 : side);
                    int y = i % 2 == 0 ? rand() % side : near + rand() % (side > 4 ? 4 : side);
                    mc_extent box = mc_grid_tile_extent(grids[to], z, x, y);
                    double shift = i % 3 == 0 ? (box.maxx - box.minx) / 3 : 0; /* poles inside, not only at corners */
                    mc_render wanted = fixture_map(grids[to], box.minx - shift, box.miny - shift, box.maxx - shift,
                                                   box.maxy - shift, 256, 256);
                    mc_mosaic mosaic = planned_in(&supply, &wanted, scratch);
                    check_mosaic_has_all(&mosaic, &wanted);
                    apr_pool_clear(scratch);
                }
        }
}
END_TEST

/* Far from the pole a map over the antimeridian needs a handful of tiles of its own resolution. */
START_TEST(a_map_over_the_antimeridian_has_tiles_of_both_sides)
{
    const mc_grid *polar = made_grid("EPSG:3413", -4194304, -4194304, 4194304, 4194304);
    const mc_grid *grids[] = { made_grid("EPSG:3857", -HALF, -HALF, HALF, HALF),
                               made_grid("EPSG:4326", -180, -90, 180, 90), made_grid("EPSG:4326", 0, -90, 360, 90) };
    mc_projection *projection;
    ck_ok(mc_projection_open(&projection, "EPSG:4326", "EPSG:3413", pool));
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        mc_mosaic_supply supply = supply_of(grids[i], 256);
        double place[] = { 180, 71 }; /* Wrangel Island */
        mc_projection_points(projection, place, 1);
        mc_render wanted =
            fixture_map(polar, place[0] - 12800, place[1] - 12800, place[0] + 12800, place[1] + 12800, 256, 256);
        mc_mosaic mosaic = planned(&supply, &wanted);
        int columns = grids[i]->levels[mosaic.z].columns;
        check_mosaic_has_all(&mosaic, &wanted);
        ck_assert_int_ge(mosaic.z, 7);
        ck_assert_int_le(mosaic.range.maxx - mosaic.range.minx, 6);
        if (grids[i]->extent.minx == 0)
            continue;
        ck_assert(mosaic.range.minx < columns && mosaic.range.maxx > columns);
        ck_assert_int_eq(mc_mosaic_column(&mosaic, columns), 0);
        int left, top;
        mc_mosaic_slot(&left, &top, &mosaic, 0, mosaic.range.miny);
        ck_assert_int_eq(left, (columns - mosaic.range.minx) * 256);
    }
}
END_TEST

UNIT_MAIN("mosaic", a_tile_is_one_tile_whatever_its_size, maps_beyond_the_levels_and_the_extent_are_told,
          a_warped_map_has_each_pixel_where_it_belongs, maps_around_poles_have_all_their_tiles,
          a_map_over_the_antimeridian_has_tiles_of_both_sides)
