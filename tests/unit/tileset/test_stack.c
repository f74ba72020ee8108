/* Tiles made of sub-tiles: order, combinations, what passes as it is, what is stored, what is missing. */
#include "stack_fixture.h"

#include "base/workers.h"
#include "memory/clock_cache.h"
#include "text/expiry.h"

START_TEST(the_last_value_is_on_top)
{
    set_up_stack(1);
    mc_pixels *pixels = pixels_of(get("red,left,dot", NULL));
    is_color(pixels, 21, 31, 255, 255, 255, 255);
    is_color(pixels, 100, 31, 0, 255, 0, 255);
    is_color(pixels, 200, 31, 0, 0, 255, 255);
    pixels = pixels_of(get("dot,left,red", NULL));
    is_color(pixels, 21, 31, 0, 0, 255, 255);
}
END_TEST

START_TEST(what_is_hidden_is_not_fetched)
{
    set_up_stack(1);
    get("left,dot,red", NULL);
    ck_assert_int_eq(cache.gets, 2); /* red, and its bytes as they are */
    cache.gets = 0;
    get("red,dot,left,right", NULL); /* two halves hide the rest */
    ck_assert_int_eq(cache.gets, 2);
}
END_TEST

START_TEST(translucent_parts_let_the_lower_ones_through)
{
    set_up_stack(1);
    mc_pixels *pixels = pixels_of(get("red,glass", NULL));
    is_color(pixels, 10, 10, 0, 64, 127, 255);
}
END_TEST

START_TEST(opacity_is_judged_from_pixels)
{
    set_up_stack(1);
    stored_as("palette", box(0, 0, 100, 256, 255, 255, 0, 255), "PNG8"); /* a palette with a transparent entry */
    mc_pixels *pixels = pixels_of(get("red,palette", NULL));
    is_color(pixels, 10, 10, 255, 255, 0, 255);
    is_color(pixels, 110, 10, 0, 0, 255, 255);
}
END_TEST

START_TEST(a_single_part_passes_as_it_is)
{
    set_up_stack(1);
    mc_buf *dot = stored_as("dot", box(20, 30, 24, 36, 255, 255, 255, 255), "PNG8");
    mc_tile *tile = get("missing,dot,gone", NULL);
    ck_assert_uint_eq(tile->data->size, dot->size);
    ck_assert_int_eq(memcmp(tile->data->data, dot->data, dot->size), 0);
    ck_assert(!tile->no_data);
    tile = get("red,blue", NULL); /* blue hides red */
    mc_buf *blue = apr_hash_get(cache.bytes, "blue", APR_HASH_KEY_STRING);
    ck_assert_int_eq(memcmp(tile->data->data, blue->data, blue->size), 0);
}
END_TEST

START_TEST(nothing_is_no_data)
{
    set_up_stack(1);
    ck_assert(get("missing", NULL)->no_data);
    ck_assert(get("none", NULL)->no_data);
    ck_assert_int_eq(cache.puts, 0);
    ck_assert(!get("void,missing", NULL)->no_data); /* there, though nothing shows */
    ck_assert_int_eq(mc_pixels_opacity(pixels_of(get("void,missing", NULL))), MC_EMPTY);
}
END_TEST

START_TEST(all_combinations_of_several_dimensions_are_drawn)
{
    set_up_stack(2);
    stored_as("a/x", box(0, 0, 10, 256, 255, 0, 0, 255), "PNG");
    stored_as("a/y", box(10, 0, 20, 256, 0, 255, 0, 255), "PNG");
    stored_as("a/z", box(20, 0, 30, 256, 0, 0, 255, 255), "PNG");
    stored_as("b/x", box(30, 0, 40, 256, 255, 255, 0, 255), "PNG");
    stored_as("b/y", box(40, 0, 50, 256, 0, 255, 255, 255), "PNG");
    stored_as("b/z", box(15, 0, 60, 9, 255, 0, 255, 255), "PNG");
    mc_pixels *pixels = pixels_of(get("a,b", "x,y,z"));
    is_color(pixels, 5, 100, 255, 0, 0, 255);
    is_color(pixels, 15, 100, 0, 255, 0, 255);
    is_color(pixels, 25, 100, 0, 0, 255, 255);
    is_color(pixels, 35, 100, 255, 255, 0, 255);
    is_color(pixels, 45, 100, 0, 255, 255, 255);
    is_color(pixels, 17, 5, 255, 0, 255, 255); /* b/z is the last one */
    ck_assert_int_eq(cache.gets, 6);
    ck_assert(get("a,b", "none")->no_data);
}
END_TEST

