/* What is found in files that GDAL's own programs made. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

#include "data/data.h"
#include "mapcache/server.h"
#include "unit.h"
#include "vector/feature/feature.h"

static char folder[64];

static void
set_up(void)
{
    unit_setup();
    strcpy(folder, "/tmp/test_data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Runs a command in the folder. */
static void MC_PRINTF(1, 2) run(const char *format, ...)
{
    char command[1024], line[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    snprintf(line, sizeof(line), "cd %s && %s > /dev/null 2>&1", folder, command);
    ck_assert_msg(system(line) == 0, "%s", line);
}

static void
tear_down(void)
{
    char line[128];
    snprintf(line, sizeof(line), "rm -rf %s", folder);
    ck_assert_int_eq(system(line), 0);
    unit_teardown();
}

static const char *
in_folder(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

static const mc_data_layer *
layer_at(const mc_data_found *found, int i)
{
    ck_assert_int_lt(i, found->layers->nelts);
    return APR_ARRAY_IDX(found->layers, i, const mc_data_layer *);
}

static void
write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

#define POINTS                                                                                                         \
    "id,x,y,wkt\n1,7.0,46.0,\"POLYGON((7 46,7.02 46,7.02 46.01,7 46))\"\n"                                             \
    "2,7.1,46.1,\"POLYGON((7.1 46.1,7.12 46.1,7.12 46.11,7.1 46.1))\"\n"

START_TEST(raster_says_where_it_lies)
{
    mc_data_found found;
    run("gdal_create -of GTiff -ot Byte -bands 3 -burn 10 -outsize 200 100 -a_srs EPSG:2056 -a_ullr 2600000 1202000 "
        "2602000 1201000 -co COMPRESS=DEFLATE 'a <b>.tif'");
    ck_ok(mc_data_find(&found, in_folder("a <b>.tif"), NULL, &ctx, pool));
    ck_assert_int_eq(found.layers->nelts, 1);
    const mc_data_layer *layer = layer_at(&found, 0);
    ck_assert_int_eq(layer->kind, MC_DATA_RASTER);
    ck_assert_str_eq(layer->type, "gdal");
    ck_assert_str_eq(layer->name, "a__b_");
    ck_assert_str_eq(layer->srs, "EPSG:2056");
    ck_assert(layer->has_extent && layer->extent.minx == 2600000 && layer->extent.maxy == 1202000);
    ck_assert(layer->has_degrees && fabs(layer->degrees.minx - 7.4386) < 0.001 &&
              fabs(layer->degrees.miny - 46.9601) < 0.001);
    ck_assert_int_eq(layer->maxzoom, 14); /* 10 m on the ground are 14.6 m of web Mercator; level 13 has 19.1 m */
    ck_assert_int_ge(layer->minzoom, 8);
    ck_assert(!layer->measured && !layer->transparent);
    ck_assert_int_eq(layer->bands, 3);
}
END_TEST

START_TEST(bands_make_a_picture)
{
    mc_data_found found;
    run("gdal_create -of GTiff -ot UInt16 -bands 7 -burn 10 -outsize 20 20 -a_srs EPSG:4326 -a_ullr 7 47 8 46 "
        "seven.tif");
    run("gdal_create -of GTiff -ot Float32 -bands 1 -burn 10 -a_nodata -1 -outsize 20 20 -a_srs EPSG:4326 -a_ullr 7 47 "
        "8 "
        "46 one.tif");
    run("gdal_create -of GTiff -ot Byte -bands 1 -burn 10 -outsize 20 20 nowhere.tif");
    ck_ok(mc_data_find(&found, in_folder("seven.tif"), NULL, &ctx, pool));
    ck_assert_str_eq(layer_at(&found, 0)->picture, "1 2 3");
    ck_assert(layer_at(&found, 0)->measured);
    ck_ok(mc_data_find(&found, in_folder("one.tif"), NULL, &ctx, pool));
    ck_assert_ptr_null(layer_at(&found, 0)->picture);
    ck_assert(layer_at(&found, 0)->measured && layer_at(&found, 0)->transparent);
    ck_fails(CONFIG, mc_data_find(&found, in_folder("nowhere.tif"), NULL, &ctx, pool));
    ck_fails(UNAVAILABLE, mc_data_find(&found, in_folder("missing.tif"), NULL, &ctx, pool));
    write_text("text.tif", "no raster");
    ck_fails(CONFIG, mc_data_find(&found, in_folder("text.tif"), NULL, &ctx, pool));
}
END_TEST

static void
check_villages(const mc_data_layer *layer, const char *type)
{
    ck_assert_int_eq(layer->kind, MC_DATA_VECTOR);
    ck_assert_str_eq(layer->type, type);
    ck_assert_int_eq(layer->shape, MC_DATA_AREAS);
    ck_assert(layer->has_degrees && fabs(layer->degrees.minx - 7) < 1e-6 && fabs(layer->degrees.maxy - 46.11) < 1e-6);
    ck_assert_int_ge(layer->attributes->nelts, 1);
    ck_assert_str_eq(APR_ARRAY_IDX(layer->attributes, 0, mc_field).name, "id");
}

START_TEST(vector_files_say_what_they_hold)
{
    mc_data_found found;
    write_text("v.csv", POINTS);
    const char *from = "-a_srs EPSG:4326 -oo GEOM_POSSIBLE_NAMES=wkt -oo KEEP_GEOM_COLUMNS=NO -nlt POLYGON";
    run("ogr2ogr -f 'ESRI Shapefile' villages.shp v.csv %s", from);
    run("ogr2ogr -f GPKG two.gpkg v.csv -nln villages -t_srs EPSG:2056 -s_srs EPSG:4326 -oo GEOM_POSSIBLE_NAMES=wkt "
        "-oo "
        "KEEP_GEOM_COLUMNS=NO -nlt POLYGON");
    run("ogr2ogr -f GPKG -update two.gpkg v.csv -nln 'more \"of\" it' %s", from);
    run("ogr2ogr -f GeoJSON villages.geojson v.csv %s", from);
    run("ogr2ogr -f FlatGeobuf villages.fgb v.csv %s", from);
    ck_ok(mc_data_find(&found, in_folder("villages.shp"), NULL, &ctx, pool));
    check_villages(layer_at(&found, 0), "shapefile");
    ck_ok(mc_data_find(&found, in_folder("villages.geojson"), NULL, &ctx, pool));
    check_villages(layer_at(&found, 0), "ogr");
    ck_ok(mc_data_find(&found, in_folder("villages.fgb"), NULL, &ctx, pool));
    check_villages(layer_at(&found, 0), "ogr");
    ck_ok(mc_data_find(&found, in_folder("two.gpkg"), NULL, &ctx, pool));
    ck_assert_int_eq(found.layers->nelts, 2);
    ck_assert_str_eq(layer_at(&found, 0)->name, "villages");
    ck_assert_str_eq(layer_at(&found, 0)->srs, "EPSG:2056");
    ck_assert_str_eq(layer_at(&found, 1)->table, "more \"of\" it");
    ck_assert_str_eq(layer_at(&found, 1)->name, "more__of__it");
    ck_ok(mc_data_find(&found, in_folder("two.gpkg#villages"), NULL, &ctx, pool));
    ck_assert_int_eq(found.layers->nelts, 1);
    ck_fails(CONFIG, mc_data_find(&found, in_folder("two.gpkg#nothing"), NULL, &ctx, pool));
    const mc_data_limits one = { .layers = 1 };
    ck_ok(mc_data_find(&found, in_folder("two.gpkg"), &one, &ctx, pool));
    ck_assert_int_eq(found.layers->nelts, 1);
    ck_assert_int_eq(found.notes->nelts, 1);
}
END_TEST

static const char *
written_config(const mc_data_found *found)
{
    const mc_data_config config = { .made_by = "mapcache serve -- a--b", .title = "<Maps> & more" };
    const char *text = mc_data_write_config(found, &config, pool);
    write_text("mapcache.xml", text);
    return text;
}

START_TEST(written_configuration_loads)
{
    mc_data_found found;
    mc_config *config;
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    const char *things[2];
    write_text("v.csv", POINTS);
    run("gdal_create -of GTiff -ot Byte -bands 3 -burn 10 -outsize 20 20 -a_srs EPSG:4326 -a_ullr 7 47 8 46 'v "
        "<&--\"x\".tif'");
    run("ogr2ogr -f GPKG v.gpkg v.csv -a_srs EPSG:2056 -oo GEOM_POSSIBLE_NAMES=wkt -oo KEEP_GEOM_COLUMNS=NO -nlt "
        "POLYGON");
    things[0] = in_folder("v <&--\"x\".tif");
    things[1] = in_folder("v.gpkg");
    ck_ok(mc_data_find_all(&found, things, 2, NULL, &ctx, pool));
    ck_assert_int_eq(found.layers->nelts, 2);
    const char *text = written_config(&found);
    ck_assert_msg(strstr(text, "<srs>EPSG:4326 CRS:84 EPSG:2056</srs>") != NULL, "%s", text);
    ck_ok(mc_config_load(&config, in_folder("mapcache.xml"), diagnostics, pool));
    for (int i = 0; i < diagnostics->complaints->nelts; i++)
        ck_abort_msg("%s", APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint).text);
    ck_assert_int_eq(config->tilesets->nelts, 3);
    const mc_tileset *twin = apr_hash_get(config->tilesets_by_name, "v-mvt", APR_HASH_KEY_STRING);
    ck_assert_ptr_nonnull(twin);
    ck_assert_str_eq(mc_tileset_title(twin), "v (vector tiles)");
    ck_assert_int_ge(config->services->nelts, 7);
}
END_TEST

/* What nothing in the configuration refers to is not written. */
START_TEST(rasters_alone_need_no_vector_tiles)
{
    mc_data_found found;
    run("gdal_create -of GTiff -ot Byte -bands 3 -burn 10 -outsize 20 20 -a_srs EPSG:4326 -a_ullr 7 47 8 46 r.tif");
    ck_ok(mc_data_find(&found, in_folder("r.tif"), NULL, &ctx, pool));
    ck_assert_ptr_null(strstr(written_config(&found), "MVT"));
    write_text("v.csv", POINTS);
    run("ogr2ogr -f GPKG v.gpkg v.csv -a_srs EPSG:2056 -oo GEOM_POSSIBLE_NAMES=wkt -nlt POLYGON");
    ck_ok(mc_data_find(&found, in_folder("v.gpkg"), NULL, &ctx, pool));
    ck_assert_ptr_nonnull(strstr(written_config(&found), "<format name=\"mvt\" type=\"MVT\"/>"));
}
END_TEST

/* A comment's end in the title, the CRS or the call ends no comment of the written configuration. */
START_TEST(texts_of_data_end_no_comment)
{
    mc_node *root;
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    const char *bad = "--><cache name=\"bad\" type=\"none\"/><!--";
    mc_data_layer layer = { .kind = MC_DATA_VECTOR,
                            .type = "shapefile",
                            .name = "a",
                            .title = bad,
                            .data = "a.shp",
                            .srs = apr_pstrcat(pool, "EPSG:", bad, NULL),
                            .minzoom = -1,
                            .maxzoom = -1 };
    apr_array_header_t *layers = apr_array_make(pool, 1, sizeof(const mc_data_layer *));
    APR_ARRAY_PUSH(layers, const mc_data_layer *) = &layer;
    const mc_data_found found = { layers, apr_array_make(pool, 1, sizeof(const char *)) };
    const mc_data_config about = { .made_by = bad, .title = bad };
    const char *text = mc_data_write_config(&found, &about, pool);
    ck_ok(mc_config_parse_text(&root, "made.xml", text, strlen(text), diagnostics, pool));
    for (const mc_node *cache = mc_node_child(root, "cache"); cache != NULL; cache = mc_node_next(cache))
        ck_assert_str_ne(mc_node_attr(cache, "name"), "bad");
    ck_assert_ptr_nonnull(mc_node_child(root, "tileset"));
}
END_TEST

/* The code of a CRS is digits, whatever a file calls its code. */
START_TEST(codes_of_a_crs_are_numbers)
{
    mc_data_found found;
    write_text("crs.wkt",
               "GEOGCS[\"x\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,298.257223563]],PRIMEM[\"Greenwich\",0],"
               "UNIT[\"degree\",0.0174532925199433],AUTHORITY[\"EPSG\",\"4326--><x/>\"]]");
    run("gdal_create -of GTiff -ot Byte -bands 3 -burn 10 -outsize 20 20 -a_ullr 7 47 8 46 plain.tif");
    run("gdal_translate -of VRT -a_srs \"$(cat crs.wkt)\" plain.tif v.vrt");
    run("grep -q 4326-- v.vrt");
    ck_ok(mc_data_find(&found, in_folder("v.vrt"), NULL, &ctx, pool));
    const char *srs = layer_at(&found, 0)->srs;
    ck_assert_ptr_nonnull(srs);
    ck_assert_msg(strncmp(srs, "EPSG:", 5) != 0, "%s", srs);
}
END_TEST

/* What MapServer would say of the same files is not asked: words before the first layer count. */
/* Another program's rasters end as map files do. */
START_TEST(pcraster_is_no_map_file)
{
    mc_data_found found;
    run("gdal_create -of GTiff -ot Byte -bands 1 -burn 10 -outsize 20 20 -a_srs EPSG:4326 -a_ullr 7 47 8 46 flat.tif "
        "&& "
        "gdal_translate -of PCRaster -mo PCRASTER_VALUESCALE=VS_NOMINAL flat.tif land.map && rm -f flat.tif");
    ck_ok(mc_data_find(&found, in_folder("land.map"), NULL, &ctx, pool));
    const mc_data_layer *layer = layer_at(&found, 0);
    ck_assert_int_eq(layer->kind, MC_DATA_RASTER);
    ck_assert_str_eq(layer->type, "gdal");
}
END_TEST

START_TEST(map_files_say_where_they_lie)
{
    static const struct {
        const char *text, *srs;
        bool placed;
    } files[] = {
        { "# EXTENT 1 1 2 2\nMAP NAME \"EXTENT 0 0 1 1\" EXTENT 7 46 8 47 PROJECTION 'init=epsg:4326' END LAYER END "
          "END",
          "EPSG:4326", true },
        { "map extent 7 46 8 47\nprojection \"EPSG:4326\" end end", "EPSG:4326", true },
        { "MAP PROJECTION \"init=epsg:4326--><x/>\" END EXTENT 7 46 8 47 END", NULL, false },
        { "MAP PROJECTION \"proj=longlat\" END EXTENT 7 46 8 47 END", NULL, false },
        { "MAP EXTENT 8 46 7 47 PROJECTION \"epsg:4326\" END END", "EPSG:4326", false },
        { "MAP LAYER EXTENT 7 46 8 47 PROJECTION \"epsg:4326\" END END END", NULL, false },
        { "MAP EXTENT 7 46 8", NULL, false },
        { "MAP NAME \"", NULL, false },
    };
    mc_data_found found;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_text("roads.map", files[i].text);
        ck_ok(mc_data_find(&found, in_folder("roads.map"), NULL, &ctx, pool));
        const mc_data_layer *layer = layer_at(&found, 0);
        ck_assert_str_eq(layer->type, "mapserver");
        ck_assert_str_eq(layer->name, "roads");
        ck_assert_msg((layer->srs == NULL) == (files[i].srs == NULL), "%s", files[i].text);
        ck_assert_msg(layer->has_degrees == files[i].placed, "%s", files[i].text);
        ck_assert(!files[i].placed || (fabs(layer->degrees.minx - 7) < 1e-6 && fabs(layer->degrees.maxy - 47) < 1e-6));
    }
    write_text("roads.map", "LAYER END");
    ck_fails(CONFIG, mc_data_find(&found, in_folder("roads.map"), NULL, &ctx, pool));
    write_text("roads.map", "");
    ck_fails(CONFIG, mc_data_find(&found, in_folder("roads.map"), NULL, &ctx, pool));
}
END_TEST

