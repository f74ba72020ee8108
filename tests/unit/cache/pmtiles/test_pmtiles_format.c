/* Headers and directories of PMTiles files, and what is none. */
#include "unit.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/pmtiles/format.h"
#include "compress/gzip.h"

static mc_buf *
encode(const mc_pmtiles_entry *entries, size_t count)
{
    mc_buf *out = mc_buf_attach(mc_buf_create(64, 1 << 26), pool);
    ck_ok(mc_pmtiles_encode_directory(out, entries, count, pool));
    return out;
}

/* The directory, freed with the pool; NULL after an error of that kind. */
static mc_pmtiles_directory *
decode(const void *bytes, size_t size, int compression)
{
    mc_pmtiles_directory *directory = NULL;
    ck_ok(mc_pmtiles_decode_directory(&directory, bytes, size, compression, pool));
    mc_pmtiles_directory *copy = apr_pmemdup(pool, directory, mc_pmtiles_directory_bytes(directory));
    free(directory);
    return copy;
}

static const mc_pmtiles_entry some[] = {
    { 0, 0, 10, 1 }, { 1, 10, 20, 4 }, { 9, 0, 10, 1 }, { 10, 30, 5, 0 }, { 1000000000000, 1ull << 40, UINT32_MAX, 1 },
};

START_TEST(directories_come_back)
{
    const mc_buf *plain = encode(some, 5);
    mc_buf *packed;
    ck_ok(mc_gzip(&packed, plain->data, plain->size, MC_GZIP_GOOD, pool));
    for (int i = 0; i < 2; i++) {
        const mc_pmtiles_directory *back = i == 0 ? decode(plain->data, plain->size, MC_PMTILES_NONE)
                                                  : decode(packed->data, packed->size, MC_PMTILES_GZIP);
        ck_assert_uint_eq(back->count, 5);
        for (int j = 0; j < 5; j++)
            ck_assert_int_eq(memcmp(&back->entries[j], &some[j], sizeof(some[j])), 0);
    }
}
END_TEST

START_TEST(the_bytes_are_those_of_the_specification)
{
    /* Two entries: ids 5 and 47, runs 1 and 2, lengths 300 and 7, the second right behind the first. */
    static const uint8_t bytes[] = { 2, 5, 42, 1, 2, 0xac, 2, 7, 1, 0 };
    const mc_pmtiles_entry entries[] = { { 5, 0, 300, 1 }, { 47, 300, 7, 2 } };
    const mc_buf *plain = encode(entries, 2);
    ck_assert_uint_eq(plain->size, sizeof(bytes));
    ck_assert_int_eq(memcmp(plain->data, bytes, sizeof(bytes)), 0);
}
END_TEST

START_TEST(tiles_are_found)
{
    const mc_buf *plain = encode(some, 5);
    const mc_pmtiles_directory *directory = decode(plain->data, plain->size, MC_PMTILES_NONE);
    static const struct {
        uint64_t id;
        int entry; /* -1: none */
    } wanted[] = { { 0, 0 },
                   { 1, 1 },
                   { 4, 1 },
                   { 5, -1 },
                   { 8, -1 },
                   { 9, 2 },
                   { 10, 3 },
                   { 999999999999, 3 },
                   { 1000000000000, 4 },
                   { 1000000000001, -1 } };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        ck_assert_ptr_eq(mc_pmtiles_find(directory, wanted[i].id),
                         wanted[i].entry < 0 ? NULL : &directory->entries[wanted[i].entry]);
}
END_TEST

START_TEST(what_is_no_directory_is_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        { "", 0 },                                                        /* nothing */
        { "\0", 1 },                                                      /* no entries */
        { "\1", 1 },                                                      /* none of its columns */
        { "\1\5\1\1", 4 },                                                /* no offset */
        { "\1\5\1\0\1", 5 },                                              /* a length of 0 */
        { "\1\5\1\1\0", 5 },                                              /* follows what is not there */
        { "\2\5\0\1\1\1\1\1\0", 9 },                                      /* the same id twice */
        { "\1\377\377\377\377\377\377\377\377\377\1\1\1\1", 14 },         /* an id beyond all levels */
        { "\1\377\377\377\377\377\377\377\377\377\2\1\1\1", 14 },         /* a number of more than 64 bits */
        { "\1\377\377\377\377\377\377\377\377\377\377\377\1\1\1\1", 16 }, /* a number that does not end */
        { "\1\5\377\377\377\377\177\1\1", 9 },                            /* a run of more than 32 bits */
        { "\1\5\1\377\377\377\377\177\1", 9 },                            /* a length of more than 32 bits */
        { "\1\5\1\1\377\377\377\377\377\377\377\377\377\1", 14 },         /* an offset beyond all files */
    };
    mc_pmtiles_directory *directory;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_fails(CORRUPT, mc_pmtiles_decode_directory(&directory, bad[i].bytes, bad[i].size, MC_PMTILES_NONE, pool));
    ck_fails(LIMIT,
             mc_pmtiles_decode_directory(&directory, "\377\377\377\377\17\1\1\1\1\1", 10, MC_PMTILES_NONE, pool));
    ck_fails(CORRUPT, mc_pmtiles_decode_directory(&directory, "\1\5\1\1\1", 5, MC_PMTILES_GZIP, pool));
    ck_fails(CORRUPT, mc_pmtiles_decode_directory(&directory, "\1\5\1\1\1", 5, MC_PMTILES_BROTLI, pool));
    ck_fails(CORRUPT, mc_pmtiles_decode_directory(&directory, "\1\5\1\1\1", 5, MC_PMTILES_ZSTD, pool));
    ck_fails(CONFIG, mc_pmtiles_decode_directory(&directory, "\1\5\1\1\1", 5, 200, pool));
}
END_TEST

