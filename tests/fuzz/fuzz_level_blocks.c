/* Any bytes as the blocks of a window of an overview: features lie inside of their blocks and come in the order of
 * their places, values are texts; and what is packed well-known binary is well-known binary again. */
#include <string.h>

#include "fuzz_support.h"
#include "vector/geometry/geometry.h"
#include "vector/geometry/wkb_pack.h"
#include "vector/levels/level_blocks.h"

enum { ATTRIBUTES = 2 };

static const mc_pixel_grid pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 2, .per_y = 2, .thinning = 64 };

static void
look_at_features(mc_level_window *window, size_t size, apr_pool_t *pool)
{
    mc_level_feature feature;
    mc_geometry geometry = { 0 };
    size_t features = 0;
    while (mc_level_window_next(&feature, window)) {
        if (++features > size)
            abort();
        for (int i = 0; i < ATTRIBUTES; i++)
            if (feature.values[i] != NULL && strlen(feature.values[i]) > size)
                abort();
        mc_error_ignore((feature.packed ? mc_twkb_read : mc_wkb_read)(&geometry, feature.geometry, feature.size,
                                                                      &pixel_grid, pool));
    }
    mc_geometry_free(&geometry);
}

/* No larger than plain, and read back. */
static void
pack(const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    mc_wkb_buffer out = { 0 };
    mc_geometry geometry = { 0 };
    bool packed = mc_wkb_pack(&out, bytes, size, 2);
    if (packed != (out.size > 0))
        abort();
    if (packed) {
        mc_error *error = mc_twkb_read(&geometry, out.data, out.size, &pixel_grid, pool);
        if (error != MC_OK && error->kind == MC_ERR_CORRUPT)
            abort();
        mc_error_ignore(error);
    }
    mc_geometry_free(&geometry);
    free(out.data);
}

/* The first byte says where the second block begins. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_level_window *window = mc_level_window_create(ATTRIBUTES, pool);
    const size_t all = size - 1, first = data[0] < all ? data[0] : all;
    mc_error_ignore(mc_level_window_add(window, data + 1, first));
    mc_error_ignore(mc_level_window_add(window, data + 1 + first, all - first));
    look_at_features(window, size, pool);
    pack(data + 1, all, pool);
    apr_pool_destroy(pool);
    return 0;
}
