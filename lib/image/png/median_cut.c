/*
 * Median cut (Heckbert, 1982) over premultiplied colours with alpha as a fourth axis: the box with the largest squared
 * error is cut where it is widest, at its mean. Only the smaller side of a cut is measured: the other is the rest.
 */
#include "image/png/median_cut.h"

#include <string.h>

typedef uint8_t bytes __attribute__((vector_size(4)));
typedef int32_t words __attribute__((vector_size(16)));

static void
measure_cut_box(mc_cut_box *b, const mc_cut_entry *entries)
{
    mc_channels sums = { 0 }, squares = { 0 };
    double weight = 0;
    for (const mc_cut_entry *e = entries + b->first, *end = e + b->count; e < end; e++) {
        bytes color;
        memcpy(&color, e->color, sizeof(color));
        mc_channels channels = __builtin_convertvector(__builtin_convertvector(color, words), mc_channels);
        mc_channels weighted = channels * (double)e->weight;
        sums += weighted;
        squares += weighted * channels;
        weight += e->weight;
    }
    b->sums = sums;
    b->squares = squares;
    b->weight = weight;
}

static inline uint64_t
find_largest_key(const uint64_t keys[16])
{
    uint64_t found = 0;
    for (int i = 0; i < 16; i++)
        found = keys[i] > found ? keys[i] : found;
    return found;
}

static void
note_error(mc_cut *cut, int number, double error)
{
    float rounded = error > 0 ? (float)error : 0;
    uint32_t bits;
    memcpy(&bits, &rounded, 4);
    cut->errors[number] = (uint64_t)bits << 8 | (unsigned)number;
    cut->worst[number / 16] = find_largest_key(cut->errors + (number & ~15));
}

/* Finds the widest axis of a box and notes the squared error along it. */
static void
find_axis(mc_cut *cut, int number)
{
    mc_cut_box *b = &cut->boxes[number];
    mc_channels mean = b->sums / b->weight, error = b->squares - mean * b->sums;
    b->axis = 0;
    for (int c = 1; c < 4; c++)
        b->axis = error[c] > error[b->axis] ? c : b->axis;
    b->mean = mean[b->axis];
    note_error(cut, number, b->count < 2 ? 0 : error[b->axis]);
}

/* Moves the entries that belong to the lower side to the front; their number. */
static int
partition_cut_entries(mc_cut *cut, const mc_cut_box *b, int axis, unsigned limit)
{
    mc_cut_entry *entries = cut->entries + b->first, *upper = cut->upper;
    int lower = 0;
    /* Both places are written each time: which side comes next cannot be foretold by any branch predictor. */
    for (int i = 0; i < b->count; i++) {
        mc_cut_entry moved = entries[i];
        entries[lower] = moved;
        upper[i - lower] = moved;
        lower += moved.color[axis] <= limit;
    }
    memcpy(entries + lower, upper, (size_t)(b->count - lower) * sizeof(*upper));
    return lower;
}

/* False when all would be on one side. */
static bool
cut_box(mc_cut *cut, int number, int axis, unsigned limit)
{
    mc_cut_box *b = &cut->boxes[number], *other = &cut->boxes[cut->count];
    int lower = partition_cut_entries(cut, b, axis, limit);
    if (lower == 0 || lower == b->count)
        return false;
    mc_cut_box whole = *b;
    *other = (mc_cut_box){ .first = b->first + lower, .count = b->count - lower };
    b->count = lower;
    mc_cut_box *smaller = other->count < b->count ? other : b, *larger = smaller == b ? other : b;
    measure_cut_box(smaller, cut->entries);
    larger->sums = whole.sums - smaller->sums;
    larger->squares = whole.squares - smaller->squares;
    larger->weight = whole.weight - smaller->weight;
    find_axis(cut, number);
    find_axis(cut, cut->count++);
    return true;
}

/* Few enough colours: each has a box of its own. */
static void
part_all(mc_cut *cut, int count)
{
    for (int i = 0; i < count; i++)
        cut->boxes[i] = (mc_cut_box){ .first = i, .count = 1, .weight = cut->entries[i].weight };
    cut->count = count;
}

void
mc_cut_all(mc_cut *cut, int count, int maximum)
{
    if (count <= maximum) {
        part_all(cut, count);
        return;
    }
    memset(cut->errors, 0, sizeof(cut->errors));
    memset(cut->worst, 0, sizeof(cut->worst));
    cut->count = 1;
    cut->boxes[0] = (mc_cut_box){ .first = 0, .count = count };
    measure_cut_box(&cut->boxes[0], cut->entries);
    find_axis(cut, 0);
    /* The lower side of alpha 254 is what is not opaque, of that the lower side of 0 is what is not there. */
    cut_box(cut, 0, 3, 254);
    if (cut->count < maximum)
        cut_box(cut, 0, 3, 0);
    while (cut->count < maximum) {
        uint64_t key = find_largest_key(cut->worst);
        int worst = (int)(key & 255);
        const mc_cut_box *b = &cut->boxes[worst];
        if (key >> 8 == 0)
            break;
        if (!cut_box(cut, worst, b->axis, (unsigned)b->mean))
            note_error(cut, worst, 0);
    }
}

void
mc_cut_color(uint8_t color[4], const mc_cut *cut, const mc_cut_box *box)
{
    for (const mc_cut_entry *e = cut->entries + box->first, *end = e + box->count; e < end; e++) {
        if ((double)e->weight * 2 > box->weight) {
            memcpy(color, e->color, 4);
            return;
        }
    }
    for (int c = 0; c < 4; c++)
        color[c] = (uint8_t)(box->sums[c] / box->weight + 0.5);
}
