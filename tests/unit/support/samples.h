/* Images for tests: what maps, photographs and overlays look like, from a fixed sequence of numbers. */
#ifndef MC_TEST_SAMPLES_H
#define MC_TEST_SAMPLES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/image.h"

uint32_t sample_random(void);
void sample_set(mc_pixels *pixels, int x, int y, unsigned r, unsigned g, unsigned b, unsigned a);

/* Flat areas of a dozen colours with softened borders: some hundred colours in all. */
void sample_map(mc_pixels *pixels, int shift);
void sample_photo(mc_pixels *pixels);

/* Any premultiplied pixel, with many that are wholly transparent or opaque. */
void sample_overlay(mc_pixels *pixels);

/* The largest difference of any channel; 256 for different sizes. */
int sample_difference(const mc_pixels *a, const mc_pixels *b);

#endif
