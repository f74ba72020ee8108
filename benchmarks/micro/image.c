/* Microseconds of CPU time of each image operation, the best of several rounds: `micro_image [rounds]`. */
#include <apr_general.h>
#include <apr_hash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/workers.h"
#include "image/box.h"
#include "mapcache/color_map.h"
#include "mapcache/tile.h"
#include "measure.h"
#include "samples.h"

static apr_pool_t *pool;
static mc_ctx ctx;
static int rounds = 30;
static clockid_t clock_of = CLOCK_THREAD_CPUTIME_ID;

typedef struct sample {
    mc_pixels *pixels;
    const mc_pixels *other;
    mc_format format;
    mc_buf *bytes;
    mc_buf **tiles;
    int count;
    mc_pixels *many[64];
    mc_color_map *style, *stored;
} sample;

static void
measure_work(const char *name, size_t (*work)(sample *s, apr_pool_t *scratch), sample *s)
{
    double best = 1e12;
    size_t size = 0;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < rounds; i++) {
        double begin = read_clock_us(clock_of);
        size = work(s, scratch);
        double spent = read_clock_us(clock_of) - begin;
        best = spent < best ? spent : best;
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    printf("%-44s %10.1f us %10lu bytes\n", name, best, (unsigned long)size);
}

static size_t
encode_sample(sample *s, apr_pool_t *scratch)
{
    mc_buf *bytes;
    s->pixels->opacity = MC_OPACITY_UNKNOWN;
    exit_on_error(mc_format_encode(&bytes, &s->format, s->pixels, MC_ON_THE_FLY, &ctx, scratch));
    return bytes->size;
}

static size_t
encode_for_store(sample *s, apr_pool_t *scratch)
{
    mc_buf *bytes;
    s->pixels->opacity = MC_OPACITY_UNKNOWN;
    exit_on_error(mc_format_encode(&bytes, &s->format, s->pixels, MC_FOR_STORE, &ctx, scratch));
    return bytes->size;
}

static size_t
encode_many(sample *s, apr_pool_t *scratch)
{
    size_t size = 0;
    for (int i = 0; i < 64; i++) {
        mc_buf *bytes;
        s->many[i]->opacity = MC_OPACITY_UNKNOWN;
        exit_on_error(mc_format_encode(&bytes, &s->format, s->many[i], MC_FOR_STORE, &ctx, scratch));
        size += bytes->size;
    }
    return size;
}

static size_t
decode_sample(sample *s, apr_pool_t *scratch)
{
    mc_pixels *pixels;
    exit_on_error(mc_image_decode(&pixels, s->bytes->data, s->bytes->size, &ctx, scratch));
    mc_pixels_unref(pixels);
    return s->bytes->size;
}

static size_t
lay_over(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    s->pixels->opacity = MC_OPAQUE;
    mc_pixels_over(s->pixels, 0, 0, s->other);
    return s->pixels->capacity;
}

static size_t
lay_under(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    memset(s->pixels->data, 0, s->pixels->capacity);
    s->pixels->opacity = MC_OPACITY_UNKNOWN;
    mc_pixels_under(s->pixels, 0, 0, s->other);
    return s->pixels->capacity;
}

static size_t
resample_bilinear(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    mc_pixels_resample(s->pixels, s->other, 3.3, 4.4, 0.7, 0.7, MC_BILINEAR);
    return s->pixels->capacity;
}

/* A map of the mosaic's own scale that does not lie on its pixels. */
static size_t
bilinear_offset(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    mc_pixels_resample(s->pixels, s->other, 30.3, 40.4, 1, 1, MC_BILINEAR);
    return s->pixels->capacity;
}

static size_t
resample_nearest(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    mc_pixels_resample(s->pixels, s->other, 3.3, 4.4, 0.7, 0.7, MC_NEAREST);
    return s->pixels->capacity;
}

static size_t
join_tiles(sample *s, apr_pool_t *scratch)
{
    mc_buf *joined;
    exit_on_error(mc_jpeg_join(&joined, s->tiles, 4, 4, (const uint8_t[]){ 0, 0, 0 }, &ctx, scratch));
    return joined == NULL ? 0 : joined->size;
}

static size_t
hash_pixels(sample *s, apr_pool_t *scratch)
{
    (void)scratch;
    return mc_hash64(s->pixels->data, s->pixels->capacity, 0) == 0 ? 0 : s->pixels->capacity;
}

static uint8_t *
box_room(void *baton, const mc_box_image *found)
{
    (void)found;
    return baton;
}

