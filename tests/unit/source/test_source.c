#include "unit.h"

#include "origin.h"
#include "source_fixture.h"

static mc_render
small_map(void)
{
    return fixture_map(&fixture_mercator, 0, 0, 100, 100, 10, 10);
}

static const char *
wms_text(const origin *o, const char *name, const char *path, const char *more)
{
    return apr_psprintf(pool,
                        "<source name='%s' type='wms'><getmap><params><LAYERS>red</LAYERS></params></getmap>"
                        "<http><url>%s</url></http>%s</source>",
                        name, origin_url(o, path), more);
}

START_TEST(unknown_types_are_refused)
{
    source_refused("<source name='s' type='magic'/>", "magic");
    source_refused("<source name='s'/>", "type");
    source_refused("<source type='dummy'/>", "name");
    source_refused("<source name='s' type='WMS'/>", "WMS");
}
END_TEST

START_TEST(mapserver_needs_a_map_file_that_can_be_read)
{
    source_refused("<source name='s' type='mapserver'/>", "mapfile");
#ifdef MC_HAVE_MAPSERVER
    source_refused("<source name='s' type='mapserver'><mapfile>/none/a.map</mapfile></source>", "/none/a.map");
#endif
    source_refused("<source name='s' type='mapserver'><mapfile>/dev/null</mapfile><processes>65</processes></source>",
                   "processes");
    source_refused(
        "<source name='s' type='mapserver'><mapfile>/dev/null</mapfile><background>red</background></source>",
        "background");
    mc_source *source = source_from_text("<source name='s' type='mapserver'><mapfile>/dev/null</mapfile></source>");
    ck_assert_ptr_nonnull(source);
    ck_assert(source->needs_format);
    mc_rendered map;
    mc_render wanted = small_map();
#ifdef MC_HAVE_MAPSERVER
    ck_fails(CONFIG, mc_source_render(&map, source, &wanted, &ctx, pool)); /* nothing is no map file */
    wanted.width = 16385; /* its child would take that for no question of its own, and end */
    ck_fails(LIMIT, mc_source_render(&map, source, &wanted, &ctx, pool));
#else
    ck_fails(NOT_BUILT, mc_source_render(&map, source, &wanted, &ctx, pool));
    const apr_array_header_t *complaints = source_build.diagnostics->complaints;
    const mc_complaint *said = &APR_ARRAY_IDX(complaints, complaints->nelts - 1, const mc_complaint);
    ck_assert_int_eq(said->severity, MC_NOT_BUILT); /* loads: stored tiles are served */
    ck_assert_ptr_nonnull(strstr(said->text, "this build has no type \"mapserver\""));
#endif
}
END_TEST

START_TEST(dummy_maps_are_white)
{
    mc_source *source = source_from_text("<source name='s' type='dummy'/>");
    ck_assert_ptr_nonnull(source);
    ck_assert(source->needs_format);
    mc_rendered map;
    mc_render wanted = small_map();
    wanted.width = 33;
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_int_eq(map.pixels->width, 33);
    ck_assert_int_eq(map.pixels->height, 10);
    uint8_t color[4];
    ck_assert(mc_pixels_uniform(map.pixels, color));
    ck_assert_int_eq(memcmp(color, "\xff\xff\xff\xff", 4), 0);
    ck_assert_int_eq(map.pixels->opacity, MC_OPAQUE);
    mc_buf *text;
    mc_info_request info = { .map = wanted, .format = "text/plain" };
    ck_fails(NOT_QUERYABLE, mc_source_info(&text, source, &info, &ctx, pool));
}
END_TEST

