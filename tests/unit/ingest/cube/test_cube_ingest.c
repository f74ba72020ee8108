#include "cube_fixture.h"

#include <apr_file_io.h>
#include <stdio.h>

#include "mapcache/cube_ingest.h"

static apr_hash_t *formats;
static mc_cube_ingest_options options;
static mc_cube_report report;
static const char *told;
static int images; /* made so far */

static void
tell(void *baton, const mc_cube_event *event)
{
    (void)baton;
    if (event->kind == MC_CUBE_IMAGE_LEFT_OUT)
        told = apr_pstrcat(pool, told, event->message, ";", NULL);
    if (event->kind == MC_CUBE_DATE_LEFT_OUT)
        told = apr_psprintf(pool, "%s[%d];", told, (int)(event->time_us / DAY(1)));
}

static void
set_up(void)
{
    cube_process();
    formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    options = (mc_cube_ingest_options){ .memory = 64 << 20, .scratch = cube_folder, .tell = tell };
    told = "";
}

/* The path of a file that they are stored in. */
static const char *
store(mc_pixels *pixels)
{
    mc_buf *png;
    ck_ok(mc_format_encode(&png, apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING), pixels, MC_ON_THE_FLY, &ctx, pool));
    const char *path = apr_psprintf(pool, "%s/%d.png", cube_folder, images++);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(png->data, 1, png->size, file), png->size);
    fclose(file);
    return path;
}

/* Red is the column, green the row, blue `blue`; transparent where hole holds the pixel. */
static const char *
image(int width, int height, int blue, const mc_cube_window *hole)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, true, pool));
    mc_pixels_attach(pixels, pool);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const uint8_t bgra[4] = { (uint8_t)blue, (uint8_t)(y % 251), (uint8_t)(x % 251), 255 };
            bool gone = hole != NULL && x >= hole->x0 && x < hole->x1 && y >= hole->y0 && y < hole->y1;
            if (!gone)
                memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4, bgra, 4);
        }
    return store(pixels);
}

/* At a column and row of the cube. */
static mc_cube_input
at(const mc_cube *cube, const char *path, int day, int column, int row)
{
    const mc_cube_shape *s = &cube->shape;
    return (mc_cube_input){ path, DAY(day), true, s->extent.minx + column * s->resolution,
                            s->extent.maxy - row * s->resolution };
}

static void
ingest(const mc_cube *cube, const mc_cube_input *inputs, int count)
{
    apr_pool_t *own; /* the writer is done with */
    apr_pool_create(&own, pool);
    ck_ok(mc_cube_ingest(&report, cube, inputs, count, &options, &ctx, own));
    apr_pool_destroy(own);
}

/* Red, green, blue of a pixel of a plane of the whole cube; -1: nothing is known. */
static int
pixel(const mc_cube *cube, const mc_cube_plane *plane, int x, int y)
{
    size_t at = (size_t)y * (size_t)cube->shape.width + (size_t)x;
    const uint8_t *s = plane->samples + 3 * at;
    return plane->present[at] ? s[0] << 16 | s[1] << 8 | s[2] : -1;
}

static apr_array_header_t *
whole(const mc_cube *cube)
{
    return cube_planes(cube, (mc_cube_window){ 0, 0, cube->shape.width, cube->shape.height });
}

START_TEST(the_later_image_of_a_mosaic_is_on_top)
{
    set_up();
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    const mc_cube_window hole = { 5, 5, 10, 10 };
    const mc_cube_input inputs[] = { at(cube, image(40, 30, 1, NULL), 3, 0, 0),
                                     at(cube, image(30, 30, 2, &hole), 3, 20, 15) };
    ingest(cube, inputs, 2);
    ck_assert_int_eq(report.images, 2);
    ck_assert_int_eq(report.dates, 1);
    apr_array_header_t *planes = whole(cube);
    ck_assert_int_eq(planes->nelts, 1);
    const mc_cube_plane *plane = CUBE_PLANE(planes, 0);
    for (int y = 0; y < 50; y++)
        for (int x = 0; x < 60; x++) {
            bool under = x < 40 && y < 30, over = x >= 20 && x < 50 && y >= 15 && y < 45;
            bool gone = x >= 25 && x < 30 && y >= 20 && y < 25;
            int expected = over && !gone ? (x - 20) << 16 | (y - 15) << 8 | 2 : under ? x << 16 | y << 8 | 1 : -1;
            ck_assert_msg(pixel(cube, plane, x, y) == expected, "%d %d", x, y);
        }
    cube_process_end();
}
END_TEST