static void
write_point(const char *name, int count)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs("{\"type\":\"FeatureCollection\",\"features\":[", file);
    for (int i = 0; i < count; i++)
        fprintf(file,
                "%s{\"type\":\"Feature\",\"properties\":{\"n\":%d},\"geometry\":{\"type\":\"Point\","
                "\"coordinates\":[7,%d]}}",
                i > 0 ? "," : "", i, 40 + i % 10);
    fputs("]}", file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Those that come before it are served, and a note says which file it was. */
START_TEST(a_slow_file_leaves_what_was_found)
{
    mc_data_found found;
    const mc_data_limits limits = { .seconds = 2 };
    write_point("warm.geojson", 1); /* the module is loaded */
    ck_ok(mc_data_find(&found, in_folder("warm.geojson"), NULL, &ctx, pool));
    run("mkdir all");
    write_point("all/a.geojson", 1);
    write_point("all/c.geojson", 1);
    run("sqlite3 all/b.mbtiles 'create table metadata(name, value); create view tiles as with recursive n(i) as "
        "(select 1 union all select i + 1 from n) select i as zoom_level, i as tile_column, i as tile_row, i as "
        "tile_data from n where i < 0'");
    ck_ok(mc_data_find(&found, in_folder("all"), &limits, &ctx, pool));
    ck_assert_str_eq(layer_at(&found, 0)->name, "a");
    ck_assert_int_eq(found.layers->nelts, 1);
    const char *notes = apr_array_pstrcat(pool, found.notes, '\n');
    ck_assert_msg(strstr(notes, "the slowest file was") != NULL && strstr(notes, "all/b.mbtiles") != NULL, "%s", notes);
}
END_TEST

/* The box of a GeoJSON that is larger than what is kept of one is not looked for in all of its features. */
START_TEST(large_vectors_are_not_read_for_their_box)
{
    mc_data_found found;
    write_point("small.geojsonl", 1);
    run("ogr2ogr -f GeoJSONSeq large.geojsonl small.geojsonl && truncate -s 65M large.geojsonl");
    ck_ok(mc_data_find(&found, in_folder("large.geojsonl"), NULL, &ctx, pool));
    ck_assert(!layer_at(&found, 0)->has_extent);
    run("ogr2ogr -f GeoJSONSeq little.geojsonl small.geojsonl");
    ck_ok(mc_data_find(&found, in_folder("little.geojsonl"), NULL, &ctx, pool));
    ck_assert(layer_at(&found, 0)->has_extent);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { raster_says_where_it_lies,
                                   bands_make_a_picture,
                                   vector_files_say_what_they_hold,
                                   written_configuration_loads,
                                   rasters_alone_need_no_vector_tiles,
                                   texts_of_data_end_no_comment,
                                   codes_of_a_crs_are_numbers,
                                   map_files_say_where_they_lie,
                                   pcraster_is_no_map_file,
                                   a_slow_file_leaves_what_was_found,
                                   large_vectors_are_not_read_for_their_box };
    return unit_run_between("data", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up, tear_down);
}
