/* Well-known binary, its tiny form, and many features in one value: the first byte says which, the rest are its bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "draw/raster/area.h"
#include "fuzz_support.h"
#include "vector/geometry/geometry.h"
#include "vector/geometry/wkb_thin.h"
#include "vector/postgis/postgis.h"

static const mc_pixel_grid pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 2, .per_y = 2, .thinning = 64 };

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

/* What is measured is read to the same end, and each feature takes bytes. */
static void
take_apart(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = { "text", "whole" };
    static const bool integers[] = { false, true };
    const mc_feature_query query = { .box = { -180, -90, 180, 90 }, .attributes = names, .attribute_count = 2 };
    const mc_postgis_request request = { .query = &query, .integers = integers };
    const char *at = (const char *)bytes, *end = at + size, *before = at;
    mc_postgres_field fields[4];
    bool meets;
    while (at < end && mc_postgis_next_of(fields, &meets, &at, end, size % 2 == 0, &request)) {
        if (at <= before || at > end || fields[0].data + fields[0].size != at)
            abort();
        before = at;
    }
    size_t used = mc_wkb_measure(&meets, bytes, size, &query.box);
    if (used > size || (used > 0 && mc_wkb_measure(&meets, bytes, used, &query.box) != used))
        abort();
}

/* What is thinned is well-known binary again, and no larger but for the SRID. */
static void
thin(const uint8_t *bytes, size_t size, bool snap, apr_pool_t *pool)
{
    static const mc_wkb_cells cells = { -180, 90, 0.5 };
    mc_wkb_buffer out = { 0 };
    mc_geometry geometry = { 0 };
    bool thinned = snap ? mc_wkb_snap(&out, bytes, size, &pixel_grid) : mc_wkb_thin(&out, bytes, size, 4326, &cells);
    if (out.size > size + 4 || thinned != (out.size > 0))
        abort();
    if (thinned) {
        mc_error *error = mc_wkb_read(&geometry, out.data, out.size, &pixel_grid, pool);
        if (error != MC_OK && error->kind == MC_ERR_CORRUPT)
            abort();
        mc_error_ignore(error);
    }
    mc_geometry_free(&geometry);
    free(out.data);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_geometry geometry;
    apr_pool_t *pool;
    if (size == 0)
        return 0;
    apr_pool_create(&pool, NULL);
    uint8_t *bytes = malloc(size); /* of its own, so that a step over its end is seen */
    memcpy(bytes, data + 1, size - 1);
    mc_error *error = data[0] % 2 == 1 ? mc_twkb_read(&geometry, bytes, size - 1, &pixel_grid, pool)
                                       : mc_wkb_read(&geometry, bytes, size - 1, &pixel_grid, pool);
    if (error == MC_OK)
        paint(&geometry, pool);
    take_apart(bytes, size - 1);
    thin(bytes, size - 1, false, pool);
    thin(bytes, size - 1, true, pool);
    free(bytes);
    apr_pool_destroy(pool);
    return 0;
}
