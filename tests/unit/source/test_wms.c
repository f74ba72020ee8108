#include "unit.h"

#include "origin.h"
#include "source_fixture.h"

static mc_source *
wms(const origin *o, const char *path, const char *getmap, const char *more)
{
    return source_from_text(apr_psprintf(pool,
                                         "<source name='s' type='wms'><retries>0</retries><getmap><params>%s</params>"
                                         "</getmap><http><url>%s</url></http>%s</source>",
                                         getmap, origin_url(o, path), more));
}

static const char *
query_of(const origin *o, mc_source *source, const mc_render *wanted)
{
    mc_rendered map;
    ck_ok(mc_source_render(&map, source, wanted, &ctx, pool));
    ck_assert_ptr_nonnull(map.data);
    ck_assert_ptr_null(map.pixels);
    return origin_last(o, "query");
}

START_TEST(asks_as_mapcache_does)
{
    origin o = origin_start();
    mc_render map = fixture_map(&fixture_mercator, -20037508.3427892480, -1e-9, 0, 20037508.3427892480, 256, 128);
    mc_source *source = wms(&o, "/wms?map=x", "<LAYERS>red,b/c d~é</LAYERS>", "");
    ck_assert_str_eq(query_of(&o, source, &map),
                     "map=x&VERSION=1.1.1&REQUEST=GetMap&SERVICE=WMS&STYLES=&"
                     "BBOX=-20037508.342789%2c-0.000000%2c0.000000%2c20037508.342789&WIDTH=256&HEIGHT=128&"
                     "FORMAT=image%2fpng&SRS=EPSG%3a3857&LAYERS=red%2cb%2fc+d~%c3%a9");
    origin_stop(&o);
}
END_TEST

START_TEST(configured_parameters_override_in_place)
{
    origin o = origin_start();
    mc_source *source = wms(&o, "/wms?",
                            "<FORMAT>image/jpeg</FORMAT><LAYERS>a</LAYERS><layers>b</layers><styles>fine</styles>"
                            "<TRANSPARENT>true</TRANSPARENT><SRS>EPSG:900913</SRS>",
                            "");
    mc_render map = fixture_map(&fixture_mercator, 0, 0, 1000, 1000, 10, 10);
    ck_assert_str_eq(query_of(&o, source, &map),
                     "VERSION=1.1.1&REQUEST=GetMap&SERVICE=WMS&STYLES=fine&"
                     "BBOX=0.000000%2c0.000000%2c1000.000000%2c1000.000000&WIDTH=10&HEIGHT=10&"
                     "FORMAT=image%2fjpeg&SRS=EPSG%3a900913&LAYERS=a&TRANSPARENT=true");
    origin_stop(&o);
}
END_TEST

static const char *
query_of_dense(const origin *o, const char *params, const char *more, double density)
{
    mc_render map = fixture_map(&fixture_mercator, 0, 0, 10, 10, 10, 10);
    map.density = density;
    const char *query = query_of(o, wms(o, "/wms", params, more), &map);
    return strstr(query, "&LAYERS=") + strlen("&LAYERS=");
}

START_TEST(origins_are_told_of_fine_screens)
{
    origin o = origin_start();
    ck_assert_str_eq(query_of_dense(&o, "<LAYERS>a</LAYERS>", "", 0), "a");
    ck_assert_str_eq(query_of_dense(&o, "<LAYERS>a</LAYERS><DPI>96</DPI>", "", 1), "a&DPI=96");
    ck_assert_str_eq(query_of_dense(&o, "<LAYERS>a</LAYERS>", "", 2),
                     "a&DPI=181&MAP_RESOLUTION=144&FORMAT_OPTIONS=dpi%3a181");
    ck_assert_str_eq(query_of_dense(&o,
                                    "<LAYERS>a</LAYERS><map_resolution>96</map_resolution><dpi>none</dpi>"
                                    "<FORMAT_OPTIONS>antialias:full</FORMAT_OPTIONS>",
                                    "", 3),
                     "a&map_resolution=288&dpi=272&FORMAT_OPTIONS=antialias%3afull%3bdpi%3a272");
    const char *only = "<density_parameters>format_options</density_parameters>";
    ck_assert_str_eq(query_of_dense(&o, "<LAYERS>a</LAYERS><FORMAT_OPTIONS>x:1;DPI:96;y:2</FORMAT_OPTIONS>", only, 2.5),
                     "a&FORMAT_OPTIONS=x%3a1%3bdpi%3a240%3by%3a2");
    ck_assert_str_eq(query_of_dense(&o, "<LAYERS>a</LAYERS>", "<density_parameters>none</density_parameters>", 2), "a");
    origin_stop(&o);
}
END_TEST

