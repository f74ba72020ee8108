/* Filters of rows that are written: by AVX2 as byte by byte (ISO/IEC 15948, clause 9), and undone by our own reader. */
#include <stdlib.h>
#include <string.h>

#include "image/png/png.h"
#include "samples.h"
#include "unit.h"

enum { SIZE = 700, HEIGHT = 40 };

static uint8_t above[SIZE], row[SIZE], found[SIZE];

static uint8_t
predict_by_rule(bool paeth, size_t i, size_t step)
{
    int left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
    return paeth ? mc_png_predict_paeth(left, above[i], corner) : (uint8_t)((left + above[i]) / 2);
}

START_TEST(wide_filters_are_as_the_rule_says)
{
    if (!mc_png_has_avx2())
        return;
    for (int round = 0; round < 4000; round++) {
        size_t size = sample_random() % SIZE, step = 3 + sample_random() % 2;
        bool paeth = round % 2 == 0;
        for (size_t i = 0; i < SIZE; i++) {
            above[i] = (uint8_t)(sample_random() >> sample_random() % 8);
            row[i] = sample_random() % 3 == 0 ? above[i] : (uint8_t)sample_random();
        }
        memset(found, 0x5a, SIZE);
        size_t left = paeth ? mc_png_filter_paeth_avx2(found, row, above, size, step)
                            : mc_png_filter_average_avx2(found, row, above, size, step);
        ck_assert_uint_le(left, size);
        ck_assert(size < step + 32 || left < step + 32);
        for (size_t i = 0; i < SIZE; i++)
            ck_assert_uint_eq(found[i],
                              i < left || i >= size ? 0x5a : (uint8_t)(row[i] - predict_by_rule(paeth, i, step)));
    }
}
END_TEST

/* Slopes of several kinds, so that each filter is chosen for some of them. */
static void
fill_rows(uint8_t *rows, size_t row_size, size_t step, unsigned kind)
{
    for (size_t y = 0; y < HEIGHT; y++) {
        uint8_t *at = rows + y * (row_size + 1);
        *at++ = 0;
        for (size_t i = 0; i < row_size; i++) {
            unsigned x = (unsigned)(i / step), noise = (unsigned)sample_random() % 6;
            unsigned wave = kind == 0 ? x * 3 + (unsigned)y * 5 : kind == 1 ? x * x / 7 : (x * (unsigned)y) / 9;
            at[i] = (uint8_t)(wave + noise);
        }
    }
}

START_TEST(filtered_rows_are_undone)
{
    static const mc_deflate_level levels[] = { MC_DEFLATE_QUICK, MC_DEFLATE_GOOD };
    for (unsigned round = 0; round < 600; round++) {
        size_t step = 3 + round % 2, row_size = step * (1 + sample_random() % 200), size = (row_size + 1) * HEIGHT;
        uint8_t *rows = malloc(size), *before = malloc(size);
        uint32_t begin, end;
        fill_rows(rows, row_size, step, round / 2 % 3);
        memcpy(before, rows, size);
        mc_png_filter(rows, row_size, HEIGHT, (int)step, levels[round % 7 == 0]);
        ck_assert(mc_png_unfilter(rows, row_size, HEIGHT, (int)step, &begin, &end));
        for (size_t y = 0; y < HEIGHT; y++)
            ck_assert_mem_eq(rows + y * (row_size + 1) + 1, before + y * (row_size + 1) + 1, row_size);
        free(rows);
        free(before);
    }
}
END_TEST

UNIT_MAIN("png_predict", wide_filters_are_as_the_rule_says, filtered_rows_are_undone)
