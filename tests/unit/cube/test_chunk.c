#include "cube/chunk.h"

#include <string.h>

#include "unit.h"

enum { PIXELS = 13 };

static const uint8_t odd[2] = { 0x55, 0x15 }, even[2] = { 0xaa, 0x0a };

START_TEST(nothing_is_written_where_all_is_known)
{
    uint8_t out[64];
    const mc_cover covers[] = { MC_COVER_ALL, MC_COVER_ALL };
    ck_assert_uint_eq(mc_cover_write(out, covers, NULL, 2, PIXELS), 0);
    mc_cover cover = MC_COVER_NONE;
    const uint8_t *mask = NULL;
    ck_assert(mc_cover_read(&cover, &mask, NULL, 0, 1, PIXELS));
    ck_assert_int_eq(cover, MC_COVER_ALL);
}
END_TEST

START_TEST(what_is_written_can_be_read)
{
    uint8_t out[64];
    const mc_cover covers[] = { MC_COVER_SOME, MC_COVER_NONE, MC_COVER_ALL, MC_COVER_SOME };
    const uint8_t *const masks[] = { odd, NULL, NULL, even };
    size_t size = mc_cover_write(out, covers, masks, 4, PIXELS);
    ck_assert_uint_eq(size, 2 + 4 + 2 * 2);
    ck_assert_uint_le(size, mc_cover_size(4, PIXELS));
    for (int i = 0; i < 4; i++) {
        mc_cover cover = MC_COVER_NONE;
        const uint8_t *mask = NULL;
        ck_assert(mc_cover_read(&cover, &mask, out, size, i, PIXELS));
        ck_assert_int_eq(cover, covers[i]);
        if (cover == MC_COVER_SOME)
            ck_assert_mem_eq(mask, masks[i], 2);
    }
}
END_TEST

START_TEST(a_date_behind_the_last_has_nothing)
{
    uint8_t out[64];
    const mc_cover covers[] = { MC_COVER_NONE };
    mc_cover cover = MC_COVER_ALL;
    const uint8_t *mask = NULL;
    size_t size = mc_cover_write(out, covers, NULL, 1, PIXELS);
    ck_assert(mc_cover_read(&cover, &mask, out, size, 1, PIXELS));
    ck_assert_int_eq(cover, MC_COVER_NONE);
}
END_TEST

START_TEST(bytes_that_are_cut_or_lie_are_refused)
{
    uint8_t out[64];
    const mc_cover covers[] = { MC_COVER_ALL, MC_COVER_SOME };
    const uint8_t *const masks[] = { NULL, odd };
    mc_cover cover;
    const uint8_t *mask = NULL;
    size_t size = mc_cover_write(out, covers, masks, 2, PIXELS);
    for (size_t less = 1; less < size; less++)
        ck_assert(!mc_cover_read(&cover, &mask, out, less, 1, PIXELS));
    out[2] = 3;
    ck_assert(!mc_cover_read(&cover, &mask, out, size, 1, PIXELS));
    out[0] = 0xff;
    ck_assert(!mc_cover_read(&cover, &mask, out, size, 1, PIXELS));
}
END_TEST

START_TEST(chunks_at_the_edge_are_cut)
{
    const mc_cube_shape shape = { .width = 100, .height = 53, .chunk_width = 26, .chunk_height = 26 };
    mc_cube_window last = mc_chunk_window(&shape, 3, 2);
    ck_assert(last.x0 == 78 && last.x1 == 100 && last.y0 == 52 && last.y1 == 53);
    ck_assert_uint_eq(mc_cube_window_pixels(&last), 22);
    const mc_cube_window window = { 25, 26, 53, 52 };
    mc_cube_window chunks = mc_cube_window_chunks(&shape, &window);
    ck_assert(chunks.x0 == 0 && chunks.x1 == 3 && chunks.y0 == 1 && chunks.y1 == 2);
}
END_TEST

UNIT_MAIN("chunk", nothing_is_written_where_all_is_known, what_is_written_can_be_read,
          a_date_behind_the_last_has_nothing, bytes_that_are_cut_or_lie_are_refused, chunks_at_the_edge_are_cut)
