/* Any bytes as a file of overviews: its index lies inside of it, and its blocks are read or refused. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "vector/levels/level_file.h"

static char path[] = "/tmp/fuzz-level-file-XXXXXX";

static void
remove_fuzzed_file(void)
{
    unlink(path);
}

static mc_error *
pass_feature(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    (void)baton;
    (void)feature;
    (void)ctx;
    return MC_OK;
}

static void
read_levels_of_file(const mc_level_file *file, apr_pool_t *pool)
{
    const mc_feature_query query = { .srs = "EPSG:3857",
                                     .box = { -1e9, -1e9, 1e9, 1e9 },
                                     .pixel_grid = { .per_x = 1, .per_y = 1, .thinning = 64 },
                                     .resolution = 1 };
    mc_ctx ctx = { .pool = pool };
    for (int level = 0; level < file->count; level++) {
        mc_feature_reading reading = { .layer = "l", .visit = pass_feature, .ctx = &ctx, .map = &query };
        mc_level_reading r;
        for (uint32_t i = 0; i < file->block_counts[level]; i++)
            if (file->places[level][i].begin + file->places[level][i].size > file->size)
                abort();
        mc_level_reading_begin(&r, &reading, false, pool);
        mc_error_ignore(mc_level_file_read(&r, file, level, &query.box, pool));
        mc_level_reading_end(&r);
        mc_geometry_free(&reading.geometry);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    apr_pool_t *pool;
    mc_level_file *file;
    if (fd < 0 && ((fd = mkostemp(path, O_CLOEXEC)) < 0 || atexit(remove_fuzzed_file) != 0))
        abort();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    apr_pool_create(&pool, NULL);
    mc_error *error = mc_level_file_open(&file, path, -1, pool);
    if (error == MC_OK)
        read_levels_of_file(file, pool);
    mc_error_ignore(error);
    apr_pool_destroy(pool);
    return 0;
}
