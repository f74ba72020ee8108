/* The distinct colours of an image and how often each occurs. */
#ifndef MC_IMAGE_PNG_COLOR_TABLE_H
#define MC_IMAGE_PNG_COLOR_TABLE_H

#include <string.h>

#include "mapcache/image.h"

enum { MC_COLORS_MAX = 8192, MC_COLOR_SLOTS = 2 * MC_COLORS_MAX };

/* A colour and its number side by side: a look-up touches one cache line. */
typedef struct mc_color_slot {
    uint32_t color;  /* B, G, R, A in memory order */
    uint32_t number; /* of the colour: 1..MC_COLORS_MAX; 0: a free slot */
} mc_color_slot;

/* Of each color by its number; places 0 are unused. */
typedef struct mc_color_table {
    mc_color_slot slots[MC_COLOR_SLOTS];
    uint32_t colors[MC_COLORS_MAX + 1];
    /* Four parts of one count, for every fourth column each: a single one would make each pixel wait for the last. */
    uint32_t counts[MC_COLORS_MAX + 1][4];
    uint32_t count; /* of colours */
} mc_color_table;

static inline void
mc_color_table_clear(mc_color_table *table)
{
    memset(table->slots, 0, sizeof(table->slots));
    table->count = 0;
}

static inline uint32_t
mc_color_place(uint32_t color)
{
    _Static_assert(MC_COLOR_SLOTS == 1 << 14, "14 bits of the hash choose the slot");
    return (color * 0x9e3779b1u) >> 18;
}

/* As mc_color_number, for colours that are not in their first place. */
uint32_t mc_color_search(mc_color_table *table, uint32_t color);

/* The number of `color`, entered if it is new; 0 when the table is full. */
static inline uint32_t
mc_color_number(mc_color_table *table, uint32_t color)
{
    mc_color_slot slot = table->slots[mc_color_place(color)];
    if (__builtin_expect(slot.color == color && slot.number != 0, 1))
        return slot.number;
    return mc_color_search(table, color);
}

#endif
