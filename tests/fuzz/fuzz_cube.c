/*
 * Chunks as any bytes that a store may give: they are read or refused. And covers that we write are read as they were.
 * Input: pieces, each of a byte for the date, one for the slot, one for column and row, the sizes of cover and data
 * (two bytes each), and these.
 */
#include <stdlib.h>
#include <string.h>

#include "cube/chunk.h"
#include "cube/store.h"
#include "fuzz_support.h"

static const uint8_t *input, *input_end;

static size_t
take_size(void)
{
    size_t wanted = (size_t)input[0] << 8 | input[1];
    input += 2;
    return wanted;
}

static mc_error *
give_pieces(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_piece *take, void *baton, mc_ctx *ctx,
            apr_pool_t *pool)
{
    (void)cube, (void)query, (void)ctx, (void)pool;
    while (input_end - input >= 7) {
        mc_cube_piece piece = { .time_us = input[0], .slot = input[1] % 16, .stored = input[1] < 240 };
        piece.x = input[2] % 16;
        piece.y = input[2] / 16;
        input += 3;
        size_t cover = take_size(), samples = take_size(), left = (size_t)(input_end - input);
        piece.cover_size = cover < left ? cover : left;
        piece.cover = input;
        input += piece.cover_size;
        left -= piece.cover_size;
        piece.data_size = samples < left ? samples : left;
        piece.data = input;
        input += piece.data_size;
        MC_TRY(take(baton, &piece));
    }
    return MC_OK;
}

/* The first byte says what each date has, two bits a date; the rest are masks. */
static void
check_covers(const uint8_t *data, size_t size)
{
    enum { DATES = 4, PIXELS = 19, MASK = 3 };
    mc_cover covers[DATES];
    const uint8_t *masks[DATES];
    uint8_t kept[DATES][MASK] = { 0 }, out[64];
    for (int i = 0; i < DATES; i++) {
        covers[i] = (mc_cover)((data[0] >> 2 * i & 3) % 3);
        for (size_t j = 0; j < MASK && 1 + (size_t)i * MASK + j < size; j++)
            kept[i][j] = data[1 + (size_t)i * MASK + j];
        masks[i] = kept[i];
    }
    MC_ASSERT(mc_cover_size(DATES, PIXELS) <= sizeof(out));
    size_t written = mc_cover_write(out, covers, masks, DATES, PIXELS);
    for (int i = 0; i < DATES; i++) {
        mc_cover cover;
        const uint8_t *mask = NULL;
        MC_ASSERT(mc_cover_read(&cover, &mask, out, written, i, PIXELS) && cover == covers[i]);
        MC_ASSERT(cover != MC_COVER_SOME || memcmp(mask, kept[i], MASK) == 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *pool;
    static const mc_cube_ops ops = { .read = give_pieces };
    static const mc_cube cube = { .ops = &ops,
                                  .name = "fuzz",
                                  .shape = { .width = 21,
                                             .height = 13,
                                             .bands = 3,
                                             .chunk_width = 4,
                                             .chunk_height = 4,
                                             .chunk_dates = 8,
                                             .columns = 6,
                                             .rows = 4 } };
    static const mc_cube_window window = { 3, 2, 19, 11 };
    if (pool == NULL) {
        apr_pool_create(&pool, NULL);
    }
    apr_pool_clear(pool);
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    if (size > 0)
        check_covers(data, size);
    /* A copy: reading behind the end must show. */
    uint8_t *copy = malloc(size + 1);
    MC_ASSERT(copy != NULL);
    memcpy(copy, data, size);
    input = copy;
    input_end = copy + size;
    apr_array_header_t *planes = NULL;
    unsigned seen = 0;
    if (mc_cube_read(&planes, &cube, NULL, 0, 100, &window, &ctx, pool) == MC_OK)
        for (int i = 0; i < planes->nelts; i++) {
            const mc_cube_plane *plane = &APR_ARRAY_IDX(planes, i, mc_cube_plane);
            for (size_t p = 0; p < mc_cube_window_pixels(&window); p++)
                seen += plane->present[p] ? plane->samples[3 * p] : 0u;
            MC_ASSERT(i == 0 || plane->time_us > plane[-1].time_us);
        }
    MC_ASSERT(seen < 1u << 31);
    free(copy);
    return 0;
}