static size_t
decode_box(sample *s, apr_pool_t *scratch)
{
    mc_box_image found;
    exit_on_error(
        mc_image_decode_box(&found, box_room, s->pixels->data, s->bytes->data, s->bytes->size, &ctx, scratch));
    return s->bytes->size;
}

static size_t
animate_tiles(sample *s, apr_pool_t *scratch)
{
    mc_buf *bytes;
    for (int i = 0; i < 8; i++)
        s->many[i]->opacity = MC_OPACITY_UNKNOWN;
    mc_animation animation = { .frames = s->many, .count = 8, .delay = 100 };
    exit_on_error(mc_apng_encode(&bytes, &animation, MC_ON_THE_FLY, &ctx, scratch));
    return bytes->size;
}

static mc_pixels *
draw_map_image(int side)
{
    mc_pixels *pixels;
    exit_on_error(mc_pixels_create(&pixels, side, side, true, pool));
    return mc_pixels_attach(pixels, pool);
}

/* A map of 400 small products: 48 groups of dots on black. */
static void
sample_products(mc_pixels *pixels)
{
    static const uint8_t black[] = { 0, 0, 0, 255 };
    mc_pixels_fill(pixels, black);
    for (int i = 0; i < 400; i++) {
        int left = i % 4 * 200 + i * 37 % 150, top = 300 + i * 53 % 300;
        for (int k = 0; k < 9; k++)
            sample_set(pixels, left + k % 3, top + k / 3, (unsigned)i & 255, 90, 200, 255);
    }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

/* Nothing but a few dots. */
static void
sample_sparse(mc_pixels *pixels)
{
    memset(pixels->data, 0, pixels->capacity);
    for (int i = 0; i < 48 * 32; i++)
        sample_set(pixels, 100 + i % 48, 90 + i / 48, (unsigned)i & 255, 90, 200, 255);
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

static void
measure_codecs(sample *s, const char *what, int side)
{
    char name[80];
    snprintf(name, sizeof(name), "png encode %s %d fast", what, side);
    measure_work(name, encode_sample, s);
    exit_on_error(mc_format_encode(&s->bytes, &s->format, s->pixels, MC_ON_THE_FLY, &ctx, pool));
    snprintf(name, sizeof(name), "png decode %s %d", what, side);
    measure_work(name, decode_sample, s);
    snprintf(name, sizeof(name), "png decode %s %d into its box", what, side);
    measure_work(name, decode_box, s);
}

static size_t
swap_palette(sample *s, apr_pool_t *scratch)
{
    mc_buf *bytes;
    exit_on_error(mc_color_map_apply(&bytes, s->bytes, s->style, s->stored, scratch));
    return bytes->size;
}

/* The colours of a PNG with 256 of them, from its PLTE and tRNS chunks behind the header, by places or backwards. */
static mc_color_map *
map_of_png(const mc_buf *png, bool backwards)
{
    mc_color_map *map = apr_pcalloc(pool, sizeof(*map));
    const uint8_t *rgb = png->data + 33 + 8;
    map->name = map->title = "sample";
    map->count = MC_COLOR_MAP_ENTRIES;
    for (int i = 0; i < MC_COLOR_MAP_ENTRIES; i++) {
        int number = backwards ? MC_COLOR_MAP_ENTRIES - 1 - i : i;
        memcpy(map->rgba[number], rgb + (size_t)i * 3, 3);
        map->rgba[number][3] = 255;
        map->known[number] = map->listed[number] = true;
    }
    return map;
}

/* Another palette for a stored tile (docs/palettes.md): entries that are known by their places, and by their colours.
 */
static void
measure_palette_swap(sample *s)
{
    mc_pixels *opaque = draw_map_image(256);
    sample_photo(opaque);
    exit_on_error(mc_format_encode(&s->bytes, &s->format, opaque, MC_FOR_STORE, &ctx, pool));
    s->style = map_of_png(s->bytes, true);
    s->stored = NULL;
    measure_work("another palette by places, photo 256", swap_palette, s);
    s->stored = map_of_png(s->bytes, true);
    measure_work("another palette by colours, photo 256", swap_palette, s);
}

static void
measure_png(apr_hash_t *formats)
{
    static void (*const fill[])(mc_pixels *) = { sample_photo, sample_overlay, sample_sparse };
    static const char *const names[] = { "photo", "overlay", "sparse" };
    sample s = { .format = *(mc_format *)apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING) };
    for (int side = 256; side <= 1024; side *= 4) {
        s.pixels = draw_map_image(side);
        sample_map(s.pixels, 0);
        measure_codecs(&s, "map", side);
        for (int i = 0; i < 3; i++) {
            fill[i](s.pixels);
            measure_codecs(&s, names[i], side);
        }
    }
    s.format = *(mc_format *)apr_hash_get(formats, "PNG8", APR_HASH_KEY_STRING);
    for (int i = 0; i < 64; i++) {
        s.many[i] = draw_map_image(256);
        sample_map(s.many[i], i * 256);
    }
    measure_work("png8 encode 64 map tiles 256", encode_many, &s);
    measure_work("animated png of 8 map tiles 256", animate_tiles, &s);
    s.pixels = draw_map_image(256);
    sample_photo(s.pixels);
    measure_work("png8 encode photo 256", encode_sample, &s);
    sample_overlay(s.pixels);
    measure_work("png8 encode overlay 256", encode_sample, &s);
    measure_palette_swap(&s);
}

static void
measure_jpeg(apr_hash_t *formats)
{
    mc_buf *tiles[16];
    sample s = { .format = *(mc_format *)apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING), .tiles = tiles };
    s.format.quality = 75;
    s.pixels = draw_map_image(256);
    for (int optimized = 0; optimized < 2; optimized++) {
        s.format.optimize = optimized ? MC_JPEG_OPTIMIZED : MC_JPEG_SPLICED;
        for (int i = 0; i < 16; i++) {
            sample_map(s.pixels, i * 256);
            exit_on_error(mc_format_encode(&tiles[i], &s.format, s.pixels, MC_FOR_STORE, &ctx, pool));
        }
        s.bytes = tiles[0];
        measure_work(optimized ? "jpeg encode 256 optimised" : "jpeg encode 256", encode_sample, &s);
        measure_work(optimized ? "jpeg encode 256 optimised, stored" : "jpeg encode 256, stored", encode_for_store, &s);
        measure_work("jpeg decode 256", decode_sample, &s);
        measure_work(optimized ? "jpeg join 16 foreign tiles" : "jpeg join 16 tiles", join_tiles, &s);
    }
}

