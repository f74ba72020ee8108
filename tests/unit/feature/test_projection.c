#include "unit.h"

#include "feature/projection.h"

#define DEGREES_ESRI                                                                                                   \
    "GEOGCS[\"GCS_WGS_1984\",DATUM[\"D_WGS_1984\",SPHEROID[\"WGS_1984\",6378137.0,298.257223563]],"                    \
    "PRIMEM[\"Greenwich\",0.0],UNIT[\"Degree\",0.0174532925199433]]"
#define MERCATOR_ESRI(unit)                                                                                            \
    "PROJCS[\"WGS_1984_Web_Mercator_Auxiliary_Sphere\"," DEGREES_ESRI                                                  \
    ",PROJECTION[\"Mercator_Auxiliary_Sphere\"],PARAMETER[\"False_Easting\",0.0],PARAMETER[\"False_Northing\",0.0],"   \
    "PARAMETER[\"Central_Meridian\",0.0],PARAMETER[\"Standard_Parallel_1\",0.0],"                                      \
    "PARAMETER[\"Auxiliary_Sphere_Type\",0.0],UNIT[" unit "]]"
#define SWISS(code)                                                                                                    \
    "PROJCS[\"CH1903 / LV03\",GEOGCS[\"CH1903\",AUTHORITY[\"EPSG\",\"4149\"]],UNIT[\"metre\",1]" code "]"

/* 1: told to be the same without PROJ, 0: told to differ, -1: not told. */
static const struct {
    const char *a, *b;
    int same;
} pairs[] = {
    { DEGREES_ESRI, "EPSG:4326", 1 },
    { "CRS:84", DEGREES_ESRI, 1 },
    { MERCATOR_ESRI("\"Meter\",1.0"), "EPSG:3857", 1 },
    { "EPSG:900913", MERCATOR_ESRI("\"Meter\",1.0"), 1 },
    { MERCATOR_ESRI("\"Meter\",1.0"), "EPSG:4326", 0 },
    { MERCATOR_ESRI("\"Foot\",0.3048"), "EPSG:3857", -1 },
    { SWISS(",AUTHORITY[\"EPSG\",\"21781\"]"), "EPSG:21781", 1 },
    { SWISS(",AUTHORITY[\"EPSG\",\"21781\"]"), "EPSG:4149", -1 },
    { SWISS(""), "EPSG:4149", -1 }, /* the code of a part is not that of the whole */
    { SWISS(",AUTHORITY[\"EPSG\",\"21781\"],EXTENSION[\"PROJ4\",\"+proj=somerc\"]"), "EPSG:21781", -1 },
    { SWISS(",AUTHORITY[\"EPSG\",\"99999999999\"]"), "EPSG:21781", -1 },
    { "PROJCS[", "EPSG:3857", -1 },
    { "", "EPSG:3857", -1 },
};

START_TEST(told_without_proj)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        ck_assert_msg(mc_projection_same(pairs[i].a, pairs[i].b) == pairs[i].same, "%s, %s", pairs[i].a, pairs[i].b);
        ck_assert_int_eq(mc_projection_same(pairs[i].b, pairs[i].a), pairs[i].same);
    }
}
END_TEST

/* Boxes of polar maps in the CRS of the data. */
static bool
box_of(mc_extent *box, const char *data, const char *map)
{
    mc_projection *projection;
    ck_ok(mc_projection_open(&projection, data, map, pool));
    return mc_projection_box(box, projection, true);
}

START_TEST(boxes_around_a_pole_and_over_the_antimeridian)
{
    mc_extent pole = { -500000, -400000, 600000, 700000 }, strait = { -900000, 2000000, 1000000, 3000000 };
    mc_extent degrees = pole, over = strait, away = { 100000, -3000000, 1000000, -2000000 };
    ck_assert(!box_of(&pole, "EPSG:3857", "EPSG:3031")); /* the pole is nowhere: no limit */
    ck_assert(box_of(&degrees, "EPSG:4326", "EPSG:3031"));
    ck_assert(degrees.miny == -90 && degrees.minx == -180 && degrees.maxx == 180 && degrees.maxy > -90);
    ck_assert(box_of(&strait, "EPSG:3857", "EPSG:3995")); /* 180 degrees are in the middle of its width */
    ck_assert(strait.minx <= -20037508 && strait.maxx >= 20037508 && strait.miny > 5e6 && strait.maxy < 40e6);
    ck_assert(box_of(&over, "EPSG:4326", "EPSG:3995"));
    ck_assert(over.minx == -180 && over.maxx == 180);
    ck_assert(box_of(&away, "EPSG:3857", "EPSG:3995"));
    ck_assert(away.minx > 0 && away.maxx < 6e6);
}
END_TEST

UNIT_MAIN("projection", told_without_proj, boxes_around_a_pole_and_over_the_antimeridian)
