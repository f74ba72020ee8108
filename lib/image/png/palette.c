/* The palette of an image that has few colours. */
#include <string.h>

#include "image/png/png.h"

enum { SLOTS = 1024 };

typedef struct entries {
    uint16_t slots[SLOTS]; /* 1 + index; 0: free */
    uint32_t colors[256];
    int count;
} entries;

static inline int
find_palette_number(entries *seen, uint32_t color, int maximum)
{
    uint32_t slot = (color * 0x9e3779b1u) >> 22;
    for (; seen->slots[slot] != 0; slot = (slot + 1) % SLOTS)
        if (seen->colors[seen->slots[slot] - 1] == color)
            return seen->slots[slot] - 1;
    if (seen->count == maximum)
        return -1;
    seen->colors[seen->count] = color;
    seen->slots[slot] = (uint16_t)(seen->count + 1);
    return seen->count++;
}

/* False as soon as there is one colour too many. */
static bool
index_rows(entries *seen, uint8_t *indices, const mc_pixels *pixels, int maximum)
{
    uint32_t previous;
    memcpy(&previous, pixels->data, 4);
    int number = find_palette_number(seen, previous, maximum);
    for (int y = 0; y < pixels->height; y++) {
        const uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        uint8_t *out = indices + (size_t)y * (size_t)pixels->width;
        for (int x = 0; x < pixels->width; x++) {
            uint32_t color;
            memcpy(&color, row + (size_t)x * 4, 4);
            if (color != previous) {
                number = find_palette_number(seen, color, maximum);
                if (number < 0)
                    return false;
                previous = color;
            }
            out[x] = (uint8_t)number;
        }
    }
    return true;
}

bool
mc_palette_exact(mc_palette *palette, uint8_t *indices, const mc_pixels *pixels, int maximum)
{
    entries seen = { .count = 0 };
    if (!index_rows(&seen, indices, pixels, maximum))
        return false;
    /* Those that are not opaque come first: tRNS ends with the last of them. */
    uint8_t place[256];
    palette->count = 0;
    palette->translucent = 0;
    for (int opaque = 0; opaque < 2; opaque++) {
        for (int i = 0; i < seen.count; i++) {
            uint8_t bgra[4];
            memcpy(bgra, &seen.colors[i], 4);
            if ((bgra[3] == 255) != (opaque == 1))
                continue;
            place[i] = (uint8_t)palette->count;
            memcpy(palette->colors[palette->count++], bgra, 4);
        }
        if (opaque == 0)
            palette->translucent = palette->count;
    }
    if (palette->translucent == 0 || palette->translucent == seen.count)
        return true; /* their order has not changed */
    size_t total = (size_t)pixels->width * (size_t)pixels->height;
    for (size_t i = 0; i < total; i++)
        indices[i] = place[indices[i]];
    return true;
}
