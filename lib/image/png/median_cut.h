/* Median cut: the boxes into which the distinct colours of an image are split. */
#ifndef MC_IMAGE_PNG_MEDIAN_CUT_H
#define MC_IMAGE_PNG_MEDIAN_CUT_H

#include "image/png/color_table.h"

/* One number for each of B, G, R, A. */
typedef double mc_channels __attribute__((vector_size(4 * sizeof(double))));

/* One distinct colour. */
typedef struct mc_cut_entry {
    uint8_t color[4]; /* B, G, R, A */
    uint32_t weight;  /* pixels */
    uint32_t number;  /* in the table */
    uint32_t unused;  /* makes it one 16-byte move */
} mc_cut_entry;

/* A range of the entries, and the statistics of the range. All sums are whole numbers below 2^53, so they are exact. */
typedef struct mc_cut_box {
    mc_channels sums, squares; /* of the channels, by weight */
    double weight;             /* pixels */
    double mean;               /* along the widest axis */
    int axis;                  /* the widest: 0..3 */
    int first, count;
} mc_cut_box;

typedef struct mc_cut {
    mc_cut_box boxes[256];
    /* For each box the squared error along the widest axis, which is the gain of a cut of that box, as a key: the
     * error's bits as a float, which stand in the order of the numbers, over the box's number. */
    uint64_t errors[256];
    uint64_t worst[16]; /* of each sixteen boxes */
    mc_cut_entry entries[MC_COLORS_MAX], upper[MC_COLORS_MAX];
    int count; /* of boxes */
} mc_cut;

/* Parts cut->entries[0..count) into at most `maximum` (2..256) boxes. The entries change their order. */
void mc_cut_all(mc_cut *cut, int count, int maximum);

/* The colour that stands for a box: the colour of most of the box's pixels, else the mean. */
void mc_cut_color(uint8_t color[4], const mc_cut *cut, const mc_cut_box *box);

#endif
