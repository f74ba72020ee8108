/* See box_index.h. */
#include "vector/shapefile/box_index.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK = 32, CELLS = 65535, DIGIT = 11, DIGITS = 1 << DIGIT };

struct mc_box_index {
    uint32_t count; /* of boxes that can be found */
    const mc_small_box *boxes, *blocks;
    const uint32_t *numbers; /* of the boxes, before they were sorted */
};

typedef struct sorted {
    uint32_t key, number;
} sorted;

static float
round_float_down(double value)
{
    float single = (float)value;
    return (double)single > value ? nextafterf(single, -HUGE_VALF) : single;
}

static float
round_float_up(double value)
{
    float single = (float)value;
    return (double)single < value ? nextafterf(single, HUGE_VALF) : single;
}

mc_small_box
mc_small_box_of(const mc_extent *box)
{
    return (mc_small_box){ round_float_down(box->minx), round_float_down(box->miny), round_float_up(box->maxx),
                           round_float_up(box->maxy) };
}

static bool
can_be_found(const mc_small_box *box)
{
    return isfinite(box->minx) && isfinite(box->miny) && isfinite(box->maxx) && isfinite(box->maxy) &&
           box->minx <= box->maxx && box->miny <= box->maxy;
}

static void
widen_small_box(mc_small_box *all, const mc_small_box *box)
{
    all->minx = fminf(all->minx, box->minx);
    all->miny = fminf(all->miny, box->miny);
    all->maxx = fmaxf(all->maxx, box->maxx);
    all->maxy = fmaxf(all->maxy, box->maxy);
}

/* 16 bits with a 0 between any two. */
static uint32_t
interleave_box_bits(uint32_t bits)
{
    bits = (bits | bits << 8) & 0x00FF00FFU;
    bits = (bits | bits << 4) & 0x0F0F0F0FU;
    bits = (bits | bits << 2) & 0x33333333U;
    return (bits | bits << 1) & 0x55555555U;
}

static uint32_t
box_centre_cell(double low, double high, double from, double to)
{
    return to > from ? (uint32_t)(((low + high) / 2 - from) / (to - from) * CELLS) : 0;
}

/* By their keys, 11 bits at a time. */
static void
radix_sort_boxes(sorted *items, sorted *spare, uint32_t count)
{
    for (int shift = 0; shift < 33; shift += DIGIT) {
        uint32_t begins[DIGITS + 1] = { 0 };
        for (uint32_t i = 0; i < count; i++)
            begins[(items[i].key >> shift) % DIGITS + 1]++;
        for (int i = 0; i < DIGITS; i++)
            begins[i + 1] += begins[i];
        for (uint32_t i = 0; i < count; i++)
            spare[begins[(items[i].key >> shift) % DIGITS]++] = items[i];
        memcpy(items, spare, sizeof(*items) * count);
    }
}

static uint32_t
list_boxes(sorted *items, const mc_small_box *boxes, uint32_t count)
{
    mc_small_box all = { HUGE_VALF, HUGE_VALF, -HUGE_VALF, -HUGE_VALF };
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (can_be_found(&boxes[i]))
            widen_small_box(&all, &boxes[i]);
    for (uint32_t i = 0; i < count; i++)
        if (can_be_found(&boxes[i])) {
            uint32_t x = box_centre_cell(boxes[i].minx, boxes[i].maxx, all.minx, all.maxx);
            uint32_t y = box_centre_cell(boxes[i].miny, boxes[i].maxy, all.miny, all.maxy);
            items[found++] = (sorted){ interleave_box_bits(x) | interleave_box_bits(y) << 1, i };
        }
    return found;
}

mc_box_index *
mc_box_index_create(mc_small_box *boxes, uint32_t count, apr_pool_t *pool)
{
    mc_box_index *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    sorted *items = apr_palloc(scratch, sizeof(*items) * 2 * ((size_t)count + 1));
    uint32_t found = list_boxes(items, boxes, count);
    radix_sort_boxes(items, items + count, found);
    mc_small_box *unsorted = apr_palloc(scratch, sizeof(*unsorted) * ((size_t)count + 1));
    memcpy(unsorted, boxes, sizeof(*unsorted) * count);
    uint32_t *numbers = apr_palloc(pool, sizeof(*numbers) * ((size_t)found + 1));
    mc_small_box *blocks = apr_palloc(pool, sizeof(*blocks) * ((size_t)found / BLOCK + 1));
    for (uint32_t i = 0; i < found; i++) {
        numbers[i] = items[i].number;
        boxes[i] = unsorted[items[i].number];
        if (i % BLOCK == 0)
            blocks[i / BLOCK] = boxes[i];
        else
            widen_small_box(&blocks[i / BLOCK], &boxes[i]);
    }
    apr_pool_destroy(scratch);
    *made = (mc_box_index){ found, boxes, blocks, numbers };
    return made;
}

static bool
small_boxes_meet(const mc_small_box *a, const mc_small_box *b)
{
    return a->minx <= b->maxx && a->maxx >= b->minx && a->miny <= b->maxy && a->maxy >= b->miny;
}

void
mc_box_index_search(uint64_t *bits, const mc_box_index *index, const mc_extent *window)
{
    const mc_small_box wanted = mc_small_box_of(window);
    for (uint32_t begin = 0; begin < index->count; begin += BLOCK) {
        if (!small_boxes_meet(&index->blocks[begin / BLOCK], &wanted))
            continue;
        uint32_t end = index->count - begin < BLOCK ? index->count : begin + BLOCK;
        for (uint32_t i = begin; i < end; i++)
            if (small_boxes_meet(&index->boxes[i], &wanted))
                bits[index->numbers[i] / 64] |= (uint64_t)1 << index->numbers[i] % 64;
    }
}
