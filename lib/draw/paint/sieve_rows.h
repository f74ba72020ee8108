/* Rows of a sieve's planes. Loops without branches, which compilers turn into vectors. */
#ifndef MC_DRAW_PAINT_SIEVE_ROWS_H
#define MC_DRAW_PAINT_SIEVE_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MC_SIEVE_BYTES = 4, /* of a pixel: blue, green, red, alpha */
    MC_SIEVE_WEAK = 8,  /* faint alpha hides this part of what it would hide */
};

/* Takes the alpha of a row from the canvas, which is empty then. */
static inline void
take_alpha(uint8_t *restrict alpha, uint8_t *restrict painted, int count)
{
    uint32_t any = 0;
    for (int x = 0; x < count; x++) {
        uint32_t pixel;
        memcpy(&pixel, painted + (size_t)x * MC_SIEVE_BYTES, sizeof(pixel));
        any |= pixel;
        alpha[x] = (uint8_t)(pixel >> 24);
    }
    if (any != 0)
        memset(painted, 0, (size_t)count * MC_SIEVE_BYTES);
}

/* Whether any of the pixels with alpha shines through. */
static inline bool
is_row_seen(const uint16_t *restrict shines, const uint8_t *restrict alpha, int count, uint16_t hidden)
{
    uint16_t seen = 0;
    for (int x = 0; x < count; x++) /* without branches: the pixels beside a thin line are of both kinds */
        seen |= (uint16_t)((shines[x] > hidden ? 0xffff : 0) & alpha[x]);
    return seen != 0;
}

/* What lies below shines through a row by so much less. Alpha below `faint` hides only a part (FAINT in sieve.c). */
static inline void
lay_shines(uint16_t *restrict shines, const uint8_t *restrict alpha, int count, uint8_t faint)
{
    for (int x = 0; x < count; x++) {
        const uint16_t hides = (uint16_t)((alpha[x] < faint ? alpha[x] / MC_SIEVE_WEAK : alpha[x]) * 257);
        shines[x] = (uint16_t)(shines[x] - (uint16_t)((uint32_t)shines[x] * hides >> 16));
    }
}

/* The same of areas that are merged: what covers most hides. */
static inline void
lay_merged_row(uint16_t *restrict shines, const uint8_t *restrict alpha, int count)
{
    for (int x = 0; x < count; x++) {
        const uint16_t through = (uint16_t)((255 - alpha[x]) * 257);
        shines[x] = through < shines[x] ? through : shines[x];
    }
}

/* Which pixels of a row let something through, in this lattice or (`before`: 1) in one of those noted already. */
static inline void
note_open_row(uint8_t *restrict open, const uint16_t *restrict shines, int count, uint16_t hidden, uint8_t before)
{
    for (int x = 0; x < count; x++)
        open[x] = (uint8_t)((open[x] & before) | (shines[x] > hidden));
}

/* Adds the pixels of a row to those above them; whether there are any. */
static inline bool
add_row(uint32_t *restrict columns, const uint8_t *restrict painted, int count)
{
    uint32_t any = 0;
    for (int x = 0; x < count; x++) {
        uint32_t pixel;
        memcpy(&pixel, painted + (size_t)x * MC_SIEVE_BYTES, sizeof(pixel));
        columns[x] |= pixel;
        any |= pixel;
    }
    return any != 0;
}

#endif