START_TEST(too_many_combinations_are_an_error)
{
    mc_tile *tile;
    set_up_stack(2);
    const char *values[2] = { "many101", "many100" };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    ck_fails(LIMIT, mc_tileset_get(&tile, &wanted, &ctx, pool));
    values[0] = "many100";
    ck_ok(mc_tileset_get(&tile, &wanted, &ctx, pool));
    ck_assert(tile->no_data);
    values[0] = "refused";
    ck_fails(INVALID_DIMENSION, mc_tileset_get(&tile, &wanted, &ctx, pool));
}
END_TEST

START_TEST(assemblies_are_stored_under_the_requested_value)
{
    set_up_stack(1);
    tileset.store_assemblies = true;
    mc_pixels *made = pixels_of(get("left,dot", NULL));
    ck_assert_int_eq(cache.puts, 1);
    ck_assert_str_eq(cache.last_put, "left,dot");
    int gets = cache.gets;
    mc_pixels *again = pixels_of(get("left,dot", NULL));
    ck_assert_int_eq(cache.gets, gets + 1);
    ck_assert_int_eq(memcmp(made->data, again->data, made->stride * 256), 0);
    get("red", NULL); /* the only sub-tile has the requested value: it is stored already */
    ck_assert_int_eq(cache.puts, 1);
    get("missing,dot", NULL);
    ck_assert_str_eq(cache.last_put, "missing,dot");
}
END_TEST

START_TEST(an_empty_assembly_is_stored_as_a_transparent_tile)
{
    set_up_stack(1);
    tileset.store_assemblies = true;
    for (int i = 0; i < 2; i++) {
        tileset.format = i == 0 ? format("PNG") : NULL;
        const char *value = i == 0 ? "missing,gone" : "gone,missing";
        get(value, NULL);
        mc_buf *data = apr_hash_get(cache.bytes, value, APR_HASH_KEY_STRING);
        ck_assert_ptr_nonnull(data);
        mc_tile stored = { .data = data };
        ck_assert_int_eq(mc_pixels_opacity(pixels_of(&stored)), MC_EMPTY);
    }
    ck_assert_int_eq(cache.puts, 2);
}
END_TEST

START_TEST(a_stored_assembly_expires)
{
    set_up_stack(1);
    tileset.store_assemblies = true;
    ck_assert_ptr_null(mc_expiry_parse(&tileset.auto_expire, "60", pool)); /* the fixture's tiles are of 2001 */
    get("left,dot", NULL);
    get("left,dot", NULL);
    ck_assert_int_eq(cache.puts, 2);
}
END_TEST

/* Whatever the clock of whoever has stored it. */
START_TEST(a_tile_of_the_future_lives_no_longer_than_others)
{
    mc_tileset expiring = { .expires = 300 };
    ck_assert_ptr_null(mc_expiry_parse(&expiring.auto_expire, "60", pool));
    const apr_time_t now = apr_time_now();
    mc_tile tile = { .mtime = now + INT64_C(100000000000) * APR_USEC_PER_SEC };
    ck_assert_int_eq(mc_tileset_lifetime(&expiring, &tile, now), 60);
    tile.mtime = now - apr_time_from_sec(20);
    ck_assert_int_eq(mc_tileset_lifetime(&expiring, &tile, now), 40);
}
END_TEST