START_TEST(large_images_are_read_by_rows)
{
    set_up();
    const mc_cube *cube = cube_in_file("<srs>EPSG:3857</srs><extent>0 0 1500 900</extent><resolution>1</resolution>");
    const mc_cube_window hole = { 700, 600, 900, 700 };
    const char *path = image(2200, 2000, 7, &hole); /* reaches beyond all sides */
    for (int spooled = 0; spooled < 2; spooled++) {
        const mc_cube_input input = at(cube, path, spooled, -300, -400);
        options.memory = spooled ? 1 << 20 : 64 << 20;
        ingest(cube, &input, 1);
        ck_assert_int_eq(report.spooled, spooled);
    }
    apr_array_header_t *planes = whole(cube);
    ck_assert_int_eq(planes->nelts, 2);
    for (int i = 0; i < 2; i++)
        for (int y = 0; y < 900; y++)
            for (int x = 0; x < 1500; x++) {
                bool gone = x + 300 >= 700 && x + 300 < 900 && y + 400 >= 600 && y + 400 < 700;
                int expected = gone ? -1 : (x + 300) % 251 << 16 | (y + 400) % 251 << 8 | 7;
                ck_assert_msg(pixel(cube, CUBE_PLANE(planes, i), x, y) == expected, "%d %d", x, y);
            }
    cube_process_end();
}
END_TEST

START_TEST(dates_keep_their_slots_and_new_ones_follow)
{
    set_up();
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    apr_array_header_t *dates;
    for (int turn = 0; turn < 2; turn++) {
        mc_cube_input inputs[6];
        for (int i = 0; i < 6; i++)
            inputs[i] = at(cube, image(60, 50, 10 * turn + i, NULL), 20 - 2 * i - turn * (i % 2), 0, 0);
        ingest(cube, inputs, 6);
        ck_assert_int_eq(report.dates, turn == 0 ? 6 : 3);
        ck_assert_int_eq(report.corrected, turn == 0 ? 0 : 3);
    }
    ck_assert_int_eq(report.rewritten, 2 * 3 * 2); /* slots 0 to 3 and 4 to 7 of 6 places */
    ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 100, &ctx, pool));
    static const int days[] = { 9, 10, 13, 14, 17, 18, 12, 16, 20 };
    ck_assert_int_eq(dates->nelts, 9);
    bool used[12] = { false };
    for (int i = 0; i < 9; i++) {
        const mc_cube_date *date = &APR_ARRAY_IDX(dates, i, mc_cube_date);
        int day = (int)(date->time_us / DAY(1)), slot = date->t * 4 + date->slot, found = 0;
        for (int j = 0; j < 9; j++)
            found += days[j] == day;
        ck_assert_int_eq(found, 1);
        ck_assert(slot < 9 && !used[slot]);
        used[slot] = true;
    }
    cube_process_end();
}
END_TEST

START_TEST(an_ingestion_that_is_stopped_keeps_whole_dates)
{
    set_up();
    static volatile int stop = 1;
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    const mc_cube_input input = at(cube, image(60, 50, 1, NULL), 1, 0, 0);
    options.stop = &stop;
    ingest(cube, &input, 1);
    ck_assert_int_eq(report.images, 0);
    ck_assert_int_eq(whole(cube)->nelts, 0);
    stop = 0;
    ingest(cube, &input, 1);
    ck_assert_int_eq(whole(cube)->nelts, 1);
    cube_process_end();
}
END_TEST

static int most_threads; /* of this process at an event */

static void
count_threads(void *baton, const mc_cube_event *event)
{
    apr_dir_t *folder;
    apr_finfo_t entry;
    int count = 0;
    (void)baton, (void)event;
    ck_assert_int_eq(apr_dir_open(&folder, "/proc/self/task", pool), APR_SUCCESS);
    while (apr_dir_read(&entry, APR_FINFO_NAME, folder) == APR_SUCCESS)
        count += entry.name[0] != '.';
    apr_dir_close(folder);
    most_threads = count > most_threads ? count : most_threads;
}

