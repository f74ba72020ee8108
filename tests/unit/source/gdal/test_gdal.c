/* Rasters are made with gdal_translate from raw pixels, so that the test needs no GDAL of its own. */
#include "unit.h"

#include <apr_file_io.h>
#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source_fixture.h"

/* GDAL takes its own locks in changing order while it starts; that is not ours to mend. Data races are still found. */
const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
    return "deadlock:libgdal.so\n";
}

static char folder[64];

static void
make_folder(void)
{
    strcpy(folder, "/tmp/mapcache-gdal-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
run(const char *command)
{
    ck_assert_msg(system(command) == 0, "failed: %s", command);
}

static void
remove_folder(void)
{
    run(apr_psprintf(pool, "rm -r %s", folder));
}

typedef void paint(uint8_t *pixel, int x, int y, int width, int height);

/* A GeoTIFF of `bands` bands, painted pixel by pixel. `options`: for gdal_translate, CRS and place among them. */
static const char *
raster(const char *name, int bands, int width, int height, paint *painter, const char *options)
{
    const char *raw = apr_psprintf(pool, "%s/%s.raw", folder, name);
    FILE *header = fopen(apr_psprintf(pool, "%s/%s.hdr", folder, name), "w");
    fprintf(header, "ENVI\nsamples = %d\nlines = %d\nbands = %d\nheader offset = 0\ndata type = 1\ninterleave = bip\n",
            width, height, bands);
    fclose(header);
    FILE *file = fopen(raw, "w");
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t pixel[4] = { 0 };
            painter(pixel, x, y, width, height);
            ck_assert_uint_eq(fwrite(pixel, (size_t)bands, 1, file), 1);
        }
    fclose(file);
    const char *tiff = apr_psprintf(pool, "%s/%s.tif", folder, name);
    run(apr_psprintf(pool, "gdal_translate -q %s %s %s", options, raw, tiff));
    return tiff;
}

/* Red and green above, blue and white below. */
static void
paint_quarters(uint8_t *pixel, int x, int y, int width, int height)
{
    bool east = x >= width / 2, south = y >= height / 2;
    pixel[0] = east == south ? 255 : 0;
    pixel[1] = east ? 255 : 0;
    pixel[2] = south ? 255 : 0;
    pixel[3] = 255;
}

static mc_source *
gdal(const char *data, const char *more)
{
    mc_source *source = source_from_text(
        apr_psprintf(pool, "<source name='s' type='gdal'><data>%s</data><retries>0</retries>%s</source>", data, more));
    ck_assert_ptr_nonnull(source);
    return source;
}

static mc_pixels *
render(mc_source *source, mc_render wanted)
{
    mc_rendered map;
    ck_ok(mc_source_render(&map, source, &wanted, &ctx, pool));
    ck_assert_ptr_null(map.data);
    ck_assert_int_eq(map.pixels->width, wanted.width);
    ck_assert_int_eq(map.pixels->height, wanted.height);
    return map.pixels;
}

/* The pixel as rrggbbaa, premultiplied. */
static unsigned
color_at(const mc_pixels *pixels, int x, int y)
{
    const uint8_t *p = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
    return (unsigned)p[2] << 24 | (unsigned)p[1] << 16 | (unsigned)p[0] << 8 | p[3];
}

static const uint32_t red = 0xff0000ff, green = 0x00ff00ff, blue = 0x0000ffff, white = 0xffffffff;

START_TEST(rgb_lands_where_it_belongs)
{
    make_folder();
    const char *file = raster("rgb", 3, 80, 80, paint_quarters, "-a_srs EPSG:4326 -a_ullr 0 40 40 0");
    mc_source *source = gdal(file, "");
    ck_assert(source->needs_format);
    /* In its own CRS, one and a half times as wide as the raster: half a pixel a degree. */
    mc_pixels *map = render(source, fixture_map(&fixture_wgs84, -10, -10, 50, 50, 120, 120));
    ck_assert_uint_eq(color_at(map, 30, 30), red);
    ck_assert_uint_eq(color_at(map, 90, 30), green);
    ck_assert_uint_eq(color_at(map, 30, 90), blue);
    ck_assert_uint_eq(color_at(map, 90, 90), white);
    ck_assert_uint_eq(color_at(map, 10, 60), 0);
    ck_assert_uint_eq(color_at(map, 110, 60), 0);
    ck_assert_uint_eq(color_at(map, 60, 110), 0);
    ck_assert_uint_eq(color_at(map, 19, 60), 0); /* the last pixel outside, the first inside */
    ck_assert_uint_eq(color_at(map, 20, 59) & 255, 255);
    ck_assert_int_eq(map->opacity, MC_TRANSLUCENT);
    map = render(source, fixture_map(&fixture_wgs84, 1, 21, 19, 39, 64, 64));
    ck_assert_int_eq(map->opacity, MC_OPAQUE);
    map = render(source, fixture_map(&fixture_wgs84, 100, 20, 140, 60, 64, 64));
    ck_assert_int_eq(map->opacity, MC_EMPTY);

    /* Mercator: 20 degrees north lies at y = 2273031 m, 40 at 4865942. */
    const double degree = 20037508.3427892 / 180;
    map = render(source, fixture_map(&fixture_mercator, 0, 0, 40 * degree, 40 * degree, 400, 400));
    double row_of_20 = 400 - 2273030.93 / degree * 10;
    ck_assert_uint_eq(color_at(map, 100, (int)row_of_20 - 3), red);
    ck_assert_uint_eq(color_at(map, 100, (int)row_of_20 + 3), blue);
    ck_assert_uint_eq(color_at(map, 197, (int)row_of_20 - 3), red);
    ck_assert_uint_eq(color_at(map, 203, (int)row_of_20 - 3), green);
    ck_assert_uint_eq(color_at(map, 300, (int)row_of_20 + 3), white);
    map = render(source, fixture_map(&fixture_mercator, 0, 4865942 - 1000, 10000, 4865942 + 1000, 100, 20));
    ck_assert_uint_eq(color_at(map, 50, 8), 0);
    ck_assert_uint_eq(color_at(map, 50, 12), red);
    remove_folder();
}
END_TEST

static void
paint_ramp(uint8_t *pixel, int x, int y, int width, int height)
{
    (void)width;
    (void)height;
    pixel[0] = (uint8_t)(x * 7 + y * 13);
    pixel[1] = (uint8_t)(x * 31 + y);
    pixel[2] = (uint8_t)(x + y * 57);
}

START_TEST(aligned_pixels_stay_as_they_are)
{
    make_folder();
    const char *file = raster("ramp", 3, 64, 64, paint_ramp, "-a_srs EPSG:3857 -a_ullr 0 64000 64000 0");
    static const char *const modes[] = { "nearest", "bilinear", "CUBIC", "cubicspline", "LANCZOS", "Average" };
    for (int mode = 0; mode < 6; mode++) {
        mc_source *source = gdal(file, apr_psprintf(pool, "<resample>%s</resample>", modes[mode]));
        mc_pixels *map = render(source, fixture_map(&fixture_mercator, 16000, 16000, 48000, 48000, 32, 32));
        for (int y = 0; mode != 3 && y < 32; y++) /* a cubic spline smooths also where nothing is scaled */
            for (int x = 0; x < 32; x++) {
                uint8_t want[4] = { 0 };
                paint_ramp(want, x + 16, y + 16, 0, 0);
                ck_assert_uint_eq(color_at(map, x, y),
                                  (unsigned)want[0] << 24 | (unsigned)want[1] << 16 | (unsigned)want[2] << 8 | 255);
            }
    }
    /* Old names of the same CRS. */
    mc_grid google = fixture_mercator;
    google.srs = "EPSG:900913";
    mc_pixels *map = render(gdal(file, ""), fixture_map(&google, 16000, 16000, 48000, 48000, 32, 32));
    mc_pixels *same = render(gdal(file, ""), fixture_map(&fixture_mercator, 16000, 16000, 48000, 48000, 32, 32));
    for (int y = 0; y < 32; y++)
        ck_assert_int_eq(memcmp(map->data + (size_t)y * map->stride, same->data + (size_t)y * same->stride, 128), 0);
    remove_folder();
}
END_TEST

static void
paint_gray(uint8_t *pixel, int x, int y, int width, int height)
{
    (void)y;
    (void)height;
    pixel[0] = x < width / 2 ? 100 : 7;
    pixel[1] = x < width / 2 ? 255 : 0;
}

static void
paint_translucent(uint8_t *pixel, int x, int y, int width, int height)
{
    paint_quarters(pixel, x, y, width, height);
    pixel[3] = x < width / 2 ? 128 : 0;
}

START_TEST(gray_nodata_and_alpha)
{
    make_folder();
    static const char *const place = "-a_srs EPSG:3857 -a_ullr 0 64000 64000 0";
    mc_render wanted = fixture_map(&fixture_mercator, 0, 0, 64000, 64000, 64, 64);
    mc_pixels *map = render(gdal(raster("gray", 1, 64, 64, paint_gray, place), ""), wanted);
    ck_assert_uint_eq(color_at(map, 10, 10), 0x646464ff);
    ck_assert_uint_eq(color_at(map, 50, 10), 0x070707ff);
    map = render(gdal(raster("nodata", 1, 64, 64, paint_gray, apr_pstrcat(pool, place, " -a_nodata 7", NULL)), ""),
                 wanted);
    ck_assert_uint_eq(color_at(map, 10, 10), 0x646464ff);
    ck_assert_uint_eq(color_at(map, 50, 10), 0);
    map = render(
        gdal(raster("ga", 2, 64, 64, paint_gray, apr_pstrcat(pool, place, " -colorinterp gray,alpha", NULL)), ""),
        wanted);
    ck_assert_uint_eq(color_at(map, 10, 10), 0x646464ff);
    ck_assert_uint_eq(color_at(map, 50, 10), 0);
    map = render(gdal(raster("rgba", 4, 64, 64, paint_translucent,
                             apr_pstrcat(pool, place, " -colorinterp red,green,blue,alpha", NULL)),
                      ""),
                 wanted);
    ck_assert_uint_eq(color_at(map, 10, 10), 0x80000080); /* premultiplied */
    ck_assert_uint_eq(color_at(map, 50, 10), 0);
    /* RGB with a nodata value: black is nothing only where all bands have it. */
    map = render(gdal(raster("rgbn", 3, 64, 64, paint_quarters, apr_pstrcat(pool, place, " -a_nodata 255", NULL)), ""),
                 wanted);
    ck_assert_uint_eq(color_at(map, 10, 10), red);
    ck_assert_uint_eq(color_at(map, 50, 50), 0);
    remove_folder();
}
END_TEST

static void
paint_classes(uint8_t *pixel, int x, int y, int width, int height)
{
    (void)y;
    (void)height;
    pixel[0] = (uint8_t)(x * 3 / width);
}

START_TEST(palettes_are_looked_up)
{
    make_folder();
    raster("classes", 1, 60, 60, paint_classes, "");
    const char *vrt = apr_psprintf(pool, "%s/palette.vrt", folder);
    FILE *file = fopen(vrt, "w");
    fputs("<VRTDataset rasterXSize='60' rasterYSize='60'><SRS>EPSG:3857</SRS>"
          "<GeoTransform>0,1000,0,60000,0,-1000</GeoTransform><VRTRasterBand dataType='Byte' band='1'>"
          "<ColorInterp>Palette</ColorInterp><ColorTable><Entry c1='10' c2='20' c3='30' c4='255'/>"
          "<Entry c1='200' c2='100' c3='50' c4='128'/><Entry c1='1' c2='2' c3='3' c4='0'/></ColorTable>"
          "<SimpleSource><SourceFilename relativeToVRT='1'>classes.tif</SourceFilename><SourceBand>1</SourceBand>"
          "</SimpleSource></VRTRasterBand></VRTDataset>",
          file);
    fclose(file);
    mc_pixels *map =
        render(gdal(vrt, "<resample>CUBIC</resample>"), fixture_map(&fixture_mercator, 0, 0, 60000, 60000, 97, 97));
    ck_assert_uint_eq(color_at(map, 10, 10), 0x0a141eff);
    ck_assert_uint_eq(color_at(map, 48, 10), 0x64321980);
    ck_assert_uint_eq(color_at(map, 90, 10), 0);
    for (int x = 0; x < 97; x++) {
        unsigned color = color_at(map, x, 50);
        ck_assert(color == 0x0a141eff || color == 0x64321980 || color == 0);
    }
    remove_folder();
}
END_TEST

static void
paint_columns(uint8_t *pixel, int x, int y, int width, int height)
{
    (void)y;
    (void)width;
    (void)height;
    pixel[x % 2 == 0 ? 0 : 2] = 200;
}

START_TEST(overviews_are_used_as_configured)
{
    make_folder();
    const char *file = raster("columns", 3, 256, 256, paint_columns, "-a_srs EPSG:3857 -a_ullr 0 256000 256000 0");
    run(apr_psprintf(pool, "gdaladdo -q -r average %s 2 4 8", file));
    mc_render whole = fixture_map(&fixture_mercator, 0, 0, 256000, 256000, 64, 64);
    mc_render detail = fixture_map(&fixture_mercator, 64000, 64000, 128000, 128000, 64, 64);
#define NEAREST(strategy) "<resample>NEAR</resample><overview-strategy>" strategy "</overview-strategy>"
    static const uint32_t mixed = 0x640064ff;
    ck_assert_uint_eq(color_at(render(gdal(file, "<resample>NEAR</resample>"), whole), 32, 32), mixed);
    ck_assert_uint_eq(color_at(render(gdal(file, NEAREST("AUTO")), whole), 32, 32), mixed);
    ck_assert_uint_ne(color_at(render(gdal(file, NEAREST("AUTO")), detail), 32, 32), mixed);
    ck_assert_uint_ne(color_at(render(gdal(file, NEAREST("NONE")), whole), 32, 32), mixed);
    ck_assert_uint_eq(color_at(render(gdal(file, NEAREST("AUTO-1")), whole), 32, 32), mixed);
    ck_assert_uint_ne(color_at(render(gdal(file, NEAREST("AUTO-2")), whole), 32, 32), mixed);
    ck_assert_uint_eq(color_at(render(gdal(file, NEAREST("0")), detail), 32, 32), mixed);
    ck_assert_uint_eq(color_at(render(gdal(file, NEAREST("64")), detail), 32, 32), mixed);
    remove_folder();
}
END_TEST

START_TEST(far_away_maps_are_empty)
{
    make_folder();
    const char *file =
        raster("utm", 3, 64, 64, paint_quarters, "-a_srs EPSG:32632 -a_ullr 500000 5600000 564000 5536000");
    mc_source *source = gdal(file, "");
    /* 9 E, 50.5 N and eastwards: 32632's central meridian. */
    mc_pixels *map = render(source, fixture_map(&fixture_wgs84, 9.05, 50.1, 9.3, 50.4, 64, 64));
    ck_assert_int_eq(map->opacity, MC_OPAQUE);
    static const double far[][4] = { { -180, -90, -90, 0 }, { 90, 0, 180, 90 }, { -170, 80, -160, 90 } };
    for (int i = 0; i < 3; i++) {
        map = render(source, fixture_map(&fixture_wgs84, far[i][0], far[i][1], far[i][2], far[i][3], 64, 64));
        ck_assert_int_eq(map->opacity, MC_EMPTY);
    }
    map = render(source, fixture_map(&fixture_wgs84, -180, -90, 180, 90, 720, 360));
    ck_assert_int_eq(map->opacity, MC_TRANSLUCENT);
    ck_assert_uint_ne(color_at(map, 360 + 18, 180 - 101) & 255, 0);
    remove_folder();
}
END_TEST

START_TEST(a_raster_that_changes_is_opened_anew)
{
    make_folder();
    mc_render wanted = fixture_map(&fixture_mercator, 0, 0, 64000, 64000, 64, 64);
    static const char *const place = "-a_srs EPSG:3857 -a_ullr 0 64000 64000 0";
    const char *file = raster("change", 3, 64, 64, paint_quarters, place);
    mc_source *source = gdal(file, "");
    ck_assert_uint_eq(color_at(render(source, wanted), 10, 10), red);
    ck_assert_uint_eq(color_at(render(source, wanted), 50, 50), white);
    raster("change", 3, 64, 64, paint_ramp, place);
    ck_assert_uint_eq(color_at(render(source, wanted), 0, 0), 0x000000ff);
    remove_folder();
}
END_TEST

START_TEST(bad_rasters_are_refused_without_their_path)
{
    make_folder();
    static const char *const place = "-a_srs EPSG:3857 -a_ullr 0 64000 64000 0";
    const char *broken = apr_psprintf(pool, "%s/broken.tif", folder);
    FILE *file = fopen(broken, "w");
    fputs("II*\0garbage", file);
    fclose(file);
    const char *const rasters[] = {
        apr_psprintf(pool, "%s/missing.tif", folder),
        broken,
        raster("nowhere", 3, 64, 64, paint_quarters, ""),
        raster("complex", 1, 64, 64, paint_gray, apr_pstrcat(pool, place, " -ot CInt16", NULL)),
        raster("twice", 2, 64, 64, paint_gray, apr_pstrcat(pool, place, " -colorinterp gray,undefined", NULL)),
    };
    for (size_t i = 0; i < sizeof(rasters) / sizeof(rasters[0]); i++) {
        mc_rendered map;
        mc_render wanted = fixture_map(&fixture_mercator, 0, 0, 64000, 64000, 64, 64);
        mc_error *error = mc_source_render(&map, gdal(rasters[i], ""), &wanted, &ctx, pool);
        ck_assert_msg(error != MC_OK, "%s was accepted", rasters[i]);
        ck_assert_int_eq(error->kind, MC_ERR_CONFIG);
        ck_assert_ptr_null(strstr(error->message, folder));
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), rasters[i]));
    }
    remove_folder();
}
END_TEST

