#include "unit.h"

#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feature/geometry.h"
#include "feature/shp.h"

static const mc_lattice lattice = { .x0 = 0, .y0 = 100, .per_x = 1, .per_y = 1 };

/* Bytes that grow, of either order. */
typedef struct writer {
    uint8_t bytes[4096];
    size_t size;
    bool big;
} writer;

static void
put(writer *w, const void *value, size_t size, bool big)
{
    for (size_t i = 0; i < size; i++)
        w->bytes[w->size++] = ((const uint8_t *)value)[big ? size - 1 - i : i];
}

static void
put_byte(writer *w, uint8_t value)
{
    put(w, &value, 1, false);
}

static void
put_word(writer *w, uint32_t value)
{
    put(w, &value, 4, w->big);
}

static void
put_double(writer *w, double value)
{
    put(w, &value, 8, w->big);
}

static void
put_head(writer *w, uint32_t type)
{
    put_byte(w, w->big ? 0 : 1);
    put_word(w, type);
}

static const double square[5][2] = { { 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 }, { 10, 10 } };

static void
put_square(writer *w, int values)
{
    put_word(w, 5);
    for (int i = 0; i < 5; i++) {
        put_double(w, square[i][0]);
        put_double(w, square[i][1]);
        for (int v = 2; v < values; v++)
            put_double(w, 7);
    }
}

static mc_geometry geometry;

