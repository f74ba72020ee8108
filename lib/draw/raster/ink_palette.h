/*
 * Palettes for maps that are painted feature by feature in a few opaque colours (inks): 256 colours, chosen from the
 * inks alone, of which each pixel of such a map is one. They hold the inks, nothing at all, what any two of them make
 * along an edge, and, as far as there is room, what three of them make. What a colour becomes when an ink is laid over
 * it is looked up. So such a map is painted on indices and goes out as a palette PNG, and since nothing depends on what
 * is on it, tiles fit together. Flat areas have their exact colour; a pixel in which edges meet may be off by what one
 * and a half of 16 steps of coverage are between black and white (MC_INK_ERROR_MAX).
 */
#ifndef MC_DRAW_RASTER_INK_PALETTE_H
#define MC_DRAW_RASTER_INK_PALETTE_H

#include <stdatomic.h>

#include "draw/raster/brush.h"

enum {
    MC_INKS_MAX = 12,
    MC_INK_STEPS = 16, /* of coverage: masks are multiples of 17 */
    MC_INK_ERROR_MAX = 24,
};

typedef struct mc_inks {
    mc_color colors[MC_INKS_MAX];
    int count;
} mc_inks;

/* False where a palette cannot be made with it: it is not opaque, or one too many. */
bool mc_inks_add(mc_inks *inks, mc_color color);

typedef struct mc_ink_palette {
    mc_inks inks; /* in a fixed order */
    int count;
    uint8_t colors[256][4];                       /* premultiplied B, G, R, A; the first one is transparent */
    uint8_t laid[MC_INKS_MAX][256][MC_INK_STEPS]; /* what a colour becomes when an ink is laid over it */
    _Atomic uint16_t over[256][256];              /* a colour over another: 1 + index; 0: not looked for so far */
} mc_ink_palette;

/*
 * The palette of some inks, which is the same whatever order they are in; kept for the process, and valid as long as
 * `pool`. NULL where none is good enough. The first time costs some milliseconds.
 */
mc_ink_palette *mc_ink_palette_get(const mc_inks *inks, apr_pool_t *pool);

/* The number of an ink; -1: it is none of them. */
int mc_ink_palette_index(const mc_ink_palette *palette, mc_color color);

/* Both together where it is not known so far: the colour `upper` over the colour `lower`. */
uint8_t mc_ink_palette_find_over(mc_ink_palette *palette, uint8_t upper, uint8_t lower);

static inline uint8_t
mc_ink_palette_over(mc_ink_palette *palette, uint8_t upper, uint8_t lower)
{
    uint16_t known = atomic_load_explicit(&palette->over[upper][lower], memory_order_relaxed);
    return known != 0 ? (uint8_t)(known - 1) : mc_ink_palette_find_over(palette, upper, lower);
}

#endif
