/*
 * Palettes for maps that are painted feature by feature in a few opaque colours (inks): 256 colours, chosen from the
 * inks alone. Each pixel of such a map has one of these colours: an ink, full transparency, a mixture of two inks along
 * an edge, or, as far as there is room, a mixture of three inks. The colour that results when an ink is laid over a
 * colour is looked up. So such a map is painted on indices and is encoded as a palette PNG. The palette does not depend
 * on the features of a map, so neighbouring tiles fit together. Flat areas have their exact colour; a pixel in which
 * edges meet may be off by one and a half of 16 steps between black and white (MC_INK_ERROR_MAX).
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

/* False where no palette can be made with the colour: the colour is not opaque, or one ink too many. */
bool mc_inks_add(mc_inks *inks, mc_color color);

typedef struct mc_ink_palette {
    mc_inks inks; /* in a fixed order */
    int count;
    uint8_t colors[256][4];                       /* premultiplied B, G, R, A; the first one is transparent */
    uint8_t laid[MC_INKS_MAX][256][MC_INK_STEPS]; /* the colour that results when an ink is laid over a colour */
    _Atomic uint16_t over[256][256];              /* a colour over another: 1 + index; 0: not looked for so far */
} mc_ink_palette;

/*
 * The palette of some inks, the same for every order of the inks. The palette is kept for the process, and valid as
 * long as `pool`. NULL where no palette is good enough. The first call for some inks takes some milliseconds.
 */
mc_ink_palette *mc_ink_palette_get(const mc_inks *inks, apr_pool_t *pool);

/* The number of an ink; -1: the colour is no ink of the palette. */
int mc_ink_palette_index(const mc_ink_palette *palette, mc_color color);

/* Finds and remembers the colour that results when colour `upper` is laid over colour `lower`. */
uint8_t mc_ink_palette_find_over(mc_ink_palette *palette, uint8_t upper, uint8_t lower);

static inline uint8_t
mc_ink_palette_over(mc_ink_palette *palette, uint8_t upper, uint8_t lower)
{
    uint16_t known = atomic_load_explicit(&palette->over[upper][lower], memory_order_relaxed);
    return known != 0 ? (uint8_t)(known - 1) : mc_ink_palette_find_over(palette, upper, lower);
}

#endif
