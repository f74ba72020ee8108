/*
 * Any file as data of a source "ogr": what OGR makes of the file is read in columns, feature by feature or from memory,
 * once and once more. OGR itself is not built for this. The first byte says which attributes are asked for.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz_support.h"
#include "vector/ogr/ogr_data.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* From this first byte on the file is so old that it is kept open, or in memory; each such input takes some time. */
enum { SETTLED = 250 };

static char folder[] = "/tmp/fuzz-ogr-XXXXXX";
static char path[sizeof(folder) + 8];

static void
remove_files(void)
{
    unlink(path);
    rmdir(folder);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (mkdtemp(folder) == NULL || atexit(remove_files) != 0)
        return 1;
    strcat(strcpy(path, folder), "/a");
    return 0;
}

static mc_error *
use_feature(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    size_t *used = baton;
    (void)ctx;
    for (int i = 0; i < feature->query->attribute_count; i++)
        *used += feature->values[i] == NULL ? 0 : strlen(feature->values[i]);
    *used += (size_t)feature->geometry->vertex_count;
    return MC_OK;
}

static void
write_nothing(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    (void)level;
    (void)message;
}

static void
read_file(mc_feature_data *layer, const char *const *names, int count, const mc_extent *box, apr_pool_t *pool)
{
    static const mc_log log = { .level = MC_LOG_EMERG, .write = write_nothing };
    mc_ctx ctx = { .pool = pool, .log = &log, .deadline = mc_clock_now() + APR_USEC_PER_SEC };
    const mc_feature_query query = { .srs = "EPSG:4326",
                                     .box = *box,
                                     .pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 2, .per_y = 2, .thinning = 64 },
                                     .resolution = 0.5,
                                     .scale = 1e6,
                                     .attributes = names,
                                     .attribute_count = count };
    size_t used = 0;
    int64_t skipped = 0;
    mc_error_ignore(layer->ops->read(layer, &query, use_feature, &used, &skipped, &ctx, pool));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "kind", "number", "real", "yes", "when", "none" };
    static const mc_extent whole = { -180, -90, 180, 90 }, part = { -10, -10, 10, 10 };
    apr_pool_t *pool;
    if (size < 2)
        return 0;
    unlink(path); /* another file each time, so that nothing is kept of the one before */
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || write(file, data + 1, size - 1) != (ssize_t)(size - 1) || close(file) != 0)
        abort();
    if (*data >= SETTLED)
        usleep(60000);
    apr_pool_create(&pool, NULL);
    const mc_ogr_config config = { .path = path, .srs = "EPSG:4326" };
    mc_feature_data *layer = mc_ogr_create(&config, "fuzz", pool);
    int first = *data % 6, count = *data / 6 % (7 - first);
    read_file(layer, names + first, count, &whole, pool);
    read_file(layer, names + first, count, &part, pool);
    apr_pool_destroy(pool);
    return 0;
}
