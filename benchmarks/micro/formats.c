/*
 * Processor time and bytes of pictures in each format, as a client waits for them and as they are stored:
 * `micro_formats ROUNDS FILE...`, files of benchmarks/formats/corpus.py. A line for each: name of the file, format,
 * purpose, best milliseconds, bytes, with tabs between.
 */
#include <apr_general.h>
#include <apr_hash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/image.h"
#include "mapcache/tile.h"
#include "measure.h"

enum { EDGE_MAX = 8192 };

static apr_pool_t *pool;
static mc_ctx ctx;

static mc_pixels *
read_picture(const char *path)
{
    uint32_t size[2];
    mc_pixels *pixels;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(size, 4, 2, file) != 2 || size[0] > EDGE_MAX || size[1] > EDGE_MAX)
        exit(fprintf(stderr, "%s cannot be read\n", path));
    exit_on_error(mc_pixels_create(&pixels, (int)size[0], (int)size[1], false, pool));
    for (uint32_t y = 0; y < size[1]; y++) {
        uint8_t *row = pixels->data + y * pixels->stride;
        if (fread(row, 4, size[0], file) != size[0])
            exit(fprintf(stderr, "%s ends too early\n", path));
        for (uint32_t x = 0; x < size[0]; x++) {
            uint8_t *at = row + x * 4, red = at[0];
            unsigned alpha = at[3];
            at[0] = (uint8_t)((at[2] * alpha + 127) / 255);
            at[1] = (uint8_t)((at[1] * alpha + 127) / 255);
            at[2] = (uint8_t)((red * alpha + 127) / 255);
        }
    }
    fclose(file);
    return pixels;
}

static void
measure_format(const char *path, const char *name, mc_pixels *pixels, mc_purpose purpose, int rounds)
{
    apr_hash_t *formats = apr_hash_make(pool);
    apr_pool_t *scratch;
    double best = 1e12;
    size_t size = 0;
    mc_format_builtins(formats, pool);
    const mc_format *format = apr_hash_get(formats, name, APR_HASH_KEY_STRING);
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < rounds; i++) {
        mc_buf *bytes;
        pixels->opacity = MC_OPACITY_UNKNOWN;
        double begin = read_clock_ms(CLOCK_THREAD_CPUTIME_ID);
        exit_on_error(mc_format_encode(&bytes, format, pixels, purpose, &ctx, scratch));
        double spent = read_clock_ms(CLOCK_THREAD_CPUTIME_ID) - begin;
        best = spent < best ? spent : best;
        size = bytes->size;
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    printf("%s\t%s\t%s\t%.4f\t%zu\n", path, name, purpose == MC_FOR_STORE ? "stored" : "on the fly", best, size);
}

int
main(int argc, char **argv)
{
    static const char *const names[] = { "PNG", "PNG8", "JPEG", "WEBP" };
    apr_initialize();
    apr_pool_create(&pool, NULL);
    ctx.pool = pool;
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    if (argc < 3 || rounds < 1)
        return fprintf(stderr, "usage: micro_formats ROUNDS FILE...\n"), 1;
    for (int i = 2; i < argc; i++) {
        mc_pixels *pixels = read_picture(argv[i]);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            for (int stored = 0; stored < 2; stored++)
                measure_format(argv[i], names[k], pixels, stored ? MC_FOR_STORE : MC_ON_THE_FLY, rounds);
        mc_pixels_unref(pixels);
    }
    return 0;
}
