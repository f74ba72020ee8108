/* Opening a shapefile that has changed, or its overviews, takes time: whoever opens stops at the own deadline, and the
 * next one goes on; whoever waits for another one ends at the own deadline as well. */
#include "vector/shapefile/shapefile.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "unit.h"
#include "vector/feature/reading.h"
#include "vector/levels/level_writer.h"
#include "vector/shapefile/shapefile_levels.h"

enum { HEAD = 100, RECORDS = 40, RECORD = 300000, POINT = 1, STYLE = 77, BLOCKS = 40000 };

static char folder[] = "/tmp/mapcache-shp-opening-XXXXXX";

static const char *
path_of(const char *name)
{
    return apr_pstrcat(pool, folder, name, NULL);
}

static void
make_folder(void)
{
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Files that were changed a while ago: what is read of fresh ones is not kept. */
static void
make_old(int fd)
{
    const struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
    struct stat status;
    ck_assert_int_eq(futimens(fd, times), 0);
    do {
        ck_assert_int_eq(fstat(fd, &status), 0);
    } while ((apr_time_t)status.st_ctim.tv_sec * APR_USEC_PER_SEC + status.st_ctim.tv_nsec / 1000 + 60000 >
             apr_time_now());
}

/* Points far from each other: each is read by itself. */
static void
write_points(bool listed)
{
    uint8_t head[HEAD] = { 0 }, record[28] = { 0 };
    const int shapes = open(path_of("/a.shp"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int entries = listed ? open(path_of("/a.shx"), O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    (void)mc_store_big32(head, 9994);
    (void)mc_store_little32(head + 32, POINT);
    (void)mc_store_little_double(mc_store_little_double(head + 52, RECORDS), RECORDS);
    ck_assert_int_eq(pwrite(shapes, head, HEAD, 0), HEAD);
    ck_assert(!listed || pwrite(entries, head, HEAD, 0) == HEAD);
    for (int i = 0; i < RECORDS; i++) {
        const off_t at = HEAD + (off_t)i * (8 + RECORD);
        uint8_t entry[8];
        (void)mc_store_big32(record, (uint32_t)i + 1);
        (void)mc_store_big32(record + 4, RECORD / 2);
        (void)mc_store_little32(record + 8, POINT);
        (void)mc_store_little_double(mc_store_little_double(record + 12, i), i);
        ck_assert_int_eq(pwrite(shapes, record, sizeof(record), at), sizeof(record));
        (void)mc_store_big32(entry, (uint32_t)(at / 2));
        (void)mc_store_big32(entry + 4, RECORD / 2);
        ck_assert(!listed || pwrite(entries, entry, 8, HEAD + 8 * i) == 8);
    }
    ck_assert_int_eq(ftruncate(shapes, HEAD + (off_t)RECORDS * (8 + RECORD)), 0);
    make_old(shapes);
    close(shapes);
    if (listed)
        close(entries);
}

static void
remove_files(void)
{
    unlink(path_of("/a.shx"));
    unlink(path_of("/a.shp"));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- A map that another one waits for ---- */

/* Its client is asked for while the map opens files: it stands there. */
typedef struct opener {
    pthread_t thread;
    pthread_mutex_t lock; /* of the next two */
    pthread_cond_t changed;
    bool inside, free;
    mc_error *(*open)(void *data, mc_ctx *ctx, apr_pool_t *own);
    void *data;
    mc_error *error;
    apr_pool_t *pool;
} opener;

static bool
stand_still(void *baton)
{
    opener *o = baton;
    pthread_mutex_lock(&o->lock);
    o->inside = true;
    pthread_cond_signal(&o->changed);
    while (!o->free)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
    return false;
}

static void *
run_opener(void *data)
{
    opener *o = data;
    mc_ctx ctx = { .pool = o->pool, .log = &mc_log_stderr, .abandoned = stand_still, .abandoned_baton = o };
    o->error = o->open(o->data, &ctx, o->pool);
    return NULL;
}

static void
begin_opener(opener *o)
{
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    apr_pool_create(&o->pool, NULL);
    ck_assert_int_eq(pthread_create(&o->thread, NULL, run_opener, o), 0);
    pthread_mutex_lock(&o->lock);
    while (!o->inside)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

static void
end_opener(opener *o)
{
    pthread_mutex_lock(&o->lock);
    o->free = true;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->thread, NULL);
    ck_assert(o->error == MC_OK);
    apr_pool_destroy(o->pool);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
}

/* A second one ends at its deadline while the first one stands there, and a third one has what the first one opened. */
static void
check_waiting(mc_error *(*open)(void *data, mc_ctx *ctx, apr_pool_t *own), void *data)
{
    opener first = { .open = open, .data = data };
    begin_opener(&first);
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr, .deadline = mc_clock_now() + 20000 };
    mc_error *error = open(data, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error->message, "being opened"));
    mc_error_ignore(error);
    ck_assert_int_ge(mc_clock_now(), ctx.deadline);
    end_opener(&first);
    ctx.deadline = mc_clock_now() - 1; /* nothing is opened any more */
    ck_assert(open(data, &ctx, pool) == MC_OK);
}

/* How many tries without time a thing takes to open. */
static int
count_tries(mc_error *(*open)(void *data, mc_ctx *ctx, apr_pool_t *own), void *data)
{
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr, .deadline = mc_clock_now() - 1 };
    mc_error *error;
    int tries = 1;
    for (; (error = open(data, &ctx, pool)) != MC_OK && tries < 1000; tries++) {
        ck_assert_int_eq(error->kind, MC_ERR_UNAVAILABLE);
        mc_error_ignore(error);
    }
    mc_error_ignore(error);
    return tries;
}

static mc_error *
find_place(void *data, mc_ctx *ctx, apr_pool_t *own)
{
    mc_feature_data *shapes = data;
    mc_place place = { 0 };
    MC_TRY(shapes->ops->place(&place, shapes, ctx, own));
    ck_assert(place.known);
    ck_assert(place.box.maxx == RECORDS);
    return MC_OK;
}

static mc_error *
count_point(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    (void)feature;
    (void)ctx;
    ++*(int *)baton;
    return MC_OK;
}

static void
check_points(mc_feature_data *data)
{
    const mc_feature_query query = {
        .srs = "EPSG:3857", .box = { 10, 10, 14, 14 }, .pixel_grid = { .per_x = 1, .per_y = 1 }, .resolution = 1
    };
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    int64_t skipped;
    int count = 0;
    ck_assert(data->ops->read(data, &query, count_point, &count, &skipped, &ctx, pool) == MC_OK);
    ck_assert_int_eq(count, 5);
    ck_assert_int_eq(skipped, 0);
}

START_TEST(opening_shapefiles_ends_with_deadlines)
{
    for (int listed = 0; listed < 2; listed++) {
        make_folder();
        write_points(listed != 0);
        const mc_shapefile_config config = { .path = path_of("/a.shp"), .srs = "EPSG:3857" };
        mc_feature_data *data = mc_shapefile_create(&config, "a", pool);
        const int tries = count_tries(find_place, data);
        ck_assert_int_gt(tries, 5); /* a megabyte each */
        ck_assert_int_lt(tries, listed ? RECORDS : 2 * RECORDS);
        check_points(data);
        check_waiting(find_place, mc_shapefile_create(&config, "a", pool));
        remove_files();
    }
}
END_TEST

/* ---- Overviews ---- */

typedef struct level_map {
    mc_shapefile_levels *levels;
    mc_level_data origin;
} level_map;

/* Of a place where the level has no block. */
static mc_error *
read_level(void *data, mc_ctx *ctx, apr_pool_t *own)
{
    level_map *map = data;
    const mc_feature_query query = { .srs = "EPSG:3857",
                                     .box = { -9, -9, -8, -8 },
                                     .pixel_grid = { .per_x = 1, .per_y = 1 },
                                     .resolution = 10,
                                     .scale = 10 / 0.00028,
                                     .style = STYLE };
    mc_feature_reading reading = { .layer = "a", .ctx = ctx, .map = &query };
    bool used = false;
    MC_TRY(mc_shapefile_levels_read(&used, map->levels, &reading, &query, &map->origin, own));
    ck_assert(used);
    return MC_OK;
}

static const char *
write_level(level_map *map)
{
    static const mc_level_range range = { 10, 20, 1 };
    const char *path = mc_level_file_path(path_of("/a"), STYLE, pool);
    const int none[MC_LEVEL_ORIGINS] = { -1, -1, -1 };
    mc_level_writer *writer;
    mc_level_spool *spool;
    mc_level_data_look(&map->origin, none, 99);
    ck_assert(mc_level_writer_open(&writer, path, pool) == MC_OK);
    ck_assert(mc_level_spool_create(&spool, writer) == MC_OK);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const mc_level_place place = { { i, 0, i + 1, 1 }, 0, 3, i };
        ck_assert(mc_level_spool_add(spool, &place, "abc") == MC_OK);
    }
    mc_level_spool_keep(spool, &range, 1, 3);
    ck_assert(mc_level_writer_finish(writer, STYLE, &map->origin.origin) == MC_OK);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    make_old(fd);
    close(fd);
    return path;
}

START_TEST(opening_overviews_ends_with_deadlines)
{
    level_map map;
    make_folder();
    const char *path = write_level(&map);
    map.levels = mc_shapefile_levels_create(path_of("/a.shp"), "a", pool);
    const int tries = count_tries(read_level, &map);
    ck_assert_int_gt(tries, 1);
    ck_assert_int_lt(tries, 10);
    map.levels = mc_shapefile_levels_create(path_of("/a.shp"), "a", pool);
    check_waiting(read_level, &map);
    ck_assert_int_eq(unlink(path), 0);
    remove_files();
}
END_TEST

UNIT_MAIN("shapefile_opening", opening_shapefiles_ends_with_deadlines, opening_overviews_ends_with_deadlines)
