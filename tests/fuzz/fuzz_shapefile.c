/*
 * Shapefiles: the first byte says which of the four files the others are (the rest of them stand still), and whether
 * there is a .shx.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "vector/shapefile/quadtree.h"
#include "vector/shapefile/shp.h"

static const mc_pixel_grid pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 2, .per_y = 2, .thinning = 64 };
static const mc_extent window = { -20, -20, 20, 20 };
static char folder[] = "/tmp/fuzz-shapefile-XXXXXX";

static void
put(const char *name, const void *bytes, size_t size, apr_pool_t *pool)
{
    int fd = open(apr_pstrcat(pool, folder, "/", name, NULL), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) != 0)
        abort();
}

static void
remove_folder(void)
{
    static const char *const names[] = { "/a.shp", "/a.shx", "/a.dbf", "/a.qix" };
    char path[sizeof(folder) + 8];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(strcat(strcpy(path, folder), names[i]));
    rmdir(folder);
}

/* One point at (1, 2), its entry, and a table with one field. */
static void
put_others(apr_pool_t *pool)
{
    static uint8_t shapes[128] = { [2] = 0x27, [3] = 0x0A, [32] = 1, [103] = 1, [107] = 10, [108] = 1 };
    static uint8_t entries[108] = { [2] = 0x27, [3] = 0x0A, [32] = 1, [103] = 50, [107] = 10 };
    static const uint8_t table[32 + 32 + 1 + 5] = {
        3, [4] = 1, [8] = 65, [10] = 5, [32] = 'A', [43] = 'C', [48] = 4, [64] = 13, ' ', 'a', 'b', 'c', 'd'
    };
    const double xy[2] = { 1, 2 };
    memcpy(shapes + 112, xy, sizeof(xy));
    put("a.shp", shapes, sizeof(shapes), pool);
    put("a.shx", entries, sizeof(entries), pool);
    put("a.dbf", table, sizeof(table), pool);
}

static void
read_all(const mc_shp *shp, const mc_extent *box, apr_pool_t *pool)
{
    static mc_geometry geometry;
    mc_shp_reader reader;
    mc_shp_record record;
    mc_dbf_reader table;
    int most = 1000;
    mc_dbf_begin(&table, shp->attributes);
    mc_shp_begin(&reader, shp, box, pool);
    while (most-- > 0 && mc_shp_next(&reader, &record)) {
        mc_error_ignore(mc_shp_geometry(&geometry, &record, &pixel_grid, pool));
        if (mc_dbf_row(&table, record.number) && shp->attributes != NULL)
            for (int field = 0; field < shp->attributes->field_count && field < 20; field++)
                (void)mc_dbf_value(&table, field, pool);
    }
    mc_shp_end(&reader);
    mc_dbf_end(&table);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a.shp", "a.shx", "a.dbf", "a.qix" };
    static int made;
    apr_pool_t *pool;
    mc_shp *shp;
    if (size == 0)
        return 0;
    apr_pool_create(&pool, NULL);
    if (!made++ && (mkdtemp(folder) == NULL || atexit(remove_folder) != 0))
        abort();
    put_others(pool);
    put(names[data[0] % 4], data + 1, size - 1, pool);
    if (data[0] % 4 != 3)
        unlink(apr_pstrcat(pool, folder, "/a.qix", NULL));
    if ((data[0] & 4) != 0)
        unlink(apr_pstrcat(pool, folder, "/a.shx", NULL));
    mc_error *error = mc_shp_open(&shp, apr_pstrcat(pool, folder, "/a.shp", NULL), NULL, pool);
    if (error == MC_OK) {
        read_all(shp, NULL, pool);
        mc_shp_prepare(shp, pool);
        read_all(shp, &window, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
