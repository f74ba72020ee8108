/*
 * See ink_palette.h. The farthest of all colours that laying can make joins the palette until all are near enough
 * (Gonzalez, 1985), first those between two inks, then all. Colours are compared by their most different channel,
 * sixteen at once.
 */
#include "draw/raster/ink_palette.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory/clock_cache.h"

enum {
    KEPT_BYTES = 4 << 20,
    BETWEEN = MC_INK_STEPS - 2, /* steps between nothing and all */
    PAIRS_NEAR = 8,             /* colours between two inks come this near to what they should be, */
    ALL_NEAR = 4,               /* others that near, if there is room */
    LANES = 16,
};

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static struct {
    pthread_once_t once;
    mc_clock_cache *table; /* of mc_ink_palette, by mc_inks; with no colours at all where they do not suit */
} kept = { .once = PTHREAD_ONCE_INIT };

static void
create_palette_table(void)
{
    kept.table = mc_clock_cache_create(KEPT_BYTES);
}

/* Colours, each channel by itself. */
typedef struct colors {
    lanes *channels[4];
    int count;
} colors;

typedef struct building {
    mc_ink_palette *palette;
    colors made;               /* of each colour of the palette with each ink in each step between */
    lanes *distance, *nearest; /* of what is made: in the palette */
} building;

bool
mc_inks_add(mc_inks *inks, mc_color color)
{
    for (int i = 0; i < inks->count; i++)
        if (memcmp(&inks->colors[i], &color, sizeof(color)) == 0)
            return true;
    if (color.alpha != 255 || inks->count == MC_INKS_MAX)
        return false;
    inks->colors[inks->count++] = color;
    return true;
}

int
mc_ink_palette_index(const mc_ink_palette *palette, mc_color color)
{
    for (int i = 0; i < palette->inks.count; i++)
        if (memcmp(&palette->inks.colors[i], &color, sizeof(color)) == 0)
            return i;
    return -1;
}

static void
put_color_channels(colors *to, const uint8_t bgra[4])
{
    for (int c = 0; c < 4; c++)
        ((uint8_t *)to->channels[c])[to->count] = bgra[c];
    to->count++;
}

/* Of sixteen colours to one. */
static inline lanes
color_distances(const colors *from, int block, const uint8_t bgra[4])
{
    lanes most = { 0 };
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        lanes a = from->channels[c][block], b = (lanes){ 0 } + bgra[c];
        lanes apart = ((a - b) & (lanes)(a > b)) | ((b - a) & (lanes)(b > a));
        most = (most & (lanes)(most > apart)) | (apart & (lanes)(apart >= most));
    }
    return most;
}

/* What is made, from a block on, may have its nearest colour in an entry of the palette. */
static void
update_nearest_entry(building *b, int from, int entry)
{
    const uint8_t *bgra = b->palette->colors[entry];
    lanes self = (lanes){ 0 } + (uint8_t)entry;
    for (int block = from; block * LANES < b->made.count; block++) {
        lanes apart = color_distances(&b->made, block, bgra), nearer = (lanes)(apart < b->distance[block]);
        b->distance[block] = (apart & nearer) | (b->distance[block] & ~nearer);
        b->nearest[block] = (self & nearer) | (b->nearest[block] & ~nearer);
    }
}

static void
colour_made(uint8_t bgra[4], const mc_ink_palette *palette, int entry, int ink, int step)
{
    memcpy(bgra, palette->colors[entry], 4);
    mc_brush_color(bgra, palette->inks.colors[ink], (uint8_t)(step * 17));
}

static void
add_entry(building *b, const uint8_t bgra[4])
{
    mc_ink_palette *palette = b->palette;
    int entry = palette->count++, first = b->made.count;
    memcpy(palette->colors[entry], bgra, 4);
    update_nearest_entry(b, 0, entry);
    for (int ink = 0; ink < palette->inks.count; ink++)
        for (int step = 1; step <= BETWEEN; step++) {
            uint8_t made[4];
            colour_made(made, palette, entry, ink, step);
            ((uint8_t *)b->distance)[b->made.count] = 255;
            put_color_channels(&b->made, made);
        }
    for (int of = 0; of <= entry; of++)
        update_nearest_entry(b, first / LANES, of);
}

/* The farthest of the first `count` colours that are made. */
static int
find_farthest_color(const building *b, int count, uint8_t *distance)
{
    lanes most = { 0 };
    int blocks = (count + LANES - 1) / LANES, found = 0;
    for (int block = 0; block < blocks; block++)
        most = (most & (lanes)(most > b->distance[block])) | (b->distance[block] & (lanes)(b->distance[block] >= most));
    *distance = 0;
    for (int i = 0; i < LANES; i++)
        *distance = most[i] > *distance ? most[i] : *distance;
    while (found < blocks * LANES - 1 && ((const uint8_t *)b->distance)[found] != *distance)
        found++;
    return found;
}

