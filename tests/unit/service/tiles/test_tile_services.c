/* TMS, XYZ, KML, Virtual Earth, MapGuide, the dispatcher and layer names: every row of the table of refused requests.
 */
#include "service_fixture.h"

static void
check_tile(const char *path, const char *query, const char *tileset, int z, int x, int y)
{
    ck_ok(dispatch_request(path, query));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    const mc_tile_request *tile = &service_request.u.tile.tiles[0];
    ck_assert_str_eq(tile->tileset->name, tileset);
    ck_assert_msg(tile->z == z && tile->x == x && tile->y == y, "%s: %d/%d/%d", path, tile->z, tile->x, tile->y);
    ck_assert_ptr_nonnull(service_request.u.tile.format);
}

START_TEST(addresses_of_tiles)
{
    fixture_setup();
    check_tile("/tms/1.0.0/sq/1/0/1.png", NULL, "sq", 1, 0, 1);
    check_tile("/gmaps/sq/1/0/1.png", NULL, "sq", 1, 0, 0);
    check_tile("//tms///1.0.0//sq/1//0/1.png", NULL, "sq", 1, 0, 1);
    check_tile("/tms/1.0.0/base@GoogleMapsCompatible/3/7/1.png", NULL, "base", 3, 7, 1);
    check_tile("/ve", "layer=sq@GoogleMapsCompatible&tile=12", "sq", 2, 2, 2);
    /* x = 10b, row = 01b from the top of 4 */
    check_tile("/mg/S20/sq@GoogleMapsCompatible/R0/C0/1_0.png", NULL, "sq", 1, 0, 0);
    check_tile("/mg/S16/sq/R0/C30/7_1.png", NULL, "sq", 5, 31, 24);
    ck_ok(dispatch_request("/tms/1.0.0/;sq;;catalog;/1/0/1.png", NULL));
    ck_assert_int_eq(service_request.u.tile.count, 2);
    check_tile("/tms/1.0.0/a <odd>&name/1/0/1.png", NULL, "a <odd>&name", 1, 0, 1);
}
END_TEST

START_TEST(dimensions_in_brackets)
{
    fixture_setup();
    ck_ok(dispatch_request("/gmaps/catalog[TIME=2021][product=red]@GoogleMapsCompatible/1/0/1.png", NULL));
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "red");
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[1], "2021");
    ck_ok(dispatch_request("/gmaps/catalog[TIME=2021]/1/0/1.png", NULL));
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "all");
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[1], "2021");
    ck_ok(
        dispatch_request("/tms/1.0.0/catalog@GoogleMapsCompatible[product=red]/1/0/0.png", NULL)); /* kills MapCache */
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "red");
    ck_ok(dispatch_request("/tms/1.0.0/catalog[TIME=2021]@GoogleMapsCompatible[product=red]/1/0/0.png", NULL));
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "red");
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[1], "2021");
    ck_fails(UPSTREAM,
             dispatch_request("/gmaps/catalog[TIME=current]/1/0/1.png", NULL)); /* its values cannot be listed */
}
END_TEST

