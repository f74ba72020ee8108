/*
 * Georeferenced images: the first byte says which of them the rest is: a world file, GeoTIFF tags, or the file of an
 * image with a world file beside it, which is read by rows.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "ingest/pyramid/mask.h"
#include "ingest/raster/georeference.h"
#include "mapcache/ingest.h"

enum { ROWS_BYTES = 1 << 22 };

static char folder[] = "/tmp/fuzz-raster-XXXXXX";

static void
put(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) != 0)
        abort();
}

static void
remove_folder(void)
{
    static const char *const names[] = { "/a.img", "/a.wld" };
    char path[64];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void
read_tags(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    double numbers[64] = { 0 }, affine[6];
    uint16_t keys[64] = { 0 };
    size_t count = size / sizeof(double) < 34 ? size / sizeof(double) : 34;
    memcpy(numbers, data, count * sizeof(double));
    size_t rest = size - count * sizeof(double);
    memcpy(keys, data + count * sizeof(double), rest < sizeof(keys) ? rest : sizeof(keys));
    mc_geotiff_tags tags = { numbers,
                             numbers + 3,
                             numbers + 18,
                             keys,
                             3,
                             count > 9 ? count - 9 : 0,
                             count > 30 ? 16 : 0,
                             (rest < sizeof(keys) ? rest : sizeof(keys)) / 2 };
    bool found;
    int epsg;
    if (tags.tiepoint_count > 15)
        tags.tiepoint_count = 15;
    mc_error_ignore(mc_geotiff_read(&found, affine, &epsg, &tags, pool));
}

static void
read_image(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    static uint8_t rows[ROWS_BYTES];
    const char *path = apr_pstrcat(pool, folder, "/a.img", NULL);
    mc_raster *raster;
    put(path, data, size);
    mc_raster_options options = { .srs = "EPSG:3857", .has_no_data = size % 2 == 0 };
    if (mc_raster_open(&raster, path, &options, pool) != MC_OK)
        return;
    const mc_raster_info *info = mc_raster_about(raster);
    size_t stride = (size_t)info->width * 4;
    for (int i = 0; i < 8 && stride <= ROWS_BYTES && mc_raster_row(raster) < info->height; i++)
        if (mc_raster_rows(raster, rows, stride, 1, pool) != MC_OK)
            break;
    mc_raster_close(raster);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    double affine[6];
    apr_pool_t *pool;
    if (!ready) {
        if (mkdtemp(folder) == NULL)
            abort();
        atexit(remove_folder);
        ready = true;
    }
    if (size < 1)
        return 0;
    apr_pool_create(&pool, NULL);
    if (data[0] == 'w') {
        mc_error_ignore(mc_world_file_parse(affine, (const char *)data + 1, size - 1, pool));
    } else if (data[0] == 'g') {
        read_tags(data + 1, size - 1, pool);
    } else if (data[0] == 'm') {
        mc_pixels *pixels;
        if (mc_pixels_create(&pixels, 16, 16, true, pool) == MC_OK) {
            (void)mc_mask_apply(pixels, data + 1, size - 1);
            mc_pixels_unref(pixels);
        }
    } else {
        read_image(data + 1, size - 1, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