/* A large map, alone and with one worker's help: elapsed time, not CPU time. */
static void
measure_strips(apr_hash_t *formats)
{
    mc_process process = { .workers = NULL };
    mc_workers *workers;
    sample s = { .format = *(mc_format *)apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING) };
    s.format.quality = 75;
    s.pixels = draw_map_image(1024);
    sample_map(s.pixels, 0);
    exit_on_error(mc_workers_create(&workers, 1, pool));
    ctx.process = &process;
    clock_of = CLOCK_MONOTONIC;
    measure_work("jpeg encode 1024, elapsed", encode_sample, &s);
    sample_products(s.pixels);
    measure_work("jpeg encode products 1024, elapsed", encode_sample, &s);
    sample_map(s.pixels, 0);
    process.workers = workers;
    measure_work("jpeg encode 1024 with a worker, elapsed", encode_sample, &s);
    sample_products(s.pixels);
    measure_work("jpeg encode products 1024 with a worker, elapsed", encode_sample, &s);
    clock_of = CLOCK_THREAD_CPUTIME_ID;
    ctx.process = NULL;
    mc_workers_destroy(workers);
}

static void
measure_pixels(void)
{
    sample s = { .pixels = draw_map_image(256) };
    mc_pixels *other = draw_map_image(256);
    s.other = other;
    sample_overlay(other);
    measure_work("over, overlay 256", lay_over, &s);
    measure_work("under, overlay 256, clearing included", lay_under, &s);
    measure_work("resample bilinear 256", resample_bilinear, &s);
    measure_work("resample nearest 256", resample_nearest, &s);
    measure_work("hash 256 KB", hash_pixels, &s);
    sample_sparse(other);
    measure_work("over, sparse 256", lay_over, &s);
}

/* A map from a mosaic of 25 tiles, of which nothing is known. */
static void
measure_map(void)
{
    sample s = { .pixels = draw_map_image(1024) };
    mc_pixels *mosaic = draw_map_image(1280);
    sample_map(mosaic, 0);
    s.other = mosaic;
    measure_work("resample bilinear 1024, 0.7", resample_bilinear, &s);
    measure_work("resample bilinear 1024, 1:1", bilinear_offset, &s);
    measure_work("resample nearest 1024, 0.7", resample_nearest, &s);
}

int
main(int argc, char **argv)
{
    apr_initialize();
    apr_pool_create(&pool, NULL);
    ctx = (mc_ctx){ .pool = pool };
    if (argc > 1)
        rounds = atoi(argv[1]);
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    measure_pixels();
    measure_map();
    measure_png(formats);
    measure_jpeg(formats);
    measure_strips(formats);
    apr_terminate();
    return 0;
}
