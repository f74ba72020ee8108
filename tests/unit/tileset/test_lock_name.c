/* Names of locks and flights: no two metatiles share one, and one has the same name in all processes. */
#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "mapcache/grid.h"
#include "tileset/tileset_private.h"

static mc_grid *
grid_named(const char *name)
{
    apr_hash_t *grids = apr_hash_make(pool);
    mc_grid_builtins(grids, pool);
    mc_grid *grid = apr_pmemdup(pool, apr_hash_get(grids, "WGS84", APR_HASH_KEY_STRING), sizeof(*grid));
    grid->name = name;
    return grid;
}

/* Of tile 5/9/10 in metatiles of 4 x 4; the values are parted by commas. */
static const char *
lock_name_of(const char *tileset_name, int grids, const char *grid, const char *values)
{
    mc_tileset tileset = {
        .name = tileset_name, .link_count = grids, .metatile_columns = 4, .metatile_rows = 4, .cache = NULL
    };
    mc_dimension_value dimensions[4] = { 0 };
    mc_tile_key key = {
        .tileset = tileset_name, .grid = grid_named(grid), .z = 5, .x = 9, .y = 10, .dimensions = dimensions
    };
    char *rest = apr_pstrdup(pool, values), *state;
    for (char *value = apr_strtok(rest, ",", &state); value != NULL; value = apr_strtok(NULL, ",", &state))
        dimensions[key.dimension_count++].value = value;
    return mc_tileset_lock_name(&tileset, &key, pool);
}

START_TEST(plain_names_are_mapcaches)
{
    ck_assert_str_eq(lock_name_of("world", 1, "WGS84", ""), "5-2-2-world");
    ck_assert_str_eq(lock_name_of("a-b", 1, "WGS84", ""), "5-2-2-a-b");
    ck_assert_str_eq(lock_name_of("world", 2, "WGS84", "2020,red"), "5-2-2-world@WGS84/2020/red");
}
END_TEST

START_TEST(no_two_metatiles_share_a_name)
{
    const char *names[] = {
        lock_name_of("a-b", 1, "c", ""),    lock_name_of("a", 2, "b", ""),      lock_name_of("a@b", 1, "c", ""),
        lock_name_of("a%40b", 1, "c", ""),  lock_name_of("a", 2, "b@c", ""),    lock_name_of("a@b", 2, "c", ""),
        lock_name_of("a", 1, "c", "b"),     lock_name_of("a/b", 1, "c", ""),    lock_name_of("a%2Fb", 1, "c", ""),
        lock_name_of("a", 1, "c", "x/y,z"), lock_name_of("a", 1, "c", "x,y/z"), lock_name_of("a", 1, "c", "x,y,z"),
        lock_name_of("a", 2, "b", "b"),     lock_name_of("a", 2, "b/b", ""),    lock_name_of("a", 1, "c", "@b"),
    };
    const int count = (int)(sizeof(names) / sizeof(*names));
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(names[i], names[j]);
}
END_TEST

/* Who waits for a flight finds the tile in the cache of its own configuration only. */
START_TEST(flights_are_of_one_cache)
{
    mc_cache caches[2] = { { .serial = 7 }, { .serial = 8 } };
    const mc_tileset one = { .name = "world", .cache = &caches[0] }, other = { .name = "world", .cache = &caches[1] };
    ck_assert_str_ne(mc_tileset_flight_name(&one, "5-2-2-world", pool),
                     mc_tileset_flight_name(&other, "5-2-2-world", pool));
    ck_assert_str_eq(mc_tileset_flight_name(&one, "5-2-2-world", pool),
                     mc_tileset_flight_name(&one, "5-2-2-world", pool));
}
END_TEST

UNIT_MAIN("lock_name", plain_names_are_mapcaches, no_two_metatiles_share_a_name, flights_are_of_one_cache)
