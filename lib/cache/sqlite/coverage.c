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

/* The bits stand behind the levels. */
struct mc_coverage {
    size_t bytes, level_count;
    level levels[];
};

static const level no_tiles;

static inline const level *
level_of_coverage(const mc_coverage *coverage, int z)
{
    return (size_t)z < coverage->level_count ? &coverage->levels[z] : &no_tiles;
}

static inline uint64_t *
bits_of_coverage(mc_coverage *coverage)
{
    return (uint64_t *)(void *)(coverage->levels + coverage->level_count);
}

static inline const uint64_t *
read_coverage_bits(const mc_coverage *coverage)
{
    return (const uint64_t *)(const void *)(coverage->levels + coverage->level_count);
}

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

/* Gives each level its words; returns how many there are. */
static size_t
place_coverage_bits(level levels[MC_COVERAGE_LEVELS])
{
    size_t words = 0;
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++) {
        int64_t bits = (int64_t)levels[z].width * levels[z].height;
        levels[z].exact = bits <= BITS_AT_MOST;
        levels[z].first = (uint32_t)words;
        words += levels[z].exact ? (size_t)(bits + 63) / 64 : 0;
    }
    return words;
}

static mc_coverage *
create_coverage_of(const level levels[MC_COVERAGE_LEVELS], size_t words)
{
    size_t count = MC_COVERAGE_LEVELS;
    while (count > 0 && levels[count - 1].width == 0)
        count--;
    size_t bytes = sizeof(mc_coverage) + count * sizeof(level) + words * sizeof(uint64_t);
    mc_coverage *coverage = calloc(1, bytes);
    MC_ASSERT(coverage != NULL);
    coverage->bytes = bytes;
    coverage->level_count = count;
    memcpy(coverage->levels, levels, count * sizeof(level));
    return coverage;
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
    size_t words = place_coverage_bits(levels);
    mc_coverage *coverage = create_coverage_of(levels, words);
    for (int i = 0; i < count; i++) {
        const level *level = &levels[tiles[i].z];
        if (!level->exact)
            continue;
        uint64_t bit = bit_of(level, tiles[i].x, tiles[i].y);
        bits_of_coverage(coverage)[level->first + bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return coverage;
}

bool
mc_coverage_may_have(const mc_coverage *coverage, int z, int x, int y)
{
    if (z < 0 || z >= MC_COVERAGE_LEVELS)
        return false;
    const level *level = level_of_coverage(coverage, z);
    if (x < level->x || y < level->y || x - level->x >= level->width || y - level->y >= level->height)
        return false;
    if (!level->exact)
        return true;
    uint64_t bit = bit_of(level, x, y);
    return (read_coverage_bits(coverage)[level->first + bit / 64] >> bit % 64 & 1) != 0;
}

bool
mc_coverage_may_touch(const mc_coverage *coverage, int z, int minx, int miny, int maxx, int maxy)
{
    if (z < 0 || z >= MC_COVERAGE_LEVELS)
        return false;
    const level *level = level_of_coverage(coverage, z);
    return level->width > 0 && minx < level->x + level->width && maxx > level->x && miny < level->y + level->height &&
           maxy > level->y;
}

bool
mc_coverage_box(mc_tile_range *box, const mc_coverage *coverage, int z)
{
    const level *level = level_of_coverage(coverage, z);
    *box = (mc_tile_range){ level->x, level->y, level->x + level->width, level->y + level->height };
    return level->width > 0;
}

size_t
mc_coverage_bytes(const mc_coverage *coverage)
{
    return coverage->bytes;
}

/* Of a level with tiles: its number and box, and then all words of all levels. */
typedef struct written_level {
    int32_t z, x, y, width, height;
} written_level;

size_t
mc_coverage_write(uint8_t *bytes, const mc_coverage *coverage)
{
    size_t size = sizeof(int32_t), words = coverage->bytes - sizeof(*coverage) - coverage->level_count * sizeof(level);
    int32_t count = 0;
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++) {
        const level *level = level_of_coverage(coverage, z);
        if (level->width == 0)
            continue;
        written_level written = { z, level->x, level->y, level->width, level->height };
        if (bytes != NULL)
            memcpy(bytes + size, &written, sizeof(written));
        size += sizeof(written);
        count++;
    }
    if (bytes != NULL) {
        memcpy(bytes, &count, sizeof(count));
        memcpy(bytes + size, read_coverage_bits(coverage), words);
    }
    return size + words;
}

static bool
read_coverage_level(level levels[MC_COVERAGE_LEVELS], int *last, const uint8_t *bytes)
{
    const int most = INT_MAX / 2;
    written_level written;
    memcpy(&written, bytes, sizeof(written));
    if (written.z <= *last || written.z >= MC_COVERAGE_LEVELS || written.x <= -most || written.x >= most ||
        written.y <= -most || written.y >= most || written.width <= 0 || written.width >= most || written.height <= 0 ||
        written.height >= most)
        return false;
    *last = written.z;
    levels[written.z] = (level){ .x = written.x, .y = written.y, .width = written.width, .height = written.height };
    return true;
}

mc_coverage *
mc_coverage_read(const uint8_t *bytes, size_t size)
{
    level levels[MC_COVERAGE_LEVELS] = { { 0 } };
    int32_t count;
    int last = -1;
    if (size < sizeof(count))
        return NULL;
    memcpy(&count, bytes, sizeof(count));
    bytes += sizeof(count);
    size -= sizeof(count);
    if (count < 0 || count > MC_COVERAGE_LEVELS || size < (size_t)count * sizeof(written_level))
        return NULL;
    for (int i = 0; i < count; i++, bytes += sizeof(written_level))
        if (!read_coverage_level(levels, &last, bytes))
            return NULL;
    size -= (size_t)count * sizeof(written_level);
    size_t words = place_coverage_bits(levels);
    if (size != words * sizeof(uint64_t))
        return NULL;
    mc_coverage *coverage = create_coverage_of(levels, words);
    memcpy(bits_of_coverage(coverage), bytes, size);
    return coverage;
}
