#include "compress/literal_deflate.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "samples.h"
#include "unit.h"

enum { BLOCK = 1 << 16, SIZE_MAX_HERE = 6 * BLOCK, ROOM = 2 * SIZE_MAX_HERE };

static uint8_t data[SIZE_MAX_HERE], made[ROOM], expanded[SIZE_MAX_HERE];

/* Runs of zeros of any length between bytes of which the small ones are the most frequent. */
static void
fill(size_t size, unsigned run_max)
{
    for (size_t i = 0; i < size;) {
        size_t zeros = run_max == 0 ? 0 : sample_random() % run_max, others = 1 + sample_random() % 20;
        for (; zeros > 0 && i < size; zeros--)
            data[i++] = 0;
        for (; others > 0 && i < size; others--)
            data[i++] = (uint8_t)(sample_random() >> sample_random() % 8);
    }
}

static size_t
check(size_t size)
{
    uLongf found = sizeof(expanded);
    size_t written = mc_literal_deflate(made, ROOM, data, size);
    ck_assert_uint_gt(written, 0);
    memset(expanded, 0xa5, size);
    ck_assert_int_eq(uncompress(expanded, &found, made, written), Z_OK);
    ck_assert_uint_eq(found, size);
    ck_assert_mem_eq(expanded, data, size);
    return written;
}

START_TEST(streams_are_read_by_zlib)
{
    static const unsigned runs[] = { 0, 3, 9, 40, 300, 1000, 3 * BLOCK };
    for (size_t size = 0; size < 300; size++) {
        fill(size, runs[size % 7]);
        check(size);
    }
    for (int round = 0; round < 70; round++) {
        size_t size = sample_random() % SIZE_MAX_HERE;
        fill(size, runs[round % 7]);
        check(size);
    }
}
END_TEST

/* Matches are at most 258 bytes long, and at least three. */
START_TEST(runs_of_all_lengths)
{
    for (size_t length = 0; length < 2000; length++) {
        memset(data, 7, 40 + length + 40);
        memset(data + 40, 0, length);
        check(40 + length + length % 41);
    }
}
END_TEST

START_TEST(blocks_end_anywhere)
{
    for (int around = -40; around <= 40; around++) {
        memset(data, 9, sizeof(data));
        memset(data + BLOCK + around, 0, 30);
        check(BLOCK + BLOCK / 2);
        check((size_t)(BLOCK + around));
        check((size_t)(BLOCK + around + 30));
    }
}
END_TEST

START_TEST(zeros_take_next_to_nothing)
{
    memset(data, 0, sizeof(data));
    ck_assert_uint_lt(check(SIZE_MAX_HERE), SIZE_MAX_HERE / 258 / 4 + 200);
}
END_TEST

START_TEST(what_does_not_fit_is_told)
{
    for (size_t i = 0; i < SIZE_MAX_HERE; i++)
        data[i] = (uint8_t)sample_random();
    ck_assert_uint_eq(mc_literal_deflate(made, SIZE_MAX_HERE / 2, data, SIZE_MAX_HERE), 0);
    ck_assert_uint_eq(mc_literal_deflate(made, 0, data, 100), 0);
    /* Nothing is written beyond the room, whatever the room is. */
    fill(5000, 30);
    for (size_t room = 0; room < 8000; room += 7) {
        uint8_t *exact = malloc(room + 1);
        size_t written = mc_literal_deflate(exact, room, data, 5000);
        ck_assert_uint_le(written, room);
        free(exact);
    }
    /* Noise grows by little. */
    for (size_t i = 0; i < SIZE_MAX_HERE; i++)
        data[i] = (uint8_t)sample_random();
    ck_assert_uint_gt(
        mc_literal_deflate(made, libdeflate_zlib_compress_bound(NULL, SIZE_MAX_HERE) + 1024, data, SIZE_MAX_HERE), 0);
}
END_TEST

/* Bytes that are not counted are all but those that are: the streams are long, and right. */
START_TEST(literals_that_are_not_counted)
{
    for (int round = 0; round < 40; round++) {
        size_t size = BLOCK / 2 + sample_random() % (2 * BLOCK), room = mc_literal_deflate_room(size);
        for (size_t i = 0; i < size; i++)
            data[i] = i % 32 < 8 ? (uint8_t)(1 + round % 3) : (uint8_t)(sample_random() | 4);
        check(size);
        uint8_t *exact = malloc(room);
        size_t written = mc_literal_deflate(exact, room, data, size);
        ck_assert_uint_gt(written, 0);
        ck_assert_uint_le(written, room);
        free(exact);
    }
}
END_TEST

/* With less room all literals are counted, and what fits then is written. */
START_TEST(large_blocks_in_any_room)
{
    size_t size = BLOCK + BLOCK / 2, fitted = 0;
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(sample_random() >> sample_random() % 8);
    size_t most = check(size);
    for (size_t room = 0; room < mc_literal_deflate_room(size); room += 499) {
        uint8_t *exact = malloc(room + 1);
        uLongf found = sizeof(expanded);
        size_t written = mc_literal_deflate(exact, room, data, size);
        ck_assert_uint_le(written, room);
        ck_assert(written > 0 || room < most + 1024);
        if (written > 0) {
            ck_assert_int_eq(uncompress(expanded, &found, exact, written), Z_OK);
            ck_assert_uint_eq(found, size);
            ck_assert_mem_eq(expanded, data, size);
            fitted++;
        }
        free(exact);
    }
    ck_assert_uint_gt(fitted, 100);
}
END_TEST

/* Counting a part costs next to nothing. */
START_TEST(counting_a_part_is_nearly_as_good)
{
    for (size_t i = 0; i < SIZE_MAX_HERE; i++)
        data[i] = (uint8_t)(sample_random() >> sample_random() % 8);
    size_t sampled = check(SIZE_MAX_HERE), all = 0;
    for (size_t begin = 0; begin < SIZE_MAX_HERE; begin += BLOCK / 4) /* each too short for a part */
        all += mc_literal_deflate(made, ROOM, data + begin, BLOCK / 4);
    ck_assert_uint_lt(sampled, all + all / 200);
}
END_TEST

UNIT_MAIN("literal_deflate", streams_are_read_by_zlib, runs_of_all_lengths, blocks_end_anywhere,
          zeros_take_next_to_nothing, what_does_not_fit_is_told, literals_that_are_not_counted,
          large_blocks_in_any_room, counting_a_part_is_nearly_as_good)
