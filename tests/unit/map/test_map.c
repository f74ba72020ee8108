/* Maps out of a cache in memory: placement, resampling, joining, tags, what is missing. */
#include "unit.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "mapcache/map.h"

/* A cache whose tile x, y shows one colour made of them; odd sums are missing where `holes` is set. */
typedef struct color_cache {
    mc_cache base;
    const mc_format *format;
    bool holes;
} color_cache;

static apr_hash_t *formats;
static apr_hash_t *grids;
static color_cache cache;
static mc_tileset tileset;
static mc_grid_link grid_link;
static mc_tile_range limits[32];

static void
color_of(int x, int y, uint8_t bgra[4])
{
    bgra[0] = (uint8_t)(16 * (x & 15));
    bgra[1] = (uint8_t)(16 * (y & 15));
    bgra[2] = 128;
    bgra[3] = 255;
}

static mc_error *
color_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *get_ctx, apr_pool_t *result_pool)
{
    const color_cache *colors = (const color_cache *)base;
    mc_pixels *pixels;
    uint8_t bgra[4];
    *tile = NULL;
    if (colors->holes && (key->x + key->y) % 2 != 0)
        return MC_OK;
    *tile = apr_pcalloc(result_pool, sizeof(**tile));
    color_of(key->x, key->y, bgra);
    MC_TRY(mc_pixels_create(&pixels, 256, 256, false, result_pool));
    mc_pixels_attach(pixels, result_pool);
    mc_pixels_fill(pixels, bgra);
    MC_TRY(mc_format_encode(&(*tile)->data, colors->format, pixels, MC_FOR_STORE, get_ctx, result_pool));
    (*tile)->coding = mc_image_sniff((*tile)->data->data, (*tile)->data->size);
    (*tile)->mtime = apr_time_from_sec(1000000000);
    return MC_OK;
}

static const mc_cache_ops color_ops = { .type = "colors", .get = color_get };

static const mc_format *
format(const char *name)
{
    return apr_hash_get(formats, name, APR_HASH_KEY_STRING);
}

static void
set_up(const char *stored_as)
{
    formats = apr_hash_make(pool);
    grids = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_grid_builtins(grids, pool);
    const mc_grid *grid = apr_hash_get(grids, "WGS84", APR_HASH_KEY_STRING);
    cache = (color_cache){ .base = { .ops = &color_ops, .name = "colors" }, .format = format(stored_as) };
    for (int z = 0; z < grid->level_count; z++)
        limits[z] = (mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    grid_link = (mc_grid_link){
        .grid = grid, .extent = grid->extent, .maxzoom = grid->level_count - 1, .max_cached_zoom = -1, .limits = limits
    };
    tileset = (mc_tileset){ .name = "t",
                            .cache = &cache.base,
                            .format = cache.format,
                            .synthetic_format = format("mixed"),
                            .metatile_columns = 1,
                            .metatile_rows = 1,
                            .expires = 300 };
}

/* `width` x `height` pixels of level z from the upper left corner at column, row (which may be fractions), `scale` grid
 * pixels each. */
static mc_map_request
request(mc_map_layer *layer, int z, double column, double row, int width, int height, double scale, const char *name)
{
    double pixel = grid_link.grid->levels[z].resolution;
    double left = -180 + column * 256 * pixel, top = 90 - row * 256 * pixel;
    *layer = (mc_map_layer){ .tileset = &tileset, .link = &grid_link };
    return (mc_map_request){ .layers = layer,
                             .count = 1,
                             .box = { left, top - height * scale * pixel, left + width * scale * pixel, top },
                             .width = width,
                             .height = height,
                             .format = format(name),
                             .resample = MC_BILINEAR,
                             .threaded = -1 };
}

static mc_pixels *
draw(const mc_map_request *wanted, mc_result *result)
{
    mc_pixels *pixels;
    ck_ok(mc_map_draw(result, wanted, 0, &ctx, pool));
    ck_ok(mc_image_decode(&pixels, result->data->data, result->data->size, &ctx, pool));
    mc_pixels_attach(pixels, pool);
    ck_assert_int_eq(pixels->width, wanted->width);
    ck_assert_int_eq(pixels->height, wanted->height);
    return pixels;
}

/* The pixel shows the tile in that column and row from the top. */
static void
shows(const mc_pixels *pixels, int x, int y, int z, int column, int row, int tolerance)
{
    uint8_t wanted[4];
    const uint8_t *got = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
    color_of(column, grid_link.grid->levels[z].rows - 1 - row, wanted);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(abs(got[i] - wanted[i]) <= tolerance, "pixel %d,%d band %d is %d, not %d", x, y, i, got[i],
                      wanted[i]);
}

START_TEST(aligned_maps_are_copied)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "PNG");
    mc_pixels *pixels = draw(&wanted, &result);
    shows(pixels, 0, 0, 4, 3, 2, 0);
    shows(pixels, 255, 255, 4, 3, 2, 0);
    shows(pixels, 256, 255, 4, 4, 2, 0);
    shows(pixels, 511, 511, 4, 4, 3, 0);
    ck_assert_int_eq(result.lifetime, 300);
    ck_assert_int_eq((int)apr_time_sec(result.mtime), 1000000000);
}
END_TEST

