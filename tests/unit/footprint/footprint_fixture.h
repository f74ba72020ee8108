/* Product files with tiles that are a rectangle of one colour each. */
#ifndef MC_FOOTPRINT_FIXTURE_H
#define MC_FOOTPRINT_FIXTURE_H

#include "cache/cache_fixture.h"

#include <sqlite3.h>

#include "base/metrics.h"
#include "cache/memory.h"
#include "footprint/footprint.h"

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
    mc_tile_write tile = { .key = product_key(product, z, x, y), .data = patch_png(wanted) };
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
    int wrong = 0;
    for (int y = 0; y < wanted.height; y++)
        for (int x = 0; x < wanted.width; x++)
            wrong += memcmp(footprint->pixels + (size_t)y * footprint->stride + (size_t)x * 4, bgra, 4) != 0;
    ck_assert_int_eq(wrong, 0);
}

/* A batch of its own for one tile, as a request has it. */
typedef struct shown {
    bool known; /* without reading */
    mc_error *error;
    mc_footprint *footprint; /* lives in `pool` */
} shown;

__attribute__((unused)) static shown
show_key(mc_cache *cache, const mc_tile_key *key)
{
    mc_footprint_want *want = apr_pcalloc(pool, sizeof(*want));
    want->key = *key;
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, want, 1, &ctx, pool));
    shown found = { .known = want->known };
    found.error = mc_footprints_fetch(batch, 0, &ctx);
    ck_assert(found.error != MC_OK || want->known);
    found.footprint = want->footprint;
    return found;
}

__attribute__((unused)) static shown
show(mc_cache *cache, const char *product, int z, int x, int y)
{
    mc_tile_key key = product_key(product, z, x, y);
    return show_key(cache, &key);
}

/* What a request gets now; an alpha of 0: nothing. `known`: whether memory must, or must not, have it. */
#define expect_patch(cache, product, z, x, y, wanted, remembered)                                                      \
    do {                                                                                                               \
        shown expect_shown_ = show(cache, product, z, x, y);                                                           \
        ck_ok(expect_shown_.error);                                                                                    \
        if ((wanted).alpha == 0)                                                                                       \
            ck_assert_ptr_null(expect_shown_.footprint);                                                               \
        else                                                                                                           \
            check_patch(expect_shown_.footprint, wanted);                                                              \
        ck_assert_int_eq(expect_shown_.known, remembered);                                                             \
    } while (0)

__attribute__((unused)) static void
wait_settled(void)
{
    usleep(60000);
}

/* What another program does with a product's file. */
__attribute__((unused)) static void
outside(const char *product, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, folder, "/", product, ".db", NULL), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

/* "x'...'" of a patch's PNG. */
__attribute__((unused)) static const char *
patch_literal(patch wanted)
{
    mc_buf *png = patch_png(wanted);
    char *text = apr_palloc(pool, png->size * 2 + 4), *at = text;
    *at++ = 'x';
    *at++ = '\'';
    for (size_t i = 0; i < png->size; i++, at += 2)
        snprintf(at, 3, "%02x", png->data[i]);
    *at++ = '\'';
    *at = '\0';
    return text;
}

__attribute__((unused)) static uint64_t
counted(mc_counter counter)
{
    return mc_counter_value(process.metrics, counter);
}

#endif
