#include "compress/huffman.h"

#include <math.h>
#include <string.h>

#include "samples.h"
#include "unit.h"

enum { SYMBOLS = 286 };

/* 2^15 for a code in which each sequence of bits means something. */
static unsigned
sum_shares(const uint8_t *lengths, int count)
{
    unsigned sum = 0;
    for (int i = 0; i < count; i++)
        sum += lengths[i] > 0 ? 1u << (15 - lengths[i]) : 0;
    return sum;
}

static double
mean_length(const uint32_t *frequencies, const uint8_t *lengths)
{
    double bits = 0, all = 0;
    for (int i = 0; i < SYMBOLS; i++) {
        bits += (double)frequencies[i] * lengths[i];
        all += frequencies[i];
    }
    return bits / all;
}

static double
entropy(const uint32_t *frequencies)
{
    double all = 0, bits = 0;
    for (int i = 0; i < SYMBOLS; i++)
        all += frequencies[i];
    for (int i = 0; i < SYMBOLS; i++)
        if (frequencies[i] > 0)
            bits -= frequencies[i] / all * log2(frequencies[i] / all);
    return bits;
}

static void
check_lengths(const uint32_t *frequencies, int count, int limit)
{
    uint8_t lengths[MC_HUFFMAN_SYMBOLS_MAX];
    mc_huffman_lengths(lengths, frequencies, count, limit);
    ck_assert_uint_eq(sum_shares(lengths, count), 1u << 15);
    for (int i = 0; i < count; i++) {
        ck_assert_int_le(lengths[i], limit);
        ck_assert(frequencies[i] == 0 || lengths[i] > 0);
        for (int k = 0; k < i; k++) /* what is rarer is not shorter */
            ck_assert(frequencies[i] == 0 || frequencies[k] <= frequencies[i] || lengths[k] <= lengths[i]);
    }
}

START_TEST(lengths_are_those_of_huffman)
{
    uint8_t lengths[SYMBOLS];
    const uint32_t some[] = { 5, 9, 12, 13, 16, 45, 0 };
    mc_huffman_lengths(lengths, some, 7, 15);
    ck_assert_mem_eq(lengths, ((const uint8_t[]){ 4, 4, 3, 3, 3, 1, 0 }), 7);
    for (int round = 0; round < 200; round++) {
        uint32_t frequencies[SYMBOLS] = { 0 };
        for (int i = 0; i < SYMBOLS; i++)
            frequencies[i] = sample_random() % (1u << (1 + i * round % 12));
        mc_huffman_lengths(lengths, frequencies, SYMBOLS, 15);
        ck_assert_double_ge(mean_length(frequencies, lengths), entropy(frequencies) - 1e-9);
        ck_assert_double_lt(mean_length(frequencies, lengths), entropy(frequencies) + 0.1);
    }
}
END_TEST

START_TEST(codes_are_complete_at_every_limit)
{
    uint32_t frequencies[SYMBOLS] = { 0 };
    uint32_t before = 1, last = 1;
    for (int i = 0; i < 30; i++) { /* Fibonacci's numbers make the longest code */
        frequencies[i * 9] = last;
        uint32_t sum = before + last;
        before = last;
        last = sum;
    }
    for (int limit = 9; limit <= 15; limit++)
        check_lengths(frequencies, SYMBOLS, limit);
    for (int limit = 7; limit <= 15; limit++)
        for (int count = 2; count <= 19; count++)
            check_lengths(frequencies, count, limit);
    for (int round = 0; round < 2000; round++) {
        int count = 2 + (int)(sample_random() % (SYMBOLS - 1)), limit = 9 + (int)(sample_random() % 7);
        for (int i = 0; i < count; i++)
            frequencies[i] = sample_random() % 3 == 0 ? 0 : 1u << sample_random() % 16 >> sample_random() % 16;
        check_lengths(frequencies, count, limit);
    }
}
END_TEST

START_TEST(few_symbols_have_one_bit)
{
    uint8_t lengths[5];
    uint32_t frequencies[5] = { 0 };
    check_lengths(frequencies, 5, 7);
    frequencies[3] = 8;
    check_lengths(frequencies, 5, 7);
    mc_huffman_lengths(lengths, frequencies, 5, 7);
    ck_assert_int_eq(lengths[3], 1);
}
END_TEST

/* The example of RFC 1951, 3.2.2; the bits the other way round. */
START_TEST(codes_are_canonical)
{
    const uint8_t lengths[] = { 3, 3, 3, 3, 3, 2, 4, 4, 0 };
    static const uint16_t bits[] = { 2, 6, 1, 5, 3, 0, 7, 15, 0 };
    mc_huffman_code codes[9];
    mc_huffman_codes(codes, lengths, 9);
    for (int i = 0; i < 9; i++) {
        ck_assert_uint_eq(codes[i].length, lengths[i]);
        ck_assert_uint_eq(codes[i].bits, bits[i]);
    }
}
END_TEST

UNIT_MAIN("huffman", lengths_are_those_of_huffman, codes_are_complete_at_every_limit, few_symbols_have_one_bit,
          codes_are_canonical)