START_TEST(the_tag_of_an_assembly_needs_no_drawing)
{
    mc_tile *tile;
    set_up_stack(1);
    const char *values[2] = { "left,dot", NULL };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    uint64_t tag = mc_tile_tag(get("left,dot", NULL));
    ck_assert_uint_ne(tag, 0);
    ck_ok(mc_tileset_get_unless(&tile, &wanted, tag, &ctx, pool));
    ck_assert_uint_eq(tile->tag, tag);
    ck_assert_ptr_null(tile->data);
    ck_assert_int_eq((int)apr_time_sec(tile->mtime), 1000000000);
    ck_assert_uint_ne(mc_tile_tag(get("dot,left", NULL)), tag);
    stored_as("dot", box(21, 30, 24, 36, 255, 255, 255, 255), "PNG");
    ck_ok(mc_tileset_get_unless(&tile, &wanted, tag, &ctx, pool));
    ck_assert_uint_ne(tile->tag, tag);
    ck_assert_ptr_nonnull(tile->data);
}
END_TEST

START_TEST(broken_parts_are_errors_only_where_they_would_show)
{
    mc_tile *tile;
    set_up_stack(1);
    keep("broken", mc_buf_attach(mc_buf_copy("no image", 8), pool));
    const char *values[2] = { "red,broken", NULL };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    ck_fails(CORRUPT, mc_tileset_get(&tile, &wanted, &ctx, pool));
    values[0] = "broken,red";
    ck_ok(mc_tileset_get(&tile, &wanted, &ctx, pool));
    is_color(pixels_of(tile), 0, 0, 0, 0, 255, 255);
}
END_TEST

START_TEST(many_large_translucent_parts_take_bounded_memory)
{
    set_up_stack(1);
    const char *value = "glass";
    for (int i = 0; i < 30; i++)
        value = apr_pstrcat(pool, "red,", value, ",glass", NULL);
    mc_pixels *pixels = pixels_of(get(value, NULL));
    is_color(pixels, 10, 10, 0, 127, 0, 255); /* so many panes let nothing of the red through */
    ck_assert_int_lt(cache.gets, 40);         /* nor is what lies behind fetched */
}
END_TEST

/* Draws a colour for each value. */
static int renders;

static mc_error *
color_render(mc_rendered *rendered, mc_source *source, const mc_render *wanted, mc_ctx *job, apr_pool_t *result)
{
    (void)source, (void)job;
    const char *value = wanted->dimensions[0].value;
    renders++;
    rendered->provisional = strncmp(value, "spare", 5) == 0 ? 60 : 0;
    if (strcmp(value, "fails") == 0)
        return mc_error_create(result, MC_ERR_UPSTREAM, "no");
    MC_TRY(mc_pixels_create(&rendered->pixels, wanted->width, wanted->height, true, result));
    mc_pixels_attach(rendered->pixels, result);
    for (int y = 0; y < 50 && strcmp(value, "spare nothing") != 0; y++)
        for (int x = 0; x < 50; x++)
            memcpy(rendered->pixels->data + (size_t)y * rendered->pixels->stride + (size_t)x * 4, "\xff\0\0\xff", 4);
    rendered->pixels->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}

static const mc_source_ops color_ops = { .type = "colors", .render = color_render };
static mc_source color_source = { .ops = &color_ops, .name = "colors" };

START_TEST(missing_parts_are_rendered_where_that_is_allowed)
{
    mc_tile *tile;
    set_up_stack(1);
    process.flights = mc_flights_create();
    tileset.source = &color_source;
    renders = 0;
    mc_pixels *pixels = pixels_of(get("left,new,dot", NULL));
    is_color(pixels, 40, 40, 255, 0, 0, 255);
    is_color(pixels, 60, 60, 0, 255, 0, 255);
    ck_assert_int_eq(renders, 1);
    ck_assert_str_eq(cache.last_put, "new");
    get("left,new,dot", NULL);
    ck_assert_int_eq(renders, 1);
    get("hidden,red", NULL);
    ck_assert_int_eq(renders, 1);
    tileset.subdimensions_read_only = true;
    is_color(pixels_of(get("left,newer", NULL)), 40, 40, 0, 255, 0, 255);
    tileset.subdimensions_read_only = false;
    tileset.read_only = true;
    is_color(pixels_of(get("left,newer", NULL)), 40, 40, 0, 255, 0, 255);
    ck_assert_int_eq(renders, 1);
    tileset.read_only = false;
    const char *values[2] = { "left,fails", NULL };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    ck_fails(UPSTREAM, mc_tileset_get(&tile, &wanted, &ctx, pool));
    mc_flights_destroy(process.flights);
}
END_TEST

