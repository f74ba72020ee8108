#include "unit.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "vector/geometry/cells.h"
#include "vector/geometry/warp.h"

/* CRSs by a name that only PROJ can read: nothing goes by formula. */
static const char degrees[] = "+proj=longlat +datum=WGS84 +no_defs +type=crs";
static const char mercator[] = "+proj=webmerc +datum=WGS84 +type=crs";

static mc_projection *
opened(const char *from, const char *to)
{
    mc_projection *projection;
    ck_ok(mc_projection_open(&projection, from, to, pool));
    ck_assert_ptr_nonnull(projection);
    return projection;
}

static double
random_between(double low, double high)
{
    return low + (high - low) * rand() / RAND_MAX;
}

START_TEST(formulas_are_exact)
{
    const double finest = 0.0373 / 256; /* 1/256 pixel of level 22 */
    mc_projection *ours = opened("EPSG:4326", "EPSG:3857"), *theirs = opened(degrees, mercator);
    mc_projection *back = opened("EPSG:900913", "CRS:84");
    for (int i = 0; i < 20000; i++) {
        const double place[2] = { random_between(-180, 180), random_between(-85.06, 85.06) };
        double a[2], b[2];
        memcpy(a, place, sizeof(a));
        memcpy(b, place, sizeof(b));
        mc_projection_points(ours, a, 1);
        mc_projection_points(theirs, b, 1);
        ck_assert_double_lt(hypot(a[0] - b[0], a[1] - b[1]), finest);
        mc_projection_points(back, a, 1);
        ck_assert_double_lt(hypot(a[0] - place[0], a[1] - place[1]) * 111319, finest);
    }
    double pole[2] = { 10, -90 };
    mc_projection_points(ours, pole, 1);
    ck_assert(isfinite(pole[1]) && pole[1] < -30000000);
}
END_TEST

START_TEST(names_of_one_crs)
{
    static const char *const same[][2] = {
        { "EPSG:3857", "epsg:3857" }, { "EPSG:3857", "EPSG:900913" },
        { "EPSG:4326", "CRS:84" },    { "urn:ogc:def:crs:EPSG::2056", "EPSG:2056" },
        { degrees, "EPSG:4326" },     { "EPSG:2056", "EPSG:2056" },
    };
    mc_projection *projection;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        ck_ok(mc_projection_open(&projection, same[i][0], same[i][1], pool));
        ck_assert_ptr_null(projection);
    }
    ck_fails(CONFIG, mc_projection_open(&projection, "EPSG:999999", "EPSG:3857", pool));
    ck_fails(CONFIG, mc_projection_open(&projection, "EPSG:2056", "PROJCS[\"no such thing\"]", pool));
    ck_fails(CONFIG, mc_projection_open(&projection, "/etc/passwd", "EPSG:3857", pool));
}
END_TEST

/* A name counts where it is exactly one's name, each time alike; PROJ itself guesses. */
START_TEST(names_are_not_guessed)
{
    static const char *const guesses[] = { "EPSG43:26", "wgs",        "EPSG4326", "EPSG:",
                                           ":4326",     "EPSG:4326x", "",         "no:where" };
    mc_projection *projection;
    for (int again = 0; again < 2; again++) {
        opened(degrees, "WGS 84 / UTM zone 32N");
        opened(degrees, "CH1903+ / LV95");
        opened("ESRI:54030", degrees);
        for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++)
            ck_fails(CONFIG, mc_projection_open(&projection, guesses[i], "EPSG:2056", pool));
    }
}
END_TEST

/* Every point is where PROJ puts it, by less than an eighth of a pixel, and neighbours of one cell make straight lines.
 */
