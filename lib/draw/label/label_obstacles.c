/*
 * Symbols that labels keep off: a bit for each pixel of the map, so that neither their number nor their order counts;
 * and for each pixel at which symbols stand the box around those, so that a label finds the symbol that it belongs to.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label/label_private.h"

/* An edge that reaches less than this into a pixel leaves the pixel free. */
#define TOUCH 0.25F

enum {
    WORD = 64,           /* pixels of a row */
    HOMES_LEAST = 256,   /* of the table */
    HOMES_MAX = 1 << 18, /* pixels with symbols; of more than that, none knows its symbols */
};

/* Symbols that stand at one pixel. */
typedef struct label_home {
    uint32_t key; /* 1 + index of the pixel; 0: a free place of the table */
    mc_label_box box;
} label_home;

struct mc_label_obstacles {
    int width, height, words; /* of a row */
    uint64_t *bits;           /* NULL: no symbol so far */
    label_home *homes;
    uint32_t room, count; /* a power of 2, or 0 */
    bool crowded;
};

/* Pixels from left to right - 1 and top to bottom - 1. */
typedef struct pixel_box {
    int left, top, right, bottom;
} pixel_box;

static apr_status_t
free_obstacles(void *data)
{
    mc_label_obstacles *obstacles = data;
    free(obstacles->bits);
    free(obstacles->homes);
    return APR_SUCCESS;
}

mc_label_obstacles *
mc_label_obstacles_create(int width, int height, apr_pool_t *pool)
{
    mc_label_obstacles *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_label_obstacles){ .width = width, .height = height, .words = width / WORD + 1 };
    apr_pool_cleanup_register(pool, made, free_obstacles, apr_pool_cleanup_null);
    return made;
}

static int
clamp_to_pixels(float at, int most)
{
    return at > 0 ? at < (float)most ? (int)at : most : 0; /* also of what is no number */
}

/* The pixels of a box that lie on the map. */
static pixel_box
pixels_of_box(const mc_label_obstacles *of, const mc_label_box *box, float margin)
{
    return (pixel_box){ clamp_to_pixels(floorf(box->minx - margin + TOUCH), of->width),
                        clamp_to_pixels(floorf(box->miny - margin + TOUCH), of->height),
                        clamp_to_pixels(ceilf(box->maxx + margin - TOUCH), of->width),
                        clamp_to_pixels(ceilf(box->maxy + margin - TOUCH), of->height) };
}

/* The bits from `from` to `to` - 1 of the word that begins at pixel `begin`. */
static uint64_t
bits_between(int begin, int from, int to)
{
    int low = from > begin ? from - begin : 0, high = to < begin + WORD ? to - begin : WORD;
    if (low >= high)
        return 0;
    return (high == WORD ? ~(uint64_t)0 : ((uint64_t)1 << high) - 1) & ~(((uint64_t)1 << low) - 1);
}

static uint64_t *
bits_for_row(mc_label_obstacles *obstacles, int y)
{
    if (obstacles->bits == NULL)
        obstacles->bits = calloc((size_t)obstacles->words * (size_t)obstacles->height, sizeof(uint64_t));
    return obstacles->bits == NULL ? NULL : obstacles->bits + (size_t)y * (size_t)obstacles->words;
}

static label_home *
find_home(const mc_label_obstacles *obstacles, uint32_t key)
{
    uint32_t at = key * 2654435761U;
    for (;; at++) {
        label_home *home = &obstacles->homes[at & (obstacles->room - 1)];
        if (home->key == key || home->key == 0)
            return home;
    }
}

static void
forget_homes(mc_label_obstacles *obstacles)
{
    free(obstacles->homes);
    obstacles->homes = NULL;
    obstacles->room = obstacles->count = 0;
    obstacles->crowded = true;
}

/* False where there is no room for one more. */
static bool
reserve_home(mc_label_obstacles *obstacles)
{
    if (obstacles->crowded || obstacles->count < obstacles->room / 2)
        return !obstacles->crowded;
    mc_label_obstacles larger = *obstacles;
    larger.room = obstacles->room == 0 ? HOMES_LEAST : obstacles->room * 2;
    larger.homes = obstacles->count >= HOMES_MAX ? NULL : calloc(larger.room, sizeof(label_home));
    if (larger.homes == NULL) {
        forget_homes(obstacles);
        return false;
    }
    for (uint32_t i = 0; i < obstacles->room; i++)
        if (obstacles->homes[i].key != 0)
            *find_home(&larger, obstacles->homes[i].key) = obstacles->homes[i];
    free(obstacles->homes);
    *obstacles = larger;
    return true;
}