/* Adds what is farthest until all of those that are made of the first `entries` colours (0: of all) are near. */
static uint8_t
fill_palette(building *b, int entries, uint8_t near)
{
    uint8_t distance;
    for (;;) {
        int of = entries > 0 ? entries : b->palette->count;
        int found = find_farthest_color(b, of * b->palette->inks.count * BETWEEN, &distance);
        if (distance <= near || b->palette->count == 256)
            return distance;
        uint8_t bgra[4];
        for (int c = 0; c < 4; c++)
            bgra[c] = ((uint8_t *)b->made.channels[c])[found];
        add_entry(b, bgra);
    }
}

static void
write_tables(const building *b)
{
    mc_ink_palette *palette = b->palette;
    for (int entry = 0; entry < palette->count; entry++)
        for (int ink = 0; ink < palette->inks.count; ink++) {
            uint8_t *steps = palette->laid[ink][entry];
            steps[0] = (uint8_t)entry;
            memcpy(steps + 1, (uint8_t *)b->nearest + (size_t)(entry * palette->inks.count + ink) * BETWEEN, BETWEEN);
            steps[MC_INK_STEPS - 1] = (uint8_t)(ink + 1);
        }
}

/* Fills the palette and its tables; false where it does not suit. `room` holds all planes, which are 0. */
static bool
build_palette(mc_ink_palette *palette, lanes *room, size_t blocks)
{
    building b = { .palette = palette };
    for (int c = 0; c < 4; c++)
        b.made.channels[c] = room + (size_t)c * blocks;
    b.distance = room + 4 * blocks;
    b.nearest = room + 5 * blocks;
    add_entry(&b, (uint8_t[4]){ 0 });
    for (int i = 0; i < palette->inks.count; i++) {
        uint8_t bgra[4] = { 0 };
        mc_brush_color(bgra, palette->inks.colors[i], 255);
        add_entry(&b, bgra);
    }
    if (fill_palette(&b, palette->count, PAIRS_NEAR) > MC_INK_ERROR_MAX ||
        fill_palette(&b, 0, ALL_NEAR) > MC_INK_ERROR_MAX)
        return false;
    write_tables(&b);
    return true;
}

static mc_ink_palette *
create_ink_palette(const mc_inks *inks)
{
    mc_ink_palette *palette = calloc(1, sizeof(*palette));
    size_t blocks = (size_t)(256 * inks->count * BETWEEN) / LANES + 1;
    size_t bytes = sizeof(lanes) * 6 * blocks;
    lanes *room = aligned_alloc(sizeof(lanes), bytes);
    if (palette == NULL || room == NULL) {
        free(palette);
        free(room);
        return NULL;
    }
    memset(room, 0, bytes);
    palette->inks = *inks;
    if (!build_palette(palette, room, blocks))
        palette->count = 0;
    free(room);
    return palette;
}

static int
by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(mc_color));
}

static apr_status_t
release_palette_entry(void *entry)
{
    mc_clock_cache_release(entry);
    return APR_SUCCESS;
}

mc_ink_palette *
mc_ink_palette_get(const mc_inks *inks, apr_pool_t *pool)
{
    mc_inks key;
    mc_clock_cache_entry *entry;
    if (inks->count == 0)
        return NULL;
    memset(&key, 0, sizeof(key));
    key.count = inks->count;
    memcpy(key.colors, inks->colors, sizeof(mc_color) * (size_t)inks->count);
    qsort(key.colors, (size_t)key.count, sizeof(mc_color), by_bytes);
    pthread_once(&kept.once, create_palette_table);
    mc_ink_palette *found = mc_clock_cache_get(kept.table, &entry, &key, sizeof(key));
    if (found == NULL) {
        mc_ink_palette *made = create_ink_palette(&key);
        if (made == NULL || !mc_clock_cache_put(kept.table, &key, sizeof(key), made, sizeof(*made), free))
            return NULL;
        found = mc_clock_cache_get(kept.table, &entry, &key, sizeof(key));
        if (found == NULL)
            return NULL;
    }
    apr_pool_cleanup_register(pool, entry, release_palette_entry, apr_pool_cleanup_null);
    return found->count > 0 ? found : NULL;
}

uint8_t
mc_ink_palette_find_over(mc_ink_palette *palette, uint8_t upper, uint8_t lower)
{
    uint8_t bgra[4];
    int best = 0, least = 256;
    memcpy(bgra, palette->colors[lower], 4);
    mc_brush_pixel(bgra, palette->colors[upper], 255);
    for (int i = 0; i < palette->count && least > 0; i++) {
        int most = 0;
        for (int c = 0; c < 4; c++) {
            int apart = abs(palette->colors[i][c] - bgra[c]);
            most = apart > most ? apart : most;
        }
        if (most < least) {
            least = most;
            best = i;
        }
    }
    atomic_store_explicit(&palette->over[upper][lower], (uint16_t)(best + 1), memory_order_relaxed);
    return (uint8_t)best;
}