START_TEST(unknown_crs_are_errors)
{
    make_folder();
    mc_grid grid = fixture_mercator;
    grid.srs = "EPSG:1";
    mc_rendered map;
    mc_render wanted = fixture_map(&grid, 0, 0, 64000, 64000, 64, 64);
    const char *file = raster("a", 3, 64, 64, paint_quarters, "-a_srs EPSG:3857 -a_ullr 0 64000 64000 0");
    ck_fails(CONFIG, mc_source_render(&map, gdal(file, ""), &wanted, &ctx, pool));
    apr_array_header_t *aliases = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(aliases, const char *) = "EPSG:3857";
    grid.aliases = aliases;
    ck_ok(mc_source_render(&map, gdal(file, ""), &wanted, &ctx, pool));
    remove_folder();
}
END_TEST

static bool
soon(void *baton)
{
    return ++*(int *)baton > 3;
}

START_TEST(a_warp_ends_with_its_client_or_deadline)
{
    make_folder();
    const char *file = raster("large", 3, 2000, 2000, paint_ramp, "-a_srs EPSG:4326 -a_ullr 0 40 40 0");
    mc_render wanted = fixture_map(&fixture_mercator, 0, 0, 4000000, 4000000, 4000, 4000);
    mc_rendered map;
    int asked = 0;
    ctx.abandoned = soon;
    ctx.abandoned_baton = &asked;
    ck_fails(UNAVAILABLE, mc_source_render(&map, gdal(file, "<resample>LANCZOS</resample>"), &wanted, &ctx, pool));
    ctx.abandoned = NULL;
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 100 * 1000;
    ck_fails(TIMEOUT, mc_source_render(&map, gdal(file, "<resample>LANCZOS</resample>"), &wanted, &ctx, pool));
    ck_assert_int_lt(mc_clock_now() - begin, 20 * APR_USEC_PER_SEC);
    remove_folder();
}
END_TEST

