#include "cube_fixture.h"

#include "postgres.h"

static int tables;      /* a number for each cube */
static apr_pool_t *own; /* of writers, which end before the process does */

static void
set_up_cubes(void)
{
    postgres_set_up(8);
    cube_process();
    apr_pool_create(&own, pool);
}

static void
tear_down_cubes(void)
{
    apr_pool_destroy(own);
    cube_process_end();
    postgres_tear_down();
}

static const mc_cube *
cube_of(bool sqlite, const char *shape)
{
    if (sqlite)
        return cube_in_file(shape);
    const char *where = apr_psprintf(pool, "<connection>%s</connection><table>a \"b\" '%d'.c$d</table>",
                                     database_connection(&postgres_server), tables);
    const mc_cube *cube = cube_from("postgresql", where, shape, NULL);
    ck_assert_ptr_nonnull(cube);
    return cube;
}

/* A schema of that odd name: names are quoted wherever they stand. */
static void
new_schema(void)
{
    database_do(&postgres_server, apr_psprintf(pool, "sql create schema \"a \"\"b\"\" '%d'\"",
                                               tables = tables == 0 ? getpid() * 100 : tables + 1));
}

#define SMALL CUBE_PLACE "<bands>gray</bands><chunk>32 32 2</chunk>"

static mc_error *
put(mc_cube_writer *writer, int t, int y, int x, const char *cover, size_t cover_size, uint8_t value, size_t size)
{
    uint8_t *data = apr_palloc(pool, size);
    memset(data, value, size);
    const mc_cube_chunk chunk = { t, y, x, cover, data, cover_size, size };
    return writer->ops->put(writer, &chunk);
}

static mc_error *
take_none(void *baton, const mc_cube_chunk *chunk)
{
    ++*(int *)baton;
    ck_assert_uint_eq(chunk->data_size, 32 * 18 * 2);
    return MC_OK;
}

static mc_error *
count_dates(void *baton, const mc_cube_date *date)
{
    *(int *)baton = *(int *)baton * 10 + date->slot + 1;
    return MC_OK;
}

START_TEST(a_store_gives_back_what_was_committed)
{
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        static const char cover[] = "\0\2\1\0";
        mc_cube_writer *writer;
        int taken = 0, listed = 0;
        new_schema();
        const mc_cube *cube = cube_of(sqlite, SMALL);
        const mc_cube_window all = { 0, 0, 60, 50 }, some = { 30, 31, 34, 35 };
        ck_assert_int_eq(cube_planes(cube, all)->nelts, 0); /* no tables, no file */
        ck_ok(cube->ops->write(&writer, cube, &ctx, own));
        ck_ok(cube->ops->begin(writer));
        ck_ok(put(writer, 0, 0, 0, NULL, 0, 11, 32 * 32 * 2));
        ck_ok(put(writer, 0, 1, 0, NULL, 0, 22, 32 * 18 * 2));
        ck_ok(put(writer, 0, 0, 1, cover, 4, 33, 28 * 32 * 2));
        ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(2), 0, 0, 0 }));
        ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(1), 0, 1, 0 }));
        ck_assert_int_eq(cube_planes(cube, all)->nelts, 0); /* not committed */
        ck_ok(cube->ops->commit(writer));
        apr_array_header_t *planes = cube_planes(cube, some);
        ck_assert_int_eq(planes->nelts, 2);
        ck_assert_int_eq(CUBE_PLANE(planes, 0)->time_us, DAY(1));
        const mc_cube_plane *late = CUBE_PLANE(planes, 1);
        static const uint8_t expected[] = { 11, 11, 33, 33, 22, 22, 0, 0, 22, 22, 0, 0, 22, 22, 0, 0 };
        for (int i = 0; i < 16; i++) {
            ck_assert_int_eq(late->present[i], expected[i] != 0);
            ck_assert_int_eq(late->present[i] ? late->samples[i] : 0, expected[i]);
            ck_assert_int_eq(CUBE_PLANE(planes, 0)->present[i], expected[i] == 11 || expected[i] == 22);
        }
        ck_ok(cube->ops->begin(writer));
        ck_ok(cube->ops->writer_dates(writer, count_dates, &listed));
        ck_assert_int_eq(listed, 12); /* the latest, in slot 0, first */
        ck_ok(cube->ops->take_out(writer, 0, 1, 0, 5, false, take_none, &taken));
        ck_assert_int_eq(taken, 1);
        ck_fails(IO, cube->ops->put_date(writer, &(mc_cube_date){ DAY(3), 0, 1, 0 })); /* the place of another one */
        apr_pool_clear(own);                                                           /* not committed */
        ck_assert_int_eq(CUBE_PLANE(cube_planes(cube, some), 1)->present[4], 1);
    }
}
END_TEST

