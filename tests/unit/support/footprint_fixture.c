#include "footprint_fixture.h"

mc_cache *
product_cache(const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='sqlite3'><dbfile>%s/{dim:product}.db</dbfile>%s</cache>",
                                 cache_folder, inner));
}

mc_tile_key
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

void
patch_colour(uint8_t bgra[4], const patch *wanted)
{
    bgra[0] = wanted->alpha;
    bgra[1] = 0;
    bgra[2] = wanted->width % 2 == 0 ? wanted->alpha : 0;
    bgra[3] = wanted->alpha;
}

mc_buf *
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

void
put_patch(mc_cache *cache, const char *product, int z, int x, int y, patch wanted)
{
    mc_tile_write tile = { .key = product_key(product, z, x, y), .data = patch_png(wanted) };
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

void
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

shown
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

shown
show_patch(mc_cache *cache, const char *product, int z, int x, int y)
{
    mc_tile_key key = product_key(product, z, x, y);
    return show_key(cache, &key);
}

void
wait_settled(void)
{
    usleep(60000);
}

void
write_outside(const char *product, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(apr_pstrcat(pool, cache_folder, "/", product, ".db", NULL), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

const char *
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

uint64_t
counted_events(mc_counter counter)
{
    return mc_counter_value(process.metrics, counter);
}
