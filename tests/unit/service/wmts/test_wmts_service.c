/* WMTS as key-value pairs and as paths, and its reports. */
#include "service_fixture.h"

#define T "SERVICE=WMTS&REQUEST=GetTile&"
#define L T "LAYER=sq&"
#define M L "TILEMATRIXSET=GoogleMapsCompatible&"
#define I "SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=base&TILEMATRIXSET=WGS84&TILEMATRIX=1&TILEROW=0&TILECOL=1&"
#define STRICT "SERVICE=WMTS&REQUEST=GetTile&LAYER=base&TILEMATRIXSET=WGS84&TILEMATRIX=1&TILEROW=0&TILECOL=1&"

START_TEST(tiles)
{
    fixture_setup();
    ck_ok(dispatch_request("/wmts", M "tileMatrix=1&TILEROW=0&TILECOL=1"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_TILE);
    ck_assert_int_eq(service_request.u.tile.tiles[0].y, 1);
    ck_assert_int_eq(service_request.u.tile.tiles[0].x, 1);
    ck_ok(dispatch_request("/wmts", M "TILEMATRIX=1&TILEROW=0&TILECOL=1&STYLE=&FORMAT=image/jpeg"));
    ck_ok(dispatch_request("/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/0/1.png", NULL));
    ck_assert_int_eq(service_request.u.tile.tiles[0].y, 1);
    ck_ok(dispatch_request("/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/0/1", NULL));
    ck_ok(dispatch_request("/wmts/1.0.0/catalog/default/red/default/GoogleMapsCompatible/1/0/1.jpg", NULL));
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "red");
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[1], "2020");
    ck_ok(dispatch_request("/wmts",
                           "SERVICE=WMTS&REQUEST=GetTile&LAYER=catalog&TILEMATRIXSET=GoogleMapsCompatible&TILEMATRIX=0&"
                           "TILEROW=0&TILECOL=0&Product=blue"));
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[0], "blue");
    ck_assert_str_eq(service_request.u.tile.tiles[0].values[1], "2020");
}
END_TEST

START_TEST(feature_info)
{
    fixture_setup();
    ck_ok(dispatch_request("/wmts", I "I=255&J=0&INFOFORMAT=text/html"));
    ck_assert_int_eq(service_request.kind, MC_REQUEST_INFO);
    ck_assert_int_eq(service_request.u.info.questions[0].info.x, 255);
    ck_assert_int_eq(service_request.u.info.questions[0].info.y, 0);
    ck_assert_str_eq(service_request.u.info.questions[0].info.format, "text/html");
    ck_assert_double_eq_tol(service_request.u.info.questions[0].info.map.box.maxy, 90, 1e-9);
    ck_ok(dispatch_request("/wmts/1.0.0/base/default/WGS84/1/0/1/7/9.1", NULL));
    ck_assert_int_eq(service_request.u.info.questions[0].info.x, 9);
    ck_assert_int_eq(service_request.u.info.questions[0].info.y, 7);
    ck_assert_str_eq(service_request.u.info.questions[0].info.format, "text/html");
}
END_TEST