START_TEST(failed_calls_are_repeated_with_growing_pauses)
{
    origin o = origin_start();
    mc_render wanted = small_map();
    mc_rendered map;
    mc_source *source =
        source_from_text(wms_text(&o, "s", "/flaky/3/wms", "<retries>3</retries><retry_delay>0.05</retry_delay>"));
    apr_time_t begin = mc_clock_now();
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_double_ge(seconds_since(begin), 0.75 * (0.05 + 0.1 + 0.2)); /* the rest is by chance */
    ck_assert_int_eq(origin_count(&o), 4);
    source = source_from_text(wms_text(&o, "t", "/flaky/2/status/500", ""));
    ck_fails(UPSTREAM, mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_int_eq(origin_count(&o), 6); /* one repetition where nothing is said */
    source = source_from_text(wms_text(&o, "u", "/xml", "<retries>2</retries><retry_delay>0</retry_delay>"));
    ck_fails(UPSTREAM, mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_int_eq(origin_count(&o), 9);
    origin_stop(&o);
}
END_TEST

START_TEST(pauses_do_not_outlast_the_deadline)
{
    origin o = origin_start();
    mc_render wanted = small_map();
    mc_rendered map;
    mc_source *source =
        source_from_text(wms_text(&o, "s", "/status/500", "<retries>10</retries><retry_delay>40</retry_delay>"));
    ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
    apr_time_t begin = mc_clock_now();
    ck_fails(UPSTREAM, mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_double_lt(seconds_since(begin), 20); /* it does not wait for what cannot come */
    ck_assert_int_eq(origin_count(&o), 1);
    ctx.deadline = 0;
    source = source_from_text(wms_text(&o, "t", "/late/60000/wms", "<deadline>1.5</deadline>"));
    begin = mc_clock_now();
    ck_fails(TIMEOUT, mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_double_lt(seconds_since(begin), 30);
    ck_assert_int_eq(ctx.deadline, 0);
    origin_stop(&o);
}
END_TEST

static bool
always(void *baton)
{
    (void)baton;
    return true;
}

START_TEST(nobody_waits_for_a_client_that_has_gone)
{
    origin o = origin_start();
    mc_render wanted = small_map();
    mc_rendered map;
    mc_source *source = source_from_text(wms_text(&o, "s", "/wms", ""));
    ctx.abandoned = always;
    ck_fails(UNAVAILABLE, mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_int_eq(origin_count(&o), 0);
    origin_stop(&o);
}
END_TEST

#define QUICK "<retries>0</retries>"
#define INFO(formats)                                                                                                  \
    "<getfeatureinfo><info_formats>" formats "</info_formats><params><QUERY_LAYERS>q</QUERY_LAYERS></params>"          \
    "</getfeatureinfo>"
#define FALLBACK "<source name='f' type='fallback'><source>a</source><source>b</source></source>"

START_TEST(fallback_takes_the_first_that_succeeds)
{
    origin o = origin_start();
    mc_render wanted = small_map();
    mc_rendered map;
    mc_source *source = source_from_text(
        apr_pstrcat(pool, wms_text(&o, "a", "/xml", QUICK), wms_text(&o, "b", "/wms", QUICK), FALLBACK, NULL));
    ck_assert_ptr_nonnull(source);
    ck_assert(!source->needs_format);
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_ptr_nonnull(map.data);
    ck_assert_int_eq(origin_count(&o), 2);

    source_fixture_reset();
    source = source_from_text(
        apr_pstrcat(pool, wms_text(&o, "a", "/wms", QUICK), wms_text(&o, "b", "/xml", QUICK), FALLBACK, NULL));
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_int_eq(origin_count(&o), 3);

    source_fixture_reset();
    source = source_from_text(apr_pstrcat(pool, wms_text(&o, "a", "/status/501", QUICK),
                                          wms_text(&o, "b", "/status/502", QUICK), FALLBACK, NULL));
    mc_error *error = mc_source_render(&map, source, &wanted, &ctx, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "501")); /* the first one's error */

    source_fixture_reset();
    source = source_from_text(
        apr_pstrcat(pool, wms_text(&o, "a", "/xml", QUICK), "<source name='b' type='dummy'/>", FALLBACK, NULL));
    ck_assert(source->needs_format);
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_ptr_nonnull(map.pixels);
    origin_stop(&o);
}
END_TEST

START_TEST(a_silent_source_leaves_time_for_its_fallback)
{
    origin o = origin_start();
    mc_render wanted = small_map();
    mc_rendered map;
    mc_source *source = source_from_text(apr_pstrcat(pool, wms_text(&o, "a", "/late/20000/wms", QUICK),
                                                     wms_text(&o, "b", "/wms", QUICK), FALLBACK, NULL));
    ctx.deadline = mc_clock_now() + 6 * APR_USEC_PER_SEC; /* half of it is much, also on a busy machine */
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    origin_stop(&o);
}
END_TEST

START_TEST(fallback_passes_feature_info_on)
{
    origin o = origin_start();
    mc_info_request wanted = { .map = small_map(), .x = 1, .y = 2, .format = "text/plain" };
    mc_buf *text;
    mc_source *source =
        source_from_text(apr_pstrcat(pool, wms_text(&o, "a", "/wms", QUICK INFO("text/plain,text/html")),
                                     wms_text(&o, "b", "/xml", QUICK INFO("text/xml,text/html")), FALLBACK, NULL));
    ck_assert_ptr_nonnull(source->info_formats);
    ck_assert_int_eq(source->info_formats->nelts, 3);
    ck_ok(mc_source_info(&text, source, &wanted, &ctx, pool));
    ck_assert_str_eq(apr_pstrmemdup(pool, (const char *)text->data, text->size), "feature at 1,2 of q");
    ck_assert_int_eq(origin_count(&o), 1);
    source_fixture_reset();
    source = source_from_text(apr_pstrcat(pool, wms_text(&o, "a", "/status/500", QUICK INFO("text/plain")),
                                          wms_text(&o, "b", "/wms", QUICK INFO("text/plain")), FALLBACK, NULL));
    ck_ok(mc_source_info(&text, source, &wanted, &ctx, pool));
    ck_assert_str_eq(apr_pstrmemdup(pool, (const char *)text->data, text->size), "feature at 1,2 of q");
    wanted.format = "text/none";
    ck_fails(INVALID_FORMAT, mc_source_info(&text, source, &wanted, &ctx, pool));
    origin_stop(&o);
}
END_TEST

START_TEST(bad_fallbacks_are_refused)
{
    source_refused("<source name='f' type='fallback'/>", "source");
    source_refused("<source name='f' type='fallback'><source>nobody</source></source>", "nobody");
    source_refused("<source name='f' type='fallback'><source>f</source></source>", "f");
}
END_TEST

UNIT_MAIN("source", unknown_types_are_refused, mapserver_needs_a_map_file_that_can_be_read, dummy_maps_are_white,
          failed_calls_are_repeated_with_growing_pauses, pauses_do_not_outlast_the_deadline,
          nobody_waits_for_a_client_that_has_gone, fallback_takes_the_first_that_succeeds,
          a_silent_source_leaves_time_for_its_fallback, fallback_passes_feature_info_on, bad_fallbacks_are_refused)