START_TEST(as_many_threads_decode_as_are_asked_for)
{
    set_up();
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    const mc_cube_input input = at(cube, image(60, 50, 1, NULL), 1, 0, 0);
    int seen[2];
    options.tell = count_threads;
    for (int i = 0; i < 2; i++) {
        options.threads = i == 0 ? 1 : 9;
        most_threads = 0;
        ingest(cube, &input, 1);
        seen[i] = most_threads;
    }
    ck_assert_msg(seen[1] - seen[0] >= 7, "%d and %d threads", seen[0], seen[1]); /* the decoding one may have ended */
    ck_assert_int_le(seen[1] - seen[0], 9);
    cube_process_end();
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_with_its_date)
{
    set_up();
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    const char *path = image(20, 20, 1, NULL);
    mc_cube_input between = at(cube, path, 2, 1, 1);
    between.left += 0.3;
    mc_cube_input far = at(cube, path, 3, 0, 0);
    far.left = 1e300;
    const mc_cube_input inputs[] = { at(cube, path, 1, 0, 0),
                                     at(cube, path, 2, 30, 20),
                                     between,
                                     far,
                                     at(cube, path, 4, 5, 5),
                                     at(cube, path, 4, 5, 5),
                                     at(cube, path, 5, -20, 0),
                                     at(cube, "/nowhere.png", 6, 0, 0),
                                     at(cube, path, 7, 0, 0) };
    ingest(cube, inputs, 9);
    ck_assert_int_eq(report.images, 2);
    ck_assert_int_eq(report.left_out, 7);
    ck_assert_int_eq(whole(cube)->nelts, 2);
    static const char *const words[] = { "between those of cube", "[2];", "far outside",  "[3];",
                                         "same date and place",   "[4];", "outside cube", "[5];",
                                         "/nowhere.png",          "[6];" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ck_assert_msg(strstr(told, words[i]) != NULL, "\"%s\" is not in %s", words[i], told);
    cube_process_end();
}
END_TEST

/* What was in memory before does not get into the store beside the pixels that are known. */
START_TEST(unknown_pixels_are_stored_as_zeros)
{
    set_up();
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    const mc_cube_input inputs[] = { at(cube, image(30, 26, 9, NULL), 1, 0, 0),   /* a chunk, and 4 columns of one */
                                     at(cube, image(28, 27, 9, NULL), 2, 0, 0) }; /* at another date, and a row */
    ingest(cube, inputs, 2);
    mc_stamp stamp;
    mc_handle *handle;
    sqlite3_stmt *chunks;
    mc_open_options how = { .write = false };
    how.profile = mc_open_options_profile(&how);
    const char *path = apr_pstrcat(pool, cube_folder, "/cube.db", NULL);
    ck_assert(mc_stamp_take(&stamp, path));
    ck_ok(mc_handle_acquire(&handle, process.handles, path, &stamp, &how, &ctx, pool));
    ck_ok(mc_handle_statement(&chunks, handle, "SELECT data FROM chunks WHERE t = 0 AND y = 0 AND x = 1", pool));
    ck_assert_int_eq(sqlite3_step(chunks), SQLITE_ROW);
    const uint8_t *data = sqlite3_column_blob(chunks, 0);
    ck_assert_int_eq(sqlite3_column_bytes(chunks, 0), 2 * 26 * 26 * 3);
    for (int i = 0; i < 2 * 26 * 26; i++, data += 3) {
        bool known = i % 26 < (i < 26 * 26 ? 4 : 2);
        ck_assert_msg((data[2] == 9) == known && (known || data[0] + data[1] == 0), "pixel %d is %d", i, data[2]);
    }
    sqlite3_reset(chunks);
    mc_handle_release(handle, true);
    cube_process_end();
}
END_TEST

/* --- overviews */

/* What a level is at a date; samples of up to 4 bands, and whether they are known. */
typedef struct level {
    int width, height, bands;
    uint8_t *samples, *known;
} level;

static void
take_run(void *baton, const mc_cube_run *run)
{
    const level *l = baton;
    for (int i = 0; i < run->count; i++) {
        size_t place = (size_t)run->y * (size_t)l->width + (size_t)(run->x + i);
        if (l->known[place])
            ck_abort_msg("%d %d is given twice", run->x + i, run->y);
        l->known[place] = mc_cube_run_knows(run, i);
        memcpy(l->samples + place * (size_t)l->bands, run->samples + i * l->bands, (size_t)l->bands);
    }
}

static level
read_level(const mc_cube *cube, int number, int day)
{
    const mc_cube_shape *shape = mc_cube_level(cube, number);
    size_t pixels = (size_t)shape->width * (size_t)shape->height;
    level l = { shape->width, shape->height, shape->bands, apr_pcalloc(pool, pixels * 4), apr_pcalloc(pool, pixels) };
    const mc_cube_window all = { 0, 0, l.width, l.height };
    ck_ok(mc_cube_scan(cube, number, DAY(day), &all, take_run, &l, &ctx, pool));
    return l;
}

/* One pixel of a level by the four below it, as cube_overview.h has it. -1 in out[0]: not known. */
static void
expect(int out[4], const level *fine, int x, int y)
{
    int count = 0, known = 0, alphas = 0, sums[4] = { 0 }, colors = fine->bands == 4 ? 3 : fine->bands;
    for (int i = 0; i < 4; i++) {
        int column = 2 * x + i % 2, row = 2 * y + i / 2;
        if (column >= fine->width || row >= fine->height)
            continue;
        const uint8_t *s = fine->samples + (size_t)(row * fine->width + column) * (size_t)fine->bands;
        int there = fine->known[row * fine->width + column], alpha = !there ? 0 : fine->bands == 4 ? s[3] : 1;
        count++;
        known += there;
        alphas += alpha;
        for (int band = 0; band < colors; band++)
            sums[band] += alpha * s[band];
    }
    out[0] = -1;
    if (known == 0 || (fine->bands != 4 && 2 * known < count))
        return;
    for (int band = 0; band < colors; band++)
        out[band] = alphas == 0 ? 0 : (sums[band] + alphas / 2) / alphas;
    out[3] = (alphas + count / 2) / count;
}

static void
check_levels(const mc_cube *cube, int day)
{
    level fine = read_level(cube, 0, day);
    for (int number = 1; number <= cube->overview_count; number++) {
        level coarse = read_level(cube, number, day);
        for (int y = 0; y < coarse.height; y++)
            for (int x = 0; x < coarse.width; x++) {
                int expected[4], place = y * coarse.width + x;
                expect(expected, &fine, x, y);
                bool wrong = coarse.known[place] != (expected[0] >= 0);
                for (int band = 0; band < coarse.bands && expected[0] >= 0; band++)
                    wrong = wrong || coarse.samples[place * coarse.bands + band] != expected[band];
                if (wrong)
                    ck_abort_msg("level %d: %d %d", number, x, y);
            }
        fine = coarse;
    }
}

/* Noise, transparent here and there; of an alpha of its own in each pixel where `soft`. */
static const char *
noise(int width, int height, unsigned seed, bool soft)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, true, pool));
    mc_pixels_attach(pixels, pool);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            seed = seed * 1664525 + 1013904223;
            unsigned alpha = (x / 5 + y / 7) % 4 == 0 ? 0 : soft ? seed >> 24 : 255;
            for (int band = 0; band < 4; band++)
                pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + (size_t)band] =
                    (uint8_t)(band == 3 ? alpha : (seed >> 8 * band & 255) * alpha / 255);
        }
    return store(pixels);
}