/* <fallback_expires>: nothing that is made of such a tile is stored, or good for longer. */
START_TEST(what_is_assembled_of_provisional_tiles_is_provisional)
{
    static const char *const values[] = { "left,spare", "spare", "none,spare nothing" };
    set_up_stack(1);
    process.flights = mc_flights_create();
    process.provisional = mc_clock_cache_create(1 << 20);
    tileset.source = &color_source;
    tileset.store_assemblies = true;
    tileset.expires = 3600;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        for (int again = 0; again < 2; again++) {
            mc_tile *tile = get(values[i], NULL);
            ck_assert_msg(tile->provisional > 0 && tile->provisional <= 60, "%s", values[i]);
            ck_assert_int_le(mc_tileset_lifetime(&tileset, tile, apr_time_now()), 60);
            ck_assert_int_eq(cache.puts, 0);
        }
    mc_tile_request seeded = { &tileset, &grid_link, 3, 2, 5, (const char *[]){ "left,spare", NULL }, NULL };
    ck_fails(UNAVAILABLE, mc_tileset_render(&seeded, &ctx));
    ck_assert_int_eq(cache.puts, 0);
    ck_assert_double_eq(get("left", NULL)->provisional, 0);
    ck_assert(get("left,made", NULL)->provisional == 0 && cache.puts == 2);
    mc_clock_cache_destroy(process.provisional);
    process.provisional = NULL;
    mc_flights_destroy(process.flights);
}
END_TEST

/* Number of frames by the animation control chunk; 0: a still. */
static int
frames_of(const mc_buf *png)
{
    for (size_t i = 0; i + 8 < png->size; i++)
        if (memcmp(png->data + i, "acTL", 4) == 0)
            return png->data[i + 6] << 8 | png->data[i + 7];
    return 0;
}

START_TEST(an_animation_has_a_frame_for_each_value)
{
    set_up_stack(1);
    tileset.assembly = MC_ASSEMBLE_ANIMATE;
    mc_tile *tile = get("left,missing,red,dot", NULL);
    ck_assert_int_eq(frames_of(tile->data), 4); /* in step with other tiles, where the second one is there */
    is_color(pixels_of(tile), 10, 10, 0, 255, 0, 255);
    ck_assert_uint_ne(mc_tile_tag(get("left,dot,missing", NULL)), mc_tile_tag(get("left,missing,dot", NULL)));
    mc_buf *dot = apr_hash_get(cache.bytes, "dot", APR_HASH_KEY_STRING);
    ck_assert_int_eq(memcmp(get("dot", NULL)->data->data, dot->data, dot->size), 0);
    ck_assert(get("missing,gone", NULL)->no_data);
}
END_TEST

START_TEST(an_animation_too_large_is_an_error)
{
    mc_tile *tile;
    set_up_stack(1);
    tileset.assembly = MC_ASSEMBLE_ANIMATE;
    for (int i = 0; i < 300; i++)
        stored_as(apr_psprintf(pool, "m%d", i), box(0, 0, 256, 256, 0, (uint8_t)i, 255, 255), "PNG");
    const char *values[2] = { "many300", NULL };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    ck_fails(LIMIT, mc_tileset_get(&tile, &wanted, &ctx, pool));
    values[0] = "many5000";
    ck_fails(LIMIT, mc_tileset_get(&tile, &wanted, &ctx, pool));
}
END_TEST

