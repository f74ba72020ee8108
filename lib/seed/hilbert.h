/* Hilbert's curve through a square whose side is a power of two (Hilbert, 1891). */
#ifndef MC_SEED_HILBERT_H
#define MC_SEED_HILBERT_H

/* The curve enters a square in one of four ways; each is an order of the quarters (bit 0: right, bit 1: upper) and the
 * ways through them. Way 0 is that of the whole square. */
typedef struct mc_hilbert_way {
    unsigned char quarter[4], way[4];
} mc_hilbert_way;

static const mc_hilbert_way mc_hilbert[4] = {
    { { 0, 2, 3, 1 }, { 1, 0, 0, 3 } },
    { { 0, 1, 3, 2 }, { 0, 1, 1, 2 } },
    { { 3, 1, 0, 2 }, { 3, 2, 2, 1 } },
    { { 3, 2, 0, 1 }, { 2, 3, 3, 0 } },
};

#endif
