/*
 * Processor time and bytes of vector tiles packed with gzip, brotli and zstd: `micro_packing ROUNDS FILE...`, files
 * with a tile each, packed or not. A line for each packing and level: its name, the level, bytes of all tiles,
 * microseconds a tile to pack and to unpack (the best of the rounds), with tabs between; the first line has the bytes
 * of plain tiles.
 */
#include <apr_general.h>
#include <stdio.h>
#include <stdlib.h>

#include "compress/packing.h"
#include "measure.h"

enum { FILE_MAX = 64 << 20 };

static apr_pool_t *pool;

static mc_buf *
read_tile(const char *path)
{
    mc_buf *bytes = mc_buf_attach(mc_buf_create(1 << 16, FILE_MAX), pool), *plain;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        exit(fprintf(stderr, "%s cannot be read\n", path));
    uint8_t part[1 << 16];
    for (size_t size; (size = fread(part, 1, sizeof(part), file)) > 0;)
        exit_on_error(mc_buf_append(bytes, part, size, pool));
    fclose(file);
    exit_on_error(mc_unpack(&plain, bytes->data, bytes->size, mc_packing_of(bytes->data, bytes->size), FILE_MAX, pool));
    return plain;
}

static void
measure_packing(mc_buf *const *tiles, int count, mc_packing packing, mc_gzip_level level, int rounds)
{
    static const char *const levels[] = { "fast", "good", "best" };
    apr_pool_t *scratch;
    double best[2] = { 1e12, 1e12 };
    size_t size = 0;
    mc_buf **packed = apr_pcalloc(pool, sizeof(*packed) * (size_t)count), *plain;
    apr_pool_create(&scratch, pool);
    for (int round = 0; round < rounds; round++) {
        apr_pool_clear(scratch);
        size = 0;
        double begin = read_clock_us(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < count; i++)
            exit_on_error(mc_pack(&packed[i], tiles[i]->data, tiles[i]->size, packing, level, scratch));
        double made = read_clock_us(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < count; i++)
            exit_on_error(mc_unpack(&plain, packed[i]->data, packed[i]->size, packing, FILE_MAX, scratch));
        double spent[2] = { made - begin, read_clock_us(CLOCK_THREAD_CPUTIME_ID) - made };
        for (int i = 0; i < 2; i++)
            best[i] = spent[i] < best[i] ? spent[i] : best[i];
        for (int i = 0; i < count; i++)
            size += packed[i]->size;
    }
    apr_pool_destroy(scratch);
    printf("%s\t%s\t%zu\t%.1f\t%.1f\n", mc_packing_coding(packing), levels[level], size, best[0] / count,
           best[1] / count);
}

int
main(int argc, char **argv)
{
    apr_initialize();
    apr_pool_create(&pool, NULL);
    int rounds = argc > 1 ? atoi(argv[1]) : 0, count = argc - 2;
    if (argc < 3 || rounds < 1)
        return fprintf(stderr, "usage: micro_packing ROUNDS FILE...\n"), 1;
    mc_buf **tiles = apr_pcalloc(pool, sizeof(*tiles) * (size_t)count);
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        tiles[i] = read_tile(argv[i + 2]);
        size += tiles[i]->size;
    }
    printf("plain\t\t%zu\n", size);
    for (int packing = MC_PACKED_GZIP; packing <= MC_PACKED_ZSTD; packing++)
        for (int level = MC_GZIP_FAST; level <= MC_GZIP_BEST; level++)
            measure_packing(tiles, count, (mc_packing)packing, (mc_gzip_level)level, rounds);
    return 0;
}
