/* Keys of tiles in servers of keys and values: MapCache's where they are good, and never one for two tiles. */
#include "unit.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cache/keyvalue/keyvalue.h"
#include "digest/digest.h"

static const mc_keyvalue_rules memcached = { .longest = 250 };
static const mc_keyvalue_rules redis = { .longest = 4096, .blanks = true };

static mc_grid grids[] = { { .name = "WGS84" }, { .name = "b/c" }, { .name = "c" }, { .name = "B C" } };

static mc_tile_key
tile_of(const char *tileset, int grid, int count, const char *one, const char *two)
{
    mc_dimension_value *values = apr_pcalloc(pool, sizeof(*values) * 2);
    values[0] = (mc_dimension_value){ "one", one, false };
    values[1] = (mc_dimension_value){ "two", two, false };
    return (mc_tile_key){ .tileset = tileset,
                          .grid = &grids[grid],
                          .z = 1,
                          .x = 1,
                          .y = 0,
                          .dimension_count = count,
                          .dimensions = values,
                          .extension = "png" };
}

static const char *
key_of(const char *tileset, int grid, int count, const char *one, const char *two, const mc_keyvalue_rules *rules)
{
    mc_tile_key tile = tile_of(tileset, grid, count, one, two);
    return mc_keyvalue_key(&tile, rules, pool);
}

START_TEST(good_keys_are_those_of_mapcache)
{
    ck_assert_str_eq(key_of("roads", 0, 0, "", "", &memcached), "roads/WGS84/1/0/1/png");
    ck_assert_str_eq(key_of("roads", 0, 1, "2024-01-01", "", &memcached), "roads/WGS84/2024-01-01/1/0/1/png");
    ck_assert_str_eq(key_of("roads", 0, 1, "a/c", "", &memcached), "roads/WGS84/a/c/1/0/1/png");
    ck_assert_str_eq(key_of("roads", 0, 2, "first", "second", &memcached), "roads/WGS84/second#first/1/0/1/png");
    ck_assert_str_eq(key_of("roads", 0, 2, "a b", "1.x", &redis), "roads/WGS84/1.x#a b/1/0/1/png");
    ck_assert_str_eq(key_of("r\xc3\xbc", 0, 0, "", "", &memcached), "r\xc3\xbc/WGS84/1/0/1/png");
}
END_TEST

START_TEST(other_keys_are_escaped)
{
    ck_assert_str_eq(key_of("roads", 0, 1, "a b", "", &memcached), "%/roads/WGS84/a%20b/1/0/1/png");
    ck_assert_str_eq(key_of("a/b", 0, 0, "", "", &redis), "%/a%2Fb/WGS84/1/0/1/png");
    ck_assert_str_eq(key_of("t", 0, 1, "a#b", "", &redis), "%/t/WGS84/a#b/1/0/1/png");
    ck_assert_str_eq(key_of("%", 0, 0, "", "", &redis), "%/%25/WGS84/1/0/1/png");
    ck_assert_str_eq(key_of("t", 0, 1, "a\r\nset x 0 0 1", "", &memcached),
                     "%/t/WGS84/a%0D%0Aset%20x%200%200%201/1/0/1/png");
}
END_TEST

START_TEST(long_keys_are_hashed)
{
    char *longest = apr_pcalloc(pool, 1001);
    memset(longest, 'a', 1000);
    const char *key = key_of("t", 0, 1, longest, "", &memcached);
    ck_assert_uint_eq(strlen(key), 66);
    ck_assert_int_eq(strncmp(key, "%#", 2), 0);
    longest[999] = 'b';
    ck_assert_str_ne(key_of("t", 0, 1, longest, "", &memcached), key);
    longest[250 - strlen("t/WGS84//1/0/1/png")] = '\0';
    ck_assert_uint_eq(strlen(key_of("t", 0, 1, longest, "", &memcached)), 250);
    ck_assert_int_eq(key_of("t", 0, 1, longest, "", &memcached)[0], 't');
}
END_TEST

/* All tiles of these names and values: as many keys as tiles. */
START_TEST(no_two_tiles_share_a_key)
{
    static const char *const tilesets[] = { "a", "a/b", "b", "%", "%/a", "a%2Fb", "a b", "a#b", "%#" };
    static const char *const values[] = { "", "a", "b", "a/b", "a#b", "#", "c/a", "a b", "a%20b", "1/0", "\t", "%09" };
    const mc_keyvalue_rules *const rules[] = { &memcached, &redis };
    for (size_t r = 0; r < 2; r++) {
        apr_hash_t *seen = apr_hash_make(pool);
        unsigned tiles = 0;
        for (size_t t = 0; t < sizeof(tilesets) / sizeof(*tilesets); t++)
            for (int grid = 0; grid < 4; grid++)
                for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
                    for (size_t j = 0; j < sizeof(values) / sizeof(*values); j++)
                        for (int count = 0; count <= 2; count++) {
                            if ((count < 2 && j > 0) || (count < 1 && i > 0))
                                continue;
                            const char *key = key_of(tilesets[t], grid, count, values[i], values[j], rules[r]);
                            ck_assert_msg(apr_hash_get(seen, key, APR_HASH_KEY_STRING) == NULL, "%s", key);
                            apr_hash_set(seen, key, APR_HASH_KEY_STRING, key);
                            ck_assert(rules[r]->blanks || strpbrk(key, " \t\r\n") == NULL);
                            tiles++;
                        }
        ck_assert_uint_eq(apr_hash_count(seen), tiles);
    }
}
END_TEST

static void
expect_digest(const char *text, size_t size, const char *expected)
{
    uint8_t digest[MC_SHA256_BYTES];
    char hex[2 * MC_SHA256_BYTES + 1];
    mc_sha256(digest, text, size);
    for (int i = 0; i < MC_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(hex, expected);
}

/* The examples of FIPS 180-4 and, around the size of a block, of sha256sum. */
START_TEST(digests_are_those_of_the_standard)
{
    char many[130];
    memset(many, 'a', sizeof(many));
    expect_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_digest(many, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect_digest(many, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    expect_digest(many, 130, "1e3c4f4750c8c29bbfa9ced317788176b156d342e57f7777f62fd7221a44312f");
}
END_TEST

UNIT_MAIN("keyvalue_key", good_keys_are_those_of_mapcache, other_keys_are_escaped, long_keys_are_hashed,
          no_two_tiles_share_a_key, digests_are_those_of_the_standard)
