/* What is purged of a changed range names every answer that shows a tile of the range, and few others. */
#include "cdn/surrogate_keys.h"

#include <apr_strings.h>
#include <string.h>

#include "unit.h"

static const mc_grid *
web_grid(void)
{
    apr_hash_t *grids = apr_hash_make(pool);
    mc_grid_builtins(grids, pool);
    return apr_hash_get(grids, "GoogleMapsCompatible", APR_HASH_KEY_STRING);
}

static uint64_t state = 42;

static int
random_below(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

static bool
has_key(const char *keys, const char *key)
{
    const char *padded = apr_pstrcat(pool, " ", keys, " ", NULL);
    return strstr(padded, apr_pstrcat(pool, " ", key, " ", NULL)) != NULL;
}

/* The purge of a range, held against the keys of an answer. */
typedef struct purge_trial {
    const char *answer;
    bool found;
    int keys;
} purge_trial;

static void
try_key(void *baton, const char *key)
{
    purge_trial *trial = baton;
    ck_assert_uint_lt(strlen(key), MC_SURROGATE_KEY_MAX);
    trial->keys++;
    trial->found = trial->found || has_key(trial->answer, key);
}

static bool
is_purged(const char *answer, const char *tileset, const mc_grid *grid, int z, const mc_tile_range *range)
{
    purge_trial trial = { answer, false, 0 };
    mc_surrogates_of_changed(tileset, grid, z, range, try_key, &trial);
    ck_assert_int_le(trial.keys, 18);
    return trial.found;
}

static const char *
keys_of_tile(const char *tileset, const mc_grid *grid, int z, int x, int y)
{
    mc_surrogates keys;
    mc_surrogates_begin(&keys);
    mc_surrogates_add_tile(&keys, tileset, grid, z, x, y);
    return mc_surrogates_end(&keys, ' ', pool);
}

static const char *
keys_of_map(const char *tileset, const mc_grid *grid, int z, const mc_tile_range *range)
{
    mc_surrogates keys;
    mc_surrogates_begin(&keys);
    mc_surrogates_add_range(&keys, tileset, grid, z, range);
    return mc_surrogates_end(&keys, ' ', pool);
}

static mc_tile_range
random_range(int side, int most)
{
    const int x = random_below(side), y = random_below(side);
    const int width = 1 + random_below(most < side - x ? most : side - x);
    const int height = 1 + random_below(most < side - y ? most : side - y);
    return (mc_tile_range){ x, y, x + width, y + height };
}

START_TEST(every_answer_that_shows_a_changed_tile_is_named)
{
    const mc_grid *grid = web_grid();
    for (int i = 0; i < 4000; i++) {
        const int z = random_below(19), side = 1 << z;
        const mc_tile_range changed = random_range(side, 1 << random_below(z + 1));
        const int x = changed.minx + random_below(changed.maxx - changed.minx);
        const int y = changed.miny + random_below(changed.maxy - changed.miny);
        ck_assert(is_purged(keys_of_tile("roads", grid, z, x, y), "roads", grid, z, &changed));
        mc_tile_range map = random_range(side, 60);
        map = (mc_tile_range){ x < map.minx ? x : map.minx, y < map.miny ? y : map.miny,
                               x >= map.maxx ? x + 1 : map.maxx, y >= map.maxy ? y + 1 : map.maxy };
        ck_assert(is_purged(keys_of_map("roads", grid, z, &map), "roads", grid, z, &changed));
        if (i % 100 == 0)
            apr_pool_clear(pool), grid = web_grid();
    }
}
END_TEST

START_TEST(what_is_far_away_stays)
{
    const mc_grid *grid = web_grid();
    const mc_tile_range changed = { 800, 800, 802, 801 }, near = { 803, 803, 804, 804 }, other = { 816, 800, 817, 801 };
    ck_assert(
        is_purged(keys_of_tile("roads", grid, 12, 803, 803), "roads", grid, 12, &changed)); /* of the same block */
    ck_assert(!is_purged(keys_of_tile("roads", grid, 12, 808, 800), "roads", grid, 12, &changed));
    ck_assert(!is_purged(keys_of_tile("roads", grid, 11, 800, 800), "roads", grid, 12, &changed));
    ck_assert(!is_purged(keys_of_tile("rivers", grid, 12, 800, 800), "roads", grid, 12, &changed));
    ck_assert(is_purged(keys_of_map("roads", grid, 12, &near), "roads", grid, 12, &changed));
    ck_assert(!is_purged(keys_of_map("roads", grid, 12, &other), "roads", grid, 12, &changed));
    ck_assert_str_eq(keys_of_tile("roads", grid, 12, 803, 95),
                     ":all roads roads:GoogleMapsCompatible:12 roads:GoogleMapsCompatible:12:3:100:11"
                     " roads:GoogleMapsCompatible:12:6:12:1 roads:GoogleMapsCompatible:12:9:1:0");
}
END_TEST

START_TEST(no_name_ends_a_key_or_a_header)
{
    const mc_grid *grid = web_grid();
    const char *const names[] = { "a b", "a\r\nSet-Cookie: x", "a:b", "a,b", "a%20b", "\xc3\xa4", "~", "" };
    const char *seen[8];
    for (int i = 0; i < 8; i++) {
        seen[i] = keys_of_tile(names[i], grid, 0, 0, 0);
        for (const char *c = seen[i]; *c != '\0'; c++)
            ck_assert(*c >= ' ' && *c <= '~' && *c != ',');
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(seen[i], seen[j]);
    }
    ck_assert_str_eq(seen[1], ":all a%0D%0ASet-Cookie%3A%20x a%0D%0ASet-Cookie%3A%20x:GoogleMapsCompatible:0");
    char *one = apr_palloc(pool, 5000), *two = apr_palloc(pool, 5000); /* long names differ by their end alone */
    memset(one, ' ', 4999);
    memset(two, ' ', 4999);
    one[4999] = two[4999] = '\0';
    two[4998] = '!';
    const char *first = keys_of_tile(one, grid, 5, 3, 3), *second = keys_of_tile(two, grid, 5, 3, 3);
    ck_assert_str_ne(first, second);
    ck_assert_uint_lt(strlen(first), 5 * MC_SURROGATE_KEY_MAX);
}
END_TEST

START_TEST(answers_of_too_many_layers_are_named_by_every_purge)
{
    const mc_grid *grid = web_grid();
    const mc_tile_range map = { 10, 10, 40, 40 }, changed = { 0, 0, 1, 1 };
    mc_surrogates keys;
    mc_surrogates_begin(&keys);
    for (int i = 0; i < 300; i++)
        mc_surrogates_add_range(&keys, apr_psprintf(pool, "layer%d", i), grid, 8, &map);
    const char *text = mc_surrogates_end(&keys, ',', pool);
    ck_assert_str_eq(text, ":all,:maps");
    ck_assert(is_purged(":all :maps", "anything", grid, 3, &changed));
}
END_TEST

UNIT_MAIN("surrogate_keys", every_answer_that_shows_a_changed_tile_is_named, what_is_far_away_stays,
          no_name_ends_a_key_or_a_header, answers_of_too_many_layers_are_named_by_every_purge)