START_TEST(dimensions_are_sent_twice_but_for_time_and_elevation)
{
    origin o = origin_start();
    mc_source *source = wms(&o, "/wms", "<LAYERS>a</LAYERS>", "");
    mc_dimension_value values[] = { { "Time", "2020-01-01T00:00:00Z", false }, { "sensor", "a&b=c", false } };
    mc_render map = fixture_map(&fixture_mercator, 0, 0, 10, 10, 10, 10);
    map.dimensions = values;
    map.dimension_count = 2;
    const char *query = query_of(&o, source, &map);
    ck_assert_ptr_nonnull(
        strstr(query, "&LAYERS=a&Time=2020-01-01T00%3a00%3a00Z&sensor=a%26b%3dc&DIM_sensor=a%26b%3dc"));
    ck_assert_ptr_null(strstr(query, "DIM_Time"));
    origin_stop(&o);
}
END_TEST

START_TEST(layers_default_to_the_tileset_in_mirror_mode)
{
    origin o = origin_start();
    source_fixture_reset();
    source_build.mirror = true;
    mc_source *source = wms(&o, "/wms?", "<FORMAT>image/png</FORMAT>", "");
    mc_render map = fixture_map(&fixture_mercator, 0, 0, 10, 10, 10, 10);
    ck_assert_ptr_nonnull(strstr(query_of(&o, source, &map), "SRS=EPSG%3a3857&LAYERS=roads+%26+rails"));
    origin_stop(&o);
}
END_TEST

START_TEST(version_1_3_0_swaps_axes_and_names)
{
    origin o = origin_start();
    mc_render degrees = fixture_map(&fixture_wgs84, -10, 40, 20, 60, 30, 20);
    mc_render metres = fixture_map(&fixture_mercator, 1, 2, 3, 4, 2, 2);
    mc_source *source = wms(&o, "/wms?", "<VERSION>1.3.0</VERSION><LAYERS>a</LAYERS>", "");
    ck_assert_str_eq(query_of(&o, source, &degrees),
                     "VERSION=1.3.0&REQUEST=GetMap&SERVICE=WMS&STYLES=&"
                     "BBOX=40.000000%2c-10.000000%2c60.000000%2c20.000000&WIDTH=30&HEIGHT=20&FORMAT=image%2fpng&"
                     "CRS=EPSG%3a4326&LAYERS=a");
    ck_assert_ptr_nonnull(strstr(query_of(&o, source, &metres),
                                 "BBOX=1.000000%2c2.000000%2c3.000000%2c4.000000&WIDTH=2&HEIGHT=2&"
                                 "FORMAT=image%2fpng&CRS=EPSG%3a3857"));
    source = wms(&o, "/wms?", "<VERSION>1.3.0</VERSION><LAYERS>a</LAYERS><CRS>CRS:84</CRS>", "");
    const char *query = query_of(&o, source, &degrees);
    ck_assert_ptr_nonnull(strstr(query, "BBOX=-10.000000%2c40.000000%2c20.000000%2c60.000000"));
    ck_assert_ptr_nonnull(strstr(query, "&CRS=CRS%3a84&"));
    source = wms(&o, "/wms?", "<VERSION>1.1.0</VERSION><LAYERS>a</LAYERS>", "");
    ck_assert_ptr_nonnull(strstr(query_of(&o, source, &degrees), "BBOX=-10.000000%2c40.000000"));
    origin_stop(&o);
}
END_TEST

START_TEST(small_pixels_get_more_decimals)
{
    origin o = origin_start();
    mc_source *source = wms(&o, "/wms?", "<LAYERS>a</LAYERS>", "");
    double edge = 11.123456789, side = 256 * 1e-6; /* 0.1 m a pixel */
    mc_render map = fixture_map(&fixture_wgs84, edge, 47, edge + side, 47 + side, 256, 256);
    const char *box = strstr(query_of(&o, source, &map), "BBOX=") + 5;
    double sent = strtod(box, NULL);
    ck_assert_double_eq_tol(sent, edge, 0.01 * 1e-6);
    /* Six decimals stay where they are exact. */
    map = fixture_map(&fixture_wgs84, 11.5, 47, 11.5 + 1e-6 * 256, 47 + 1e-6 * 256, 256, 256);
    ck_assert_ptr_nonnull(strstr(query_of(&o, source, &map), "BBOX=11.500000%2c47.000000%2c11.500256%2c47.000256"));
    origin_stop(&o);
}
END_TEST