/* What is left of a first ingestion that was cut off before it had made the tables. */
START_TEST(a_file_without_tables_has_no_dates)
{
    mc_cube_writer *writer;
    apr_array_header_t *dates;
    const mc_cube *cube = cube_in_file(SMALL);
    FILE *file = fopen(apr_pstrcat(pool, cube_folder, "/cube.db", NULL), "wb");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 1, &ctx, pool));
    ck_assert_int_eq(dates->nelts, 0);
    ck_assert_int_eq(cube_planes(cube, (mc_cube_window){ 0, 0, 1, 1 })->nelts, 0);
    ck_ok(cube->ops->write(&writer, cube, &ctx, own));
    ck_ok(cube->ops->begin(writer));
    ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(1), 0, 0, 0 }));
    ck_ok(cube->ops->commit(writer));
    ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 1, &ctx, pool));
    ck_assert_int_eq(dates->nelts, 1);
}
END_TEST

/* There may be dates in it: a time line without them would be wrong. */
START_TEST(a_file_that_cannot_be_looked_at_is_an_error)
{
    apr_array_header_t *dates;
    const mc_cube *cube = cube_in_file(SMALL);
    const char *path = apr_pstrcat(pool, cube_folder, "/cube.db", NULL);
    ck_assert_int_eq(symlink(path, path), 0); /* ELOOP, also for root */
    ck_fails(IO, mc_cube_dates(&dates, cube, NULL, 0, 1, &ctx, pool));
    ck_assert_int_eq(unlink(path), 0);
    ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 1, &ctx, pool));
    ck_assert_int_eq(dates->nelts, 0);
}
END_TEST

START_TEST(spans_and_bounds_choose_dates)
{
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        mc_cube_writer *writer;
        apr_array_header_t *dates;
        new_schema();
        const mc_cube *cube = cube_of(sqlite, SMALL);
        ck_ok(cube->ops->write(&writer, cube, &ctx, own));
        ck_ok(cube->ops->begin(writer));
        for (int i = 0; i < 10; i++)
            ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(i - 3), i / 2, i % 2, 0 }));
        ck_ok(cube->ops->commit(writer));
        apr_pool_clear(own);
        ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 3, &ctx, pool));
        ck_assert_int_eq(dates->nelts, 3);
        ck_assert_int_eq(APR_ARRAY_IDX(dates, 2, mc_cube_date).time_us, DAY(6));
        const mc_time_span spans[] = { { DAY(4), DAY(6) }, { DAY(-3), DAY(-2) }, { DAY(9), DAY(2) } };
        ck_ok(mc_cube_dates(&dates, cube, spans, 3, 100, &ctx, pool));
        ck_assert_int_eq(dates->nelts, 3);
        ck_assert_int_eq(APR_ARRAY_IDX(dates, 0, mc_cube_date).time_us, DAY(-3));
        ck_assert_int_eq(APR_ARRAY_IDX(dates, 1, mc_cube_date).time_us, DAY(4));
        ck_assert_int_eq(APR_ARRAY_IDX(dates, 1, mc_cube_date).t, 3);
        apr_array_header_t *planes;
        const mc_cube_window window = { 0, 0, 1, 1 };
        ck_ok(mc_cube_read(&planes, cube, spans, 2, 2, &window, &ctx, pool));
        ck_assert_int_eq(planes->nelts, 2); /* the latest two, without a pixel */
        ck_assert_int_eq(CUBE_PLANE(planes, 0)->time_us, DAY(4));
        ck_assert_int_eq(CUBE_PLANE(planes, 0)->present[0], 0);
    }
}
END_TEST

START_TEST(another_shape_is_refused)
{
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        mc_cube_writer *writer;
        apr_array_header_t *dates;
        new_schema();
        const mc_cube *cube = cube_of(sqlite, SMALL);
        ck_ok(cube->ops->write(&writer, cube, &ctx, own));
        ck_ok(cube->ops->begin(writer));
        ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(1), 0, 0, 0 }));
        ck_ok(cube->ops->commit(writer));
        apr_pool_clear(own);
        const mc_cube *other = cube_of(sqlite, CUBE_PLACE "<bands>gray</bands><chunk>32 32 3</chunk>");
        const mc_cube_window window = { 0, 0, 1, 1 };
        ck_fails(CONFIG, mc_cube_dates(&dates, other, NULL, 0, 1, &ctx, pool));
        ck_fails(CONFIG, mc_cube_read(&dates, other, NULL, 0, 1, &window, &ctx, pool));
        ck_fails(CONFIG, cube->ops->write(&writer, other, &ctx, own));
        ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 1, &ctx, pool));
    }
}
END_TEST

START_TEST(chunks_that_cannot_be_are_told)
{
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        static const char *const covers[] = { "\0", "\0\1\7", "\0\1\2", "" };
        const mc_cube_window window = { 0, 0, 8, 8 };
        for (int i = 0; i < 4; i++) {
            mc_cube_writer *writer;
            apr_array_header_t *planes;
            new_schema();
            const mc_cube *cube = cube_of(sqlite, SMALL);
            ck_ok(cube->ops->write(&writer, cube, &ctx, own));
            ck_ok(cube->ops->begin(writer));
            ck_ok(put(writer, 0, 0, 0, covers[i], i == 0 ? 1 : i == 3 ? 0 : 3, 1, i == 3 ? 100 : 1024));
            ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(1), 0, 0, 0 }));
            ck_ok(cube->ops->commit(writer));
            ck_fails(CORRUPT, mc_cube_read(&planes, cube, NULL, 0, 1, &window, &ctx, pool));
            apr_pool_clear(own);
            unlink(apr_pstrcat(pool, cube_folder, "/cube.db", NULL));
        }
    }
}
END_TEST

