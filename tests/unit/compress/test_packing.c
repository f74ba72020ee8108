/* Vector tiles packed and told apart by their bytes. */
#include "unit.h"

#include <string.h>

#include "compress/packing.h"

static const mc_packing packings[] = { MC_PACKED_GZIP, MC_PACKED_BROTLI, MC_PACKED_ZSTD, MC_NOT_PACKED };

/* As a vector tile begins: a layer of that many bytes, which repeat and do not. */
static uint8_t *
make_tile(size_t size)
{
    uint8_t *bytes = apr_palloc(pool, size + 1);
    uint32_t random = 1;
    for (size_t i = 0; i < size; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(i % 7 == 0 ? random >> 24 : i / 50);
    }
    if (size > 0)
        bytes[0] = 0x1a;
    return bytes;
}

START_TEST(what_is_packed_is_told_and_comes_back)
{
    static const size_t sizes[] = { 0, 1, 2, 10, 1000, 100000, 3000000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint8_t *bytes = make_tile(sizes[i]);
        for (size_t j = 0; j < sizeof(packings) / sizeof(packings[0]); j++)
            for (int level = MC_GZIP_FAST; level <= (sizes[i] > 100000 ? MC_GZIP_GOOD : MC_GZIP_BEST); level++) {
                mc_buf *packed, *again, *back;
                ck_ok(mc_pack(&packed, bytes, sizes[i], packings[j], (mc_gzip_level)level, pool));
                ck_ok(mc_pack(&again, bytes, sizes[i], packings[j], (mc_gzip_level)level, pool));
                ck_assert_uint_eq(packed->size, again->size);
                ck_assert(packed->size == 0 || memcmp(packed->data, again->data, packed->size) == 0);
                ck_assert_int_eq(mc_packing_of(packed->data, packed->size), packings[j]);
                ck_ok(mc_unpack(&back, packed->data, packed->size, packings[j], sizes[i] + 1, pool));
                ck_assert_uint_eq(back->size, sizes[i]);
                ck_assert(sizes[i] == 0 || memcmp(back->data, bytes, sizes[i]) == 0);
                if (sizes[i] > 1)
                    ck_fails(LIMIT, mc_unpack(&back, packed->data, packed->size, packings[j], sizes[i] - 1, pool));
            }
    }
}
END_TEST

/* The same bytes in pieces, each of which lies elsewhere; some hold next to nothing. */
static int
cut(mc_deflate_part *parts, const uint8_t *bytes, size_t size)
{
    static const size_t lengths[] = { 1, 0, 2, 4, 70000, 3, 300000, 1, 33000 };
    enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };
    int count = 0;
    for (size_t at = 0; at < size || count == 0; count++) {
        size_t length = lengths[count % LENGTHS] < size - at ? lengths[count % LENGTHS] : size - at;
        uint8_t *copy = apr_palloc(pool, length + 1 + (size_t)count % 5);
        memcpy(copy, bytes + at, length);
        parts[count] = (mc_deflate_part){ copy, length };
        at += length;
    }
    return count;
}

START_TEST(what_is_packed_in_parts_comes_back)
{
    static const size_t sizes[] = { 0, 1, 5, 300, 100000, 262144, 3000000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint8_t *bytes = make_tile(sizes[i]);
        for (size_t j = 0; j < sizeof(packings) / sizeof(packings[0]); j++)
            for (int level = MC_GZIP_FAST; level <= (sizes[i] > 1000 ? MC_GZIP_FAST : MC_GZIP_GOOD); level++) {
                mc_deflate_part parts[128];
                mc_buf *packed, *again, *back;
                int count = cut(parts, bytes, sizes[i]);
                ck_ok(mc_pack_parts(&packed, parts, count, packings[j], (mc_gzip_level)level, pool));
                count = cut(parts, bytes, sizes[i]);
                ck_ok(mc_pack_parts(&again, parts, count, packings[j], (mc_gzip_level)level, pool));
                ck_assert_uint_eq(packed->size, again->size);
                ck_assert(packed->size == 0 || memcmp(packed->data, again->data, packed->size) == 0);
                ck_ok(mc_unpack(&back, packed->data, packed->size, packings[j], sizes[i] + 1, pool));
                ck_assert_uint_eq(back->size, sizes[i]);
                ck_assert(sizes[i] == 0 || memcmp(back->data, bytes, sizes[i]) == 0);
            }
    }
}
END_TEST

START_TEST(repacking_keeps_the_tile)
{
    const uint8_t *bytes = make_tile(5000);
    for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
        for (size_t j = 0; j < sizeof(packings) / sizeof(packings[0]); j++) {
            mc_buf *data, *back;
            ck_ok(mc_pack(&data, bytes, 5000, packings[i], MC_GZIP_FAST, pool));
            const mc_buf *given = data;
            ck_ok(mc_repack(&data, packings[j], MC_GZIP_GOOD, 1 << 20, pool));
            ck_assert((data == given) == (i == j)); /* what is packed so already is not touched */
            ck_ok(mc_unpack(&back, data->data, data->size, packings[j], 1 << 20, pool));
            ck_assert_uint_eq(back->size, 5000);
            ck_assert_int_eq(memcmp(back->data, bytes, 5000), 0);
        }
}
END_TEST

START_TEST(damaged_streams_are_errors)
{
    const uint8_t *bytes = make_tile(5000);
    for (size_t i = 0; i < 3; i++) {
        mc_buf *packed, *back;
        ck_ok(mc_pack(&packed, bytes, 5000, packings[i], MC_GZIP_GOOD, pool));
        for (size_t size = 0; size < packed->size; size += 97)
            ck_fails(CORRUPT, mc_unpack(&back, packed->data, size, packings[i], 1 << 20, pool));
        ck_fails(CORRUPT, mc_unpack(&back, packed->data, packed->size, packings[(i + 1) % 3], 1 << 20, pool));
    }
}
END_TEST

START_TEST(pictures_and_plain_tiles_are_not_packed)
{
    static const char *const texts[] = {
        "\x1a\x02\x0a", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "RIFF", "(\xb5/", "\x1f"
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_int_eq(mc_packing_of(texts[i], strlen(texts[i])), MC_NOT_PACKED);
    ck_assert_int_eq(mc_packing_of("", 0), MC_NOT_PACKED);
    static const char *const codings[] = { "gzip", "br", "zstd", "identity" };
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(mc_packing_coding(packings[i]), codings[i]);
}
END_TEST

UNIT_MAIN("packing", what_is_packed_is_told_and_comes_back, what_is_packed_in_parts_comes_back,
          repacking_keeps_the_tile, damaged_streams_are_errors, pictures_and_plain_tiles_are_not_packed)
