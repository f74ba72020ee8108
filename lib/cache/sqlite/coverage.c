/* Coverage as a box for each level, with one bit for each tile in it where the box is small enough. */
#include "cache/sqlite/coverage.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/error.h"

enum { BITS_AT_MOST = 1 << 15 /* of a level; a larger box stands alone */ };

typedef struct level {
    int x, y, width, height; /* width 0: no tiles */
    bool exact;
    uint32_t first; /* word of its bits */
} level;

struct mc_coverage {
    size_t bytes;
    level levels[MC_COVERAGE_LEVELS];
    uint64_t bits[];
};

static bool
is_within(const mc_coverage_tile *tile)
{
    const int most = INT_MAX / 2;
    return tile->z >= 0 && tile->z < MC_COVERAGE_LEVELS && tile->x > -most && tile->x < most && tile->y > -most &&
           tile->y < most;
}

static void
widen_coverage_level(level *box, const mc_coverage_tile *tile)
{
    if (box->width == 0)
        *box = (level){ .x = tile->x, .y = tile->y, .width = 1, .height = 1 };
    int right = box->x + box->width, bottom = box->y + box->height;
    int x = tile->x < box->x ? tile->x : box->x, y = tile->y < box->y ? tile->y : box->y;
    right = tile->x >= right ? tile->x + 1 : right;
    bottom = tile->y >= bottom ? tile->y + 1 : bottom;
    box->x = x;
    box->y = y;
    box->width = right - x;
    box->height = bottom - y;
}

static uint64_t
bit_of(const level *level, int x, int y)
{
    return (uint64_t)(y - level->y) * (uint64_t)level->width + (uint64_t)(x - level->x);
}

mc_coverage *
mc_coverage_create(const mc_coverage_tile *tiles, int count)
{
    level levels[MC_COVERAGE_LEVELS] = { { 0 } };
    for (int i = 0; i < count; i++) {
        if (!is_within(&tiles[i]))
            return NULL;
        widen_coverage_level(&levels[tiles[i].z], &tiles[i]);
    }
    size_t words = 0;
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++) {
        int64_t bits = (int64_t)levels[z].width * levels[z].height;
        levels[z].exact = bits <= BITS_AT_MOST;
        levels[z].first = (uint32_t)words;
        words += levels[z].exact ? (size_t)(bits + 63) / 64 : 0;
    }
    size_t bytes = sizeof(mc_coverage) + words * sizeof(uint64_t);
    mc_coverage *coverage = calloc(1, bytes);
    MC_ASSERT(coverage != NULL);
    coverage->bytes = bytes;
    memcpy(coverage->levels, levels, sizeof(levels));
    for (int i = 0; i < count; i++) {
        const level *level = &levels[tiles[i].z];
        if (!level->exact)
            continue;
        uint64_t bit = bit_of(level, tiles[i].x, tiles[i].y);
        coverage->bits[level->first + bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return coverage;
}

bool
mc_coverage_may_have(const mc_coverage *coverage, int z, int x, int y)
{
    if (z < 0 || z >= MC_COVERAGE_LEVELS)
        return false;
    const level *level = &coverage->levels[z];
    if (x < level->x || y < level->y || x - level->x >= level->width || y - level->y >= level->height)
        return false;
    if (!level->exact)
        return true;
    uint64_t bit = bit_of(level, x, y);
    return (coverage->bits[level->first + bit / 64] >> bit % 64 & 1) != 0;
}

bool
mc_coverage_may_touch(const mc_coverage *coverage, int z, int minx, int miny, int maxx, int maxy)
{
    if (z < 0 || z >= MC_COVERAGE_LEVELS)
        return false;
    const level *level = &coverage->levels[z];
    return level->width > 0 && minx < level->x + level->width && maxx > level->x && miny < level->y + level->height &&
           maxy > level->y;
}

bool
mc_coverage_box(mc_tile_range *box, const mc_coverage *coverage, int z)
{
    const level *level = &coverage->levels[z];
    *box = (mc_tile_range){ level->x, level->y, level->x + level->width, level->y + level->height };
    return level->width > 0;
}

size_t
mc_coverage_bytes(const mc_coverage *coverage)
{
    return coverage->bytes;
}
