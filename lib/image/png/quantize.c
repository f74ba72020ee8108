/*
 * Reduces an image to a palette by median cut over its distinct colours. Opaque and wholly transparent pixels never
 * share a box with others, so that edges stay what they are; a colour that fills most of its box is kept exactly, so
 * that flat areas have the same colour in every tile.
 */
#include <string.h>

#include "image/png/color_table.h"
#include "image/png/median_cut.h"
#include "image/png/png.h"
#include "memory/scratch.h"

/* Pixels that are looked at together: a run of one colour costs nearly nothing. */
enum { BLOCK = 16 };

typedef struct quantizer {
    mc_cut cut; /* first: it wants the scratch memory's alignment */
    mc_color_table table;
    uint64_t sums[MC_COLORS_MAX + 1][4]; /* of the channels of all pixels, by number in the table */
    uint8_t index_of[MC_COLORS_MAX + 1]; /* palette index, by number in the table */
} quantizer;

uint32_t
mc_color_search(mc_color_table *table, uint32_t color)
{
    uint32_t place = mc_color_place(color);
    for (; table->slots[place].number != 0; place = (place + 1) & (MC_COLOR_SLOTS - 1))
        if (table->slots[place].color == color)
            return table->slots[place].number;
    if (table->count == MC_COLORS_MAX)
        return 0;
    uint32_t number = ++table->count;
    table->colors[number] = color;
    memset(table->counts[number], 0, sizeof(table->counts[0]));
    table->slots[place] = (mc_color_slot){ color, number };
    return number;
}

/* Drops low bits, but keeps what is opaque, and what is not there, apart from all else. */
static inline uint32_t
coarsen_color(uint32_t color, uint32_t mask)
{
    uint32_t alpha = color >> 24, dropped = color & mask;
    if (alpha == 255)
        return dropped | 0xff000000u;
    if (alpha == 0)
        return 0;
    return dropped >> 24 == 0 ? dropped | 0x01000000u : dropped;
}

/* Whether each pixel of a block is as the one before it. */
static inline bool
block_is_flat(const uint8_t *pixel)
{
    uint64_t differ = 0;
#pragma GCC unroll 16
    for (int i = 0; i < BLOCK / 2; i++) {
        uint64_t here, before;
        memcpy(&here, pixel + (size_t)i * 8, 8);
        memcpy(&before, pixel + (size_t)i * 8 - 4, 8);
        differ |= here ^ before;
    }
    return differ == 0;
}

/* False when the table is full. */
static inline bool
count_pixels(mc_color_table *restrict table, uint16_t *restrict out, const uint8_t *restrict pixel, int count,
             uint32_t mask)
{
#pragma GCC unroll 16
    for (int x = 0; x < count; x++) {
        uint32_t color;
        memcpy(&color, pixel + (size_t)x * 4, 4);
        uint32_t number = mc_color_number(table, mask == UINT32_MAX ? color : coarsen_color(color, mask));
        if (number == 0)
            return false;
        table->counts[number][x & 3]++;
        out[x] = (uint16_t)number;
    }
    return true;
}

static inline bool
count_row_colors(mc_color_table *restrict table, uint16_t *restrict out, const uint8_t *restrict row, size_t stride,
                 int width, uint32_t mask)
{
    int x = 0;
    for (; x + BLOCK <= width; x += BLOCK) {
        const uint8_t *pixel = row + (size_t)x * 4;
        __builtin_prefetch(pixel + stride); /* in a metatile, far beyond what the hardware foresees */
        if (x > 0 && block_is_flat(pixel)) {
            uint16_t number = out[x - 1];
            for (int i = 0; i < BLOCK; i++)
                out[x + i] = number;
            table->counts[number][0] += BLOCK;
        } else if (!count_pixels(table, out + x, pixel, BLOCK, mask)) {
            return false;
        }
    }
    return count_pixels(table, out + x, row + (size_t)x * 4, width - x, mask);
}

