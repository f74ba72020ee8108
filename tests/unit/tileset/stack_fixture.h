/* A tileset of stacked sub-tiles over a cache in memory: what a sub-tile shows is said by the values in its key. */
#ifndef MC_STACK_FIXTURE_H
#define MC_STACK_FIXTURE_H

#include "unit.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "lock/locker.h"
#include "mapcache/map.h"

/* Splits the requested value at commas; "none" stands for nothing. */
static mc_error *
split_resolve(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *job,
              apr_pool_t *result)
{
    (void)job;
    *values = apr_array_make(result, 4, sizeof(const char *));
    if (strcmp(query->value, "refused") == 0)
        return mc_error_located(result, MC_ERR_INVALID_DIMENSION, dimension->name, "refused");
    char *rest = apr_pstrdup(result, query->value), *state = NULL;
    for (char *item = apr_strtok(rest, ",", &state); item != NULL; item = apr_strtok(NULL, ",", &state)) {
        int times = strncmp(item, "many", 4) == 0 ? atoi(item + 4) : 1;
        for (int i = 0; i < times; i++)
            if (strcmp(item, "none") != 0)
                APR_ARRAY_PUSH(*values, const char *) = times == 1 ? item : apr_psprintf(result, "m%d", i);
    }
    return MC_OK;
}

static const mc_dimension_ops split_ops = { .type = "split", .resolve = split_resolve, .from_backend = true };

/* What is stored, by the values joined with '/'. */
typedef struct stack_cache {
    mc_cache base;
    apr_hash_t *bytes; /* mc_buf * */
    atomic_int gets;
    int puts;
    const char *last_put;
} stack_cache;

static apr_hash_t *formats;
static stack_cache cache;
static mc_tileset tileset;
static mc_grid_link grid_link;
static mc_dimension dimensions[2];
static mc_dimension *dimension_list[2] = { &dimensions[0], &dimensions[1] };
static mc_tile_range limits[32];

static const char *
name_of(const mc_tile_key *key, apr_pool_t *result)
{
    const char *name = "";
    for (int i = 0; i < key->dimension_count; i++)
        name = apr_pstrcat(result, name, i == 0 ? "" : "/", key->dimensions[i].value, NULL);
    return name;
}

static mc_error *
stack_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *job, apr_pool_t *result)
{
    (void)job;
    stack_cache *own = (stack_cache *)base;
    *tile = NULL;
    atomic_fetch_add(&own->gets, 1);
    mc_buf *data = apr_hash_get(own->bytes, name_of(key, result), APR_HASH_KEY_STRING);
    if (data == NULL)
        return MC_OK;
    *tile = apr_pcalloc(result, sizeof(**tile));
    (*tile)->data = mc_buf_attach(mc_buf_ref(data), result);
    (*tile)->coding = mc_image_sniff(data->data, data->size);
    (*tile)->mtime = apr_time_from_sec(1000000000);
    return MC_OK;
}

static void
keep(const char *name, mc_buf *data)
{
    apr_hash_set(cache.bytes, apr_pstrdup(pool, name), APR_HASH_KEY_STRING, mc_buf_attach(mc_buf_ref(data), pool));
}

static mc_error *
stack_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *job)
{
    stack_cache *own = (stack_cache *)base;
    (void)job;
    for (int i = 0; i < count; i++) {
        own->last_put = name_of(&tiles[i].key, pool);
        keep(own->last_put, tiles[i].data);
        own->puts++;
    }
    return MC_OK;
}

static const mc_cache_ops stack_ops = { .type = "stack", .get = stack_get, .put = stack_put };

static const mc_format *
format(const char *name)
{
    return apr_hash_get(formats, name, APR_HASH_KEY_STRING);
}

/* A box of one colour in a transparent tile; x1 and y1 lie outside. */
static mc_pixels *
box(int x0, int y0, int x1, int y1, uint8_t blue, uint8_t green, uint8_t red, uint8_t alpha)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, 256, 256, true, pool));
    mc_pixels_attach(pixels, pool);
    const uint8_t color[4] = { blue, green, red, alpha };
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4, color, 4);
    pixels->opacity = MC_OPACITY_UNKNOWN;
    return pixels;
}

static mc_buf *
stored_as(const char *name, mc_pixels *pixels, const char *format_name)
{
    mc_buf *data;
    ck_ok(mc_format_encode(&data, format(format_name), pixels, MC_FOR_STORE, &ctx, pool));
    keep(name, data);
    return data;
}

static void
set_up_stack(int dimension_count)
{
    formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    apr_hash_t *grids = apr_hash_make(pool);
    mc_grid_builtins(grids, pool);
    const mc_grid *grid = apr_hash_get(grids, "GoogleMapsCompatible", APR_HASH_KEY_STRING);
    cache = (stack_cache){ .base = { .ops = &stack_ops, .name = "stack" }, .bytes = apr_hash_make(pool) };
    for (int z = 0; z < grid->level_count; z++)
        limits[z] = (mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    grid_link = (mc_grid_link){
        .grid = grid, .extent = grid->extent, .maxzoom = grid->level_count - 1, .max_cached_zoom = -1, .limits = limits
    };
    dimensions[0] = (mc_dimension){ .ops = &split_ops, .name = "product", .default_value = "red" };
    dimensions[1] = (mc_dimension){ .ops = &split_ops, .name = "band", .default_value = "x" };
    tileset = (mc_tileset){ .name = "t",
                            .cache = &cache.base,
                            .format = format("PNG"),
                            .synthetic_format = format("mixed"),
                            .dimensions = dimension_list,
                            .dimension_count = dimension_count,
                            .assembly = MC_ASSEMBLE_STACK,
                            .assembly_threads = -1,
                            .metatile_columns = 1,
                            .metatile_rows = 1,
                            .expires = 300 };
    stored_as("red", box(0, 0, 256, 256, 0, 0, 255, 255), "PNG");
    stored_as("blue", box(0, 0, 256, 256, 255, 0, 0, 255), "PNG");
    stored_as("left", box(0, 0, 128, 256, 0, 255, 0, 255), "PNG");
    stored_as("right", box(128, 0, 256, 256, 0, 255, 255, 255), "PNG");
    stored_as("dot", box(20, 30, 24, 36, 255, 255, 255, 255), "PNG");
    stored_as("glass", box(0, 0, 256, 256, 0, 64, 0, 128), "PNG");
    stored_as("void", box(0, 0, 0, 0, 0, 0, 0, 0), "PNG");
}

__attribute__((unused)) static mc_tile *
get(const char *product, const char *band)
{
    const char **values = apr_pcalloc(pool, 2 * sizeof(*values));
    values[0] = product;
    values[1] = band;
    mc_tile_request wanted = { &tileset, &grid_link, 3, 2, 5, values, NULL };
    mc_tile *tile;
    ck_ok(mc_tileset_get(&tile, &wanted, &ctx, pool));
    return tile;
}

__attribute__((unused)) static mc_pixels *
pixels_of(const mc_tile *tile)
{
    mc_pixels *pixels;
    ck_ok(mc_image_decode(&pixels, tile->data->data, tile->data->size, &ctx, pool));
    mc_pixels_attach(pixels, pool);
    return pixels;
}

__attribute__((unused)) static void
is_color(const mc_pixels *pixels, int x, int y, int blue, int green, int red, int alpha)
{
    const uint8_t *at = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
    const int wanted[4] = { blue, green, red, alpha };
    for (int i = 0; i < 4; i++)
        ck_assert_msg(abs(at[i] - wanted[i]) <= 1, "pixel %d,%d band %d is %d, not %d", x, y, i, at[i], wanted[i]);
}

#endif
