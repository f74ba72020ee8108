/* Where messages begin: the head of each is seen, whatever pieces the bytes come in. */
#include "../../../../lib/db/postgres/postgres_frames.c"

#include <string.h>

#include "unit.h"

/* A message of so many bytes behind its head; returns where the next one begins. */
static char *
put_message(char *at, char kind, uint32_t size)
{
    uint32_t length = size + 4;
    const unsigned char head[MC_PG_HEAD] = { (unsigned char)kind, (unsigned char)(length >> 24),
                                             (unsigned char)(length >> 16), (unsigned char)(length >> 8),
                                             (unsigned char)length };
    memcpy(at, head, sizeof(head));
    memset(at + MC_PG_HEAD, 'S', size);
    return at + MC_PG_HEAD + size;
}

START_TEST(heads_are_seen_in_pieces_of_any_size)
{
    char bytes[4096], *end = bytes;
    for (uint32_t size = 0; size < 40; size++)
        end = put_message(end, size % 4 == 0 ? 'S' : 'D', size);
    for (size_t piece = 1; piece < 200; piece++) {
        mc_pg_frames frames = { 0 };
        for (char *at = bytes; at < end; at += piece)
            ck_assert_ptr_null(mc_pg_frames_pass(&frames, at, (size_t)(end - at) < piece ? (size_t)(end - at) : piece));
        ck_assert_int_eq(frames.settings, 10);
        ck_assert_uint_eq(frames.left, 0);
        ck_assert_uint_eq(frames.head_size, 0);
    }
}
END_TEST

START_TEST(a_message_is_as_large_as_it_may_be)
{
    static const struct {
        const char head[MC_PG_HEAD];
        bool refused;
    } heads[] = {
        { { 'D', 4, 0, 0, 0 }, false },    { { 'D', 4, 0, 0, 1 }, true }, { { 'D', 0x40, 0, 0, 0 }, true },
        { { 'd', -1, -1, -1, -1 }, true }, { { 'Z', 0, 0, 0, 3 }, true }, { { 'Z', 0, 0, 0, 0 }, true },
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        mc_pg_frames whole = { 0 }, parts = { 0 };
        ck_assert_int_eq(mc_pg_frames_pass(&whole, heads[i].head, MC_PG_HEAD) != NULL, heads[i].refused);
        ck_assert_ptr_null(mc_pg_frames_pass(&parts, heads[i].head, 4));
        ck_assert_int_eq(mc_pg_frames_pass(&parts, heads[i].head + 4, 1) != NULL, heads[i].refused);
    }
}
END_TEST

START_TEST(settings_come_to_an_end)
{
    mc_pg_frames frames = { 0 };
    char bytes[64];
    size_t size = (size_t)(put_message(bytes, 'S', 10) - bytes);
    for (int i = 0; i < MC_PG_SETTINGS_MAX; i++)
        ck_assert_ptr_null(mc_pg_frames_pass(&frames, bytes, size));
    ck_assert_ptr_nonnull(mc_pg_frames_pass(&frames, bytes, size));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { heads_are_seen_in_pieces_of_any_size, a_message_is_as_large_as_it_may_be,
                                   settings_come_to_an_end };
    return unit_run("postgres_frames", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
