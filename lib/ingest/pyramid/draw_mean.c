/*
 * Shrinking: each pixel of the tile is the mean of the part of the image that it covers, by area, of what holds data
 * there. Rows first: the rows of the image that a row of the tile covers are summed, then the columns.
 */
#include <math.h>
#include <string.h>

#include "ingest/pyramid/draw.h"
#include "ingest/pyramid/vec4f.h"
#include "memory/scratch.h"

/* What of source index `i` lies between a and b. */
static inline float
pixel_share(int i, double a, double b)
{
    return (float)(fmin(b, i + 1.0) - fmax(a, (double)i));
}

/* Sums of the columns that a tile needs, of one row of it. */
typedef struct mean_sums {
    mc_vec4f *colors; /* by column, weighted */
    float *weights;   /* of what holds data; by column */
    int first, count;
    bool opaque;
} mean_sums;

static void
add_weighted_row(const mean_sums *s, const uint8_t *row, float weight)
{
    const uint8_t *in = row + (size_t)s->first * 4;
    const mc_vec4f factor = mc_vec4f_splat(weight);
    for (int i = 0; i < s->count; i++, in += 4)
        s->colors[i] += mc_vec4f_load(in) * factor;
    in = row + (size_t)s->first * 4;
    for (int i = 0; !s->opaque && i < s->count; i++, in += 4)
        s->weights[i] += in[3] != 0 ? weight : 0;
}

/* The sums of the rows of the image between top and bottom; their weight is returned. */
static float
add_rows(const mean_sums *s, const mc_pixels *rows, int first, int height, double top, double bottom)
{
    float total = 0;
    int from = (int)fmax(0, floor(top)), to = (int)fmin(height, ceil(bottom));
    memset(s->colors, 0, sizeof(mc_vec4f) * (size_t)s->count);
    if (!s->opaque)
        memset(s->weights, 0, sizeof(float) * (size_t)s->count);
    for (int row = from; row < to; row++) {
        float weight = pixel_share(row, top, bottom);
        if (!(weight > 0) || row < first || row >= first + rows->height)
            continue;
        add_weighted_row(s, rows->data + (size_t)(row - first) * rows->stride, weight);
        total += weight;
    }
    return total;
}

/* One pixel: the columns between left and right. False where there is no data. */
static bool
mean_of_columns(uint8_t *out, const mean_sums *s, double left, double right, float total)
{
    mc_vec4f color = { 0 };
    float weight = 0;
    int from = (int)floor(left) - s->first, to = (int)ceil(right) - s->first;
    from = from < 0 ? 0 : from;
    to = to > s->count ? s->count : to;
    for (int i = from; i < to; i++) {
        float part = pixel_share(i + s->first, left, right);
        color += s->colors[i] * mc_vec4f_splat(part);
        weight += part * (s->opaque ? total : s->weights[i]);
    }
    if (!(weight > 1e-6F) || !(color[3] > 0))
        return false;
    mc_vec4f_store(out, color / mc_vec4f_splat(weight));
    return out[3] != 0;
}

/* A whole row of the tile: as `mean`, of pixels whose centre lies on the image. */
static bool
mean_row(uint8_t *out, const mean_sums *s, const mc_image_placement_scale *scale, int width, int image_width,
         float total)
{
    bool changed = false;
    for (int x = 0; x < width; x++) {
        double left = scale->x0 + x * scale->scale_x, right = left + scale->scale_x, centre = (left + right) / 2;
        uint8_t pixel[4];
        if (!(centre >= 0) || !(centre < image_width) || !mean_of_columns(pixel, s, left, right, total))
            continue;
        memcpy(out + (size_t)x * 4, pixel, 4);
        changed = true;
    }
    return changed;
}

void
mc_draw_mean(bool *changed, mc_pixels *tile, const mc_pixels *rows, int first, int height,
             const mc_image_placement_scale *scale)
{
    double left = scale->x0, right = left + tile->width * scale->scale_x;
    mean_sums s = { .first = (int)fmax(0, floor(left)), .opaque = rows->opacity == MC_OPAQUE };
    s.count = (int)fmin(rows->width, ceil(right)) - s.first;
    if (s.count <= 0)
        return;
    s.colors = mc_scratch_require((size_t)s.count * (sizeof(mc_vec4f) + sizeof(float)));
    MC_ASSERT(s.colors != NULL);
    s.weights = (float *)(void *)(s.colors + s.count);
    for (int y = 0; y < tile->height; y++) {
        double top = scale->y0 + y * scale->scale_y, bottom = top + scale->scale_y, centre = (top + bottom) / 2;
        if (!(centre >= 0) || !(centre < height))
            continue;
        float total = add_rows(&s, rows, first, height, top, bottom);
        if (total > 0 && mean_row(tile->data + (size_t)y * tile->stride, &s, scale, tile->width, rows->width, total))
            *changed = true;
    }
    tile->opacity = MC_OPACITY_UNKNOWN;
    mc_scratch_release(s.colors);
}