START_TEST(feature_info_is_asked_for)
{
    origin o = origin_start();
    static const char *const info = "<getfeatureinfo><info_formats>text/plain,application/json</info_formats><params>"
                                    "<QUERY_LAYERS>q</QUERY_LAYERS></params></getfeatureinfo>";
    mc_source *source = wms(&o, "/wms?", "<LAYERS>a</LAYERS><FORMAT>image/png</FORMAT>", info);
    ck_assert_int_eq(source->info_formats->nelts, 2);
    mc_dimension_value values[] = { { "day", "monday", false } };
    mc_info_request wanted = {
        .map = fixture_map(&fixture_wgs84, 0, 10, 20, 30, 20, 20), .x = 3, .y = 0, .format = "text/plain"
    };
    wanted.map.dimensions = values;
    wanted.map.dimension_count = 1;
    mc_buf *text;
    ck_ok(mc_source_info(&text, source, &wanted, &ctx, pool));
    ck_assert_str_eq(apr_pstrmemdup(pool, (const char *)text->data, text->size), "feature at 3,0 of q");
    ck_assert_str_eq(origin_last(&o, "query"),
                     "VERSION=1.1.1&REQUEST=GetFeatureInfo&SERVICE=WMS&STYLES=&LAYERS=a&FORMAT=image%2fpng&"
                     "BBOX=0.000000%2c10.000000%2c20.000000%2c30.000000&WIDTH=20&HEIGHT=20&SRS=EPSG%3a4326&X=3&Y=0&"
                     "INFO_FORMAT=text%2fplain&QUERY_LAYERS=q&day=monday&DIM_day=monday");
    source = wms(&o, "/wms?", "<LAYERS>a</LAYERS><VERSION>1.3.0</VERSION>", info);
    ck_ok(mc_source_info(&text, source, &wanted, &ctx, pool));
    ck_assert_ptr_nonnull(strstr(origin_last(&o, "query"),
                                 "BBOX=10.000000%2c0.000000%2c30.000000%2c20.000000&WIDTH=20&HEIGHT=20&"
                                 "CRS=EPSG%3a4326&I=3&J=0&INFO_FORMAT=text%2fplain"));
    source = wms(&o, "/wms?", "<LAYERS>a</LAYERS>", "");
    ck_fails(NOT_QUERYABLE, mc_source_info(&text, source, &wanted, &ctx, pool));
    origin_stop(&o);
}
END_TEST

START_TEST(what_is_no_image_is_refused)
{
    origin o = origin_start();
    mc_render map = fixture_map(&fixture_wgs84, 0, 10, 20, 30, 20, 20);
    static const char *const paths[] = { "/xml",        "/half",   "/cut",    "/status/500", "/status/404",
                                         "/status/204", "/silent", "/huge/0", "/huge/100" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        mc_rendered rendered;
        mc_source *source = wms(&o, paths[i], "<LAYERS>a</LAYERS>", "");
        mc_error *error = mc_source_render(&rendered, source, &map, &ctx, pool);
        ck_assert_msg(error != MC_OK, "%s was accepted", paths[i]);
        ck_assert_int_eq(error->kind, MC_ERR_UPSTREAM);
        ck_assert_ptr_null(rendered.data);
        ck_assert_ptr_null(strstr(error->message, "secret"));
        ck_assert_ptr_null(strstr(error->message, "127.0.0.1"));
    }
    /* The log says what came instead. */
    mc_rendered rendered;
    mc_error *error = mc_source_render(&rendered, wms(&o, "/xml", "<LAYERS>a</LAYERS>", ""), &map, &ctx, pool);
    ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "ServiceException"));
    /* A RAW tileset takes anything, but no error status. */
    map.raw = true;
    ck_ok(mc_source_render(&rendered, wms(&o, "/xml", "<LAYERS>a</LAYERS>", ""), &map, &ctx, pool));
    ck_fails(UPSTREAM, mc_source_render(&rendered, wms(&o, "/status/500", "<LAYERS>a</LAYERS>", ""), &map, &ctx, pool));
    origin_stop(&o);
}
END_TEST