START_TEST(cells_are_as_good_as_their_promise)
{
    static const struct {
        const char *from, *to;
        mc_extent box; /* of the data */
    } pairs[] = {
        { "EPSG:2056", "EPSG:3857", { 2480000, 1070000, 2840000, 1300000 } },
        { "EPSG:2056", "EPSG:4326", { 2480000, 1070000, 2840000, 1300000 } },
        { "EPSG:4326", "EPSG:3035", { -10, 35, 35, 71 } },
        { "EPSG:32632", "EPSG:3857", { 300000, 5000000, 900000, 6500000 } },
        { "EPSG:4326", "EPSG:3995", { -180, 60, 180, 89 } },
    };
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++)
        for (double zoom = 1; zoom < 10000; zoom *= 20) {
            mc_projection *projection = opened(pairs[p].from, pairs[p].to);
            const mc_extent *b = &pairs[p].box;
            mc_extent box = *b;
            ck_assert(mc_projection_box(&box, projection, false));
            mc_pixel_grid pixel_grid = { .x0 = box.minx, .y0 = box.maxy, .per_x = 1000 * zoom / (box.maxx - box.minx) };
            pixel_grid.per_y = pixel_grid.per_x;
            mc_cells *cells = mc_cells_create(projection, &pixel_grid, HUGE_VAL, pool);
            double west = random_between(b->minx, b->maxx), south = random_between(b->miny, b->maxy);
            double worst = 0;
            int placed = 0;
            for (int i = 0; i < 2000; i++) {
                double x = fmin(b->maxx, west + random_between(0, (b->maxx - b->minx) / zoom));
                double y = fmin(b->maxy, south + random_between(0, (b->maxy - b->miny) / zoom));
                double exact[2] = { x, y }, px, py;
                int cell;
                if (!mc_cells_place(cells, x, y, &px, &py, &cell))
                    continue;
                placed++;
                mc_projection_points(projection, exact, 1);
                worst = fmax(worst, hypot(px - (exact[0] - pixel_grid.x0) * pixel_grid.per_x,
                                          py - (pixel_grid.y0 - exact[1]) * pixel_grid.per_y));
            }
            ck_assert_msg(worst < 0.125, "%s to %s: %f pixels", pairs[p].from, pairs[p].to, worst);
            ck_assert_int_gt(placed, 1900);
        }
}
END_TEST

/* How many vertices stand between the ends of a line of the data. */
static int
vertices_of(const char *from, const char *to, const double *line, const mc_pixel_grid *level)
{
    mc_shape shape = { .kind = MC_SHAPE_LINES };
    mc_pixel_grid pixel_grid = *level;
    mc_projection *projection = opened(from, to);
    pixel_grid.warp = mc_warp_create(projection, &pixel_grid, mc_projection_turn(to), pool);
    memcpy(mc_warp_vertices(pixel_grid.warp, 2), line, sizeof(double) * 4);
    ck_assert(mc_warp_add(&shape, &pixel_grid, 2, MC_WARP_AS_IS));
    int count = shape.point_count;
    mc_shape_free(&shape);
    return count;
}

/* A ring of the data, as it comes out on a level of ten pixels a degree whose first pixel is the antimeridian. */
static mc_shape
warped_ring(const char *from, const double *ring, size_t count)
{
    mc_shape shape = { .kind = MC_SHAPE_POLYGONS };
    mc_pixel_grid pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 10, .per_y = 10 };
    mc_projection *projection = opened(from, "EPSG:4326");
    pixel_grid.warp = mc_warp_create(projection, &pixel_grid, 360, pool);
    memcpy(mc_warp_vertices(pixel_grid.warp, count), ring, sizeof(double) * 2 * count);
    ck_assert(mc_warp_add(&shape, &pixel_grid, count, MC_WARP_OUTER));
    mc_shape_end_ring(&shape, false);
    return shape;
}

static void
ck_columns(const mc_shape *shape, int part, double west, double east)
{
    int32_t minx = INT32_MAX, maxx = INT32_MIN;
    for (int i = mc_shape_part_begin(shape, part); i < shape->ends[part]; i++) {
        minx = shape->points[i].x < minx ? shape->points[i].x : minx;
        maxx = shape->points[i].x > maxx ? shape->points[i].x : maxx;
    }
    ck_assert_double_eq_tol(minx / 256.0, west, 0.1);
    ck_assert_double_eq_tol(maxx / 256.0, east, 0.1);
    ck_assert_double_gt(mc_shape_twice_area(shape->points + mc_shape_part_begin(shape, part),
                                            shape->ends[part] - mc_shape_part_begin(shape, part)),
                        0);
}

