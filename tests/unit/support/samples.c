#include "samples.h"

static uint32_t sample_state = 1;

uint32_t
sample_random(void)
{
    sample_state = sample_state * 1664525u + 1013904223u;
    return sample_state >> 8;
}

void
sample_set(mc_pixels *pixels, int x, int y, unsigned r, unsigned g, unsigned b, unsigned a)
{
    uint8_t *at = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
    at[0] = (uint8_t)((b * a + 127) / 255);
    at[1] = (uint8_t)((g * a + 127) / 255);
    at[2] = (uint8_t)((r * a + 127) / 255);
    at[3] = (uint8_t)a;
}

void
sample_map(mc_pixels *pixels, int shift)
{
    for (int y = 0; y < pixels->height; y++) {
        for (int x = 0; x < pixels->width; x++) {
            double v = 2 * (3 + sin((x + shift) / 17.0) + cos(y / 23.0) + sin((x + y) / 41.0));
            unsigned step = (unsigned)v, rgb[3];
            double t = v - step < 0.06 ? (v - step) / 0.06 : 1;
            for (unsigned c = 0; c < 3; c++) {
                double lower = (step + 11) * (37 + 20 * c) % 160, upper = (step + 12) * (37 + 20 * c) % 160;
                rgb[c] = (unsigned)(70 + lower + (upper - lower) * t);
            }
            sample_set(pixels, x, y, rgb[0], rgb[1], rgb[2], 255);
        }
    }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

void
sample_photo(mc_pixels *pixels)
{
    for (int y = 0; y < pixels->height; y++) {
        for (int x = 0; x < pixels->width; x++) {
            double v = 90 + 60 * sin(x / 31.0) * cos(y / 27.0);
            unsigned n = sample_random() % 24;
            sample_set(pixels, x, y, (unsigned)v + n, (unsigned)(v * 0.8) + n / 2, (unsigned)(v * 0.6) + n / 3, 255);
        }
    }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

void
sample_overlay(mc_pixels *pixels)
{
    for (int y = 0; y < pixels->height; y++) {
        for (int x = 0; x < pixels->width; x++) {
            unsigned kind = (unsigned)((x / 7 + y / 5) % 3);
            unsigned alpha = kind == 0 ? 0 : kind == 1 ? 255 : sample_random() % 256;
            sample_set(pixels, x, y, sample_random() % 256, sample_random() % 256, sample_random() % 256, alpha);
        }
    }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

int
sample_difference(const mc_pixels *a, const mc_pixels *b)
{
    int worst = 0;
    if (a->width != b->width || a->height != b->height)
        return 256;
    for (int y = 0; y < a->height; y++) {
        for (int i = 0; i < a->width * 4; i++) {
            int d = abs(a->data[(size_t)y * a->stride + (size_t)i] - b->data[(size_t)y * b->stride + (size_t)i]);
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}