START_TEST(headers_come_from_block_and_client)
{
    origin o = origin_start();
    apr_table_t *headers = apr_table_make(pool, 3);
    apr_table_set(headers, "X-User", "me\r\nX-Evil: 1 {X-Token}");
    apr_table_set(headers, "X-Token", "t");
    ctx.headers = headers;
    mc_source *source = source_from_text(apr_psprintf(
        pool,
        "<source name='s' type='wms'><getmap><params><LAYERS>a</LAYERS></params></getmap><http><url>%s</url><headers>"
        "<Referer>http://me/</Referer><X-Both>a {x-user} b {X-Token}{X-None} {{X-Token} {</X-Both>"
        "<Authorization>no</Authorization></headers><auth scheme='basic'><user>Ali</user><pass/></auth></http>"
        "</source>",
        origin_url(&o, "/wms?")));
    ck_assert_ptr_nonnull(source);
    mc_render map = fixture_map(&fixture_wgs84, 0, 10, 20, 30, 20, 20);
    query_of(&o, source, &map);
    ck_assert_str_eq(origin_last(&o, "referer"), "http://me/");
    ck_assert_str_eq(origin_last(&o, "authorization"), "Basic QWxpOg==");
    ck_assert_ptr_null(origin_last(&o, "x-evil"));
    const char *both = origin_last(&o, "x-both");
    ck_assert_ptr_nonnull(strstr(both, "X-Evil: 1 {X-Token} b t{X-None} {t {"));
    ctx.headers = NULL;
    query_of(&o, source, &map);
    ck_assert_str_eq(origin_last(&o, "x-both"), "a {x-user} b {X-Token}{X-None} {{X-Token} {");
    origin_stop(&o);
}
END_TEST

#define GETMAP "<getmap><params><LAYERS>a</LAYERS></params></getmap>"
#define HTTP "<http><url>http://localhost/</url></http>"

START_TEST(bad_configurations_are_refused)
{
    static const char *const refused[][2] = {
        { "<source name='s' type='wms'>" HTTP "</source>", "getmap" },
        { "<source name='s' type='wms'><getmap/>" HTTP "</source>", "params" },
        { "<source name='s' type='wms'><getmap><params/></getmap>" HTTP "</source>", "LAYERS" },
        { "<source name='s' type='wms'>" GETMAP "</source>", "http" },
        { "<source name='s' type='wms'>" GETMAP "<http/></source>", "url" },
        { "<source name='s' type='wms'>" GETMAP "<http><url>http://a</url><timeout>0</timeout></http></source>",
          "timeout" },
        { "<source name='s' type='wms'>" GETMAP
          "<http><url>http://a</url><connection_timeout>1s</connection_timeout></http></source>",
          "connection_timeout" },
        { "<source name='s' type='wms'>" GETMAP HTTP "<retries>11</retries></source>", "retries" },
        { "<source name='s' type='wms'>" GETMAP HTTP "<retry_delay>-1</retry_delay></source>", "retry_delay" },
        { "<source name='s' type='wms'>" GETMAP HTTP "<getfeatureinfo><params><QUERY_LAYERS>a</QUERY_LAYERS></params>"
          "</getfeatureinfo></source>",
          "info_formats" },
        { "<source name='s' type='wms'>" GETMAP HTTP
          "<getfeatureinfo><info_formats>a</info_formats></getfeatureinfo></source>",
          "params" },
        { "<source name='s' type='wms'>" GETMAP HTTP
          "<getfeatureinfo><info_formats>a</info_formats><params><A>b</A></params></getfeatureinfo></source>",
          "QUERY_LAYERS" },
        { "<source name='s' type='wms'>" GETMAP
          "<http><url>http://a</url><auth scheme='digest'><user>a</user><pass>b</pass></auth></http></source>",
          "digest" },
        { "<source name='s' type='wms'>" GETMAP
          "<http><url>http://a</url><auth><user>a</user><pass>b</pass></auth></http></source>",
          "scheme" },
        { "<source name='s' type='wms'>" GETMAP
          "<http><url>http://a</url><auth scheme='basic'><user>a</user></auth></http></source>",
          "pass" },
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        source_refused(refused[i][0], refused[i][1]);
}
END_TEST

UNIT_MAIN("wms", asks_as_mapcache_does, configured_parameters_override_in_place, origins_are_told_of_fine_screens,
          dimensions_are_sent_twice_but_for_time_and_elevation, layers_default_to_the_tileset_in_mirror_mode,
          version_1_3_0_swaps_axes_and_names, small_pixels_get_more_decimals, feature_info_is_asked_for,
          what_is_no_image_is_refused, headers_come_from_block_and_client, bad_configurations_are_refused)
