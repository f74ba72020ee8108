/* Well-known binary, its tiny form, and shapefiles: the first byte says which, the rest are its bytes. */
#include <apr_general.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "feature/area.h"
#include "feature/shp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const mc_lattice lattice = { .x0 = -180, .y0 = 90, .per_x = 2, .per_y = 2, .thinning = 64 };

static void
paint(const mc_geometry *geometry, apr_pool_t *pool)
{
    mc_area *coverage;
    uint8_t mask[32 + MC_MASK_MARGIN];
    int x, count;
    if (mc_area_create(&coverage, 32, 32, pool) != MC_OK)
        abort();
    for (int kind = 1; kind < 3; kind++)
        mc_area_add(coverage, &geometry->shapes[kind], 0, 0);
    for (int y = 0; y < 32; y++)
        mc_area_take_row(coverage, y, MC_EVEN_ODD, mask, &x, &count);
    for (int i = 0; i < coverage->stride * coverage->height; i++)
        if (coverage->cells[i] != 0)
            abort(); /* what has been taken is empty */
}

static void
read_shapes(const uint8_t *bytes, size_t size, mc_geometry *geometry, apr_pool_t *pool)
{
    mc_shp shp = { .main = { bytes, size } };
    mc_shp_record record;
    size_t at = 0;
    while (mc_shp_next(&shp, &at, &record))
        if (mc_shp_geometry(geometry, &record, &lattice, pool) == MC_OK)
            paint(geometry, pool);
}

static void
read_table(const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    mc_mapped file = { bytes, size };
    mc_dbf *table;
    if (mc_dbf_open(&table, &file, NULL, pool) != MC_OK)
        return;
    for (int field = 0; field < table->field_count && field < 20; field++)
        for (uint32_t row = 0; row < 3; row++)
            (void)mc_dbf_value(table, row, field, pool);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_geometry geometry;
    apr_pool_t *pool;
    if (size == 0)
        return 0;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    uint8_t *bytes = malloc(size); /* of its own, so that a step over its end is seen */
    memcpy(bytes, data + 1, size - 1);
    if (data[0] % 4 == 3) {
        if (mc_twkb_read(&geometry, bytes, size - 1, &lattice, pool) == MC_OK)
            paint(&geometry, pool);
    } else if (data[0] % 4 == 0) {
        if (mc_wkb_read(&geometry, bytes, size - 1, &lattice, pool) == MC_OK)
            paint(&geometry, pool);
    } else if (data[0] % 4 == 1) {
        read_shapes(bytes, size - 1, &geometry, pool);
    } else {
        read_table(bytes, size - 1, pool);
    }
    free(bytes);
    apr_pool_destroy(pool);
    return 0;
}