START_TEST(a_cut_off_directory_is_refused)
{
    const mc_buf *plain = encode(some, 5);
    mc_pmtiles_directory *directory;
    for (size_t size = 0; size < plain->size; size++) {
        uint8_t *exactly = malloc(size > 0 ? size : 1); /* so that sanitizers see what is read beyond it */
        memcpy(exactly, plain->data, size);
        mc_error *error = mc_pmtiles_decode_directory(&directory, exactly, size, MC_PMTILES_NONE, pool);
        free(exactly);
        ck_fails(CORRUPT, error);
    }
}
END_TEST

START_TEST(a_directory_that_expands_for_ever_is_refused)
{
    size_t size = 64 << 20;
    uint8_t *zeros = calloc(1, size);
    mc_buf *packed;
    mc_pmtiles_directory *directory;
    ck_ok(mc_gzip(&packed, zeros, size, MC_GZIP_FAST, pool));
    free(zeros);
    ck_assert_uint_lt(packed->size, 1 << 20);
    ck_fails(LIMIT, mc_pmtiles_decode_directory(&directory, packed->data, packed->size, MC_PMTILES_GZIP, pool));
}
END_TEST

static const mc_pmtiles_header whole = {
    .root = { 127, 100 },
    .metadata = { 227, 50 },
    .leaves = { 5000, 400 },
    .tiles = { 277, 4723 },
    .addressed = 77,
    .entries = 66,
    .contents = 55,
    .clustered = true,
    .internal = MC_PMTILES_GZIP,
    .coding = MC_PMTILES_NONE,
    .type = MC_PMTILES_PNG,
    .minzoom = 2,
    .maxzoom = 14,
    .centre_zoom = 3,
    .west = -180,
    .south = -85.0511287,
    .east = 179.9999999,
    .north = 0.0000001,
    .centre_x = 12.5,
    .centre_y = -12.5,
};

START_TEST(a_header_comes_back)
{
    uint8_t bytes[MC_PMTILES_HEADER], again[MC_PMTILES_HEADER];
    mc_pmtiles_header back;
    mc_pmtiles_format_header(bytes, &whole);
    ck_ok(mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 5400, pool));
    mc_pmtiles_format_header(again, &back);
    ck_assert_int_eq(memcmp(bytes, again, sizeof(bytes)), 0);
    ck_assert_uint_eq(back.tiles.size, 4723);
    ck_assert(back.clustered && back.maxzoom == 14 && back.south == -85.0511287);
}
END_TEST

START_TEST(what_is_no_header_is_refused)
{
    uint8_t bytes[MC_PMTILES_HEADER];
    mc_pmtiles_header header = whole, back;
    mc_pmtiles_format_header(bytes, &header);
    for (size_t size = 0; size < sizeof(bytes); size++)
        ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, size, 5400, pool));
    ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 5399, pool));
    bytes[7] = 2;
    ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 5400, pool));
    bytes[7] = 3;
    bytes[0] = 'p';
    ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 5400, pool));
    mc_pmtiles_section *sections[] = { &header.root, &header.metadata, &header.leaves, &header.tiles };
    for (int i = 0; i < 4; i++) {
        const mc_pmtiles_section right = *sections[i];
        static const mc_pmtiles_section wrong[] = { { 5401, 1 }, { 5000, 401 }, { UINT64_MAX, 1 }, { 1, UINT64_MAX } };
        for (int j = 0; j < 4; j++) {
            *sections[i] = wrong[j];
            mc_pmtiles_format_header(bytes, &header);
            ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 5400, pool));
        }
        *sections[i] = right;
    }
    static const mc_pmtiles_section roots[] = { { 127, 0 }, { 126, 10 }, { 127, 16258 }, { 16384, 1 } };
    for (int i = 0; i < 4; i++) {
        header.root = roots[i];
        mc_pmtiles_format_header(bytes, &header);
        ck_fails(CORRUPT, mc_pmtiles_parse_header(&back, bytes, sizeof(bytes), 100000, pool));
    }
}
END_TEST

UNIT_MAIN("pmtiles format", directories_come_back, the_bytes_are_those_of_the_specification, tiles_are_found,
          what_is_no_directory_is_refused, a_cut_off_directory_is_refused, a_directory_that_expands_for_ever_is_refused,
          a_header_comes_back, what_is_no_header_is_refused)
