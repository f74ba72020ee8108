/* What files are known to have, and which statements tell it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "cache/sqlite/coverage.h"

#define WHERE_XYZ " WHERE x=:x AND y=:y AND z=:z"
#define ALL "SELECT z, x, y FROM tiles"
#define LIMIT " LIMIT 4097"

START_TEST(plain_statements_tell)
{
    static const struct {
        const char *get, *coverage;
    } rows[] = {
        { "SELECT data FROM tiles" WHERE_XYZ, ALL LIMIT },
        { "select Data from TILES where z = :z and X=:x\n\tAND y =:y ;", ALL LIMIT },
        { "SELECT data FROM tiles NOT INDEXED" WHERE_XYZ, ALL LIMIT },
        { "SELECT data, ctime FROM tiles" WHERE_XYZ " AND dim=:dim", ALL " WHERE dim=:dim" LIMIT },
        { "SELECT data, strftime('%s', ctime) FROM tiles WHERE tileset=:tileset AND grid=:grid AND x=:x AND y=:y AND"
          " z=:z AND dim=:dim",
          ALL " WHERE tileset=:tileset AND grid=:grid AND dim=:dim" LIMIT },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *found = mc_coverage_statement(rows[i].get, pool);
        ck_assert_msg(found != NULL, "%s", rows[i].get);
        ck_assert_str_eq(found, rows[i].coverage);
    }
}
END_TEST

START_TEST(everything_else_does_not)
{
    static const char *const rows[] = {
        "",
        "SELECT",
        "SELECT data FROM tiles",
        "SELECT data FROM tiles WHERE",
        "SELECT data FROM tiles WHERE x=:x AND y=:y",
        "SELECT data FROM tiles" WHERE_XYZ " AND x=:x",
        "SELECT data FROM tiles" WHERE_XYZ " AND",
        "SELECT data FROM tiles" WHERE_XYZ " OR dim=:dim",
        "SELECT data FROM tiles" WHERE_XYZ " AND dim<=:dim",
        "SELECT data FROM tiles" WHERE_XYZ " AND dim=:grid",
        "SELECT data FROM tiles" WHERE_XYZ " AND ctime=:dim",
        "SELECT data FROM tiles" WHERE_XYZ " AND dim='a'",
        "SELECT data FROM tiles" WHERE_XYZ " LIMIT 1",
        "SELECT data FROM tiles" WHERE_XYZ " UNION SELECT data FROM other",
        "SELECT data FROM tiles" WHERE_XYZ "; SELECT 1",
        "SELECT data FROM tiles" WHERE_XYZ " -- x",
        "SELECT data FROM tiles" WHERE_XYZ " /* x */",
        "SELECT data FROM tiles t" WHERE_XYZ,
        "SELECT data FROM tiles, other" WHERE_XYZ,
        "SELECT data FROM tiles JOIN other" WHERE_XYZ,
        "SELECT data FROM other" WHERE_XYZ,
        "SELECT data FROM main.tiles" WHERE_XYZ,
        "SELECT data FROM \"tiles\"" WHERE_XYZ,
        "SELECT max(data) FROM tiles" WHERE_XYZ,
        "SELECT data, count(*) FROM tiles" WHERE_XYZ,
        "SELECT data, strftime('%Y', ctime) FROM tiles" WHERE_XYZ,
        "SELECT data, ctime, x FROM tiles" WHERE_XYZ,
        "SELECT DISTINCT data FROM tiles" WHERE_XYZ,
        "SELECT coalesce(data, x'00') FROM tiles" WHERE_XYZ,
        "SELECT data FROM tiles WHERE x=:x AND y=:inv_y AND z=:z",
        "SELECT data FROM tiles WHERE x=:y AND y=:x AND z=:z",
        "SELECT data FROM tiles WHERE x=:X AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x=: x AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x=@x AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x=:xx AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE (x=:x AND y=:y AND z=:z)",
        "SELECT data FROM tiles WHERE NOT x=:x AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x=:x+1 AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x=-:x AND y=:y AND z=:z",
        "SELECT data FROM tiles WHERE x==:x AND y=:y AND z=:z",
        "WITH tiles AS (SELECT 1) SELECT data FROM tiles" WHERE_XYZ,
        "SELECT data FROM tiles NOT" WHERE_XYZ,
        "SELECT data, strftime('%s, ctime) FROM tiles" WHERE_XYZ,
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ck_assert_msg(mc_coverage_statement(rows[i], pool) == NULL, "%s", rows[i]);
}
END_TEST