START_TEST(refusals)
{
    static const char ows[] = "application/xml";
    static const char plain[] = "text/plain";
    static const refused_row rows[] = {
        { "/wmts", "", 404, plain, "version" },
        { "/wmts/1.0.0", "", 404, plain, "layer" },
        { "/wmts/1.0.0/sq", "", 404, plain, "style" },
        { "/wmts/2.0.0/sq/default", "", 404, plain, "2.0.0" },
        { "/wmts/1.0.0/other.xml", "", 404, plain, "other.xml" },
        { "/wmts/1.0.0/nope/default/g/0/0/0.png", "", 404, plain, "nope" },
        { "/wmts/1.0.0/sq/other/GoogleMapsCompatible/0/0/0.png", "", 404, plain, "other" },
        { "/wmts/1.0.0/sq//GoogleMapsCompatible/0/0/0.png", "", 404, plain, "style" },
        { "/wmts/1.0.0/sq/default/nope/0/0/0.png", "", 404, plain, "nope" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/99/0/0.png", "", 404, plain, "99" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/-1/0/0.png", "", 404, plain, "-1" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/5/0.png", "", 404, plain, "5" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/-1/0.png", "", 404, plain, "-1" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/0/x.png", "", 404, plain, "x.png" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/0/0x.png", "", 404, plain, "0x.png" },
        { "/wmts/1.0.0/sq/default/GoogleMapsCompatible/1/0/0.png/extra", "", 404, plain, "elements" },
        { "/wmts/1.0.0/base/default/WGS84/1/0/1/7/9.7", "", 404, plain, "7" },
        { "/wmts/1.0.0/base/default/WGS84/1/0/1/256/9.0", "", 404, plain, "J 256" },
        { "/wmts/1.0.0/catalog/default/red", "", 404, plain, "TIME" },
        { "/wmts/1.0.0/absent/default/WGS84/0/0/0.png", "", 503, plain, "absent" },
        { "/wmts", "REQUEST=GetTile", 400, ows, "locator=\"service\"" },
        { "/wmts", "SERVICE=WMS", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"service\"" },
        { "/wmts", "SERVICE=WMTS", 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"request\"" },
        { "/wmts", "SERVICE=WMTS&REQUEST=x", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"request\"" },
        { "/wmts", T, 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"layer\"" },
        { "/wmts", T "LAYER=<script>", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"layer\"" },
        { "/wmts", L, 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"TileMatrixSet\"" },
        { "/wmts", L "TILEMATRIXSET=n", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"TileMatrixSet\"" },
        { "/wmts", M, 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"TileMatrix\"" },
        { "/wmts", M "TILEMATRIX=x", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"TileMatrix\"" },
        { "/wmts", M "TILEMATRIX=22", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"TileMatrix\"" },
        { "/wmts", M "TILEMATRIX=1", 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"TileRow\"" },
        { "/wmts", M "TILEMATRIX=1&TILEROW=2&TILECOL=0", 400, ows, "\"TileOutOfRange\" locator=\"TileRow\"" },
        { "/wmts", M "TILEMATRIX=1&TILEROW=0&TILECOL=2", 400, ows, "\"TileOutOfRange\" locator=\"TileCol\"" },
        { "/wmts", M "TILEMATRIX=1&TILEROW=0&TILECOL=99999999999", 400, ows, "locator=\"TileCol\"" },
        { "/wmts", L "STYLE=nope", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"style\"" },
        { "/wmts", L "FORMAT=image/bogus", 400, ows, "locator=\"TileMatrixSet\"" },
        { "/wmts", L "VERSION=1.1.0", 400, ows, "locator=\"TileMatrixSet\"" },
        { "/wmts", L "VERSION=one", 400, ows, "exceptionCode=\"InvalidParameterValue\" locator=\"version\"" },
        { "/wmts", I "I=500&J=0&INFOFORMAT=text/html", 400, ows, "\"PointIJOutOfRange\" locator=\"I\"" },
        { "/wmts", I "I=0&J=256&INFOFORMAT=text/html", 400, ows, "\"TileOutOfRange\" locator=\"J\"" },
        { "/wmts", I "I=0&INFOFORMAT=text/html", 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"J\"" },
        { "/wmts", I "I=0&J=0", 400, ows, "exceptionCode=\"MissingParameterValue\" locator=\"infoformat\"" },
        { "/wmts", I "I=0&J=0&INFOFORMAT=a/b", 400, ows, "\"InvalidParameterValue\" locator=\"infoformat\"" },
        { "/wmts",
          "SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=sq&TILEMATRIXSET=GoogleMapsCompatible&TILEMATRIX=0&"
          "TILEROW=0&TILECOL=0&I=0&J=0&INFOFORMAT=text/html",
          501, ows, "exceptionCode=\"OperationNotSupported\" locator=\"GetFeatureInfo\"><ExceptionText>" },
        { "/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&ACCEPTVERSIONS=2.0.0,3.0.0", 400, ows,
          "exceptionCode=\"VersionNegotiationFailed\"><ExceptionText>" },
        { "/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE=2023-11-14T22:13:21.000000Z", 400, ows,
          "exceptionCode=\"InvalidUpdateSequence\"><ExceptionText>" },
        { "/wmts", T "LAYER=absent", 503, ows, "NoApplicableCode" },
    };
    fixture_setup();
    check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

START_TEST(strict)
{
    static const refused_row rows[] = {
        { "/wmts", STRICT, 400, "application/xml", "locator=\"version\"" },
        { "/wmts", STRICT "VERSION=1.0.0", 400, "application/xml", "locator=\"style\"" },
        { "/wmts", STRICT "VERSION=1.0.0&STYLE=default", 400, "application/xml", "locator=\"format\"" },
        { "/wmts", STRICT "VERSION=1.0.0&STYLE=default&FORMAT=image/jpeg", 400, "application/xml",
          "locator=\"format\"" },
        { "/wmts", STRICT "VERSION=1.1.0", 400, "application/xml", "locator=\"version\"" },
        { "/wmts/1.0.0/base/default/WGS84/1/0/1.jpg", "", 404, "text/plain", "jpg" },
    };
    fixture_setup();
    ck_assert(fixture_services("<mapcache>" SERVICE("wmts", "<strict>true</strict>") "</mapcache>"));
    check_refused(rows, sizeof(rows) / sizeof(rows[0]));
    ck_ok(dispatch_request("/wmts", STRICT "VERSION=1.0.0&STYLE=default&FORMAT=image/png"));
    ck_ok(dispatch_request("/wmts/1.0.0/base/default/WGS84/1/0/1.png", NULL));
}
END_TEST

START_TEST(limits_and_scale_sets)
{
    fixture_setup();
    mc_tileset *tileset = APR_ARRAY_IDX(service_config.tilesets, 0, mc_tileset *);
    tileset->links[0]->restricted = true;
    tileset->links[0]->maxzoom = 1;
    mc_tile_range *limits = (mc_tile_range *)tileset->links[0]->limits;
    limits[1] = (mc_tile_range){ 0, 0, 1, 1 }; /* the lower left tile: row 1 from the top */
    ck_ok(dispatch_request("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities"));
    const char *text = document_text();
    ck_assert_ptr_nonnull(strstr(text,
                                 "<TileMatrixLimits><TileMatrix>1</TileMatrix><MinTileRow>1</MinTileRow>"
                                 "<MaxTileRow>1</MaxTileRow><MinTileCol>0</MinTileCol><MaxTileCol>0</MaxTileCol>"));
    ck_assert_ptr_null(strstr(text, "<TileMatrix>2</TileMatrix>"));
    ck_assert_ptr_nonnull(strstr(text, "urn:ogc:def:crs:EPSG:6.18:3:3857</ows:SupportedCRS><WellKnownScaleSet>"
                                       "urn:ogc:def:wkss:OGC:1.0:GoogleMapsCompatible"));
    ck_assert_ptr_null(strstr(text, "GoogleCRS84Quad</WellKnownScaleSet>"));
    ck_assert_ptr_nonnull(strstr(text, "<ScaleDenominator>279541132.01435887813568115234</ScaleDenominator>"
                                       "<TopLeftCorner>90.000000 -180.000000</TopLeftCorner>"));
    ck_ok(dispatch_request("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE=2023-11-14T22:13:20.000000Z"));
    ck_assert_ptr_null(strstr(document_text(), "Contents"));
}
END_TEST

START_TEST(accepted_types)
{
    fixture_setup();
    ck_ok(dispatch_request("/wmts/1.0.0/WMTSCapabilities.xml", NULL));
    ck_assert_str_eq(service_request.u.document.mime, "application/xml");
    apr_table_set(service_headers, "Accept", "text/html, text/xml;q=0.5");
    ck_ok(dispatch_request("/wmts/1.0.0/WMTSCapabilities.xml", NULL));
    ck_assert_str_eq(service_request.u.document.mime, "text/xml");
    apr_table_set(service_headers, "Accept", "image/png");
    ck_fails(NOT_ACCEPTABLE, dispatch_request("/wmts/1.0.0/WMTSCapabilities.xml", NULL));
    apr_table_set(service_headers, "Accept", "image/png, */*;q=0");
    ck_fails(NOT_ACCEPTABLE, dispatch_request("/wmts/1.0.0/WMTSCapabilities.xml", NULL));
}
END_TEST

UNIT_MAIN("wmts", tiles, feature_info, refusals, strict, limits_and_scale_sets, accepted_types)