START_TEST(polygons_of_all_forms)
{
    static const struct {
        uint32_t type;
        int values;
    } forms[] = { { 3, 2 },           { 1003, 3 },        { 2003, 3 },        { 3003, 4 },
                  { 0x80000003U, 3 }, { 0xC0000003U, 4 }, { 0x20000003U, 2 }, { 17, 2 } };
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++)
        for (int big = 0; big < 2; big++) {
            writer w = { .big = big };
            put_head(&w, forms[f].type);
            if ((forms[f].type & 0x20000000U) != 0)
                put_word(&w, 21781);
            put_word(&w, 1);
            put_square(&w, forms[f].values);
            ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
            const mc_shape *shape = &geometry.shapes[MC_SHAPE_POLYGONS];
            ck_assert_int_eq(shape->part_count, 1);
            ck_assert_int_eq(shape->point_count, 4);
            ck_assert_int_eq(geometry.srid, (forms[f].type & 0x20000000U) != 0 ? 21781 : 0);
            int32_t minx, miny, maxx, maxy;
            ck_assert(mc_geometry_bounds(&geometry, &minx, &miny, &maxx, &maxy));
            ck_assert_int_eq(minx, 2560);
            ck_assert_int_eq(maxy, 90 * 256);
            for (size_t cut = 0; cut < w.size; cut++) /* every beginning of it is refused */
                ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, cut, &lattice, pool));
        }
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(collections_fill_all_kinds)
{
    writer w = { .size = 0 };
    put_head(&w, 7);
    put_word(&w, 4);
    put_head(&w, 1);
    put_double(&w, 3);
    put_double(&w, 4);
    put_head(&w, 5);
    put_word(&w, 1);
    put_head(&w, 2);
    put_square(&w, 2);
    put_head(&w, 3);
    put_word(&w, 2);
    put_square(&w, 2);
    put_square(&w, 2);
    put_head(&w, 1);
    put_double(&w, NAN);
    put_double(&w, NAN); /* an empty point */
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POINTS].part_count, 1);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].part_count, 1);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].point_count, 5);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POLYGONS].part_count, 2);
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(lies_and_depths_are_refused)
{
    writer w = { .size = 0 };
    put_head(&w, 2);
    put_word(&w, 0xFFFFFFFFU);
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    w.size = 0;
    for (int i = 0; i < 300; i++) {
        put_head(&w, 7);
        put_word(&w, 1);
    }
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    w.size = 0;
    put_head(&w, 13);
    put_word(&w, 0);
    ck_fails(NOT_BUILT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_fails(CORRUPT, mc_wkb_read(&geometry, "\x07\x01\0\0\0", 5, &lattice, pool));
    w.size = 0;
    put_head(&w, 3);
    put_word(&w, 0); /* POLYGON EMPTY */
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_assert(mc_geometry_is_empty(&geometry));
    mc_geometry_free(&geometry);
}
END_TEST

static const char *
written(const char *folder, const char *name, const void *bytes, size_t size)
{
    const char *path = apr_pstrcat(pool, folder, "/", name, NULL);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

/* One record: a square with a hole. */
static void
put_shapefile(writer *w)
{
    w->big = true;
    put_word(w, 9994);
    for (int i = 0; i < 5; i++)
        put_word(w, 0);
    put_word(w, 0);
    w->big = false;
    put_word(w, 1000);
    put_word(w, 5);
    for (int i = 0; i < 8; i++)
        put_double(w, i < 2 ? 10 : i < 4 ? 20 : 0);
    w->big = true;
    put_word(w, 1);
    put_word(w, (44 + 2 * 4 + 10 * 16) / 2);
    w->big = false;
    put_word(w, 5);
    for (int i = 0; i < 4; i++)
        put_double(w, i < 2 ? 10 : 20);
    put_word(w, 2);
    put_word(w, 10);
    put_word(w, 0);
    put_word(w, 5);
    for (int i = 4; i >= 0; i--) { /* clockwise: outside */
        put_double(w, square[i][0]);
        put_double(w, square[i][1]);
    }
    for (int i = 0; i < 5; i++) {
        put_double(w, 12 + (square[i][0] - 10) / 2);
        put_double(w, 12 + (square[i][1] - 10) / 2);
    }
}

static void
put_table(writer *w)
{
    static const char head[32] = { 3, 0, 0, 0, 2, 0, 0, 0, 32 * 3 + 1, 0, 11, 0, [29] = 0x57 };
    static const char fields[2][32] = { { 'N', 'A', 'M', 'E', [11] = 'C', [16] = 6 }, { 'N', [11] = 'N', [16] = 4 } };
    put(w, head, 32, false);
    put(w, fields, 64, false);
    put_byte(w, 0x0D);
    put(w, " Z\xFCrich  42", 11, false);
    put(w, " Bern  ****", 11, false);
}

START_TEST(shapefiles_with_their_tables)
{
    char folder[] = "/tmp/mapcache-shp-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    writer w = { .size = 0 }, table = { .size = 0 };
    put_shapefile(&w);
    put_table(&table);
    const char *path = written(folder, "a.shp", w.bytes, w.size),
               *beside = written(folder, "a.dbf", table.bytes, table.size);
    mc_shp *shp;
    mc_shp_record record;
    size_t at = 0;
    ck_ok(mc_shp_open(&shp, path, pool));
    ck_assert_int_eq(shp->type, 5);
    ck_assert(mc_shp_next(shp, &at, &record));
    ck_assert(record.has_box);
    ck_assert_double_eq(record.box.maxx, 20);
    ck_ok(mc_shp_geometry(&geometry, &record, &lattice, pool));
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POLYGONS].part_count, 2);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POLYGONS].point_count, 8);
    ck_assert(!mc_shp_next(shp, &at, &record));
    ck_assert_int_eq(mc_dbf_find(shp->attributes, "name"), 0);
    ck_assert_int_eq(mc_dbf_find(shp->attributes, "none"), -1);
    ck_assert_str_eq(mc_dbf_value(shp->attributes, 0, 0, pool), "Z\xC3\xBCrich");
    ck_assert_str_eq(mc_dbf_value(shp->attributes, 0, 1, pool), "42");
    ck_assert_str_eq(mc_dbf_value(shp->attributes, 1, 0, pool), "Bern");
    ck_assert_ptr_null(mc_dbf_value(shp->attributes, 1, 1, pool));
    ck_assert_ptr_null(mc_dbf_value(shp->attributes, 2, 0, pool));
    w.bytes[100 + 8 + 40] = 200; /* more points than there are */
    at = 0;
    ck_ok(mc_shp_open(&shp, written(folder, "a.shp", w.bytes, w.size), pool));
    ck_assert(mc_shp_next(shp, &at, &record));
    ck_fails(CORRUPT, mc_shp_geometry(&geometry, &record, &lattice, pool));
    ck_ok(mc_shp_open(&shp, written(folder, "a.shp", w.bytes, w.size - 1), pool));
    at = 0;
    ck_assert(!mc_shp_next(shp, &at, &record));
    ck_fails(CORRUPT, mc_shp_open(&shp, written(folder, "a.shp", w.bytes, 99), pool));
    ck_fails(IO, mc_shp_open(&shp, apr_pstrcat(pool, folder, "/none.shp", NULL), pool));
    unlink(path);
    unlink(beside);
    rmdir(folder);
    mc_geometry_free(&geometry);
}
END_TEST

UNIT_MAIN("geometry", polygons_of_all_forms, collections_fill_all_kinds, lies_and_depths_are_refused,
          shapefiles_with_their_tables)
