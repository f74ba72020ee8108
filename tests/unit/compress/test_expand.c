/* Brotli and Zstandard: what is whole, cut off, damaged, or larger than it may be. */
#include "unit.h"

#include <string.h>

#include "compress/expand.h"

typedef mc_error *expand_function(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool);

/* "tiles " 40 times, and 200,000 zero bytes, as the libraries' own encoders write them. */
static const uint8_t brotli_text[] = { 0x1b, 0xef, 0x00, 0x00, 0x04, 0x1c, 0x72, 0xa4, 0x77, 0x39,
                                       0xb4, 0x65, 0x15, 0xb3, 0xc5, 0x81, 0xf4, 0xd4, 0x01 };
static const uint8_t brotli_zeros[] = { 0x5b, 0x3f, 0x0d, 0x03, 0x40, 0x02, 0x20, 0x1e, 0x0b, 0x24, 0x9f, 0x60, 0x00 };
static const uint8_t zstd_text[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0xf0, 0x6d, 0x00, 0x00, 0x30, 0x74,
                                     0x69, 0x6c, 0x65, 0x73, 0x20, 0x01, 0x00, 0xe7, 0x50, 0xa5, 0x08 };
static const uint8_t zstd_zeros[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0x40, 0x0d, 0x03, 0x00, 0x54, 0x00, 0x00, 0x10,
                                      0x00, 0x00, 0x01, 0x00, 0xfb, 0xff, 0x39, 0xc0, 0x02, 0x03, 0x6a, 0x08, 0x00 };

static const struct {
    expand_function *expand;
    const uint8_t *text, *zeros;
    size_t text_size, zeros_size;
} kinds[] = {
    { mc_brotli_expand, brotli_text, brotli_zeros, sizeof(brotli_text), sizeof(brotli_zeros) },
    { mc_zstd_expand, zstd_text, zstd_zeros, sizeof(zstd_text), sizeof(zstd_zeros) },
};

static void
expect_whole(int kind)
{
    mc_buf *out;
    ck_ok(kinds[kind].expand(&out, kinds[kind].text, kinds[kind].text_size, 1000, pool));
    ck_assert_uint_eq(out->size, 240);
    for (size_t i = 0; i < 240; i += 6)
        ck_assert_int_eq(memcmp(out->data + i, "tiles ", 6), 0);
    ck_ok(
        kinds[kind].expand(&out, kinds[kind].text, kinds[kind].text_size, 240, pool)); /* no more room than it takes */
    ck_assert_uint_eq(out->size, 240);
    ck_ok(kinds[kind].expand(&out, kinds[kind].zeros, kinds[kind].zeros_size, 1 << 20, pool));
    ck_assert_uint_eq(out->size, 200000);
    for (size_t i = 0; i < out->size; i++)
        ck_assert_uint_eq(out->data[i], 0);
}

static void
expect_limit(int kind)
{
    static const size_t rooms[] = { 1, 100, 65536, 131072, 199999 };
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        mc_buf *out;
        ck_fails(LIMIT, kinds[kind].expand(&out, kinds[kind].zeros, kinds[kind].zeros_size, rooms[i], pool));
        ck_assert_uint_le(out->size, rooms[i]);
    }
}

static void
expect_refusal(int kind)
{
    mc_buf *out;
    uint8_t longer[64] = { 0 };
    for (size_t size = 0; size < kinds[kind].text_size; size++)
        ck_fails(CORRUPT, kinds[kind].expand(&out, kinds[kind].text, size, 1000, pool));
    ck_fails(CORRUPT, kinds[kind].expand(&out, kinds[1 - kind].text, kinds[1 - kind].text_size, 1000, pool));
    memcpy(longer, kinds[kind].text, kinds[kind].text_size); /* something else behind its end */
    memcpy(longer + kinds[kind].text_size, "end", 3);
    ck_fails(CORRUPT, kinds[kind].expand(&out, longer, kinds[kind].text_size + 3, 1000, pool));
}

START_TEST(whole_streams_come_back)
{
    expect_whole(0);
    expect_whole(1);
}
END_TEST

START_TEST(larger_ones_than_allowed_are_refused)
{
    expect_limit(0);
    expect_limit(1);
}
END_TEST

START_TEST(cut_off_and_damaged_ones_are_refused)
{
    expect_refusal(0);
    expect_refusal(1);
}
END_TEST

UNIT_MAIN("expand", whole_streams_come_back, larger_ones_than_allowed_are_refused, cut_off_and_damaged_ones_are_refused)