START_TEST(whole_pixel_offsets_are_copied_too)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    mc_map_request wanted = request(&layer, 4, 3.5, 2.25, 300, 200, 1, "PNG");
    mc_pixels *pixels = draw(&wanted, &result);
    shows(pixels, 127, 0, 4, 3, 2, 0);
    shows(pixels, 128, 0, 4, 4, 2, 0);
    shows(pixels, 0, 191, 4, 3, 2, 0);
    shows(pixels, 0, 192, 4, 3, 3, 0);
}
END_TEST

START_TEST(other_scales_are_resampled)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    mc_map_request wanted = request(&layer, 4, 3, 2, 600, 600, 1.2, "PNG");
    mc_pixels *pixels = draw(&wanted, &result);
    shows(pixels, 100, 100, 4, 3, 2, 0);
    shows(pixels, 210, 100, 4, 3, 2, 0); /* 210 * 1.2 = 252 */
    shows(pixels, 216, 100, 4, 4, 2, 0); /* 259 */
    shows(pixels, 440, 440, 4, 5, 4, 0);
}
END_TEST

/* A map that goes on behind 180 degrees: a second layer, once around the earth further east, at the grid's own scale
 * and at others, where the edge falls between pixels or on the middle of one. */
START_TEST(maps_go_on_behind_the_antimeridian)
{
    enum { Z = 2, COLUMNS = 8 };
    const double scales[] = { 1, 0.9, 1.1 };
    const int widths[] = { 512, 301, 303 };
    set_up("PNG");
    for (int i = 0; i < 3; i++) {
        mc_map_layer layers[2];
        mc_result result;
        mc_map_request wanted = request(&layers[0], Z, COLUMNS, 1, widths[i], 256, scales[i], "PNG");
        double half = (wanted.box.maxx - wanted.box.minx) / 2;
        wanted.box.minx -= half;
        wanted.box.maxx -= half;
        layers[1] = layers[0];
        layers[1].shift = 360;
        wanted.layers = layers;
        wanted.count = 2;
        mc_pixels *pixels = draw(&wanted, &result);
        for (int x = 0; x < wanted.width; x++)
            ck_assert_uint_eq(pixels->data[128 * pixels->stride + (size_t)x * 4 + 3], 255);
        shows(pixels, wanted.width / 2 - 3, 128, Z, COLUMNS - 1, 1, i == 0 ? 0 : 2);
        shows(pixels, wanted.width / 2 + 3, 128, Z, 0, 1, i == 0 ? 0 : 2);
        uint64_t tag = result.tag;
        layers[1].shift = 0;
        ck_ok(mc_map_draw(&result, &wanted, 0, &ctx, pool));
        ck_assert_uint_ne(result.tag, tag);
    }
}
END_TEST

START_TEST(workers_draw_the_same_pixels)
{
    mc_map_layer layer;
    mc_result alone, helped;
    set_up("JPEG");
    mc_map_request wanted = request(&layer, 5, 3.3, 2.7, 900, 700, 1.1, "PNG");
    mc_pixels *one = draw(&wanted, &alone);
    ck_ok(mc_workers_create(&process.workers, 3, pool));
    wanted.threaded = 1;
    mc_pixels *four = draw(&wanted, &helped);
    for (int y = 0; y < one->height; y++)
        ck_assert_int_eq(
            memcmp(one->data + (size_t)y * one->stride, four->data + (size_t)y * four->stride, (size_t)one->width * 4),
            0);
    ck_assert_uint_eq(alone.tag, helped.tag);
    mc_workers_destroy(process.workers);
    process.workers = NULL;
}
END_TEST

START_TEST(aligned_jpeg_tiles_are_joined)
{
    mc_map_layer layer;
    mc_result joined, drawn;
    set_up("JPEG");
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "JPEG");
    mc_pixels *pixels = draw(&wanted, &joined);
    shows(pixels, 10, 10, 4, 3, 2, 4);
    shows(pixels, 500, 500, 4, 4, 3, 4);
    ck_assert_str_eq(joined.mime, "image/jpeg");
    wanted = request(&layer, 4, 3.5, 2, 512, 512, 1, "JPEG");
    shows(draw(&wanted, &drawn), 10, 10, 4, 3, 2, 4);
}
END_TEST