/* A map of tiles with many parts of all sizes, alone and with helpers. */
static mc_buf *
draw_map(int threaded, uint64_t *tag)
{
    const char *values[2] = { "many60", NULL };
    mc_map_layer layer = { .tileset = &tileset, .link = &grid_link, .values = values };
    double tile = 2 * 20037508.342789248 / 32;
    mc_map_request wanted = { .layers = &layer,
                              .count = 1,
                              .box = { 0, 0, 3.5 * tile, 2.5 * tile },
                              .width = 896,
                              .height = 640,
                              .format = format("PNG"),
                              .resample = MC_BILINEAR,
                              .threaded = threaded };
    mc_result map_result;
    ck_ok(mc_map_draw(&map_result, &wanted, 0, &ctx, pool));
    *tag = map_result.tag;
    return map_result.data;
}

START_TEST(helpers_change_no_pixel)
{
    set_up_stack(1);
    unsigned state = 7;
    for (int i = 0; i < 60; i += 2) {
        int n[4];
        for (int j = 0; j < 4; j++) {
            state = state * 1103515245u + 12345u;
            n[j] = (int)(state >> 16) % 200;
        }
        stored_as(apr_psprintf(pool, "m%d", i),
                  box(n[0], n[1], n[0] + 1 + n[2] * (200 - n[0]) / 400, n[1] + 1 + n[3] * (200 - n[1]) / 400, 0,
                      (uint8_t)(n[2] / 2), 90, i % 8 == 0 ? 128 : 255),
                  "PNG");
    }
    uint64_t tags[3];
    mc_buf *alone = draw_map(0, &tags[0]);
    ck_ok(mc_workers_create(&process.workers, 3, pool));
    for (int i = 0; i < 2; i++) {
        mc_buf *helped = draw_map(1 - 2 * i, &tags[1 + i]);
        ck_assert_uint_eq(tags[1 + i], tags[0]);
        ck_assert_uint_eq(helped->size, alone->size);
        ck_assert_int_eq(memcmp(helped->data, alone->data, alone->size), 0);
    }
    mc_workers_destroy(process.workers);
    process.workers = NULL;
}
END_TEST

START_TEST(seeding_makes_sub_tiles_and_the_assembly)
{
    set_up_stack(1);
    process.flights = mc_flights_create();
    tileset.source = &color_source;
    tileset.store_assemblies = true;
    renders = 0;
    const char *values[2] = { "left,fresh", NULL };
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    ck_ok(mc_tileset_render(&wanted, &ctx));
    ck_assert_int_eq(renders, 1);
    ck_assert_ptr_nonnull(apr_hash_get(cache.bytes, "fresh", APR_HASH_KEY_STRING));
    ck_assert_ptr_nonnull(apr_hash_get(cache.bytes, "left,fresh", APR_HASH_KEY_STRING));
    mc_flights_destroy(process.flights);
}
END_TEST

UNIT_MAIN("stack", a_tile_of_the_future_lives_no_longer_than_others, seeding_makes_sub_tiles_and_the_assembly,
          helpers_change_no_pixel, an_animation_has_a_frame_for_each_value, an_animation_too_large_is_an_error,
          the_last_value_is_on_top, what_is_hidden_is_not_fetched, translucent_parts_let_the_lower_ones_through,
          opacity_is_judged_from_pixels, a_single_part_passes_as_it_is, nothing_is_no_data,
          all_combinations_of_several_dimensions_are_drawn, too_many_combinations_are_an_error,
          assemblies_are_stored_under_the_requested_value, an_empty_assembly_is_stored_as_a_transparent_tile,
          a_stored_assembly_expires, the_tag_of_an_assembly_needs_no_drawing,
          broken_parts_are_errors_only_where_they_would_show, many_large_translucent_parts_take_bounded_memory,
          missing_parts_are_rendered_where_that_is_allowed, what_is_assembled_of_provisional_tiles_is_provisional)