/* False when there are more colours than the table takes. numbers: of each pixel. */
static bool
count_colors(mc_color_table *table, uint16_t *numbers, const mc_pixels *pixels, uint32_t mask)
{
    mc_color_table_clear(table);
    for (int y = 0; y < pixels->height; y++) {
        uint16_t *out = numbers + (size_t)y * (size_t)pixels->width;
        const uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        /* The first mask has code of its own, in which nothing is left of it. */
        bool fit = mask == UINT32_MAX ? count_row_colors(table, out, row, pixels->stride, pixels->width, UINT32_MAX)
                                      : count_row_colors(table, out, row, pixels->stride, pixels->width, mask);
        if (!fit)
            return false;
    }
    return true;
}

/* Where a colour of the table stands for several: their mean, since dropped bits make all of them darker. */
static void
average_colors(quantizer *q, const uint16_t *numbers, const mc_pixels *pixels)
{
    memset(q->sums, 0, sizeof(q->sums));
    for (int y = 0; y < pixels->height; y++) {
        const uint8_t *pixel = pixels->data + (size_t)y * pixels->stride;
        for (int x = 0; x < pixels->width; x++, pixel += 4) {
            uint64_t *sum = q->sums[*numbers++];
            for (int c = 0; c < 4; c++)
                sum[c] += pixel[c];
        }
    }
    for (uint32_t i = 0; i < q->table.count; i++) {
        mc_cut_entry *entry = &q->cut.entries[i];
        for (int c = 0; c < 4; c++)
            entry->color[c] = (uint8_t)((q->sums[entry->number][c] + entry->weight / 2) / entry->weight);
    }
}

static void
list_colors(mc_cut_entry *entries, const mc_color_table *table)
{
    for (uint32_t number = 1; number <= table->count; number++) {
        mc_cut_entry *entry = entries++;
        const uint32_t *counts = table->counts[number];
        entry->weight = counts[0] + counts[1] + counts[2] + counts[3];
        entry->number = number;
        memcpy(entry->color, &table->colors[number], 4);
    }
}

/* Boxes as palette entries, those that are not opaque first. */
static void
make_palette(mc_palette *palette, quantizer *q)
{
    uint8_t colors[256][4];
    for (int i = 0; i < q->cut.count; i++)
        mc_cut_color(colors[i], &q->cut, &q->cut.boxes[i]);
    palette->count = 0;
    for (int opaque = 0; opaque < 2; opaque++) {
        for (int i = 0; i < q->cut.count; i++) {
            if ((colors[i][3] == 255) != (opaque == 1))
                continue;
            const mc_cut_entry *entry = q->cut.entries + q->cut.boxes[i].first;
            for (int k = 0; k < q->cut.boxes[i].count; k++)
                q->index_of[entry[k].number] = (uint8_t)palette->count;
            memcpy(palette->colors[palette->count++], colors[i], 4);
        }
        if (opaque == 0)
            palette->translucent = palette->count;
    }
}

void
mc_palette_quantize(mc_palette *palette, uint8_t *indices, const mc_pixels *pixels, int maximum)
{
    /* One bit less of each channel at a time, until the distinct colours are few enough; the last step always is. */
    static const uint32_t masks[] = { 0xffffffffu, 0xfefefefeu, 0xfcfcfcfcu, 0xf8f8f8f8u, 0xf0f0f0f0u, 0xe0e0e0e0u };
    size_t total = (size_t)pixels->width * (size_t)pixels->height;
    uint8_t *scratch = mc_scratch_require(sizeof(quantizer) + total * sizeof(uint16_t));
    MC_ASSERT(scratch != NULL);
    quantizer *q = (quantizer *)(void *)scratch;
    uint16_t *numbers = (uint16_t *)(void *)(scratch + sizeof(quantizer));
    size_t step = 0;
    while (!count_colors(&q->table, numbers, pixels, masks[step]))
        MC_ASSERT(++step < sizeof(masks) / sizeof(masks[0]));
    list_colors(q->cut.entries, &q->table);
    if (step > 0)
        average_colors(q, numbers, pixels);
    mc_cut_all(&q->cut, (int)q->table.count, maximum);
    make_palette(palette, q);
    for (size_t i = 0; i < total; i++)
        indices[i] = q->index_of[numbers[i]];
    mc_scratch_release(scratch);
}