/* Of 101 by 75 pixels, whose chunks have so many dates. */
static const mc_cube *
odd_cube(int kind, int dates, int overviews)
{
    static const char *const kinds[] = { "gray", "rgb", "rgba" };
    return cube_in_file(apr_psprintf(pool,
                                     "<srs>EPSG:3857</srs><extent>0 0 101 75</extent><resolution>1</resolution>"
                                     "<bands>%s</bands><chunk>8 6 %d</chunk><overviews>%d</overviews>",
                                     kinds[kind], dates, overviews));
}

/* Mosaics, corrections and additions of odd sizes at odd places; later turns bring more dates. */
static void
add_odd_images(const mc_cube *cube, int turn, int variant)
{
    mc_cube_input inputs[8];
    for (int j = 0; j < 8; j++) {
        int seed = 100 * turn + 10 * j + variant, width = 7 + seed * 31 % 80, height = 5 + seed * 17 % 60;
        inputs[j] = at(cube, noise(width, height, (unsigned)seed, cube->shape.bands == 4),
                       1 + (seed * 7 + turn) % (3 + 2 * turn), seed * 13 % 90, seed * 11 % 70);
    }
    ingest(cube, inputs, 8);
    ck_assert_int_eq(report.left_out, 0);
}

/* Of all dates; how many there are. */
static int
check_all_levels(const mc_cube *cube)
{
    apr_array_header_t *dates;
    ck_ok(mc_cube_dates(&dates, cube, NULL, 0, 100, &ctx, pool));
    for (int i = 0; i < dates->nelts; i++)
        check_levels(cube, (int)(APR_ARRAY_IDX(dates, i, mc_cube_date).time_us / DAY(1)));
    return dates->nelts;
}

/* In memory, and by way of files. */
START_TEST(overviews_are_the_means_of_what_is_below)
{
    set_up();
    for (int i = 0; i < 6; i++) {
        const mc_cube *cube = odd_cube(i % 3, 3, i < 3 ? 16 : 2);
        ck_assert_int_eq(cube->overview_count, i < 3 ? 7 : 2);
        options.memory = i < 3 ? 64 << 20 : 4000;
        for (int turn = 0; turn < 3; turn++) {
            add_odd_images(cube, turn, i);
            ck_assert_int_eq(report.spooled, i >= 3);
            ck_assert_int_gt(check_all_levels(cube), 0);
        }
        ck_assert_int_eq(unlink(apr_pstrcat(pool, cube_folder, "/cube.db", NULL)), 0);
    }
    cube_process_end();
}
END_TEST

