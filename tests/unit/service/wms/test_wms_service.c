/* WMS: tiles, maps, feature info, negotiation, exceptions in all forms, forwarding rules. */
#include "service/wms/wms.h"
#include "service_fixture.h"

#define W "SERVICE=WMS&REQUEST=GetMap"
#define HALF "20037508.342789248"
#define WORLD "-" HALF ",-" HALF "," HALF "," HALF
#define B "&BBOX=" WORLD
#define S "&WIDTH=256&HEIGHT=256"
#define Z S "&SRS=EPSG:3857"
#define FI "SERVICE=WMS&REQUEST=GetFeatureInfo&BBOX=-180,-90,180,90&WIDTH=360&HEIGHT=180&SRS=EPSG:4326"

START_TEST(a_tile_is_passed_through)
{
    fixture_setup();
    ck_ok(dispatch_request("", W B Z "&LAYERS=sq"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    ck_assert_int_eq(service_request.u.tile.count, 1);
    ck_assert_int_eq(service_request.u.tile.tiles[0].z, 0);
    ck_assert_str_eq(service_request.u.tile.format->name, "JPEG");
    ck_ok(dispatch_request("/anything",
                           "request=getmap&layers=,sq,,catalog,&bbox=" WORLD "&width=256&height=256&srs=epsg:900913"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    ck_assert_int_eq(service_request.u.tile.count, 2);
    ck_ok(dispatch_request("", W "&BBOX=-180,-90,0,90" S "&SRS=EPSG:4326&LAYERS=base"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    /* latitude first */
    ck_ok(dispatch_request("", W "&VERSION=1.3.0&BBOX=-90,0,90,180" S "&CRS=EPSG:4326&LAYERS=base"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    ck_assert_int_eq(service_request.u.tile.tiles[0].x, 1);
    ck_ok(dispatch_request("", W "&VERSION=1.3.0&BBOX=0,-90,180,90" S "&CRS=CRS:84&LAYERS=base"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    ck_assert_int_eq(service_request.u.tile.tiles[0].x, 1);
}
END_TEST

START_TEST(maps)
{
    fixture_setup();
    ck_ok(dispatch_request(
        "", W "&BBOX=0,0,1000,500&WIDTH=300&HEIGHT=200&SRS=EPSG:3857&LAYERS=catalog&DIM_PRODUCT=red&TIME=2021"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_MAP);
    const mc_map_request *map = &service_request.u.map;
    ck_assert_int_eq(map->width, 300);
    ck_assert_int_eq(map->height, 200);
    ck_assert_double_eq(map->box.maxx, 1000);
    ck_assert_str_eq(map->layers[0].values[0], "red");
    ck_assert_str_eq(map->layers[0].values[1], "2021");
    ck_assert(!map->background_set && !map->empty_is_map && !map->format_named);
    ck_assert_int_eq(map->mode, MC_WMS_ASSEMBLE);
    ck_assert_int_eq(map->resample, MC_BILINEAR);
    ck_assert_int_eq(map->max_pixels, 64 << 20);
    /* beside the data: an empty map */
    ck_ok(dispatch_request("", W "&BBOX=20037508.342789248,-20037508.342789248,60112525.028367744,20037508.342789248" Z
                                 "&LAYERS=sq"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_MAP);
    ck_ok(dispatch_request("", W "&BBOX=1e9,1e9,2e9,2e9" Z "&LAYERS=sq"));
    ck_assert(service_request.u.map.empty_is_map);
    ck_ok(dispatch_request("", W "&BBOX=0,0,1,1" Z "&LAYERS=sq&TRANSPARENT=true&BGCOLOR=0xFF8001"));
    ck_assert(service_request.u.map.background_set && service_request.u.map.transparent);
    ck_assert_int_eq(service_request.u.map.background[0], 255);
    ck_assert_int_eq(service_request.u.map.background[1], 128);
    ck_assert_int_eq(service_request.u.map.background[2], 1);
    ck_ok(
        dispatch_request("", W "&VERSION=1.3.0&BBOX=10,20,11,22&WIDTH=9&HEIGHT=9&CRS=EPSG:4326&LAYERS=base&product=x"));
    ck_assert_double_eq(service_request.u.map.box.minx, 20);
    ck_assert_double_eq(service_request.u.map.box.maxy, 11);
}
END_TEST

START_TEST(refusals)
{
    static const char se[] = "application/vnd.ogc.se_xml";
    static const refused_row rows[] = {
        { "", "foo=bar", 400, "text/plain", "SERVICE" },
        { "/nosuch", "foo=bar", 404, "text/plain", "wms at /" },
        { "", "SERVICE=WMS", 400, se, "REQUEST" },
        { "", "SERVICE=WFS&REQUEST=GetMap", 400, se, "WFS" },
        { "", "SERVICE=WMS&REQUEST=GetStyles", 501, se, "code=\"OperationNotSupported\"" },
        { "", W, 400, se, "BBOX" },
        { "", W "&BBOX=1,2,3", 400, se, "1,2,3" },
        { "", W "&BBOX=1,2,3,4,5", 400, se, "1,2,3,4,5" },
        { "", W "&BBOX=a,b,c,d", 400, se, "a,b,c,d" },
        { "", W "&BBOX=1,%202,3,4", 400, se, "BBOX" },
        { "", W "&BBOX=10,10,0,0", 400, se, "BBOX" },
        { "", W "&BBOX=0,0,0,0", 400, se, "BBOX" },
        { "", W "&BBOX=nan,nan,nan,nan", 400, se, "BBOX" },
        { "", W "&BBOX=0,0,inf,inf", 400, se, "BBOX" },
        { "", W "&BBOX=1e30,1e30,2e30,2e30", 400, se, "BBOX" },
        { "", W "&BBOX=0,0,1e400,1e400", 400, se, "BBOX" },
        { "", W B, 400, se, "width" },
        { "", W B "&WIDTH=256", 400, se, "height" },
        { "", W B "&WIDTH=-5&HEIGHT=1", 400, se, "-5" },
        { "", W B "&WIDTH=0&HEIGHT=1", 400, se, "&quot;0&quot;" },
        { "", W B "&WIDTH=25x&HEIGHT=1", 400, se, "25x" },
        { "", W B "&WIDTH=100000&HEIGHT=1", 400, se, "limit" },
        { "", W B "&WIDTH=2049&HEIGHT=1", 400, se, "limit" },
        { "", W B "&WIDTH=99999999999999999999999&HEIGHT=1", 400, se, "limit" },
        { "", W B "&WIDTH=4294967552&HEIGHT=256&SRS=EPSG:3857&LAYERS=sq", 400, se, "limit" },
        { "", W B S, 400, se, "srs" },
        { "", W B S "&VERSION=1.3.0&SRS=EPSG:3857", 400, "text/xml", "crs" },
        { "", W B S "&SRS=EPSG:9999&LAYERS=sq", 400, se, "code=\"InvalidSRS\"" },
        { "", W B S "&VERSION=1.3.0&CRS=EPSG:9999&LAYERS=sq", 400, "text/xml", "code=\"InvalidCRS\"" },
        { "", W B Z, 400, se, "LAYERS" },
        { "", W B Z "&LAYERS=", 404, se, "code=\"LayerNotDefined\"" },
        { "", W B Z "&LAYERS=,", 404, se, "code=\"LayerNotDefined\"" },
        { "", W B Z "&LAYERS=,,,,", 404, se, "code=\"LayerNotDefined\"" },
        { "", W B Z "&LAYERS=nope", 404, se, "nope" },
        { "", W B Z "&LAYERS=sq,nope", 404, se, "nope" },
        { "", W B Z "&LAYERS=<script>", 404, se, "&lt;script&gt;" },
        { "", W B S "&SRS=EPSG:4326&LAYERS=base,sq", 400, se, "sq" },
        { "", W B Z "&LAYERS=sq&TITLE=a%00b", 400, se, "code=\"InvalidParameterValue\"" },
        { "", W B Z "&LAYERS=sq%00.png", 400, se, "LAYERS" },
        { "/a\nb", W B Z "&LAYERS=sq", 400, se, "path" },
        { "", W B Z "&LAYERS=sq&TRANSPARENT=maybe", 400, se, "maybe" },
        { "", W B Z "&LAYERS=sq&BGCOLOR=red", 400, se, "red" },
        { "", W B Z "&LAYERS=sq&BGCOLOR=0x+fffff", 400, se, "BGCOLOR" },
        { "", W B Z "&LAYERS=sq&VERSION=7", 400, se, "7" },
        { "", W "&BBOX=0,0,1,1" S "&SRS=EPSG:4326&LAYERS=absent", 503, se, "absent" },
        { "", FI, 400, se, "QUERY_LAYERS" },
        { "", FI "&QUERY_LAYERS=base,sq", 404, se, "code=\"LayerNotQueryable\"" },
        { "", FI "&QUERY_LAYERS=,", 404, se, "code=\"LayerNotDefined\"" },
        { "", FI "&QUERY_LAYERS=nope", 404, se, "code=\"LayerNotDefined\"" },
        { "", FI "&QUERY_LAYERS=sq", 404, se, "code=\"LayerNotQueryable\"" },
        { "", FI "&QUERY_LAYERS=base", 400, se, "X" },
        { "", FI "&QUERY_LAYERS=base&X=0", 400, se, "Y" },
        { "", FI "&QUERY_LAYERS=base&X=360&Y=0", 400, se, "code=\"InvalidPoint\"" },
        { "", FI "&QUERY_LAYERS=base&X=0&Y=180", 400, se, "code=\"InvalidPoint\"" },
        { "", FI "&QUERY_LAYERS=base&X=0&Y=-1", 400, se, "code=\"InvalidPoint\"" },
        { "", FI "&QUERY_LAYERS=base&I=0&J=0&VERSION=1.3.0&CRS=EPSG:4326", 400, "text/xml", "INFO_FORMAT" },
        { "", FI "&QUERY_LAYERS=base&X=0&Y=0&INFO_FORMAT=a/b", 404, se, "code=\"InvalidFormat\"" },
        { "", "SERVICE=WMS&REQUEST=GetCapabilities&UPDATESEQUENCE=2023-11-14T22:13:20.000000Z", 400, se,
          "CurrentUpdateSequence" },
        { "", "SERVICE=WMS&REQUEST=GetCapabilities&UPDATESEQUENCE=2023-11-14T22:13:20.000001Z", 400, se,
          "InvalidUpdateSequence" },
        { "", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1&UPDATESEQUENCE=x", 400, se, "InvalidUpdateSequence" },
    };
    fixture_setup();
    check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

START_TEST(feature_info)
{
    fixture_setup();
    ck_ok(dispatch_request("", FI "&QUERY_LAYERS=base&X=0&Y=179&INFO_FORMAT=text/plain"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_INFO);
    ck_assert_int_eq(service_request.u.info.questions[0].info.x, 0);
    ck_assert_int_eq(service_request.u.info.questions[0].info.y, 179);
    ck_ok(dispatch_request(
        "", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetFeatureInfo&BBOX=10,20,11,22&WIDTH=10&HEIGHT=10&CRS=EPSG:4326&"
            "QUERY_LAYERS=base&I=9&J=8&INFO_FORMAT=text/plain"));
    ck_assert_int_eq(service_request.u.info.questions[0].info.x, 9);
    ck_assert_double_eq(service_request.u.info.questions[0].info.map.box.minx, 20);
    ck_ok(dispatch_request("", FI "&QUERY_LAYERS=base,,base&X=0&Y=0"));
    ck_assert_int_eq(service_request.u.info.count, 1); /* once, so that no feature is in an answer twice */
    ck_assert_str_eq(service_request.u.info.questions[0].info.format, "text/plain");
}
END_TEST

START_TEST(override_of_the_format)
{
    fixture_setup();
    ck_assert(fixture_services("<mapcache><service type=\"wms\" enabled=\"true\">"
                               "<format allow_client_override=\"true\">PNG</format></service></mapcache>"));
#define Q W "&BBOX=0,0,1000,500" Z "&LAYERS=sq"
    ck_ok(dispatch_request("", Q));
    ck_assert_str_eq(service_request.u.map.format->name, "PNG");
    ck_ok(dispatch_request("", Q "&FORMAT=image/jpeg"));
    ck_assert_str_eq(service_request.u.map.format->name, "JPEG");
    ck_ok(dispatch_request("", Q "&FORMAT=image/png;+mode%3D8bit"));
    ck_assert_str_eq(service_request.u.map.format->name, "PNG8");
    ck_fails(INVALID_FORMAT, dispatch_request("", Q "&FORMAT=image/gif"));
    ck_fails(INVALID_FORMAT, dispatch_request("", Q "&FORMAT="));
    ck_assert(!fixture_services("<mapcache>" SERVICE("wms", "<format>GIF</format>") "</mapcache>"));
    ck_assert(!fixture_services("<mapcache>" SERVICE("wms", "<maxsize>0</maxsize>") "</mapcache>"));
    ck_assert(!fixture_services("<mapcache>" SERVICE("wms", "<full_wms>maybe</full_wms>") "</mapcache>"));
}
END_TEST

START_TEST(modes_and_limits)
{
    fixture_setup();
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<full_wms>error</full_wms>") "</mapcache>"));
    ck_ok(dispatch_request("", W B Z "&LAYERS=sq"));
    ck_fails(NOT_FOUND, dispatch_request("", Q));
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<full_wms>forward</full_wms>") "</mapcache>"));
    ck_fails(NOT_FOUND, dispatch_request("", Q));
    ck_ok(dispatch_request("", W "&BBOX=0,0,1,2" S "&SRS=EPSG:4326&LAYERS=base"));
    ck_assert_int_eq(service_request.u.map.mode, MC_WMS_FORWARD);
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<max_pixels>100K</max_pixels>") "</mapcache>"));
    ck_ok(dispatch_request("", Q));
    ck_fails(INVALID_PARAMETER, dispatch_request("", Q ",sq"));
    const char *many = Q;
    for (int i = 0; i < 300; i++)
        many = apr_pstrcat(pool, many, ",sq", NULL);
    ck_fails(INVALID_PARAMETER, dispatch_request("", many));
}
END_TEST

START_TEST(strict)
{
#define V "&VERSION=1.1.1&STYLES=&FORMAT=image/jpeg"
    static const char se[] = "application/vnd.ogc.se_xml";
    static const refused_row rows[] = {
        { "", W B Z "&LAYERS=sq", 400, se, "version" },
        { "", W B Z "&LAYERS=sq&VERSION=1.1.1", 400, se, "styles" },
        { "", W B Z "&LAYERS=sq&VERSION=1.1.1&STYLES=", 400, se, "format" },
        { "", W B Z "&LAYERS=sq&VERSION=1.1.1&STYLES=&FORMAT=image/png", 404, se, "image/png" },
        { "", "REQUEST=GetCapabilities", 400, "text/xml", "service" },
    };
    fixture_setup();
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<strict>true</strict>") "</mapcache>"));
    check_refused(rows, sizeof(rows) / sizeof(rows[0]));
    ck_ok(dispatch_request("", W B Z "&LAYERS=sq&WMTVER=1.1.1&STYLES=&FORMAT=image/jpeg"));
    ck_ok(dispatch_request("", W B Z "&LAYERS=sq" V));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_MAP); /* the stored type is not known to be JPEG */
    ck_assert(service_request.u.map.background_set && !service_request.u.map.transparent &&
              service_request.u.map.empty_is_map);
    ck_assert_int_eq(service_request.u.map.background[0], 255);
    ck_ok(dispatch_request("", W B Z "&LAYERS=catalog" V));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
}
END_TEST

START_TEST(version_negotiation)
{
    static const char old[] = "<WMT_MS_Capabilities version=\"1.1.1\"", new[] = "<WMS_Capabilities version=\"1.3.0\"";
    static const char plain[] = "text/xml", own[] = "application/vnd.ogc.wms_xml";
    static const struct {
        const char *version;
        const char *root, *strict_root;
        const char *strict_mime;
    } rows[] = {
        { "", old, new, plain },
        { "&VERSION=1.3.0", new, new, plain },
        { "&VERSION=1.3.1", new, new, plain },
        { "&VERSION=2.0.0", new, new, plain },
        { "&VERSION=1.2.0", old, old, own },
        { "&VERSION=1.1.1", old, old, own },
        { "&WMTVER=1.1.1", old, old, own },
        { "&VERSION=0.0.1", old, old, own },
    };
    fixture_setup();
    for (int strict = 0; strict < 2; strict++) {
        if (strict)
            ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<strict>true</strict>") "</mapcache>"));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const char *query = apr_pstrcat(pool, "SERVICE=WMS&REQUEST=GetCapabilities", rows[i].version, NULL);
            ck_ok(dispatch_request("", query));
            ck_assert_msg(strstr(document_text(), strict ? rows[i].strict_root : rows[i].root) != NULL, "%s", query);
            ck_assert_str_eq(service_request.u.document.mime, strict ? rows[i].strict_mime : plain);
            ck_assert_ptr_nonnull(strstr(document_text(), "http://localhost/mc?\""));
            ck_assert_ptr_null(strstr(document_text(), "<script>"));
        }
    }
}
END_TEST

START_TEST(values_that_are_not_read)
{
    fixture_setup();
#define ALONG W "&BBOX=0,0,1000,500" Z "&LAYERS=sq"
    static const char *const rows[] = { "&STYLES=x", "&STYLES=x,y,z", "&FORMAT=image/bogus",
                                        "&FORMAT=",  "&FORMAT=jpeg",  "&FORMAT=image/png;+mode%3D24bit" };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_ok(dispatch_request("", apr_pstrcat(pool, ALONG, rows[i], NULL)));
        ck_assert_str_eq(service_request.u.map.format->name, "JPEG");
    }
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "<strict>true</strict>") "</mapcache>"));
#define FULL "&VERSION=1.1.1&STYLES=&FORMAT=image/jpeg"
    ck_ok(dispatch_request("", ALONG FULL));
    ck_fails(LAYER_NOT_DEFINED, dispatch_request("", ALONG "," FULL));
    ck_fails(STYLE_NOT_DEFINED, dispatch_request("", ALONG "&VERSION=1.1.1&STYLES=x&FORMAT=image/jpeg"));
    ck_fails(INVALID_FORMAT, dispatch_request("", ALONG "&VERSION=1.1.1&STYLES=&FORMAT=image/bogus"));
}
END_TEST

START_TEST(exceptions_as_images)
{
    static const char *const forms[] = { "INIMAGE", "BLANK", "application/vnd.ogc.se_inimage",
                                         "application/vnd.ogc.se_blank" };
    fixture_setup();
    mc_buf *first = NULL;
    for (int i = 0; i < 4; i++) {
        mc_document body;
        ck_assert_int_eq(
            status_of(
                "", apr_pstrcat(pool, W B "&WIDTH=200&HEIGHT=40&SRS=EPSG:3857&LAYERS=nope&EXCEPTIONS=", forms[i], NULL),
                &body),
            200);
        ck_assert_str_eq(body.mime, "image/jpeg");
        int width, height;
        ck_ok(mc_image_size(&width, &height, body.text->data, body.text->size, pool));
        ck_assert_int_eq(width, 200);
        ck_assert_int_eq(height, 40);
        if (i == 0)
            first = body.text;
        bool same = body.text->size == first->size && memcmp(body.text->data, first->data, first->size) == 0;
        ck_assert_int_eq(same, i % 2 == 0);
    }
    mc_document body;
    ck_assert_int_eq(status_of("", W B "&WIDTH=99999&HEIGHT=1&EXCEPTIONS=BLANK", &body), 400);
    ck_assert_str_eq(body.mime, "application/vnd.ogc.se_xml");
}
END_TEST

START_TEST(forwarding)
{
    fixture_setup();
    ck_assert(fixture_services(
        "<mapcache><service type=\"wms\" enabled=\"true\">"
        "<forwarding_rule "
        "name=\"wfs\"><append_pathinfo>true</append_pathinfo><http><url>http://b/ows?map=1</url></http>"
        "<param name=\"service\" type=\"values\"><value>WFS</value></param></forwarding_rule>"
        "<forwarding_rule name=\"x\"><http><url>http://c/</url></http>"
        "<param name=\"LAYERS\" type=\"regex\"><regex>^x</regex></param></forwarding_rule></service></mapcache>"));
    ck_ok(dispatch_request("/some/path", "SERVICE=wfs&a=b c/%26"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_FORWARD);
    ck_assert_str_eq(service_request.u.forward.rule->name, "wfs");
    ck_assert_str_eq(service_request.u.forward.url, "http://b/ows/some/path?map=1&SERVICE=wfs&a=b+c%2f%26");
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&LAYERS=xyz"));
    ck_assert_str_eq(service_request.u.forward.url, "http://c/?SERVICE=WMS&REQUEST=GetCapabilities&LAYERS=xyz");
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&LAYERS=yx"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_DOCUMENT);
    ck_ok(dispatch_request("", "SERVICE=wfs&filter=a%0Ab"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_FORWARD);
    ck_fails(INVALID_PARAMETER, dispatch_request("", "SERVICE=wfs&filter=a%00b"));
    ck_fails(INVALID_PARAMETER, dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&x=%0A"));
    ck_fails(BAD_REQUEST, dispatch_request("", "foo=bar"));
    ck_assert(!fixture_services("<mapcache>" SERVICE("wms", "<forwarding_rule name=\"r\"/>") "</mapcache>"));
    ck_assert(!fixture_services(
        "<mapcache>" SERVICE("wms", "<forwarding_rule name=\"r\"><http><url>http://b/</url></http>"
                                    "<param name=\"S\" type=\"values\">WMS</param></forwarding_rule>") "</mapcache>"));
}
END_TEST

START_TEST(utm_by_longitude)
{
    fixture_setup();
    mc_tileset *tileset = APR_ARRAY_IDX(service_config.tilesets, 0, mc_tileset *);
    mc_grid *grid = apr_pmemdup(pool, tileset->links[0]->grid, sizeof(*grid));
    grid->srs = "auto:42001,9001,9,45";
    tileset->links[0]->grid = grid;
#define AUTO "&BBOX=0,0,1,1" S "&LAYERS=sq&SRS=AUTO:42001,9001,"
    ck_ok(dispatch_request("", W AUTO "7.5,12"));
    ck_fails(INVALID_CRS, dispatch_request("", W AUTO "7.5,-12"));
    ck_fails(INVALID_CRS, dispatch_request("", W AUTO "5.5,12"));
    ck_fails(INVALID_CRS, dispatch_request("", W AUTO "500,12"));
    ck_fails(INVALID_CRS, dispatch_request("", W AUTO "nan,12"));
}
END_TEST

UNIT_MAIN("wms", a_tile_is_passed_through, maps, refusals, feature_info, override_of_the_format, modes_and_limits,
          strict, version_negotiation, values_that_are_not_read, exceptions_as_images, forwarding, utm_by_longitude)