/* In a Mercator whose middle is 150 degrees east the antimeridian is nothing special. */
START_TEST(rings_across_the_antimeridian_stay_whole)
{
    const double degree = 6378137 * M_PI / 180;
    const double across[10] = { 20 * degree, 0, 40 * degree, 0, 40 * degree, 1e6, 20 * degree, 1e6, 20 * degree, 0 };
    mc_shape shape = warped_ring("EPSG:3832", across, 5);
    ck_assert_int_eq(shape.part_count, 2);
    ck_columns(&shape, 0, 3500, 3700); /* 170 to 190 degrees */
    ck_columns(&shape, 1, -100, 100);  /* seen from its other side */
    mc_shape_free(&shape);
    const double inside[10] = { 0, 0, 20 * degree, 0, 20 * degree, 1e6, 0, 1e6, 0, 0 };
    shape = warped_ring("EPSG:3832", inside, 5);
    ck_assert_int_eq(shape.part_count, 1);
    ck_columns(&shape, 0, 3300, 3500);
    mc_shape_free(&shape);
    const double pole[10] = { -1e6, -1e6, 1e6, -1e6, 1e6, 1e6, -1e6, 1e6, -1e6, -1e6 };
    shape = warped_ring("EPSG:3031", pole, 5); /* around the pole: one ring */
    ck_assert_int_eq(shape.part_count, 1);
    mc_shape_free(&shape);
    const double wide[10] = { -180, -80, 180, -80, 180, -70, -180, -70, -180, -80 };
    shape = warped_ring("EPSG:4267", wide, 5); /* once around the world: as the data says */
    ck_assert_int_eq(shape.part_count, 1);
    mc_shape_free(&shape);
}
END_TEST

START_TEST(bent_edges_get_vertices)
{
    const double parallel[4] = { 0, 60, 30, 60 }, meridian[4] = { 10, 40, 10, 70 }, nowhere[4] = { 10, 40, 1e9, 1e9 };
    const mc_pixel_grid coarse = { .x0 = 1000000, .y0 = 7000000, .per_x = 1e-4, .per_y = 1e-4 },
                        fine = { .x0 = 1000000, .y0 = 7000000, .per_x = 1e-2, .per_y = 1e-2 },
                        web = { .x0 = 0, .y0 = 2e7, .per_x = 1e-3, .per_y = 1e-3 };
    int few = vertices_of("EPSG:4326", "EPSG:3035", parallel, &coarse);
    int many = vertices_of("EPSG:4326", "EPSG:3035", parallel, &fine);
    ck_assert_int_gt(few, 2);
    ck_assert_int_gt(many, 2 * few);
    ck_assert_int_lt(many, 300);
    ck_assert_int_eq(vertices_of("EPSG:4326", "EPSG:3857", parallel, &web), 2); /* stays straight */
    ck_assert_int_eq(vertices_of("EPSG:4326", "EPSG:3857", meridian, &web), 2);
    ck_assert_int_eq(vertices_of("EPSG:4326", "EPSG:3035", nowhere, &coarse),
                     1); /* one of them cannot be transformed */
}
END_TEST

START_TEST(formulas_for_programs_without_a_database)
{
    const char *swiss = mc_projection_formula("EPSG:2056", pool);
    ck_assert_ptr_nonnull(strstr(swiss, "+proj=somerc "));
    ck_assert_ptr_nonnull(strstr(swiss, "+towgs84=674.374,15.056,405.346"));
    ck_assert_str_eq(mc_projection_formula("urn:ogc:def:crs:EPSG::2056", pool), swiss);
    ck_assert_ptr_null(mc_projection_formula("EPSG:999999", pool));
    ck_assert_ptr_null(mc_projection_formula("nowhere", pool));
}
END_TEST

UNIT_MAIN("projection", formulas_for_programs_without_a_database, formulas_are_exact, names_of_one_crs,
          names_are_not_guessed, cells_are_as_good_as_their_promise, bent_edges_get_vertices,
          rings_across_the_antimeridian_stay_whole)
