/* Which pixels of a map are covered for good, a bit for each. Beyond the map, as far as MC_COVER_MARGIN, all are. */
#ifndef MC_FEATURE_COVER_H
#define MC_FEATURE_COVER_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stdint.h>

enum { MC_COVER_MARGIN = 256 };

typedef struct mc_cover {
    uint64_t *words;
    int width, height;
    int stride; /* words of a row */
} mc_cover;

/* Nothing of a map is covered. It lives as long as `pool`. */
void mc_cover_create(mc_cover *cover, int width, int height, apr_pool_t *pool);
void mc_cover_clear(mc_cover *cover);

/* 64 pixels of a row of the map from column x on, the lowest bit first. */
static inline uint64_t
mc_cover_get(const mc_cover *cover, int x, int y)
{
    unsigned at = (unsigned)(x + MC_COVER_MARGIN), bit = at % 64;
    const uint64_t *word = cover->words + (size_t)y * (size_t)cover->stride + at / 64;
    return word[0] >> bit | word[1] << 1 << (63 - bit);
}

/* Covers some of them. */
static inline void
mc_cover_add(mc_cover *cover, int x, int y, uint64_t pixels)
{
    unsigned at = (unsigned)(x + MC_COVER_MARGIN), bit = at % 64;
    uint64_t *word = cover->words + (size_t)y * (size_t)cover->stride + at / 64;
    word[0] |= pixels << bit;
    word[1] |= pixels >> 1 >> (63 - bit);
}

/* Whether all of a box is covered; may say false of one that is wider than 64 columns. */
static inline bool
mc_cover_hides(const mc_cover *cover, int left, int top, int columns, int rows)
{
    int bottom = top + rows < cover->height ? top + rows : cover->height;
    if (columns > 64)
        return false;
    uint64_t wanted = UINT64_MAX >> (64 - columns);
    for (int y = top < 0 ? 0 : top; y < bottom; y++)
        if ((wanted & ~mc_cover_get(cover, left, y)) != 0)
            return false;
    return true;
}

#endif
