/* See tile_claims.h. */
#include "overview/tile_claims.h"

#include <apr_hash.h>

enum {
    SIZES = 512, /* features of so many units or more are always kept, and have one count */
    TILES_MOST = 8192,
};

typedef struct claimed_tile {
    int64_t place[2];
    int64_t all;
    uint32_t counts[SIZES + 1]; /* features of each size; behind mc_tile_claims_settle of `least` those left out */
    uint32_t least;             /* smaller ones are left out */
} claimed_tile;

struct mc_tile_claims {
    int most;
    apr_hash_t *tiles;  /* claimed_tile by its place */
    claimed_tile *last; /* that was looked for */
    bool crowded;       /* there are more tiles than are counted */
    apr_pool_t *pool;
};

mc_tile_claims *
mc_tile_claims_create(int most, apr_pool_t *pool)
{
    mc_tile_claims *made = apr_pcalloc(pool, sizeof(*made));
    made->most = most;
    made->tiles = apr_hash_make(pool);
    made->pool = pool;
    return made;
}

static claimed_tile *
find_claimed_tile(mc_tile_claims *claims, int64_t column, int64_t row)
{
    const int64_t place[2] = { column, row };
    if (claims->last == NULL || claims->last->place[0] != column || claims->last->place[1] != row)
        claims->last = apr_hash_get(claims->tiles, place, sizeof(place));
    return claims->last;
}

static uint32_t
size_class(uint32_t size)
{
    return size < SIZES ? size : SIZES;
}

void
mc_tile_claims_count(mc_tile_claims *claims, int64_t column, int64_t row, uint32_t size)
{
    if (claims->crowded)
        return;
    claimed_tile *tile = find_claimed_tile(claims, column, row);
    if (tile == NULL) {
        claims->crowded = apr_hash_count(claims->tiles) == TILES_MOST;
        if (claims->crowded)
            return;
        tile = apr_pcalloc(claims->pool, sizeof(*tile));
        tile->place[0] = column;
        tile->place[1] = row;
        apr_hash_set(claims->tiles, tile->place, sizeof(tile->place), tile);
    }
    tile->counts[size_class(size)]++;
    tile->all++;
}

/* The least size of which any are shown, and how many of it are not. */
static bool
settle_claimed_tile(claimed_tile *tile, int most)
{
    int64_t room = most;
    if (tile->all <= most)
        return false;
    tile->least = SIZES;
    while (tile->least > 0 && room > tile->counts[tile->least])
        room -= tile->counts[tile->least--];
    tile->counts[tile->least] = room < tile->counts[tile->least] ? tile->counts[tile->least] - (uint32_t)room : 0;
    return true;
}

bool
mc_tile_claims_settle(mc_tile_claims *claims)
{
    bool any = false;
    for (apr_hash_index_t *at = apr_hash_first(claims->pool, claims->tiles); at != NULL; at = apr_hash_next(at)) {
        claimed_tile *tile = apr_hash_this_val(at);
        if (!settle_claimed_tile(tile, claims->most))
            tile->counts[0] = 0; /* of none is any left out */
        else
            any = true;
    }
    return any && !claims->crowded;
}

bool
mc_tile_claims_hold(mc_tile_claims *claims, int64_t column, int64_t row, uint32_t size)
{
    claimed_tile *tile = find_claimed_tile(claims, column, row);
    const uint32_t class = size_class(size);
    if (tile == NULL || class > tile->least || class == SIZES)
        return true;
    if (class < tile->least)
        return false;
    if (tile->counts[class] == 0)
        return true;
    tile->counts[class]--;
    return false;
}