enum { THREADS = 4, MAPS = 6 };
static mc_source *shared_source;
static mc_render shared_map;
static atomic_int right;

static void *
draw_maps(void *expected)
{
    apr_pool_t *own;
    apr_allocator_t *allocator;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&own, NULL, NULL, allocator);
    mc_ctx own_ctx = { .pool = own, .process = &process, .log = &mc_log_stderr };
    for (int i = 0; i < MAPS; i++) {
        mc_rendered map;
        if (mc_source_render(&map, shared_source, &shared_map, &own_ctx, own) != MC_OK)
            break;
        if (memcmp(map.pixels->data, expected, map.pixels->stride * (size_t)map.pixels->height) == 0)
            atomic_fetch_add(&right, 1);
    }
    apr_pool_destroy(own);
    apr_allocator_destroy(allocator);
    return NULL;
}

START_TEST(threads_draw_the_same)
{
    make_folder();
    const char *file = raster("threads", 3, 300, 300, paint_ramp, "-a_srs EPSG:4326 -a_ullr 0 40 40 0");
    shared_source = gdal(file, "");
    shared_map = fixture_map(&fixture_mercator, -1000000, 0, 4000000, 5000000, 256, 256);
    mc_pixels *expected = render(shared_source, shared_map);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_maps, expected->data), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(right, THREADS * MAPS);
    remove_folder();
}
END_TEST

START_TEST(bad_configurations_are_refused)
{
    source_refused("<source name='s' type='gdal'/>", "data");
    source_refused("<source name='s' type='gdal'><data>a</data><resample>BEST</resample></source>", "BEST");
    source_refused("<source name='s' type='gdal'><data>a</data><connection_pooled>2</connection_pooled></source>",
                   "connection_pooled");
    static const char *const strategies[] = { "auto+1", "AUTO-", "-1", "65", "best", "1x" };
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++)
        source_refused(apr_psprintf(pool,
                                    "<source name='s' type='gdal'><data>a</data><overview-strategy>%s"
                                    "</overview-strategy></source>",
                                    strategies[i]),
                       strategies[i]);
}
END_TEST

UNIT_MAIN("gdal", rgb_lands_where_it_belongs, aligned_pixels_stay_as_they_are, gray_nodata_and_alpha,
          palettes_are_looked_up, overviews_are_used_as_configured, far_away_maps_are_empty,
          a_raster_that_changes_is_opened_anew, bad_rasters_are_refused_without_their_path, unknown_crs_are_errors,
          a_warp_ends_with_its_client_or_deadline, threads_draw_the_same, bad_configurations_are_refused)