static void
widen_home(mc_label_box *box, const mc_label_box *by)
{
    *box = (mc_label_box){ fminf(box->minx, by->minx), fminf(box->miny, by->miny), fmaxf(box->maxx, by->maxx),
                           fmaxf(box->maxy, by->maxy) };
}

void
mc_label_obstacles_add(void *baton, mc_shape_point at, const float box[4])
{
    mc_label_obstacles *obstacles = baton;
    const mc_label_box added = { box[0], box[1], box[2], box[3] };
    pixel_box in = pixels_of_box(obstacles, &added, 0);
    for (int y = in.top; y < in.bottom && in.left < in.right; y++) {
        uint64_t *row = bits_for_row(obstacles, y);
        for (int word = in.left / WORD; row != NULL && word * WORD < in.right; word++)
            row[word] |= bits_between(word * WORD, in.left, in.right);
    }
    int x = at.x >> 8, y = at.y >> 8; /* MC_SUBPIXELS */
    if (x < 0 || y < 0 || x >= obstacles->width || y >= obstacles->height || !reserve_home(obstacles))
        return;
    uint32_t key = (uint32_t)y * (uint32_t)obstacles->width + (uint32_t)x + 1;
    label_home *home = find_home(obstacles, key);
    if (home->key == key) {
        widen_home(&home->box, &added);
        return;
    }
    *home = (label_home){ key, added };
    obstacles->count++;
}

void
mc_label_obstacles_add_row(void *baton, int x, int y, const uint8_t *coverage, int count)
{
    mc_label_obstacles *obstacles = baton;
    if (y < 0 || y >= obstacles->height)
        return;
    uint64_t *row = bits_for_row(obstacles, y);
    for (int i = x < 0 ? -x : 0; row != NULL && i < count && x + i < obstacles->width; i++)
        if (coverage[i] >= (uint8_t)(255 * TOUCH))
            row[(x + i) / WORD] |= (uint64_t)1 << (x + i) % WORD;
}

bool
mc_label_obstacles_at(mc_label_box *box, const mc_label_obstacles *obstacles, const double at[2])
{
    bool found = false;
    int x = (int)floor(at[0]), y = (int)floor(at[1]);
    for (int row = y - 1; row <= y + 1 && obstacles->room > 0; row++)
        for (int column = x - 1; column <= x + 1; column++) {
            if (row < 0 || column < 0 || row >= obstacles->height || column >= obstacles->width)
                continue;
            uint32_t key = (uint32_t)row * (uint32_t)obstacles->width + (uint32_t)column + 1;
            const label_home *home = find_home(obstacles, key);
            if (home->key != key)
                continue;
            if (found)
                widen_home(box, &home->box);
            else
                *box = home->box;
            found = true;
        }
    return found;
}

static bool
row_has_bits(const uint64_t *row, int left, int right)
{
    for (int word = left / WORD; left < right && word * WORD < right; word++)
        if ((row[word] & bits_between(word * WORD, left, right)) != 0)
            return true;
    return false;
}

bool
mc_label_obstacles_allow(const mc_label_obstacles *obstacles, const mc_label_box *boxes, int count, float margin,
                         const mc_label_box *own)
{
    if (obstacles->bits == NULL)
        return true;
    pixel_box mine = { 0, 0, 0, 0 };
    if (own != NULL)
        mine = pixels_of_box(obstacles, own, 0);
    for (int i = 0; i < count; i++) {
        pixel_box in = pixels_of_box(obstacles, &boxes[i], margin);
        for (int y = in.top; y < in.bottom; y++) {
            const uint64_t *row = obstacles->bits + (size_t)y * (size_t)obstacles->words;
            bool beside = y < mine.top || y >= mine.bottom || in.left >= mine.right || in.right <= mine.left;
            if (beside ? row_has_bits(row, in.left, in.right)
                       : row_has_bits(row, in.left, mine.left) || row_has_bits(row, mine.right, in.right))
                return false;
        }
    }
    return true;
}

bool
mc_label_obstacles_inside(mc_label_box *taken, const mc_label_obstacles *obstacles, const mc_label_box *within)
{
    bool any = false;
    pixel_box in = pixels_of_box(obstacles, within, 0);
    if (obstacles->bits == NULL)
        return false;
    for (int y = in.top; y < in.bottom; y++) {
        const uint64_t *row = obstacles->bits + (size_t)y * (size_t)obstacles->words;
        if (!row_has_bits(row, in.left, in.right))
            continue;
        taken->miny = any ? taken->miny : (float)y;
        taken->maxy = (float)(y + 1);
        taken->minx = within->minx;
        taken->maxx = within->maxx;
        any = true;
    }
    return any;
}
