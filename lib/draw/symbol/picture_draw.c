/* Pictures laid over the map: see picture.h. */
#include <math.h>
#include <string.h>

#include "draw/raster/brush.h"
#include "draw/symbol/picture.h"

/* Whole pixels: it stays as sharp as it is. */
static void
draw_upright(mc_pixels *target, const mc_pixels *picture, const mc_placing *placing, unsigned opacity)
{
    double x = placing->at.x - placing->anchor_x * picture->width * MC_SUBPIXELS;
    double y = placing->at.y - (1 - placing->anchor_y) * picture->height * MC_SUBPIXELS;
    int left = (int)floor(x / MC_SUBPIXELS + 0.5), top = (int)floor(y / MC_SUBPIXELS + 0.5);
    int first = left < 0 ? -left : 0,
        last = target->width - left < picture->width ? target->width - left : picture->width;
    for (int row = top < 0 ? -top : 0; row < picture->height && top + row < target->height; row++) {
        const uint8_t *source = picture->data + (size_t)row * picture->stride;
        uint8_t *to = target->data + (size_t)(top + row) * target->stride;
        for (int i = first; i < last; i++)
            if (source[4 * i + 3] != 0)
                mc_brush_pixel(to + 4 * (left + i), source + 4 * i, opacity);
    }
}

/* The four pixels around a place of the picture, weighted; outside of it all is transparent. */
static void
sample_picture_at(uint8_t bgra[4], const mc_pixels *picture, double x, double y)
{
    int left = (int)floor(x - 0.5), top = (int)floor(y - 0.5);
    double fx = x - 0.5 - left, fy = y - 0.5 - top, sum[4] = { 0 };
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            int column = left + i, row = top + j;
            if (column < 0 || row < 0 || column >= picture->width || row >= picture->height)
                continue;
            double weight = (i == 0 ? 1 - fx : fx) * (j == 0 ? 1 - fy : fy);
            const uint8_t *p = picture->data + (size_t)row * picture->stride + (size_t)column * 4;
            for (int c = 0; c < 4; c++)
                sum[c] += weight * p[c];
        }
    for (int c = 0; c < 4; c++)
        bgra[c] = (uint8_t)lrint(sum[c]);
}

static int
clamp_pixel(double value, int most)
{
    return (int)fmin(most, fmax(0, value));
}

static void
draw_turned(mc_pixels *target, const mc_pixels *picture, const mc_placing *placing, unsigned opacity)
{
    double angle = placing->turn * M_PI / 180, cosine = cos(angle), sine = sin(angle);
    double ax = placing->anchor_x * picture->width, ay = (1 - placing->anchor_y) * picture->height;
    double reach = hypot(fmax(ax, picture->width - ax), fmax(ay, picture->height - ay)) + 1;
    double x = (double)placing->at.x / MC_SUBPIXELS, y = (double)placing->at.y / MC_SUBPIXELS;
    int left = clamp_pixel(floor(x - reach), target->width), right = clamp_pixel(ceil(x + reach), target->width);
    int bottom = clamp_pixel(ceil(y + reach), target->height);
    for (int row = clamp_pixel(floor(y - reach), target->height); row < bottom; row++)
        for (int column = left; column < right; column++) {
            /* From whole numbers on, so that it is the same in every tile. */
            double dx = (double)(column * MC_SUBPIXELS + MC_SUBPIXELS / 2 - placing->at.x) / MC_SUBPIXELS;
            double dy = (double)(row * MC_SUBPIXELS + MC_SUBPIXELS / 2 - placing->at.y) / MC_SUBPIXELS;
            double u = dx * cosine + dy * sine + ax, v = dy * cosine - dx * sine + ay;
            uint8_t bgra[4];
            if (u <= -0.5 || v <= -0.5 || u >= picture->width + 0.5 || v >= picture->height + 0.5)
                continue;
            sample_picture_at(bgra, picture, u, v);
            mc_brush_pixel(target->data + (size_t)row * target->stride + (size_t)column * 4, bgra, opacity);
        }
}

void
mc_picture_draw(mc_pixels *target, const mc_pixels *picture, const mc_placing *placing, unsigned opacity)
{
    if (placing->turn == 0)
        draw_upright(target, picture, placing, opacity);
    else
        draw_turned(target, picture, placing, opacity);
}