START_TEST(refusals)
{
    static const char plain[] = "text/plain";
    static const refused_row rows[] = {
        { "/tms/2.0.0/", "", 404, plain, "2.0.0" },
        { "/tms/1.0.0/nope", "", 404, plain, "nope" },
        { "/tms/1.0.0/nope/0/0/0.png", "", 404, plain, "nope" },
        { "/tms/1.0.0/sq/1/0", "", 404, plain, "elements" },
        { "/tms/1.0.0/sq/1/0/1/2/3/4.png", "", 404, plain, "elements" },
        { "/tms/1.0.0/sq/1/0/1", "", 404, plain, "y \"1\"" },
        { "/tms/1.0.0/sq/a/0/1.png", "", 404, plain, "z \"a\"" },
        { "/tms/1.0.0/sq/1/b/1.png", "", 404, plain, "x \"b\"" },
        { "/tms/1.0.0/sq/1/0x/1.png", "", 404, plain, "x \"0x\"" },
        { "/tms/1.0.0/sq/1/0/1x.png", "", 404, plain, "1x.png" },
        { "/tms/1.0.0/sq/25/0/0.png", "", 404, plain, "25" },
        { "/tms/1.0.0/sq/1/9/0.png", "", 404, plain, "9" },
        { "/tms/1.0.0/sq/1/-1/0.png", "", 404, plain, "-1" },
        { "/tms/1.0.0/sq/99999999999/0/0.png", "", 404, plain, "99999999999" },
        { "/tms/1.0.0/sq@nope/1/0/0.png", "", 404, plain, "nope" },
        { "/tms/1.0.0/catalog[foo=bar]/1/0/0.png", "", 400, plain, "foo" },
        { "/tms/1.0.0/catalog[product=/1/0/0.png", "", 400, plain, "product" },
        { "/tms/1.0.0/catalog[product]/1/0/0.png", "", 400, plain, "product" },
        { "/tms/1.0.0/catalog@GoogleMapsCompatible[product=red/1/0/0.png", "", 400, plain, "[product=red" },
        { "/tms/1.0.0/catalog[product=red]x/1/0/0.png", "", 404, plain, "x" },
        { "/tms/1.0.0/;/0/0/0.png", "", 400, plain, "no layer" },
        { "/gmaps/;;/0/0/0.png", "", 400, plain, "no layer" },
        { "/mg/S0/;/R0/C0/0_0.png", "", 404, plain, "no layer" },
        { "/tms/1.0.0/sq;base/0/0/0.png", "", 400, plain, "same grid" },
        { "/tms/1.0.0/absent/0/0/0.png", "", 503, plain, "absent" },
        { "/gmaps", "", 404, plain, "" },
        { "/gmaps/sq", "", 404, plain, "sq" },
        { "/gmaps/sq/30/0/0.png", "", 404, plain, "30" },
        { "/gmaps/sq/-1/0/0.png", "", 404, plain, "-1" },
        { "/gmaps/sq/100000/0/0.png", "", 404, plain, "100000" },
        { "/gmaps/sq/2000000000/0/0.png", "", 404, plain, "2000000000" },
        { "/gmaps/sq/1/0/2.png", "", 404, plain, "2" },
        { "/kml", "", 404, plain, "elements" },
        { "/kml/nope", "", 404, plain, "nope" },
        { "/kml/base@nope", "", 404, plain, "nope" },
        { "/kml/base/0/0/0.png", "", 404, plain, "png" },
        { "/kml/base/0/90/0.kml", "", 404, plain, "90" },
        { "/kml/sq;catalog", "", 404, plain, "one layer" },
        { "/ve", "", 400, plain, "layer" },
        { "/ve", "layer=sq@GoogleMapsCompatible", 400, plain, "tile" },
        { "/ve", "layer=sq@GoogleMapsCompatible&tile=9", 400, plain, "9" },
        { "/ve", "layer=sq&tile=01", 404, plain, "grid" },
        { "/ve", "layer=sq@GoogleMapsCompatible&tile=", 404, plain, "0" },
        { "/ve", "layer=sq@GoogleMapsCompatible&tile=01010101010101010101010101010101010101", 404, plain, "38" },
        { "/ve", "layer=nope@GoogleMapsCompatible&tile=0", 404, plain, "nope" },
        { "/mg/X1/sq/R0/C0/0_0.png", "", 400, plain, "X1" },
        { "/mg/S90/sq/R0/C0/0_0.png", "", 404, plain, "90" },
        { "/mg/S0/nope/R0/C0/0_0.png", "", 404, plain, "nope" },
        { "/mg/S0/sq/X0/C0/0_0.png", "", 400, plain, "X0" },
        { "/mg/S0/sq/R0/C0/00.png", "", 404, plain, "00.png" },
        { "/mg/S0/sq/R2147483647/C0/1_0.png", "", 404, plain, "outside" },
        { "/demo/nope", "", 404, plain, "nope" },
        { "/demo/demo", "", 400, plain, "demo" },
        { "/demo/static/../../../etc/passwd", "", 404, plain, "no file" },
        { "/demo/static/", "", 404, plain, "no file" },
    };
    fixture_setup();
    check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

START_TEST(documents_of_tms_and_kml)
{
    fixture_setup();
    ck_ok(dispatch_request("/tms", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "href=\"http://localhost/mc/tms/1.0.0/\""));
    ck_ok(dispatch_request("/tms/1.0.0/", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "/tms/1.0.0/base@WGS84\""));
    ck_assert_ptr_nonnull(strstr(document_text(), "profile=\"global-mercator\""));
    ck_assert_ptr_null(strstr(document_text(), "<script>"));
    ck_ok(dispatch_request("/tms/1.0.0/sq", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "units-per-pixel=\"156543.033928040"));
    ck_assert_ptr_nonnull(strstr(document_text(), "order=\"21\""));
    ck_ok(dispatch_request("/kml/base@WGS84.kml", NULL));
    ck_assert_str_eq(service_request.u.document.mime, "application/vnd.google-earth.kml+xml");
    ck_assert_ptr_nonnull(strstr(document_text(), "http://localhost/mc/kml/base@WGS84/0/1/0.kml"));
    ck_ok(dispatch_request("/kml/base@WGS84/0/1/0.kml", NULL));
    const char *text = document_text();
    ck_assert_ptr_nonnull(strstr(text, "tms/1.0.0/base@WGS84/0/1/0.png"));
    int links = 0;
    for (const char *at = text; (at = strstr(at, "<NetworkLink>")) != NULL; at++)
        links++;
    ck_assert_int_eq(links, 4);
    ck_assert_ptr_nonnull(strstr(text, "/1/3/1.kml"));
    ck_ok(dispatch_request("/kml/base@WGS84/17/1/0.kml", NULL));
    ck_assert_ptr_null(strstr(document_text(), "NetworkLink"));
}
END_TEST

START_TEST(demo_pages)
{
    static const char *const pages[] = { "wms", "wmts", "tms", "gmaps", "kml", "ve", "mapguide" };
    fixture_setup();
    ck_ok(dispatch_request("/demo", NULL));
    ck_assert_str_eq(service_request.u.document.mime, "text/html; charset=utf-8");
    ck_assert_ptr_nonnull(strstr(document_text(), "src=\"demo/static/front.js\""));
    ck_assert_ptr_nonnull(strstr(service_request.u.document.policy, "script-src 'self';"));
    ck_ok(dispatch_request("/demo/", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "src=\"./static/front.js\""));
    for (int i = 0; i < 7; i++) {
        ck_ok(dispatch_request(apr_pstrcat(pool, "/demo/", pages[i], NULL), NULL));
        const char *text = document_text();
        ck_assert_ptr_nonnull(strstr(text, apr_pstrcat(pool, "data-service=\"", pages[i], "\"", NULL)));
        /* no address of a host, and no text of the configuration that ends an element */
        ck_assert_ptr_null(strstr(text, "://"));
        ck_assert_ptr_null(strstr(text, "<script>"));
    }
    ck_ok(dispatch_request("/demo/static/map.js", NULL));
    ck_assert_int_gt((int)service_request.u.document.text->size, 1000);
    ck_ok(dispatch_request("/demo/static/map.css", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "#map"));
    ck_fails(NOT_FOUND, dispatch_request("/demo/static/map.html", NULL));
    ck_fails(NOT_FOUND, dispatch_request("/demo/layers.json/more", NULL));
    ck_assert(fixture_services("<mapcache>" SERVICE("demo", "") "</mapcache>"));
    ck_fails(NOT_FOUND, dispatch_request("/demo/wms", NULL));
}
END_TEST

START_TEST(demo_layers)
{
    fixture_setup();
    ck_ok(dispatch_request("/demo/layers.json", NULL));
    ck_assert_str_eq(service_request.u.document.mime, "application/json");
    const char *text = document_text();
    ck_assert_ptr_nonnull(strstr(text, "{\"name\":\"base\""));
    ck_assert_ptr_nonnull(strstr(text, "\"picture\":{\"z\":"));
    ck_assert_ptr_null(strstr(text, "\"resolutions\""));
    ck_ok(dispatch_request("/demo/layers.json", "layer=base"));
    text = document_text();
    /* JSON numbers have a digit before the point */
    ck_assert_ptr_null(strstr(text, ",."));
    ck_assert_ptr_null(strstr(text, "[."));
    ck_assert_ptr_nonnull(strstr(text, ",0.5971642834"));
    ck_assert_ptr_nonnull(strstr(text, "\"grid\":\"WGS84\""));
    ck_fails(NOT_FOUND, dispatch_request("/demo/layers.json", "layer=nope"));
}
END_TEST

START_TEST(dispatch)
{
    fixture_setup();
    ck_ok(dispatch_request("/wmts/foo", "SERVICE=WMTS&REQUEST=GetCapabilities"));
    ck_assert(fixture_services("<mapcache>" SERVICE("TMS", "") "<service type=\"wms\" enabled=\"no\"/></mapcache>"));
    ck_fails(NOT_FOUND, dispatch_request("/nosuch", NULL));
    ck_assert_ptr_null(service_call.service);
    ck_assert(!fixture_services("<mapcache><service type=\"wfs\" enabled=\"true\"/></mapcache>"));
    ck_assert(!fixture_services("<mapcache><service type=\"wms\"/></mapcache>"));
    ck_assert(!fixture_services("<mapcache><service enabled=\"true\"/></mapcache>"));
    ck_assert(fixture_services("<mapcache>" SERVICE("metrics", "") SERVICE("tms", "") "</mapcache>"));
    ck_ok(dispatch_request("/metrics", NULL));
    ck_fails(NOT_FOUND, dispatch_request("/metrics/more", NULL));
    ck_fails(NOT_FOUND, dispatch_request("/metrics2", NULL));
    ck_fails(NOT_FOUND, dispatch_request("/status", NULL));
    ck_assert(fixture_services("<mapcache></mapcache>"));
    ck_fails(CONFIG, dispatch_request("/tms", NULL));
}
END_TEST

START_TEST(mirror_modes)
{
    fixture_setup();
    fixture_tileset("mirror", "PNG", "GoogleMapsCompatible", NULL);
    service_config.mode = MC_MODE_SPLIT_MIRROR;
    ck_ok(dispatch_request("/tms/1.0.0/any;thing/1/0/1.png", NULL));
    ck_assert_int_eq(service_request.u.tile.count, 2);
    ck_assert_str_eq(service_request.u.tile.tiles[0].tileset->name, "any");
    ck_assert_str_eq(service_request.u.tile.tiles[1].tileset->name, "thing");
    service_config.mode = MC_MODE_COMBINED_MIRROR;
    ck_ok(dispatch_request("/tms/1.0.0/any;thing/1/0/1.png", NULL));
    ck_assert_int_eq(service_request.u.tile.count, 1);
    ck_assert_str_eq(service_request.u.tile.tiles[0].tileset->name, "any;thing");
    ck_fails(NOT_FOUND, dispatch_request("/tms/1.0.0/@GoogleMapsCompatible/1/0/1.png", NULL));
}
END_TEST

START_TEST(prefixes_end_at_a_slash_or_at_the_end)
{
    static const char *const inside[] = { "/tms", "/tms/", "/tms//1.0.0", "//wmts", "/kml/base@WGS84.kml", "/demo/" };
    static const char *const beside[] = {
        "/tms1.0.0", "/wmtsfoo", "/kmlbase", "/demo;x", "/gmaps.json", "/mgx", "/ve2"
    };
    mc_call call;
    fixture_setup();
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
        const mc_http_request http = { .path = inside[i] };
        mc_service_find(&call, &service_config, &http, pool);
        ck_assert_msg(call.service != NULL && *call.service->ops->prefix != '\0', "%s", inside[i]);
    }
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        const mc_http_request http = { .path = beside[i] };
        mc_service_find(&call, &service_config, &http, pool);
        ck_assert_msg(call.service == NULL || *call.service->ops->prefix == '\0', "%s", beside[i]);
    }
}
END_TEST

START_TEST(base_urls)
{
    fixture_setup();
    mc_metadata_set(service_config.metadata, "url", "http://maps.example/x?a=<1>&b");
    ck_ok(dispatch_request("/tms", NULL));
    ck_assert_ptr_nonnull(strstr(document_text(), "http://maps.example/x?a=&lt;1&gt;&amp;b/tms/1.0.0/"));
}
END_TEST

UNIT_MAIN("tiles", addresses_of_tiles, dimensions_in_brackets, refusals, documents_of_tms_and_kml, demo_pages,
          demo_layers, dispatch, mirror_modes, prefixes_end_at_a_slash_or_at_the_end, base_urls)
