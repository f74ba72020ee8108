/* Product files with tiles that are a rectangle of one colour each. */
#ifndef MC_FOOTPRINT_FIXTURE_H
#define MC_FOOTPRINT_FIXTURE_H

#include "cache_fixture.h"

#include "cache/footprint.h"

typedef struct patch {
    int left, top, width, height;
    uint8_t alpha;
} patch;

/* A file for each product; `inner`: more elements of the cache. */
__attribute__((unused)) static mc_cache *
products(const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='sqlite3'><dbfile>%s/{dim:product}.db</dbfile>%s</cache>",
                                 folder, inner));
}

__attribute__((unused)) static mc_tile_key
product_key(const char *product, int z, int x, int y)
{
    mc_tile_key key = key_at(z, x, y);
    mc_dimension_value *value = apr_pcalloc(pool, sizeof(*value));
    value->name = "product";
    value->value = apr_pstrdup(pool, product);
    key.dimensions = value;
    key.dimension_count = 1;
    key.renderable = false;
    return key;
}

/* Premultiplied: what is stored comes back. */
__attribute__((unused)) static void
patch_colour(uint8_t bgra[4], const patch *wanted)
{
    bgra[0] = wanted->alpha;
    bgra[1] = 0;
    bgra[2] = wanted->width % 2 == 0 ? wanted->alpha : 0;
    bgra[3] = wanted->alpha;
}

__attribute__((unused)) static mc_buf *
patch_png(patch wanted)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, 256, 256, true, pool));
    uint8_t bgra[4];
    patch_colour(bgra, &wanted);
    for (int y = wanted.top; y < wanted.top + wanted.height; y++)
        for (int x = wanted.left; x < wanted.left + wanted.width; x++)
            memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4, bgra, 4);
    pixels->opacity = MC_OPACITY_UNKNOWN;
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_buf *png;
    ck_ok(mc_format_encode(&png, apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING), pixels, MC_FOR_STORE, &ctx, pool));
    mc_pixels_unref(pixels);
    return png;
}

__attribute__((unused)) static void
put_patch(mc_cache *cache, const char *product, int z, int x, int y, patch wanted)
{
    mc_put tile = { .key = product_key(product, z, x, y), .data = patch_png(wanted) };
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

__attribute__((unused)) static void
check_patch(const mc_footprint *footprint, patch wanted)
{
    uint8_t bgra[4];
    patch_colour(bgra, &wanted);
    ck_assert_ptr_nonnull(footprint);
    ck_assert_int_eq(footprint->tile_width, 256);
    ck_assert_int_eq(footprint->tile_height, 256);
    ck_assert_int_eq(footprint->left, wanted.left);
    ck_assert_int_eq(footprint->top, wanted.top);
    ck_assert_int_eq(footprint->width, wanted.width);
    ck_assert_int_eq(footprint->height, wanted.height);
    for (int y = 0; y < wanted.height; y++)
        for (int x = 0; x < wanted.width; x++)
            ck_assert_int_eq(memcmp(footprint->pixels + (size_t)y * footprint->stride + (size_t)x * 4, bgra, 4), 0);
}

#endif