static volatile int stop_making;

static void
stop_at_once(void *baton, const mc_cube_event *event)
{
    (void)baton, (void)event;
    stop_making = 1;
}

static void
make_overviews(const mc_cube *cube)
{
    apr_pool_t *own;
    apr_pool_create(&own, pool);
    ck_ok(mc_cube_make_overviews(&report, cube, &options, &ctx, own));
    apr_pool_destroy(own);
}

START_TEST(overviews_can_be_made_later_more_or_fewer)
{
    set_up();
    options.stop = &stop_making;
    for (int i = 0; i < 6; i++) {
        const mc_cube *plain = odd_cube(i % 3, 2, 0), *more = odd_cube(i % 3, 2, 5), *fewer = odd_cube(i % 3, 2, 2);
        apr_array_header_t *dates;
        for (int turn = 0; turn < 2; turn++)
            add_odd_images(plain, turn, i);
        options.memory = i < 3 ? 64 << 20 : 2000; /* of each date alone */
        options.tell = stop_at_once;
        make_overviews(more);
        ck_assert(report.dates == (i < 3 ? 2 : 1) && report.chunks > 0);
        stop_making = 0;
        ck_assert_int_ge(check_all_levels(plain), 3);
        ck_fails(CONFIG, mc_cube_dates(&dates, more, NULL, 0, 1, &ctx, pool));
        options.tell = NULL;
        add_odd_images(plain, 2, i); /* what was made before it is not up to date any more */
        make_overviews(more);
        int count = report.dates;
        ck_assert_int_eq(check_all_levels(more), count);
        ck_fails(CONFIG, mc_cube_dates(&dates, plain, NULL, 0, 1, &ctx, pool));
        make_overviews(more);
        ck_assert(report.dates == 0 && report.chunks == 0);
        make_overviews(fewer);
        add_odd_images(fewer, 3, i);
        ck_assert_int_ge(check_all_levels(fewer), count);
        make_overviews(plain);
        ck_assert(report.dates >= count && report.chunks == 0 && check_all_levels(plain) == report.dates);
        ck_fails(CONFIG, mc_cube_make_overviews(&report, odd_cube(i % 3, 3, 1), &options, &ctx, pool));
        ck_assert_int_eq(unlink(apr_pstrcat(pool, cube_folder, "/cube.db", NULL)), 0);
        options.memory = 64 << 20;
    }
    cube_process_end();
}
END_TEST

START_TEST(a_wide_image_with_tall_chunks_is_read_some_rows_at_a_time)
{
    enum { WIDTH = 16000, HEIGHT = 550 };
    set_up();
    const mc_cube *cube = cube_in_file("<srs>EPSG:3857</srs><extent>0 0 16000 550</extent><resolution>1</resolution>"
                                       "<chunk>500 500 1</chunk><overviews>0</overviews>");
    const mc_cube_window hole = { 3000, 200, 3100, 420 };
    const char *path = image(WIDTH, HEIGHT, 9, &hole); /* 262 rows at a time */
    for (int spooled = 0; spooled < 2; spooled++) {
        const mc_cube_input input = at(cube, path, spooled, 0, 0);
        options.memory = spooled ? 16 << 20 : (int64_t)256 << 20;
        ingest(cube, &input, 1);
        ck_assert_int_eq(report.spooled, spooled);
        level found = read_level(cube, 0, spooled);
        int wrong = 0; /* an assertion for each pixel takes a minute */
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                size_t place = (size_t)y * WIDTH + (size_t)x;
                const uint8_t *s = found.samples + 3 * place;
                bool gone = x >= 3000 && x < 3100 && y >= 200 && y < 420;
                wrong += found.known[place] == gone || (!gone && (s[0] != x % 251 || s[1] != y % 251 || s[2] != 9));
            }
        ck_assert_int_eq(wrong, 0);
    }
    cube_process_end();
}
END_TEST

UNIT_MAIN("cube_ingest", overviews_are_the_means_of_what_is_below, overviews_can_be_made_later_more_or_fewer,
          a_wide_image_with_tall_chunks_is_read_some_rows_at_a_time, the_later_image_of_a_mosaic_is_on_top,
          large_images_are_read_by_rows, dates_keep_their_slots_and_new_ones_follow,
          an_ingestion_that_is_stopped_keeps_whole_dates, what_does_not_fit_is_left_out_with_its_date,
          unknown_pixels_are_stored_as_zeros, as_many_threads_decode_as_are_asked_for)
