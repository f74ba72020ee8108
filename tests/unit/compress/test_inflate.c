/* Our inflater against libdeflate's, over what compressors write and over what nobody should. */
#include "unit.h"

#include <libdeflate.h>
#include <string.h>
#include <zlib.h>

#include "compress/inflate.h"
#include "samples.h"

enum { SIZE_MAX_HERE = 70000 };

typedef struct stream {
    uint8_t bytes[SIZE_MAX_HERE + 1000];
    size_t length;
} stream;

static uint8_t content[SIZE_MAX_HERE], inflated[SIZE_MAX_HERE + MC_INFLATE_SLACK];
static stream compressed;

static void
compress_with_libdeflate(size_t size, int level)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    compressed.length = libdeflate_zlib_compress(compressor, content, size, compressed.bytes, sizeof(compressed.bytes));
    libdeflate_free_compressor(compressor);
    ck_assert_uint_gt(compressed.length, 0);
}

static void
compress_with_zlib(size_t size, int level, int strategy)
{
    z_stream z = {
        .next_in = content, .avail_in = (uInt)size, .next_out = compressed.bytes, .avail_out = sizeof(compressed.bytes)
    };
    ck_assert_int_eq(deflateInit2(&z, level, Z_DEFLATED, 15, 8, strategy), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    compressed.length = z.total_out;
    deflateEnd(&z);
}

static void
check_stream(size_t size)
{
    size_t begin, end, first = 0, last = size;
    /* A copy of its own, so that a sanitizer sees one byte too far. */
    uint8_t *copy = malloc(compressed.length);
    memcpy(copy, compressed.bytes, compressed.length);
    memset(inflated, 0xaa, sizeof(inflated));
    ck_assert(mc_inflate_sparse(inflated, size, copy, compressed.length, &begin, &end));
    free(copy);
    ck_assert_mem_eq(inflated, content, size);
    while (first < size && content[first] == 0)
        first++;
    while (last > first && content[last - 1] == 0)
        last--;
    if (first == size)
        ck_assert_uint_ge(begin, end);
    else
        ck_assert(begin == first && end == last);
}

/* Windows of noise, repetitions of 1 to 40 bytes, and zeros. */
static size_t
make_content(int round)
{
    size_t size = 1 + sample_random() % (round % 4 == 0 ? 300 : SIZE_MAX_HERE);
    memset(content, 0, size);
    for (unsigned i = sample_random() % 6; i > 0; i--) {
        size_t at = sample_random() % size, length = 1 + sample_random() % 3000, distance = 1 + sample_random() % 40;
        for (size_t k = at; k < size && k < at + length; k++)
            content[k] =
                k - at < distance || round % 3 == 0 ? (uint8_t)(sample_random() >> (round % 8)) : content[k - distance];
    }
    return size;
}

START_TEST(test_what_compressors_write)
{
    static const int strategies[] = { Z_DEFAULT_STRATEGY, Z_FIXED, Z_RLE, Z_HUFFMAN_ONLY };
    for (int round = 0; round < 1500; round++) {
        size_t size = make_content(round);
        if (round % 2 == 0)
            compress_with_libdeflate(size, round / 2 % 13);
        else
            compress_with_zlib(size, round / 2 % 10, strategies[round / 2 % 4]);
        check_stream(size);
    }
}
END_TEST

/* Codes longer than the table's, which only very uneven contents have. */
START_TEST(test_long_codes)
{
    size_t size = 0;
    for (unsigned symbol = 0; symbol < 16; symbol++)
        for (unsigned i = 0; i < 1u << symbol && size < SIZE_MAX_HERE; i++)
            content[size++] = (uint8_t)(255 - symbol);
    for (size_t i = size - 1; i > 0; i--) {
        size_t other = (sample_random() << 8 | sample_random()) % (i + 1);
        uint8_t kept = content[i];
        content[i] = content[other];
        content[other] = kept;
    }
    compress_with_zlib(size, 9, Z_HUFFMAN_ONLY);
    check_stream(size);
}
END_TEST

/* Adds `count` bits of a deflate stream, the lowest first (RFC 1951, 3.1.1). */
static void
add_bits(unsigned value, unsigned count)
{
    static size_t filled;
    if (compressed.length == 0)
        filled = 0;
    for (unsigned i = 0; i < count; i++, filled++) {
        if (filled % 8 == 0)
            compressed.bytes[compressed.length++] = 0;
        compressed.bytes[compressed.length - 1] |= (uint8_t)((value >> i & 1) << (filled % 8));
    }
}

/* A Huffman code goes from its highest bit down. */
static void
add_code(unsigned code, unsigned count)
{
    while (count-- > 0)
        add_bits(code >> count & 1, 1);
}

/* Of the fixed codes (RFC 1951, 3.2.6): 258 bytes from `distance` before, which has the code `symbol` and extra bits.
 */
static void
add_longest_match(unsigned symbol, unsigned extra, unsigned count)
{
    add_code(0xc0 + 285 - 280, 8);
    add_code(symbol, 5);
    add_bits(extra, count);
}

/* The same copy again and again, which begins among the zeros before all content and goes on in the content. No
 * compressor that prefers short distances writes such a stream. */
START_TEST(test_copies_from_the_zeros_before_all_content)
{
    enum { ZEROS = 1 + 258, ROW = ZEROS + 200, SIZE = ROW + 4 * 258 };
    compressed.length = 0;
    add_bits(0x0178, 16);
    add_bits(1 | 1 << 1, 3);
    add_code(0x30, 8);
    add_longest_match(0, 0, 0);
    for (unsigned i = 0; i < ROW - ZEROS; i++)
        add_code(0x30 + 1 + i % 100, 8);
    for (unsigned i = 0; i < 4; i++)
        add_longest_match(17, ROW - 385, 7);
    add_code(0, 7);
    for (size_t i = 0; i < SIZE; i++)
        content[i] = i < ZEROS ? 0 : i < ROW ? (uint8_t)(1 + (i - ZEROS) % 100) : content[i - ROW];
    uint32_t sum = libdeflate_adler32(1, content, SIZE);
    for (unsigned i = 0; i < 4; i++)
        compressed.bytes[compressed.length++] = (uint8_t)(sum >> (24 - 8 * i));
    check_stream(SIZE);
}
END_TEST

static bool
libdeflate_agrees(size_t size)
{
    static uint8_t other[SIZE_MAX_HERE];
    struct libdeflate_decompressor *reader = libdeflate_alloc_decompressor();
    enum libdeflate_result result =
        libdeflate_zlib_decompress(reader, compressed.bytes, compressed.length, other, size, NULL);
    libdeflate_free_decompressor(reader);
    return result == LIBDEFLATE_SUCCESS && memcmp(other, inflated, size) == 0;
}

START_TEST(test_broken_streams)
{
    int refused = 0;
    for (int round = 0; round < 300; round++) {
        size_t size = make_content(round), begin, end;
        compress_with_libdeflate(size, 1 + round % 12);
        for (int i = 0; i < 40; i++) {
            size_t at = sample_random() % compressed.length;
            uint8_t flipped = (uint8_t)(1u << (sample_random() % 8));
            compressed.bytes[at] ^= flipped;
            if (mc_inflate_sparse(inflated, size, compressed.bytes, compressed.length, &begin, &end))
                ck_assert(libdeflate_agrees(size));
            else
                refused++;
            compressed.bytes[at] ^= flipped;
        }
    }
    ck_assert_int_gt(refused, 11000);
}
END_TEST

START_TEST(test_wrong_sizes)
{
    size_t begin, end, size = make_content(1);
    compress_with_libdeflate(size, 6);
    ck_assert(!mc_inflate_sparse(inflated, size - 1, compressed.bytes, compressed.length, &begin, &end));
    ck_assert(!mc_inflate_sparse(inflated, size + 1, compressed.bytes, compressed.length, &begin, &end));
    for (size_t length = 0; length < compressed.length; length++) {
        uint8_t *cut = malloc(length + 1);
        memcpy(cut, compressed.bytes, length);
        ck_assert(!mc_inflate_sparse(inflated, size, cut, length, &begin, &end));
        free(cut);
    }
}
END_TEST

UNIT_MAIN("inflate", test_what_compressors_write, test_long_codes, test_copies_from_the_zeros_before_all_content,
          test_broken_streams, test_wrong_sizes)
