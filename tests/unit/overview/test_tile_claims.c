/* Which features the budget of tiles can reach: as the best of all claims, put in order, say. */
#include "overview/tile_claims.h"

#include <stdlib.h>

#include "unit.h"

enum { FEATURES = 5000, MOST = 300, TILES = 8, SIZE_MOST = 700 };

typedef struct claimed {
    int64_t column;
    uint32_t size;
    int place;
} claimed;

static claimed features[FEATURES];

static int
by_tile_and_claim(const void *left, const void *right)
{
    const claimed *a = left, *b = right;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->place - b->place;
}

/* So many features, most of them small, in tiles of which some have too many. */
static mc_tile_claims *
count_features(int most)
{
    mc_tile_claims *claims = mc_tile_claims_create(most, pool);
    srand(5);
    for (int i = 0; i < FEATURES; i++) {
        features[i] = (claimed){ .column = rand() % TILES * (rand() % TILES) - 3,
                                 .size = rand() % 50 == 0 ? (uint32_t)(rand() % SIZE_MOST) : (uint32_t)(rand() % 9),
                                 .place = i };
        mc_tile_claims_count(claims, features[i].column, -7, features[i].size);
    }
    return claims;
}

START_TEST(the_best_claims_are_held)
{
    static bool held[FEATURES];
    mc_tile_claims *claims = count_features(MOST);
    int left_out = 0, rank = 0;
    ck_assert(mc_tile_claims_settle(claims));
    for (int i = FEATURES - 1; i >= 0; i--)
        held[i] = mc_tile_claims_hold(claims, features[i].column, -7, features[i].size);
    ck_assert(mc_tile_claims_hold(claims, 1000, -7, 0)); /* of a tile without any */
    qsort(features, FEATURES, sizeof(features[0]), by_tile_and_claim);
    for (int i = 0; i < FEATURES; i++) {
        rank = i > 0 && features[i].column == features[i - 1].column ? rank + 1 : 0;
        ck_assert_msg(held[features[i].place] == (rank < MOST), "tile %d, rank %d", (int)features[i].column, rank);
        left_out += rank >= MOST;
    }
    ck_assert_int_gt(left_out, FEATURES / 10);
}
END_TEST

START_TEST(nothing_is_settled_where_all_have_room)
{
    ck_assert(!mc_tile_claims_settle(count_features(FEATURES)));
    mc_tile_claims *many = mc_tile_claims_create(1, pool);
    for (int64_t i = 0; i < 20000; i++) /* more tiles than are counted */
        mc_tile_claims_count(many, i / 2, i / 2, 1);
    ck_assert(!mc_tile_claims_settle(many));
}
END_TEST

/* Those that are large are never left out, however many there are. */
START_TEST(large_features_are_held)
{
    mc_tile_claims *claims = mc_tile_claims_create(10, pool);
    for (int i = 0; i < 30; i++)
        mc_tile_claims_count(claims, 0, 0, 100000);
    mc_tile_claims_count(claims, 0, 0, 511);
    ck_assert(mc_tile_claims_settle(claims));
    ck_assert(!mc_tile_claims_hold(claims, 0, 0, 511));
    for (int i = 0; i < 30; i++)
        ck_assert(mc_tile_claims_hold(claims, 0, 0, 100000));
}
END_TEST

UNIT_MAIN("tile_claims", the_best_claims_are_held, nothing_is_settled_where_all_have_room, large_features_are_held)