START_TEST(a_client_that_has_the_map_gets_no_new_one)
{
    mc_map_layer layer;
    mc_result result, again;
    set_up("PNG");
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "PNG");
    draw(&wanted, &result);
    ck_assert_uint_ne(result.tag, 0);
    ck_ok(mc_map_draw(&again, &wanted, result.tag, &ctx, pool));
    ck_assert(again.unmodified);
    ck_assert_ptr_null(again.data);
    wanted.format = format("PNG8");
    ck_ok(mc_map_draw(&again, &wanted, result.tag, &ctx, pool));
    ck_assert(!again.unmodified);
}
END_TEST

START_TEST(missing_tiles_stay_transparent_or_take_the_background)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    cache.holes = true;
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "PNG");
    mc_pixels *pixels = draw(&wanted, &result);
    int rows = grid_link.grid->levels[4].rows;
    bool first_missing = (3 + rows - 1 - 2) % 2 != 0;
    const uint8_t *hole = pixels->data + (size_t)(first_missing ? 0 : 256) * 4;
    ck_assert_int_eq(hole[3], 0);
    wanted.background_set = true;
    wanted.background[0] = 200;
    pixels = draw(&wanted, &result);
    hole = pixels->data + (size_t)(first_missing ? 0 : 256) * 4;
    ck_assert_int_eq(hole[3], 255);
    ck_assert_int_eq(hole[2], 200);
}
END_TEST

static mc_error *
nothing_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *get_ctx, apr_pool_t *result_pool)
{
    (void)base, (void)key, (void)get_ctx, (void)result_pool;
    *tile = NULL;
    return MC_OK;
}

START_TEST(maps_without_data_are_404_or_empty)
{
    static const mc_cache_ops nothing_ops = { .type = "nothing", .get = nothing_get };
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    cache.base.ops = &nothing_ops;
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "PNG");
    ck_fails(NOT_FOUND, mc_map_draw(&result, &wanted, 0, &ctx, pool));
    wanted.empty_is_map = true;
    mc_pixels *pixels = draw(&wanted, &result);
    ck_assert_int_eq(mc_pixels_opacity(pixels), MC_EMPTY);
    wanted.empty_is_map = false;
    wanted.box = (mc_extent){ 500, 100, 510, 110 };
    draw(&wanted, &result);
}
END_TEST

START_TEST(a_map_that_needs_too_many_tiles_is_refused)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    grid_link.minzoom = 12;
    mc_map_request wanted = request(&layer, 2, 0, 0, 512, 512, 1, "PNG");
    ck_fails(INVALID_PARAMETER, mc_map_draw(&result, &wanted, 0, &ctx, pool));
}
END_TEST

START_TEST(explicit_error_mode_draws_nothing)
{
    mc_map_layer layer;
    mc_result result;
    set_up("PNG");
    mc_map_request wanted = request(&layer, 4, 3, 2, 512, 512, 1, "PNG");
    wanted.mode = MC_WMS_ERROR;
    ck_fails(NOT_FOUND, mc_map_draw(&result, &wanted, 0, &ctx, pool));
    wanted.mode = MC_WMS_FORWARD;
    ck_fails(NOT_FOUND, mc_map_draw(&result, &wanted, 0, &ctx, pool));
}
END_TEST

START_TEST(one_tile_passes_as_it_is_and_several_merge)
{
    mc_result result;
    mc_tile *stored;
    set_up("PNG");
    mc_tile_request tiles[2] = { { &tileset, &grid_link, 4, 5, 6, NULL, NULL },
                                 { &tileset, &grid_link, 4, 5, 6, NULL, NULL } };
    mc_tile_stack stack = { .tiles = tiles, .count = 1, .format = format("JPEG") };
    ck_ok(mc_map_tile(&result, &stack, 0, &ctx, pool));
    ck_ok(mc_tileset_get(&stored, &tiles[0], &ctx, pool));
    ck_assert_str_eq(result.mime, "image/png");
    ck_assert_uint_eq(result.data->size, stored->data->size);
    ck_assert_int_eq(memcmp(result.data->data, stored->data->data, stored->data->size), 0);
    stack.count = 2;
    ck_ok(mc_map_tile(&result, &stack, 0, &ctx, pool));
    ck_assert_str_eq(result.mime, "image/jpeg");
    mc_result again;
    ck_ok(mc_map_tile(&again, &stack, result.tag, &ctx, pool));
    ck_assert(again.unmodified);
}
END_TEST

UNIT_MAIN("map", aligned_maps_are_copied, whole_pixel_offsets_are_copied_too, other_scales_are_resampled,
          maps_go_on_behind_the_antimeridian, workers_draw_the_same_pixels, aligned_jpeg_tiles_are_joined,
          a_client_that_has_the_map_gets_no_new_one, missing_tiles_stay_transparent_or_take_the_background,
          maps_without_data_are_404_or_empty, a_map_that_needs_too_many_tiles_is_refused,
          explicit_error_mode_draws_nothing, one_tile_passes_as_it_is_and_several_merge)
