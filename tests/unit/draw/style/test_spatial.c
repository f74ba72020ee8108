#include "styles.h"

#include <apr_hash.h>
#include <string.h>

#include "draw/style/expression.h"
#include "draw/style/spatial.h"

/* A geometry from text: P, L or A, then x,y pairs in pixels; H is a hole. */
static mc_geometry *
geometry_of(const char *text)
{
    mc_geometry *geometry = apr_pcalloc(pool, sizeof(*geometry));
    mc_geometry_clear(geometry);
    char *copy = apr_pstrdup(pool, text), *state;
    mc_shape *shape = NULL;
    bool hole = false;
    for (char *word = apr_strtok(copy, " ", &state);; word = apr_strtok(NULL, " ", &state)) {
        if (word == NULL || strchr("PLAH", *word) != NULL) {
            if (shape != NULL && shape->kind == MC_SHAPE_POLYGONS)
                mc_shape_end_ring(shape, hole);
            else if (shape != NULL)
                mc_shape_end_part(shape);
            if (word == NULL)
                return geometry;
            hole = *word == 'H';
            shape = &geometry->shapes[*word == 'P'   ? MC_SHAPE_POINTS
                                      : *word == 'L' ? MC_SHAPE_LINES
                                                     : MC_SHAPE_POLYGONS];
        } else {
            double x, y;
            ck_assert_int_eq(sscanf(word, "%lf,%lf", &x, &y), 2);
            mc_shape_add(shape, (int32_t)(x * MC_SUBPIXELS), (int32_t)(y * MC_SUBPIXELS));
        }
    }
}

#define SQUARE "A 0,0 10,0 10,10 0,10"
#define FRAME SQUARE " H 2,2 8,2 8,8 2,8"