START_TEST(too_much_at_once_is_refused)
{
    mc_cube_writer *writer;
    apr_array_header_t *planes;
    const mc_cube *cube = cube_in_file("<srs>EPSG:3857</srs><extent>0 0 8000 8000</extent><resolution>1</resolution>");
    const mc_cube_window window = { 0, 0, 8000, 8000 };
    ck_ok(cube->ops->write(&writer, cube, &ctx, own));
    ck_ok(cube->ops->begin(writer));
    ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(1), 0, 0, 0 }));
    ck_ok(cube->ops->commit(writer));
    ck_fails(LIMIT, mc_cube_read(&planes, cube, NULL, 0, 1, &window, &ctx, pool));
}
END_TEST

START_TEST(configurations_that_cannot_be_are_told)
{
    static const struct {
        const char *shape, *words;
    } rows[] = {
        { "<srs>EPSG:3857</srs><extent>0 0 60 50</extent>", "resolution" },
        { "<srs>EPSG:3857</srs><extent>0 0 60 50</extent><resolution>7</resolution>", "whole number of pixels" },
        { "<srs>EPSG:3857</srs><extent>60 0 0 50</extent><resolution>1</resolution>", "east above west" },
        { "<srs>EPSG:3857</srs><extent>0 0 60</extent><resolution>1</resolution>", "extent" },
        { "<srs>EPSG:3857</srs><extent>0 0 1e9 50</extent><resolution>1</resolution>", "at most" },
        { CUBE_PLACE "<chunk>26 26</chunk>", "chunk" },
        { CUBE_PLACE "<chunk>26 26 0</chunk>", "columns, rows" },
        { CUBE_PLACE "<chunk>512 512 4096</chunk>", "bytes together" },
        { CUBE_PLACE "<bands>infrared</bands>", "bands" },
        { "<extent>0 0 60 50</extent><resolution>1</resolution>", "srs" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *complaint;
        ck_assert_ptr_null(cube_from("sqlite3", "<dbfile>x</dbfile>", rows[i].shape, &complaint));
        ck_assert_msg(strstr(complaint, rows[i].words) != NULL, "\"%s\" is not in: %s", rows[i].words, complaint);
    }
    const char *complaint;
    ck_assert_ptr_null(cube_from("tape", "", CUBE_PLACE, &complaint));
    ck_assert_ptr_nonnull(strstr(complaint, "postgresql, sqlite3"));
}
END_TEST

/* PostgreSQL cuts names off after 63 bytes: three tables would be one. */
START_TEST(names_of_tables_are_checked)
{
    static const struct {
        int length; /* of a name behind `before` */
        const char *before, *after;
        bool good;
    } rows[] = { { 57, "", "", true }, { 58, "", "", false },    { 63, "", "", false }, { 57, "maps.", "", true },
                 { 0, "", "", false }, { 1, "a.b.", "", false }, { 1, ".", "", false }, { 1, "", ".", false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64] = "";
        const char *complaint;
        memset(name, 'n', (size_t)rows[i].length);
        const char *where = apr_pstrcat(pool, "<connection>dbname=x</connection><table>", rows[i].before, name,
                                        rows[i].after, "</table>", NULL);
        const mc_cube *cube = cube_from("postgresql", where, CUBE_PLACE, &complaint);
        ck_assert_msg((cube != NULL) == rows[i].good, "row %d: %s", (int)i, complaint);
        ck_assert(rows[i].good || strstr(complaint, "at most 57 bytes") != NULL);
    }
}
END_TEST

START_TEST(the_default_chunk_fills_a_page)
{
    static const char *const bands[] = { "gray", "rgb", "rgba" };
    for (int i = 0; i < 3; i++) {
        const mc_cube *cube = cube_from("sqlite3", "<dbfile>x</dbfile>",
                                        apr_psprintf(pool, CUBE_PLACE "<bands>%s</bands>", bands[i]), NULL);
        const mc_cube_shape *s = &cube->shape;
        ck_assert_int_eq(s->chunk_width * s->chunk_height * s->chunk_dates * s->bands, 8112);
        ck_assert(s->columns == 3 && s->rows == 2);
    }
}
END_TEST

POSTGRES_MAIN_BETWEEN("cube", set_up_cubes, tear_down_cubes, a_store_gives_back_what_was_committed,
                      spans_and_bounds_choose_dates, another_shape_is_refused, chunks_that_cannot_be_are_told,
                      too_much_at_once_is_refused, configurations_that_cannot_be_are_told, names_of_tables_are_checked,
                      the_default_chunk_fills_a_page, a_file_without_tables_has_no_dates,
                      a_file_that_cannot_be_looked_at_is_an_error)
