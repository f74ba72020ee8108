#include "unit.h"

#include "mapcache/grid.h"

START_TEST(axis_order_follows_the_registry)
{
    static const int swapped[] = { 4326, 4258, 4269, 31467, 31468, 3035, 3034, 2393, 32661, 4979, 2180 };
    static const int straight[] = { 3857, 2056, 21781, 25832, 27700, 2154, 28992, 3031, 3995, 900913, 0, -1, 99999999 };
    for (size_t i = 0; i < sizeof(straight) / sizeof(straight[0]); i++)
        ck_assert_msg(!mc_crs_axes_swapped(straight[i]), "%d", straight[i]);
    for (size_t i = 0; i < sizeof(swapped) / sizeof(swapped[0]); i++)
        ck_assert_msg(mc_crs_axes_swapped(swapped[i]), "%d", swapped[i]);
    ck_assert(!mc_crs_axes_swapped(7415)); /* Amersfoort / RD New + NAP: easting first */
    ck_assert(mc_crs_axes_swapped(9518));  /* compound: WGS 84 + EGM2008 height */
}
END_TEST

START_TEST(codes_are_found_in_every_form)
{
    bool xy;
    ck_assert_int_eq(mc_crs_epsg("EPSG:4326", &xy), 4326);
    ck_assert(!xy);
    ck_assert_int_eq(mc_crs_epsg("epsg:3857", NULL), 3857);
    ck_assert_int_eq(mc_crs_epsg("urn:ogc:def:crs:EPSG::31467", &xy), 31467);
    ck_assert_int_eq(mc_crs_epsg("urn:ogc:def:crs:EPSG:6.3:4326", &xy), 4326);
    ck_assert_int_eq(mc_crs_epsg("http://www.opengis.net/def/crs/EPSG/0/2056", &xy), 2056);
    ck_assert_int_eq(mc_crs_epsg("CRS:84", &xy), 4326);
    ck_assert(xy);
    ck_assert_int_eq(mc_crs_epsg("OGC:CRS84", &xy), 4326);
    ck_assert(xy);
    ck_assert_int_eq(mc_crs_epsg("urn:ogc:def:crs:OGC:1.3:CRS84", &xy), 4326);
    ck_assert(xy);
}
END_TEST

START_TEST(other_texts_have_no_code)
{
    static const char *const texts[] = { "",
                                         "EPSG:",
                                         "EPSG:4326x",
                                         "EPSG: 4326",
                                         "EPSG:-4326",
                                         "ESRI:102100",
                                         "EPSG:+4326",
                                         "4326",
                                         "EPSG:0",
                                         "auto:42001,9001,9,45",
                                         "urn:ogc:def:crs:EPSG",
                                         "urn:ogc:def:crs:EPSG:4326",
                                         "EPSG:99999999999999999999" };
    bool xy = true;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(mc_crs_epsg(texts[i], &xy) == 0 && !xy, "%s", texts[i]);
    ck_assert_int_eq(mc_crs_epsg(NULL, &xy), 0);
}
END_TEST

UNIT_MAIN("crs", axis_order_follows_the_registry, codes_are_found_in_every_form, other_texts_have_no_code)