START_TEST(coverage_has_what_it_was_made_of)
{
    static const mc_coverage_tile tiles[] = { { 0, 0, 0 }, { 3, 5, 6 },  { 3, 7, 6 },    { 3, 5, 7 },
                                              { 3, 5, 6 }, { 9, -4, 9 }, { 20, 17, 99 }, { 20, 1 << 20, 1 << 19 } };
    int count = (int)(sizeof(tiles) / sizeof(*tiles));
    mc_coverage *coverage = mc_coverage_create(tiles, count);
    for (int i = 0; i < count; i++)
        ck_assert(mc_coverage_may_have(coverage, tiles[i].z, tiles[i].x, tiles[i].y));
    ck_assert(!mc_coverage_may_have(coverage, 3, 6, 6)); /* a gap inside the box */
    ck_assert(!mc_coverage_may_have(coverage, 3, 7, 7));
    ck_assert(!mc_coverage_may_have(coverage, 3, 4, 6));
    ck_assert(!mc_coverage_may_have(coverage, 3, 8, 6));
    ck_assert(!mc_coverage_may_have(coverage, 1, 0, 0));
    ck_assert(!mc_coverage_may_have(coverage, -1, 0, 0));
    ck_assert(!mc_coverage_may_have(coverage, 64, 0, 0));
    ck_assert(mc_coverage_may_have(coverage, 20, 18, 100)); /* a box too large for bits: perhaps */
    ck_assert(!mc_coverage_may_have(coverage, 20, 16, 100));
    ck_assert_uint_lt(mc_coverage_bytes(coverage), 4096);
    free(coverage);
    coverage = mc_coverage_create(NULL, 0);
    ck_assert(!mc_coverage_may_have(coverage, 0, 0, 0));
    free(coverage);
}
END_TEST

START_TEST(numbers_out_of_bounds_are_not_learnt)
{
    static const mc_coverage_tile rows[] = { { 64, 0, 0 }, { -1, 0, 0 }, { 0, 2147483647, 0 }, { 0, 0, -2147483647 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ck_assert_ptr_null(mc_coverage_create(&rows[i], 1));
}
END_TEST

START_TEST(coverage_agrees_with_a_list)
{
    unsigned state = 7;
    for (int round = 0; round < 50; round++) {
        mc_coverage_tile tiles[300];
        int count = 1 + round * 5;
        int spread = 4 << round % 10;
        for (int i = 0; i < count; i++) {
            state = state * 1664525U + 1013904223U;
            tiles[i] =
                (mc_coverage_tile){ (int)(state >> 8) % 3, (int)(state >> 12) % spread, (int)(state >> 20) % spread };
        }
        mc_coverage *coverage = mc_coverage_create(tiles, count);
        for (int z = 0; z < 3; z++)
            for (int x = -1; x <= spread && spread <= 64; x++)
                for (int y = -1; y <= spread; y++) {
                    bool listed = false;
                    for (int i = 0; i < count && !listed; i++)
                        listed = tiles[i].z == z && tiles[i].x == x && tiles[i].y == y;
                    ck_assert_int_eq(mc_coverage_may_have(coverage, z, x, y), listed);
                }
        for (int i = 0; i < count; i++) {
            const mc_coverage_tile *tile = &tiles[i];
            ck_assert(mc_coverage_may_have(coverage, tile->z, tile->x, tile->y));
            ck_assert(mc_coverage_may_touch(coverage, tile->z, tile->x, tile->y, tile->x + 1, tile->y + 1));
            ck_assert(mc_coverage_may_touch(coverage, tile->z, tile->x - 2, tile->y - 2, tile->x + 1, tile->y + 1));
        }
        ck_assert(!mc_coverage_may_touch(coverage, 0, -5, 0, 0, spread));
        ck_assert(!mc_coverage_may_touch(coverage, 0, 0, spread, spread, spread + 5));
        ck_assert(!mc_coverage_may_touch(coverage, 3, 0, 0, spread, spread));
        free(coverage);
    }
}
END_TEST

UNIT_MAIN("coverage", plain_statements_tell, everything_else_does_not, coverage_has_what_it_was_made_of,
          numbers_out_of_bounds_are_not_learnt, coverage_agrees_with_a_list)