START_TEST(comparisons)
{
    static const struct {
        const char *a, *b;
        bool intersects, within, contains;
    } cases[] = {
        { "P 5,5", SQUARE, true, true, false },
        { "P 0,5", SQUARE, true, true, false },
        { "P 11,5", SQUARE, false, false, false },
        { "P 5,5", FRAME, false, false, false },
        { "L 1,1 9,1", SQUARE, true, true, false },
        { "L 1,1 12,1", SQUARE, true, false, false },
        { "L -5,5 15,5", SQUARE, true, false, false },
        { "L 1,5 9,5", FRAME, true, false, false },
        { "L 3,5 7,5", FRAME, false, false, false },
        { "L 0,0 10,0", SQUARE, true, true, false },
        { "L 0,12 12,0", "A 0,0 10,0 10,10", true, false, false },
        { "A 2,2 4,2 4,4 2,4", SQUARE, true, true, false },
        { SQUARE, "A 2,2 4,2 4,4 2,4", true, false, true },
        { SQUARE, SQUARE, true, true, true },
        { SQUARE, FRAME, true, false, true },
        { "A 1,1 9,1 9,9 1,9", FRAME, true, false, false },
        { "A 3,3 7,3 7,7 3,7", FRAME, false, false, false },
        { "A 2,2 8,2 8,8 2,8", FRAME, true, false, false },
        { "A 10,0 20,0 20,10 10,10", SQUARE, true, false, false },
        { "A 11,0 20,0 20,10 11,10", SQUARE, false, false, false },
        { SQUARE, "P 5,5", true, false, true },
        { SQUARE, "L 1,1 3,3", true, false, true },
        { "L 0,0 10,10", "L 0,10 10,0", true, false, false },
        { "L 0,0 10,10", "L 0,1 10,11", false, false, false },
        { "L 0,0 9,9 P 30,30", "P 30,30", true, false, false },
        { "P 1,1", "P 1,1", true, false, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mc_geometry *a = geometry_of(cases[i].a), *b = geometry_of(cases[i].b);
        ck_assert_msg(mc_spatial_compare(MC_SPATIAL_INTERSECTS, a, b, 0) == cases[i].intersects, "%s | %s", cases[i].a,
                      cases[i].b);
        ck_assert_msg(mc_spatial_compare(MC_SPATIAL_INTERSECTS, b, a, 0) == cases[i].intersects, "%s | %s", cases[i].b,
                      cases[i].a);
        ck_assert(mc_spatial_compare(MC_SPATIAL_DISJOINT, a, b, 0) != cases[i].intersects);
        ck_assert_msg(mc_spatial_compare(MC_SPATIAL_WITHIN, a, b, 0) == cases[i].within, "%s in %s", cases[i].a,
                      cases[i].b);
        ck_assert_msg(mc_spatial_compare(MC_SPATIAL_CONTAINS, a, b, 0) == cases[i].contains, "%s around %s", cases[i].a,
                      cases[i].b);
        mc_geometry_free(a);
        mc_geometry_free(b);
    }
}
END_TEST

START_TEST(distances)
{
    static const struct {
        const char *a, *b;
        double distance;
    } cases[] = { { "P 0,0", "P 3,4", 5 },          { "P 5,13", SQUARE, 3 },          { "P 5,5", FRAME, 3 },
                  { "L 12,0 12,10", SQUARE, 2 },    { "L 0,0 10,0", "L 5,3 5,9", 3 }, { "P 5,5", SQUARE, 0 },
                  { "L -5,5 15,5", "L 5,0 5,9", 0 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mc_geometry *a = geometry_of(cases[i].a), *b = geometry_of(cases[i].b);
        double d = cases[i].distance * MC_SUBPIXELS;
        ck_assert_msg(mc_spatial_compare(MC_SPATIAL_NEARER, a, b, d), "%s | %s", cases[i].a, cases[i].b);
        ck_assert(!mc_spatial_compare(MC_SPATIAL_FARTHER, b, a, d));
        if (d > 0)
            ck_assert_msg(mc_spatial_compare(MC_SPATIAL_FARTHER, a, b, d - 1), "%s | %s", cases[i].a, cases[i].b);
        mc_geometry_free(a);
        mc_geometry_free(b);
    }
}
END_TEST

/* A map of EPSG:3857 with 10 m pixels, its corner at (1000, 2000). */
static bool
matches(const char *condition, const mc_geometry *geometry)
{
    const mc_style *style = style_of(apr_pstrcat(pool, "<Rule><Filter>", condition, "</Filter></Rule>", NULL));
    const mc_feature_query map = { .srs = "EPSG:3857",
                                   .resolution = 10,
                                   .scale = 10 / 0.00028,
                                   .pixel_grid = { .x0 = 1000, .y0 = 2000, .per_x = 0.1, .per_y = 0.1 } };
    mc_geometry copy = *geometry;
    const mc_feature feature = { .id = 12, .geometry = &copy, .query = &map, .placed = apr_hash_make(pool) };
    ck_assert_msg(style != NULL && count_complaints(MC_NOT_BUILT) == 0, "%s: %s", condition, all_complaints());
    return mc_filter_matches(style->passes[0].rules[0].filter, &feature, pool);
}

START_TEST(gml_of_all_forms)
{
#define G "<ogc:PropertyName>geom</ogc:PropertyName>"
    static const struct {
        const char *condition;
        bool fits;
    } cases[] = {
        /* The point of the feature is (1055, 1945). */
        { "<BBOX>" G "<gml:Box><gml:coordinates>1050,1940 1060,1950</gml:coordinates></gml:Box></BBOX>", true },
        { "<BBOX>" G "<gml:Box srsName='EPSG:3857'><gml:coord><gml:X>0</gml:X><gml:Y>0</gml:Y></gml:coord><gml:coord>"
          "<gml:X>1050</gml:X><gml:Y>3000</gml:Y></gml:coord></gml:Box></BBOX>",
          false },
        { "<BBOX><gml:Envelope><gml:lowerCorner>1050 1940</gml:lowerCorner><gml:upperCorner>1060 1950"
          "</gml:upperCorner></gml:Envelope></BBOX>",
          true },
        { "<Not><Disjoint>" G "<gml:Point><gml:pos>1055 1945</gml:pos></gml:Point></Disjoint></Not>", true },
        { "<Intersects>" G "<gml:LineString><gml:posList>1055 1900 1055 2000</gml:posList></gml:LineString>"
          "</Intersects>",
          true },
        { "<Within>" G "<gml:Polygon><gml:outerBoundaryIs><gml:LinearRing><gml:coordinates>1050,1940 1060,1940 "
          "1060,1950 1050,1940</gml:coordinates></gml:LinearRing></gml:outerBoundaryIs></gml:Polygon></Within>",
          true },
        { "<Within>" G "<gml:Polygon><gml:exterior><gml:LinearRing><gml:posList srsDimension='3'>1000 1900 5 1100 1900 "
          "5 1100 2000 5 1000 2000 5 1000 1900 5</gml:posList></gml:LinearRing></gml:exterior><gml:interior>"
          "<gml:LinearRing><gml:posList>1050 1940 1060 1940 1060 1950 1050 1950 1050 1940</gml:posList>"
          "</gml:LinearRing></gml:interior></gml:Polygon></Within>",
          false },
        { "<Intersects>" G "<gml:MultiSurface><gml:surfaceMember><gml:Polygon><gml:exterior><gml:LinearRing>"
          "<gml:pos>1050 1940</gml:pos><gml:pos>1060 1940</gml:pos><gml:pos>1060 1950</gml:pos></gml:LinearRing>"
          "</gml:exterior></gml:Polygon></gml:surfaceMember></gml:MultiSurface></Intersects>",
          true },
        { "<DWithin>" G "<gml:Point><gml:coordinates>1055,2045</gml:coordinates></gml:Point>"
          "<Distance units='m'>100.1</Distance></DWithin>",
          true },
        { "<Beyond>" G "<gml:Point><gml:coordinates>1055,2045</gml:coordinates></gml:Point>"
          "<Distance units='http://www.opengis.net/def/uom/m'>99</Distance></Beyond>",
          true },
        { "<DWithin>" G "<gml:Point><gml:coordinates>1055,2045</gml:coordinates></gml:Point>"
          "<Distance units='feet'>320</Distance></DWithin>",
          false },
        { "<DWithin>" G "<gml:Point><gml:coordinates>1055,2045</gml:coordinates></gml:Point>"
          "<Distance uom='urn:ogc:def:uom:EPSG::9002'>330</Distance></DWithin>",
          true },
        { "<DWithin>" G "<gml:Point><gml:coordinates>1055,2045</gml:coordinates></gml:Point>"
          "<Distance units='kilometers'>0.101</Distance></DWithin>",
          true },
        /* WGS 84 is transformed by formula; a URN has the latitude first. */
        { "<BBOX>" G "<gml:Envelope srsName='urn:ogc:def:crs:EPSG::4326'><gml:lowerCorner>0.0174 0.0094"
          "</gml:lowerCorner><gml:upperCorner>0.0176 0.0096</gml:upperCorner></gml:Envelope></BBOX>",
          true },
        { "<BBOX>" G "<gml:Box srsName='EPSG:4326'><gml:coordinates>0.0094,0.0174 0.0096,0.0176</gml:coordinates>"
          "</gml:Box></BBOX>",
          true },
        { "<ogc:FeatureId fid='roads.12'/>", true },
        { "<ogc:FeatureId fid='roads.11'/><ogc:FeatureId fid='12'/>", true },
        { "<fes:ResourceId xmlns:fes='f' rid='roads.13'/>", false },
    };
    mc_geometry *point = geometry_of("P 5.5,5.5");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(matches(cases[i].condition, point) == cases[i].fits, "%s", cases[i].condition);
    mc_geometry_free(point);
}
END_TEST

START_TEST(what_cannot_be_told_is_named)
{
    static const char *const conditions[] = {
        "<Touches>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point></Touches>",
        "<Crosses>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point></Crosses>",
        "<Within>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point></Within>",
        "<Intersects>" G "</Intersects>",
        "<Intersects>" G "<gml:Point><gml:pos>1</gml:pos></gml:Point></Intersects>",
        "<Intersects>" G "<gml:Point><gml:pos>1 nan</gml:pos></gml:Point></Intersects>",
        "<Intersects>" G "<gml:Arc><gml:posList>1 2 3 4 5 6</gml:posList></gml:Arc></Intersects>",
        "<DWithin>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point></DWithin>",
        "<DWithin>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point><Distance units='m'>-1</Distance></DWithin>",
        "<DWithin>" G "<gml:Point><gml:pos>1 2</gml:pos></gml:Point><Distance units='cubits'>1</Distance></DWithin>",
        "<PropertyIsLike wildCard='%%' singleChar='_' escape='!'>" G "<Literal>a</Literal></PropertyIsLike>",
        "<PropertyIsEqualTo>" G "<Literal>a</Literal><Literal>b</Literal></PropertyIsEqualTo>",
        "<BBOX><ogc:Function name='buffer'>" G "</ogc:Function><gml:Point><gml:pos>1 2</gml:pos></gml:Point></BBOX>",
        "<ogc:FeatureId fid='roads.twelve'/>",
    };
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        const mc_style *style = style_of(apr_pstrcat(pool, "<Rule><Filter>", conditions[i], "</Filter></Rule>", NULL));
        ck_assert_ptr_nonnull(style);
        ck_assert_int_eq(style->passes[0].rule_count, 0);
        ck_assert_msg(count_complaints(MC_NOT_BUILT) == 1, "%s: %s", conditions[i], all_complaints());
    }
}
END_TEST

UNIT_MAIN("spatial", comparisons, distances, gml_of_all_forms, what_cannot_be_told_is_named)
